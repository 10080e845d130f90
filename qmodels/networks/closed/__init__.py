"""Closed networks: exact, approximate and bounding solutions."""
