"""The simulation of a packet processor: its replications, their intervals, and whether it keeps up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.estimate import Estimate, exactly
from qmodels.systems.traffic.arrivals import Recorded
from validate.campaigns.experiment import Experiment
from validate.engine.histogram import INF
from validate.estimates.intervals import (
    CONFIDENCE,
    OVERLOAD_GROWTH,
    busy_interval,
    mean_interval,
    periodic_stability,
    probability_interval,
    ratio_interval,
    stability,
)
from validate.packet_processor.run import PARTS, Job, Run, replayed, run_replication
from validate.packet_processor.stations import energy_per_packet, stations

LATENCIES = ("packet_latency", "packet_latency_p99", "lookup_latency", "write_latency", "read_latency")
OVERLOAD_UTILIZATION = 0.995
FEWEST_SNAPSHOTS = 5
"""Snapshots of a run with few packets that say nothing of a growth."""


@dataclass(frozen=True, kw_only=True)
class PacketExperiment(Experiment):
    """The simulation of one packet processor; made by `validate.simulate`.

    Parameters
    ----------
    spec, seed, confidence
        See `Experiment`. Designs simulated with the same seed meet the same packets, and draw lookups and
        holds in the order in which they come to them.
    packets : int
        Packets that leave in each replication, at least 1000. A recorded trace is replayed in full rotations:
        as many as come nearest to ``packets``, at least one, after a warm-up of a quarter as many, at least
        one. The result says how many packets that are.
    saturation : bool
        Whether to run the closed system as well, for the saturation data rate: once for each
        replication of the first round.
    window : int
        Packets that circulate in the closed system, at most half of all.

    Raises
    ------
    ValueError
        If the spec has array fields or an argument is out of range.

    Notes
    -----
    What is simulated is `PacketProcessor.system`. The warm-up is dropped by MSER on the latencies of 100
    stretches, and not before the store has had five mean holds to fill. Intervals are Student's over the
    replications. The saturation data rate is that of a closed system with packets of the same sizes, where
    each packet that leaves is replaced at once and none is held.

    A recorded trace is one rotation of periodic traffic, whose first packet comes a mean gap after the last
    one. Full rotations are measured, begun at another packet in each replication; those before them are the
    warm-up, as many as five mean holds take. Intervals then show what holds, engines and addresses change,
    not what other traffic would.

    Where the design does not keep up, ``stable`` of the result is False and latencies are ``inf``;
    the other metrics are those of the overloaded system while it fills up.
    """

    packets: int = 20_000
    saturation: bool = True
    window: int = 512

    job_type: ClassVar[type[Job]] = Job
    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("packet_latency",)
    run_replication: ClassVar[staticmethod[[Job], Run]] = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse too few packets and no window."""
        checks.count("packets", self.packets, minimum=1000)
        checks.count("window", self.window)

    def lengths(self) -> list[tuple[str, float]]:
        """Return the packets that a replication simulates, those of the rotations of a trace."""
        replay = replayed(self.spec, self.packets)
        return [("packets", self.packets if replay is None else replay.total)]

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return open replications, in the first round followed by as many closed ones."""
        both: list[Job] = list(super().jobs(start, stop))
        opened = [replace(job, window=0) for job in both]
        return opened + both if self.saturation and start == 0 else opened

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Combine open and closed replications."""
        spec, confidence = self.spec, self.confidence
        opened, closed = [r for r in runs if not r.window], [r for r in runs if r.window]
        resources, full = (_resources(spec, each, confidence) for each in (opened, closed))
        utilization = _busiest(spec, resources)
        bottleneck = max(utilization, key=lambda name: utilization[name].best)
        metrics = _metrics(spec, opened, closed, confidence)
        metrics["max_utilization"] = utilization[bottleneck]
        stable = _keeps_up(spec, opened, metrics)
        parts = {
            name: mean_interval([r.parts[k] for r in opened], confidence=confidence)
            for k, name in enumerate(PARTS)
        }
        if stable is False:
            endless = exactly(INF, confidence=confidence)
            metrics |= dict.fromkeys(LATENCIES, endless)
            parts = dict.fromkeys(parts, endless)
        waited, served = (np.array([getattr(r, name) for r in opened]) for name in ("waited", "served"))
        return {
            "metrics": {name: metrics[name] for name in spec.metric_names if name in metrics},
            "latency_parts": parts,
            "utilization": utilization,
            "bottleneck": bottleneck,
            "details": {
                "saturation_utilization": _busiest(spec, full),
                "resources": resources,
                "waiting": {
                    name: ratio_interval(waited[:, k], served[:, k], confidence=confidence)
                    for k, name in enumerate(resources)
                },
                "growth": mean_interval([r.growth for r in opened], confidence=confidence),
            },
            "stable": stable,
            "short": any(r.short for r in runs),
            "replications": len(opened),
            "effort": {
                "packets per replication": opened[0].packets,
                "events": sum(r.sums["events"] for r in runs),
            },
        }


