"""Queueing networks as structure: stations, classes, routing."""
