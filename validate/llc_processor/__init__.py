"""The packet processor with private caches, LLC slices and interleaved DRAM: its system of parts."""
