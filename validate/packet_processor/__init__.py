"""The simulator of the joint packet processor."""
