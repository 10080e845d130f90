"""The metric names every verb shares, with their units."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """Unit and meaning of one metric of a packet processor."""

    unit: str
    meaning: str


def is_relative(metric: str) -> bool:
    """Return whether the error of a metric is stated relative to its value: all but shares of one."""
    return METRICS[metric].unit != "1" or "accesses" in metric


METRICS: dict[str, Metric] = {
    "packet_latency": Metric("ns", "mean of lookup, write and read latency together; the hold is excluded"),
    "packet_latency_p99": Metric("ns", "99th percentile of the packet latency"),
    "lookup_latency": Metric("ns", "mean time from arrival to the end of the last table lookup"),
    "write_latency": Metric("ns", "mean time from the last lookup until every segment is in DRAM"),
    "read_latency": Metric("ns", "mean time from the drain order until the last segment is back"),
    "throughput": Metric("Gb/s", "packet bits that leave, per time"),
    "saturation_throughput": Metric(
        "Gb/s", "packet bits that can be sustained when the first resource is full"
    ),
    "write_conflict_probability": Metric("1", "segment writes that meet their bank busy with another row"),
    "read_conflict_probability": Metric("1", "segment reads that meet their bank busy with another row"),
    "row_hit_ratio": Metric("1", "DRAM accesses (writes, reads, lookup misses) to an open row"),
    "pointer_accesses_per_allocation": Metric("1", "pointer-memory accesses of one block allocation, mean"),
    "max_pointer_accesses_per_allocation": Metric(
        "1", "pointer-memory accesses of one block allocation, most"
    ),
    "llc_hit_ratio": Metric("1", "lookups answered by an LLC slice"),
    "overflow_probability": Metric(
        "1", "segments refused because the free list was too short for their packet"
    ),
    "blocking_probability": Metric("1", "packets refused because the free list was too short"),
    "max_utilization": Metric("1", "busy fraction of the busiest resource"),
    "energy_per_packet": Metric("nJ", "dynamic and background energy per carried packet"),
    "cost": Metric("mm2", "area equivalent of controllers, routers, wires, slices and pointer memory"),
}
