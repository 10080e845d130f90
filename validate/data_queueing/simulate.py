"""The simulation of a data-queueing module, operation by operation: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.spec.estimate import Estimate, exactly
from qmodels.systems.traffic.arrivals import Recorded
from validate.campaigns import experiment
from validate.campaigns.experiment import Experiment
from validate.data_queueing import world as c
from validate.data_queueing.kernel import run
from validate.data_queueing.world import build_world, draw_packets
from validate.estimates.intervals import busy_interval, probability_interval, ratio_interval


@dataclass(frozen=True, kw_only=True)
class Job(experiment.Job):
    """One replication of a `DataQueueing`, see `validate.data_queueing.simulate.DataQueueingExperiment`."""

    packets: int
    warm_up: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    packets: int  # packets simulated, the warm-up included
    # Counters from the end of the warm-up to the last arrival, see `validate.data_queueing.world`.
    counts: IntArray
    # Of each operation: how often, its pointer accesses, and the most of them (warm-up included).
    operations: IntArray
    histograms: IntArray  # accesses of the allocations and of the deletions
    all_operations: int  # queue operations of the whole run, those after the last arrival included


def _lengths(job: Job) -> tuple[int, int]:
    """Return the packets of a replication and those before the counting begins: of a trace full rotations."""
    arrivals = job.spec.traffic.arrivals
    if not isinstance(arrivals, Recorded):
        return job.packets, int(job.warm_up * job.packets)
    rotations = max(round(job.packets / len(arrivals.trace)), 1 + (job.warm_up > 0))
    warm_up = min(max(round(job.warm_up * rotations), int(job.warm_up > 0)), rotations - 1)
    return rotations * len(arrivals.trace), warm_up * len(arrivals.trace)


def run_replication(job: Job) -> Run:
    """Run one replication and return its counts."""
    seed = np.random.SeedSequence(job.seed, spawn_key=(job.replication,))
    packets, warm_up = _lengths(job)
    offered = draw_packets(job.spec, seed=seed, packets=packets)
    world = build_world(job.spec, offered, seed=seed)
    run(world, warm_up)
    counts, operations, histograms = world.counts.copy(), world.operations.copy(), world.histograms.copy()
    run(world, packets)
    counts, histograms = world.counts - counts, world.histograms - histograms
    measured = world.operations - operations
    measured[:, 2] = world.operations[:, 2]
    run(world, packets + 1)
    return Run(
        packets=packets,
        counts=counts,
        operations=measured,
        histograms=histograms,
        all_operations=int(world.operations[:6, 0].sum()),
    )


@dataclass(frozen=True, kw_only=True)
class OperationCost:
    """Count of an operation, and its pointer-memory accesses: mean and most."""

    count: int
    mean_accesses: float
    max_accesses: int


@dataclass(frozen=True, kw_only=True)
class DataQueueingExperiment(Experiment):
    """The simulation of one data-queueing module; made by `validate.simulate`.

    Raises
    ------
    ValueError
        If the spec has array fields or an argument is out of range.

    Notes
    -----
    Metrics are counted from the end of the warm-up to the last arrival; the most accesses of an
    operation are those of all runs, the warm-up included. With too much load packets are refused:
    the overflow and blocking probabilities say how many, and all metrics stay finite.

    Examples
    --------
    >>> from qmodels.systems.packets.data_queueing import Allocation, DataMemory
    >>> from validate import simulate
    >>> spec = DataQueueing(
    ...     data=DataMemory(segments=4096), allocation=Allocation(vms1_size=4096, alloc_trial_count=3)
    ... )
    >>> result = simulate(spec, packets=2000, replications=2)
    >>> result.operations["allocate"].max_accesses <= 4
    True
    """

    # Packets of each replication, at least 100. Of a recorded trace the full rotations that come nearest, at
    # least two, of which the first are the warm-up
    packets: int = 100_000
    # Share of the packets before the counting begins, at least 0 and below 1. A free list is in its steady
    # state when it has been used up several times; a memory that is overloaded fills up before it overflows
    warm_up: float = 0.2

    job_type: ClassVar[type[Job]] = Job
    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("pointer_accesses_per_allocation",)
    run_replication: ClassVar[staticmethod[[Job], Run]] = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse too few packets and a warm-up of all."""
        checks.count("packets", self.packets, minimum=100)
        if not 0 <= self.warm_up < 1:
            raise ValueError(f"warm_up must be at least 0 and below 1, got {self.warm_up!r}")

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        together = np.sum([run.operations for run in runs], axis=0)
        most = np.max([run.operations[:, 2] for run in runs], axis=0)
        histograms = np.sum([run.histograms for run in runs], axis=0)
        operations = {
            name: OperationCost(
                count=int(together[k, 0]),
                mean_accesses=float(together[k, 1]) / max(1, int(together[k, 0])),
                max_accesses=int(most[k]),
            )
            for k, name in enumerate(c.OPERATIONS)
        }
        load = float(self.spec.traffic.load_factor)
        return {
            "metrics": _metrics(self.spec, runs, self.confidence),
            "utilization": {"output ports": _carried(load, runs, self.confidence)},
            "bottleneck": "output ports",
            "stable": load < 1.0,
            "effort": {
                "packets per replication": runs[0].packets,
                "queue operations": sum(run.all_operations for run in runs),
            },
            "details": {
                "operations": operations,
                "allocation_accesses": _shares(histograms[0]),
                "deletion_accesses": _shares(histograms[1]),
            },
            "facts": tuple(
                f"accesses to {name}: {cost.mean_accesses:.5g}, at most {cost.max_accesses}"
                for name, cost in operations.items()
            ),
        }


