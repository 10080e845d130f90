"""The simulation of a NUMA chip with DMA channels: its system of parts, and what it means for the chip."""
