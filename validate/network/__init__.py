"""The simulator of queueing networks."""
