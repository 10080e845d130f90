"""Specs as text: TOML and JSON read and written, and their schema."""
