"""The simulation of a DRAM system, command by command: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qmodels import checks
from qmodels.systems.memory.dram_system import DramSystem
from validate.campaigns.experiment import check_one
from validate.dram import state as c
from validate.dram.result import DramSimulation
from validate.dram.run import Job, Run, run_replication
from validate.estimates.statistics import (
    INF,
    Estimate,
    exactly,
    is_unstable,
    mean_interval,
    probability_interval,
    ratio_interval,
)

PARTS = {
    "latency_row": c.ROWS,
    "latency_bank": c.BANK_WAIT,
    "latency_activation": c.SLOT_WAIT,
    "latency_bus": c.BUS_WAIT,
    "latency_refresh": c.REFRESH_WAIT,
}
LAG = 0.03
"""Share of the time by which an overloaded channel finishes after the last arrival."""


@dataclass(frozen=True, kw_only=True)
class DramExperiment:
    """The simulation of one DRAM system; made by `validate.simulate`.

    Parameters
    ----------
    spec : DramSystem
        One design, no array fields, with an arrival rate above 0.
    seed : int
        Everything random follows from it. Designs with one seed and the same traffic meet the same
        accesses.
    confidence : float
        Coverage of the intervals (Student's, over the replications).
    accesses : int
        Accesses of each replication, at least 1000; between a 16th and a 32nd of those of each
        channel are the warm-up.

    Raises
    ------
    ValueError
        If the spec has array fields, or an argument is out of range.

    Notes
    -----
    Commands are given one per cycle, each as early as the timings allow, to the oldest access that is
    ready; a rank due for refresh first serves the accesses whose rows it has opened. Random reads agree
    with DRAMsim3 and Ramulator within the difference of these two, see ``tests/validate/dram``.

    Examples
    --------
    >>> from qmodels.systems.memory.dram_system import dram
    >>> from validate import simulate
    >>> result = simulate(dram("DDR4-3200", page_policy="closed"), accesses=20_000, replications=2)
    >>> result.stable, result.latency_row.best
    (True, 22.0)
    """

    spec: DramSystem
    seed: int = 0
    confidence: float = 0.95
    accesses: int = 100_000

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("read_latency",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(run_replication)

    def __post_init__(self) -> None:
        check_one(self.spec)
        checks.count("accesses", self.accesses, minimum=1000)
        checks.positive("traffic.arrival_rate", self.spec.traffic.arrival_rate)

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return a job for each replication."""
        return [
            Job(spec=self.spec, seed=self.seed, replication=k, accesses=self.accesses)
            for k in range(start, stop)
        ]

    def summarize(
        self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float
    ) -> DramSimulation:
        """Return the estimates of finished replications."""
        each = [run for _, run in runs]
        overloaded = self._overloaded(each)
        by_channel = np.sum([run.sums[:, :, c.COUNT] for run in each], axis=(0, 2))
        result = DramSimulation(
            metrics={},
            stable=not overloaded,
            overloaded=overloaded,
            channel_share=tuple(float(x) for x in by_channel / max(1, by_channel.sum())),
            counts=tuple(run.counts for run in each),
            added=int(self.spec.controller_cycles),
            accesses=self.accesses,
            replications=replications,
            seed=self.seed,
            served=sum(run.served for run in each),
            seconds=seconds,
            confidence=self.confidence,
        )
        object.__setattr__(result, "metrics", self._metrics(each, result))
        return result

    def _overloaded(self, runs: Sequence[Run]) -> tuple[int, ...]:
        """Return the channels whose latency kept growing, or that finished late in every run.

        A short run is late only if it took more than twice as long as its arrivals, and longer than a
        refresh and what has gathered meanwhile.
        """
        timing = self.spec.timing
        least = 2 * (timing.t_rfc + 10 * timing.read_cycle)
        far = [(run.cycles - run.last_arrival) > np.maximum(run.last_arrival, least) for run in runs]
        late = [(run.cycles - run.last_arrival) > LAG * run.last_arrival for run in runs]
        long = [run.cycles > 1000 * timing.read_cycle for run in runs]
        return tuple(
            channel
            for channel in range(self.spec.geometry.channels)
            if all((x[channel] and y[channel]) or z[channel] for x, y, z in zip(late, long, far, strict=True))
            or is_unstable([run.early[channel] for run in runs], [run.late[channel] for run in runs])
        )

    def _metrics(self, runs: Sequence[Run], result: DramSimulation) -> dict[str, Estimate]:
        spec, level = self.spec, self.confidence
        sums = np.array([run.sums.sum(axis=0) for run in runs])
        both = sums.sum(axis=1)

        def latency(direction: int, column: int) -> Estimate:
            found = ratio_interval(
                sums[:, direction, column] + added * sums[:, direction, c.COUNT],
                sums[:, direction, c.COUNT],
                confidence=level,
            )
            return found if result.stable else exactly(INF, confidence=level)

        added = spec.controller_cycles
        metrics = {"read_latency": latency(0, c.LATENCY)}
        metrics["read_latency_p50"] = result.quantile(0.5)
        metrics["read_latency_p99"] = result.quantile(0.99)
        if sums[:, 1, c.COUNT].sum():
            metrics["write_latency"] = latency(1, c.LATENCY)
        rate = mean_interval([run.served / run.cycles.max() for run in runs], confidence=level)
        metrics["throughput"] = rate
        scales = {
            "bandwidth": spec.gbytes(1.0),
            "bus_utilization": spec.timing.burst / spec.geometry.channels,
        }
        for name, scale in scales.items():
            metrics[name] = Estimate(
                low=rate.low * scale, best=rate.best * scale, high=rate.high * scale, confidence=level
            )
        metrics["row_hit_ratio"] = probability_interval(
            both[:, c.COUNT] - both[:, c.OPENED], both[:, c.COUNT], confidence=level
        )
        for direction, name in enumerate(("read", "write")):
            if sums[:, direction, c.COUNT].sum():
                metrics[f"{name}_conflict_probability"] = probability_interval(
                    sums[:, direction, c.CONFLICTS], sums[:, direction, c.COUNT], confidence=level
                )
        added = 0
        metrics |= {name: latency(0, column) for name, column in PARTS.items()}
        return metrics
