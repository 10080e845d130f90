"""The queues in front of the cores: many single servers under one bound on all requests."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from qmodels.checks import FloatArray
from qmodels.llc.bounded_queues import bounded_queues
from qmodels.llc.processor_core import Stages
from qmodels.llc.processor_hits import HitRatios
from qmodels.llc.processor_memory import MemoryPath, memory_path
from qmodels.systems.cache.llc_processor import LlcProcessor

MOST_PLACES = 4


@dataclass(frozen=True, kw_only=True)
class QueueAnswer:
    """The steady state of all queues."""

    blocking_probability: float  # Arrivals that are refused
    # mean_number_in_system, busy_cores, busy_slices, busy_banks: Time averages
    mean_number_in_system: float
    busy_cores: float
    busy_slices: float
    busy_banks: float


def solve_queues(spec: LlcProcessor, hits: HitRatios) -> QueueAnswer:
    """Return the steady state of the queues of all cores, given where requests find their lines.

    ``hits``: shares of the requests that are found at each level.

    The memory path is replaced by its flow equivalent, see `qmodels.llc.processor_memory`, and the cores in
    front of it are `qmodels.llc.bounded_queues`. Exact for one core, and for any number with equal
    exponential services that need no LLC; approximation otherwise, with measured errors in
    `qmodels.llc.solve_processor`.

    >>> from qmodels.llc.processor_hits import hit_ratios
    >>> spec = LlcProcessor(architecture="none")
    >>> round(solve_queues(spec, hit_ratios(spec)).blocking_probability, 3)
    0.042
    """
    path = memory_path(spec, hits)
    jobs = np.arange(spec.cores + 1)
    found = bounded_queues(
        servers=spec.cores,
        room=spec.capacity,
        arrival_rate=spec.arrival_rate,
        throughput=path.throughput,
        stages=lambda law: _stages(spec, hits, path, law),
    )
    number, law = found.number, found.busy
    busy_slices = float(law @ path.throughput) * hits.misses[1] / spec.llc_rate if spec.llc_slices else 0.0
    return QueueAnswer(
        blocking_probability=float(number[-1]),
        mean_number_in_system=float(number @ np.arange(spec.capacity + 1)),
        busy_cores=float(law @ jobs),
        busy_slices=busy_slices,
        busy_banks=float(law @ path.busy_banks),
    )


def _stages(spec: LlcProcessor, hits: HitRatios, path: MemoryPath, law: FloatArray) -> Stages:
    """Return the stages of a service, means over the law of the number of busy cores."""
    after_l1, after_l2, after_llc = hits.misses
    served = float(law @ path.throughput)
    rates, onward = [spec.l1_rate, spec.l2_rate], [after_l1]
    if spec.llc_slices and after_l2 > 0:
        mean = float(law @ path.at_llc) / served / after_l2
        stages = _hypoexponential(mean, _visit_scv(path, law))
        rates += stages
        onward += [after_l2 / after_l1] + [1.0] * (len(stages) - 1)
    if after_llc > 0:
        rates.append(after_llc * served / float(law @ path.at_memory))
        onward.append(after_llc / (after_l2 if spec.llc_slices else after_l1))
    return Stages(rates=np.array(rates), onward=np.array([*onward, 0.0]))


def _visit_scv(path: MemoryPath, law: FloatArray) -> float:
    """Return the squared coefficient of variation of a visit to a slice.

    Behind n others a visit is n + 1 exponential services, one after the other.
    """
    weights = law[1:] * path.throughput[1:]
    weights = weights / weights.sum()
    # A request sees the network without its own core.
    mean, square = float(weights @ path.queue[:-1]), float(weights @ path.queue_square[:-1])
    return (mean + 1.0 + square - mean**2) / (mean + 1.0) ** 2


def _hypoexponential(mean: float, scv: float) -> list[float]:
    """Return the rates of exponential stages in a row with this mean and scv, at most `MOST_PLACES`."""
    stages = min(max(ceil(1.0 / scv - 1e-9), 1), MOST_PLACES)
    if stages == 1:
        return [1.0 / mean]
    scv = max(scv, 1.0 / stages)
    others = stages - 1
    each = mean * (others - sqrt(others * max(stages * scv - 1.0, 0.0))) / (others * stages)
    last = mean - others * each
    return [1.0 / last] + ([1.0 / each] * others if each > 1e-9 * mean else [])
