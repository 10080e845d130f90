"""The model of DRAM systems: waits at banks and buses, bandwidth, quantiles."""
