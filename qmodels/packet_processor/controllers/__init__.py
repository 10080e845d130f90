"""The memory of a packet processor behind the controllers of a `DramSystem`."""