def _keeps_up(spec: PacketProcessor, runs: list[Run], metrics: Mapping[str, Estimate]) -> bool | None:
    """Return whether packets do not pile up, no server is always busy and the closed system carries as much.

    Where the packets in the system do not tell, what the closed system carries does.
    """
    busiest = max(np.sum([r.busy for r in runs], axis=0)) / sum(r.duration for r in runs)
    growth = mean_interval([r.growth for r in runs], confidence=CONFIDENCE)
    found = None
    if isinstance(spec.workload.arrivals, Recorded):
        found = periodic_stability([r.growth for r in runs])
    elif min(r.active.size for r in runs) >= FEWEST_SNAPSHOTS:
        found = stability([r.active for r in runs], left=[r.sums["packets"] for r in runs])
    if busiest >= OVERLOAD_UTILIZATION or growth.low > 0 and growth.best > OVERLOAD_GROWTH:
        return False
    carried = metrics.get("saturation_data_rate")
    if found is False or carried is None:
        return found
    workload = spec.workload
    accepted = workload.offered_gbps * workload.load_factor * (1 - metrics["blocking_probability"].best)
    return False if accepted > carried.high else True if accepted < carried.low else found


def _resources(spec: PacketProcessor, runs: list[Run], confidence: float) -> dict[str, Estimate]:
    """Return the busy share of every resource; of no runs nothing."""
    if not runs:
        return {}
    busy, durations = np.array([r.busy for r in runs]), [r.duration for r in runs]
    found = (busy_interval(column, durations, confidence=confidence) for column in busy.T)
    return dict(zip(chain(*stations(spec).values()), found, strict=True))


def _busiest(spec: PacketProcessor, resources: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """Return the busiest member of each group that has one."""
    return {
        group: max((resources[name] for name in names), key=lambda one: one.best)
        for group, names in stations(spec).items()
        if names and resources
    }


SHARES = {
    "write_conflict_probability": ("write conflicts", "writes"),
    "read_conflict_probability": ("read conflicts", "reads"),
    "row_hit_ratio": ("row hits", "accesses"),
    "llc_hit_ratio": ("lookup hits", "lookups"),
    "overflow_probability": ("blocked segments", "offered segments"),
    "blocking_probability": ("blocked packets", "offered packets"),
}
"""Metrics that are shares of what was counted."""


def _metrics(
    spec: PacketProcessor, opened: list[Run], closed: list[Run], confidence: float
) -> dict[str, Estimate]:
    parts = np.array([r.parts for r in opened])

    def total(name: str) -> npt.NDArray[np.int64]:
        return np.array([r.sums[name] for r in opened])

    def mean(values: npt.ArrayLike) -> Estimate:
        return mean_interval(values, confidence=confidence)

    def data_rate(runs: list[Run]) -> Estimate:
        bits = [8 * r.sums["bytes"] for r in runs]
        return ratio_interval(bits, [r.duration for r in runs], confidence=confidence)

    metrics = {
        "packet_latency": mean(parts.sum(axis=1)),
        "packet_latency_p99": mean([r.p99 for r in opened]),
        "lookup_latency": mean(parts[:, 0]),
        "write_latency": mean(parts[:, 1:4].sum(axis=1)),
        "read_latency": mean(parts[:, 4:7].sum(axis=1)),
        "data_rate": data_rate(opened),
        "pointer_accesses_per_allocation": ratio_interval(
            total("pointer accesses"), total("blocks"), confidence=confidence
        ),
        "max_pointer_accesses_per_allocation": exactly(
            float(total("most pointer accesses").max()), confidence=confidence
        ),
        "energy_per_packet": mean([energy_per_packet(spec, r) for r in opened]),
        "cost": exactly(float(spec.area), confidence=confidence),
    }
    for name, (above, below) in SHARES.items():
        metrics[name] = probability_interval(total(above), total(below), confidence=confidence)
    return metrics | ({"saturation_data_rate": data_rate(closed)} if closed else {})
