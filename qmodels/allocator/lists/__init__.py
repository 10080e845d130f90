"""Chains of what a free list holds: its next blocks, its length, the blocks that return."""
