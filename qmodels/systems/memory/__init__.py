"""Memories: DRAM devices, channels, address maps, and NUMA machines with DMA."""
