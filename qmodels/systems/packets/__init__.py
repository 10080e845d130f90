"""Packet processors and the data-queueing module: their components and what they cost."""
