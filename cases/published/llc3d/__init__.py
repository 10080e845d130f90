"""Korikawa et al. (IEEE Access 2020): a packet processor with LLC slices and stacked DRAM."""
