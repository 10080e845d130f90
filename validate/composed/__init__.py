"""The simulation of a system that is composed of parts: its programs on one calendar of events."""
