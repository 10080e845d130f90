"""Writes that wait apart from reads and are written when none waits, or many at once."""