def _carried(load: float, runs: Sequence[Run], confidence: float) -> Estimate:
    """Return the share of the output ports' time that the segments admitted take: of all, at most."""
    offered = np.array([run.counts[c.OFFERED_SEGMENTS] for run in runs], dtype=float)
    taken = offered - [run.counts[c.REFUSED_SEGMENTS] for run in runs]
    return busy_interval(load * taken, offered, confidence=confidence)


def _metrics(spec: DataQueueing, runs: Sequence[Run], confidence: float) -> dict[str, Estimate]:
    every = [_ratios(spec, run) for run in runs]
    metrics: dict[str, Estimate] = {}
    for name in spec.metric_names.both:
        above, below = np.transpose([one[name] for one in every])
        if name.startswith("max_"):
            metrics[name] = exactly(float(above.max()), confidence=confidence)
        elif name.endswith("_probability"):
            metrics[name] = probability_interval(above, below, confidence=confidence)
        else:
            metrics[name] = ratio_interval(above, below, confidence=confidence)
    return metrics


def _ratios(spec: DataQueueing, run: Run) -> dict[str, tuple[float, float]]:
    """Return every metric of a replication as numerator and denominator."""
    n, operations = run.counts, run.operations
    allocations, deletions = operations[c.ALLOCATE], operations[c.FREE]
    writes, reads = n[c.WRITES], n[c.READS]
    conflicts = (
        (n[c.WRITES_OTHER_PAGE], n[c.READS_OTHER_PAGE])
        if spec.data.page_control
        else (n[c.WRITES_BUSY], n[c.READS_BUSY])
    )
    overhead = n[c.WORST_ACCESSES] + float(spec.pointer.conflict_overhead_cycles) * n[c.WORST_CONFLICTS]
    accesses = writes + reads
    values = {
        "write_conflict_probability": (conflicts[0], writes),
        "read_conflict_probability": (conflicts[1], reads),
        "write_busy_probability": (n[c.WRITES_BUSY], writes),
        "read_busy_probability": (n[c.READS_BUSY], reads),
        "pointer_accesses_per_allocation": (allocations[1], allocations[0]),
        "max_pointer_accesses_per_allocation": (allocations[2], 1),
        "pointer_accesses_per_deletion": (deletions[1], deletions[0]),
        "max_pointer_accesses_per_deletion": (deletions[2], 1),
        "overflow_probability": (n[c.REFUSED_SEGMENTS], n[c.OFFERED_SEGMENTS]),
        "blocking_probability": (n[c.REFUSED_PACKETS], n[c.OFFERED_PACKETS]),
        "allocation_failure_probability": (n[c.FAILURES], writes + n[c.FAILURES]),
        "vms1_overflow_probability": (n[c.LARGE_REFUSED], n[c.LARGE_SEGMENTS]),
        "vms2_overflow_probability": (n[c.VMS2_EMPTY], n[c.SMALL_SEGMENTS]),
        "vms3_overflow_probability": (n[c.VMS3_EMPTY], n[c.VMS3_ASKED]),
        "worst_enqueue_probability": (n[c.WORST_ENQUEUES], writes),
        "enqueue_overhead": (overhead, n[c.WORST_ENQUEUES]),
        "enqueue_energy": (overhead * float(spec.pointer.energy_per_cycle), n[c.WORST_ENQUEUES]),
        "deletion_overhead": (n[c.DELETION_ACCESSES], n[c.WORST_DELETIONS]),
        "cycles_per_segment_access": (n[c.CYCLES], accesses),
        "pointer_overrun_probability": (n[c.OVERRUNS], accesses),
    }
    return {name: (float(above), float(below)) for name, (above, below) in values.items()}


def _shares(histogram: FloatArray) -> FloatArray:
    top = int(np.flatnonzero(histogram)[-1]) + 1 if histogram.any() else 1
    return np.asarray(histogram[:top] / max(1, histogram.sum()), dtype=float)
