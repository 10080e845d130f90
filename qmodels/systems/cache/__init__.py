"""Caches, slices of a last-level cache, and what is looked up in them."""
