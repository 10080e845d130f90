"""Hardware simulators and recorded traces, whose truth is the mean of many other, longer replications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.laws.times import Exponential, Replay
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.kind import kind_named
from qmodels.systems.stations.queueing_network import single_station

TRACE = 4000
"""Gaps of a trace."""


class Measured(NamedTuple):
    """A system, the metric looked at, the option that sets its length, and how many seeds it is worth."""

    name: str
    spec: Any
    metric: str
    length: Mapping[str, int]
    seeds: int
    longer: int


VARIED: Mapping[str, tuple[str, dict[str, int], int, dict[str, Mapping[str, Any]]]] = {
    "dram": ("read_latency", {"accesses": 5000}, 100, {
        "load 0.1": {"traffic.arrival_rate": 0.02},
        "as it starts": {},
        "high load": {"traffic.arrival_rate": 0.1},
        "two channels": {"geometry.channels": 2, "traffic.arrival_rate": 0.1},
        "writes": {"traffic.write_fraction": 0.3},
        "closed pages": {"page_policy": "closed"},
    }),
    "noc": ("packet_latency", {"packets": 500}, 40, {
        "flits": {},
        "flits, more load": {"injection_rate": 0.03},
        "flits, narrow links": {"link_width": 8, "injection_rate": 0.015},
    }),
    "cache": ("hit_ratio", {"requests": 5000}, 60, {
        "as it starts": {},
        "small": {"shared.lines": 1024},
        "popular few": {"popularity.exponent": 1.1},
    }),
    "llc-processor": ("response_latency", {"requests": 2000}, 40, {
        "load 0.3": {"load": 0.3},
        "load 0.5": {"load": 0.5},
        "as it starts": {},
    }),
    "system": ("latency", {"passages": 1000}, 40, {
        "light": {"flows.lookups.rate": 0.01},
        "as it starts": {},
        "heavy": {"flows.lookups.rate": 0.05},
    }),
    "work-queues": ("execution_time", {}, 60, {
        "equal tasks": {},
        "random tasks": {"costs.compute_scv": 1.0},
    }),
    "packet-processor": ("packet_latency", {"packets": 1000}, 20, {
        "load 0.3": {"workload.load_factor": 0.3},
        "load 0.6": {"workload.load_factor": 0.6},
    }),
}  # fmt: skip
"""Of each kind the metric, the length of a run, seeds, and what is varied."""


def hardware() -> Iterator[Measured]:
    """Yield the hardware simulators at a few points each."""
    for kind, (metric, length, seeds, points) in VARIED.items():
        for name, changes in points.items():
            spec = replace_fields(kind_named(kind).starter(), changes)
            # A kind without a length ends by itself: its truth is more replications, not longer ones.
            more = (24 if kind == "noc" else 8) if length else 1
            yield Measured(f"{kind}: {name}", spec, metric, length, seeds, more)


def recorded() -> Iterator[Measured]:
    """Yield queues fed by traces: gaps of no memory, and gaps whose level holds for hundreds of them."""
    rng = np.random.default_rng(20)
    plain = rng.exponential(size=TRACE)
    level = np.repeat(np.where(rng.random(TRACE // 200) < 0.5, 0.8, 1.6), 200)
    for name, gaps in (("without memory", plain), ("with levels", plain * level)):
        gaps = gaps / gaps.mean()
        for part, passages in (("whole", 2 * TRACE), ("a part", TRACE // 2)):
            spec = single_station(arrivals=Replay(values=tuple(gaps)), service=Exponential(mean=0.7))
            yield Measured(f"trace {name}, {part}", spec, "mean_waiting_time", {"passages": passages}, 100, 8)


EXCLUDED = {
    "message-program": "nothing in it is random: the interval is the value",
    "numa": "nothing in its programs is random: the interval is the value",
    "data-queueing": "9 s a simulation (four million segments are listed first): too dear for 100 seeds",
}
"""Kinds that the table leaves out, and why."""
