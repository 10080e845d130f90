"""The simulation of a data-queueing module as a campaign runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qmodels import _check
from qmodels.systems.data_queueing import DataQueueing
from validate.data_queueing import summarize
from validate.data_queueing_result import DataQueueingResult
from validate.data_queueing_run import Job, Run, run_replication
from validate.packet_inputs import check_single


@dataclass(frozen=True, kw_only=True)
class DataQueueingExperiment:
    """The simulation of one data-queueing module; made by `validate.simulate`.

    Parameters
    ----------
    spec : DataQueueing
        One design, no array fields.
    seed : int
        Everything random follows from it. Designs with one seed and the same traffic meet the same
        packets.
    confidence : float
        Coverage of the intervals.
    packets : int
        Packets of each replication, at least 100. A recorded trace with fewer is played whole.
    warm_up : float
        Share of the packets before the counting begins, at least 0 and below 1.

    Raises
    ------
    ValueError
        If the spec has array fields or an argument is out of range.
    """

    spec: DataQueueing
    seed: int = 0
    confidence: float = 0.95
    packets: int = 100_000
    warm_up: float = 0.2

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("pointer_accesses_per_allocation",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(run_replication)

    def __post_init__(self) -> None:
        check_single(self.spec)
        _check.count("packets", self.packets, minimum=100)
        if not 0 <= self.warm_up < 1:
            raise ValueError(f"warm_up must be at least 0 and below 1, got {self.warm_up!r}")

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return a job for each replication."""
        return [
            Job(spec=self.spec, seed=self.seed, replication=k, packets=self.packets, warm_up=self.warm_up)
            for k in range(start, stop)
        ]

    def summarize(
        self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float
    ) -> DataQueueingResult:
        """Return the estimates of finished replications."""
        return summarize(
            self.spec,
            [run for _, run in runs],
            seed=self.seed,
            confidence=self.confidence,
            seconds=seconds,
        )
