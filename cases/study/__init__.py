"""The joint exploration: from traffic and questions to a recommended design, checked by simulation."""

PACKETS = 6_000
"""Packets of a replication of a packet processor: few of many designs, enough for closed runs to settle."""
