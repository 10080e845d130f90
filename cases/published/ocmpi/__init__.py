"""Joven et al., "QoS-ocMPI": message passing with priorities on a network-on-chip."""
