"""Compiled recursions over the visits and accesses of a DRAM bank or channel."""
