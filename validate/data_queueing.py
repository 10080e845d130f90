"""Simulate a data-queueing module operation by operation: replications and their intervals."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np

from qmodels import _check
from qmodels._check import FloatArray
from qmodels.systems.data_queueing import DATA_QUEUEING_METRICS, DataQueueing
from validate import data_queueing_state as c
from validate.data_queueing_result import DataQueueingResult, OperationCost
from validate.data_queueing_run import Job, Run, run_replication
from validate.packet_inputs import check_single
from validate.statistics import Estimate, exactly, probability_interval, ratio_interval


def simulate_data_queueing(
    spec: DataQueueing,
    *,
    packets: int = 100_000,
    replications: int = 4,
    seed: int = 0,
    warm_up: float = 0.2,
    executor: Executor | None = None,
    confidence: float = 0.95,
) -> DataQueueingResult:
    """Simulate a data-queueing module operation by operation.

    Parameters
    ----------
    spec : DataQueueing
        One design, no array fields.
    packets : int
        Packets of each replication, at least 100. A recorded trace with fewer is played whole.
    replications : int
        Replications, at least 2. Of a recorded trace they differ in the order of the free lists
        and, where it has no flows, in the queues of the packets.
    seed : int
        Everything random follows from it, whatever the number of workers; designs with one seed
        and the same traffic meet the same packets.
    warm_up : float
        Share of the packets before the counting begins, at least 0 and below 1. A free list is
        in its steady state when it has been used up several times; a memory that is overloaded
        fills up before it overflows.
    executor : concurrent.futures.Executor, optional
        Where replications run; otherwise as many threads as there are cores.
    confidence : float
        Coverage of the intervals (Student's, over the replications).

    Returns
    -------
    DataQueueingResult
        Counted from the end of the warm-up to the last arrival. The most accesses of an
        operation are those of the whole run. With too much load packets are refused: the
        overflow and blocking probabilities say how many, and all metrics stay finite.

    Raises
    ------
    ValueError
        If the spec has array fields or an argument is out of range.

    Examples
    --------
    >>> from qmodels.systems.data_queueing import Allocation, DataMemory
    >>> spec = DataQueueing(
    ...     data=DataMemory(segments=4096), allocation=Allocation(vms1_size=4096, alloc_trial_count=3)
    ... )
    >>> result = simulate_data_queueing(spec, packets=2000, replications=2)
    >>> result.operations["allocate"].max_accesses <= 4
    True
    """
    if not isinstance(spec, DataQueueing):
        raise ValueError(f"spec must be a DataQueueing, got {spec!r}")
    check_single(spec)
    _check.count("packets", packets, minimum=100)
    _check.count("replications", replications, minimum=2)
    if not 0 <= warm_up < 1:
        raise ValueError(f"warm_up must be at least 0 and below 1, got {warm_up!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    started = time.perf_counter()
    jobs = [
        Job(spec=spec, seed=seed, replication=k, packets=packets, warm_up=warm_up)
        for k in range(replications)
    ]
    if executor is not None:
        runs = list(executor.map(run_replication, jobs))
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = list(pool.map(run_replication, jobs))
    return summarize(spec, runs, seed=seed, confidence=confidence, seconds=time.perf_counter() - started)


def summarize(
    spec: DataQueueing, runs: Sequence[Run], *, seed: int, confidence: float, seconds: float
) -> DataQueueingResult:
    """Return the estimates of finished replications."""
    every = [ratios(spec, run) for run in runs]
    metrics: dict[str, Estimate] = {}
    for name in DATA_QUEUEING_METRICS:
        above, below = np.transpose([one[name] for one in every])
        if name.startswith("max_"):
            metrics[name] = exactly(float(above.max()), confidence=confidence)
        elif name.endswith("_probability"):
            metrics[name] = probability_interval(above, below, confidence=confidence)
        else:
            metrics[name] = ratio_interval(above, below, confidence=confidence)
    together = np.sum([run.operations for run in runs], axis=0)
    most = np.max([run.operations[:, 2] for run in runs], axis=0)
    histograms = np.sum([run.histograms for run in runs], axis=0)
    return DataQueueingResult(
        metrics=metrics,
        operations={
            name: OperationCost(
                count=int(together[k, 0]),
                mean_accesses=float(together[k, 1]) / max(1, int(together[k, 0])),
                max_accesses=int(most[k]),
            )
            for k, name in enumerate(c.OPERATIONS)
        },
        allocation_accesses=_shares(histograms[0]),
        deletion_accesses=_shares(histograms[1]),
        packets=runs[0].packets,
        replications=len(runs),
        seed=seed,
        queue_operations=int(sum(run.all_operations for run in runs)),
        seconds=seconds,
    )


def point_metrics(spec: DataQueueing, run: Run) -> dict[str, float]:
    """Return the metrics of one replication, without intervals: what an exploration ranks."""
    return {name: above / below if below else 0.0 for name, (above, below) in ratios(spec, run).items()}


def ratios(spec: DataQueueing, run: Run) -> dict[str, tuple[float, float]]:
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
        "allocation_failure_probability": (n[c.REFUSED_PACKETS], writes + n[c.REFUSED_PACKETS]),
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
