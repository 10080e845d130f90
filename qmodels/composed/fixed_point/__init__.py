"""The fixed point that a system of parts settles in."""
