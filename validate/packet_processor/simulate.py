"""The simulation of a packet processor: its replications, their intervals, and whether it keeps up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.answer import Answer
from qmodels.systems.traffic.arrivals import Recorded
from validate.campaigns.experiment import Experiment
from validate.estimates.statistics import (
    INF,
    Estimate,
    busy_interval,
    exactly,
    mean_interval,
    periodic_stability,
    probability_interval,
    ratio_interval,
    stability,
)
from validate.estimates.stopping import CONFIDENCE, OVERLOAD_GROWTH
from validate.packet_processor import counts as c
from validate.packet_processor.counts import energy_per_packet, station_groups, station_names
from validate.packet_processor.run import PARTS, Job, Run, replayed, run_replication

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

    def summarize(self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float) -> Answer:
        """Combine open and closed replications."""
        opened = [run for job, run in runs if not job.window]
        closed = [run for job, run in runs if job.window]
        return _summarise(self, opened, closed, seconds)


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
        found = stability([r.active for r in runs], left=[r.measured for r in runs])
    if busiest >= OVERLOAD_UTILIZATION or growth.low > 0 and growth.best > OVERLOAD_GROWTH:
        return False
    carried = metrics.get("saturation_data_rate")
    if found is False or carried is None:
        return found
    workload = spec.workload
    accepted = workload.offered_gbps * workload.load_factor * (1 - metrics["blocking_probability"].best)
    return False if accepted > carried.high else True if accepted < carried.low else found


def _summarise(experiment: PacketExperiment, opened: list[Run], closed: list[Run], seconds: float) -> Answer:
    spec, confidence = experiment.spec, experiment.confidence
    names, groups = station_names(spec), station_groups(spec)
    resources = dict(zip(names, _busy_fractions(opened, confidence), strict=True))
    utilization = _busiest(resources, names, groups)
    bottleneck = max(utilization, key=lambda name: utilization[name].best)
    full: dict[str, Estimate] = {}
    if closed:
        full = _busiest(dict(zip(names, _busy_fractions(closed, confidence), strict=True)), names, groups)
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
    waited = np.array([r.waited for r in opened])
    served = np.array([r.served for r in opened])
    return Answer.of_runs(
        spec=spec,
        metrics={name: metrics[name] for name in spec.metric_names if name in metrics},
        latency_parts=parts,
        utilization=utilization,
        bottleneck=bottleneck,
        details={
            "saturation_utilization": full,
            "resources": resources,
            "waiting": {
                name: ratio_interval(waited[:, k], served[:, k], confidence=confidence)
                for k, name in enumerate(names)
            },
            "growth": mean_interval([r.growth for r in opened], confidence=confidence),
        },
        stable=stable,
        short=any(r.short for r in opened + closed),
        seed=experiment.seed,
        replications=len(opened),
        effort={
            "packets per replication": opened[0].packets,
            "events": int(sum(r.counts[c.EVENTS] for r in opened + closed)),
        },
        seconds=seconds,
    )


def _busy_fractions(runs: list[Run], confidence: float) -> list[Estimate]:
    busy = np.array([r.busy for r in runs])
    durations = [r.duration for r in runs]
    return [busy_interval(column, durations, confidence=confidence) for column in busy.T]


def _busiest(
    resources: Mapping[str, Estimate], names: tuple[str, ...], groups: Mapping[str, slice]
) -> dict[str, Estimate]:
    """Return the busiest member of each group that has one."""
    return {
        group: max((resources[name] for name in names[members]), key=lambda estimate: estimate.best)
        for group, members in groups.items()
        if names[members]
    }


def _metrics(
    spec: PacketProcessor, opened: list[Run], closed: list[Run], confidence: float
) -> dict[str, Estimate]:
    counts = np.array([r.counts for r in opened])
    durations = np.array([r.duration for r in opened])
    parts = np.array([r.parts for r in opened])

    def mean(values: npt.ArrayLike) -> Estimate:
        return mean_interval(values, confidence=confidence)

    def share(events: int, trials: int) -> Estimate:
        return probability_interval(counts[:, events], counts[:, trials], confidence=confidence)

    def rate(above: npt.ArrayLike, below: npt.ArrayLike) -> Estimate:
        return ratio_interval(above, below, confidence=confidence)

    metrics = {
        "packet_latency": mean(parts.sum(axis=1)),
        "packet_latency_p99": mean([r.p99 for r in opened]),
        "lookup_latency": mean(parts[:, 0]),
        "write_latency": mean(parts[:, 1:4].sum(axis=1)),
        "read_latency": mean(parts[:, 4:7].sum(axis=1)),
        "data_rate": rate(8 * counts[:, c.LEFT_BYTES], durations),
        "write_conflict_probability": share(c.WRITE_CONFLICTS, c.WRITES),
        "read_conflict_probability": share(c.READ_CONFLICTS, c.READS),
        "row_hit_ratio": share(c.ROW_HITS, c.ACCESSES),
        "pointer_accesses_per_allocation": rate(counts[:, c.ALLOCATION_ACCESSES], counts[:, c.ALLOCATIONS]),
        "max_pointer_accesses_per_allocation": exactly(
            float(counts[:, c.MOST_ALLOCATION_ACCESSES].max()), confidence=confidence
        ),
        "llc_hit_ratio": share(c.LOOKUP_HITS, c.LOOKUPS),
        "overflow_probability": share(c.BLOCKED_SEGMENTS, c.OFFERED_SEGMENTS),
        "blocking_probability": share(c.BLOCKED_PACKETS, c.OFFERED_PACKETS),
        "energy_per_packet": mean([energy_per_packet(spec, r) for r in opened]),
        "cost": exactly(float(spec.area), confidence=confidence),
    }
    if closed:
        bits = [8 * r.counts[c.LEFT_BYTES] for r in closed]
        metrics["saturation_data_rate"] = rate(bits, [r.duration for r in closed])
    return metrics
