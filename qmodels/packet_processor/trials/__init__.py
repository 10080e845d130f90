"""Allocation trials, rows and conflicts at the banks of the joint processor."""
