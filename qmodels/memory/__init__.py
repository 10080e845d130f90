"""DRAM channel models."""
