"""The packet processor with private caches, LLC slices and interleaved DRAM, event by event."""
