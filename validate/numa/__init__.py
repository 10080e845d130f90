"""The simulator of a NUMA chip with DMA channels, access by access."""
