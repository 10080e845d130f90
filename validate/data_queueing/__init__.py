"""The simulator of the data-queueing module."""
