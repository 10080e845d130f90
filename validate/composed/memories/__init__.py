"""Memories whose banks are busy for a while, inside a system of parts."""
