"""Caches and cache hierarchies, request by request."""
