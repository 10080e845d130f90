"""The model of NUMA machines whose cores work on blocks that DMA channels fetch."""
