"""The 16-core SRP chip: image blurring and region growing on NUMA memory with DMA channels."""
