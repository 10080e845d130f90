"""Bounds of the packet processor's answer over boxes of specs, derived from its formulas."""
