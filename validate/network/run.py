"""The simulation of a queueing network: its replications and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from qmodels import checks
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.network.replication import Job, Run, run_replication
from validate.network.result import NetworkSimulation
from validate.network.summary import summarize


def replicate(job: Job) -> Run:
    """Run one replication: by recursion where that gives all that events give, else event by event."""
    # Imported here because the recursion makes the event-driven simulator's runs.
    from validate.network import recursions

    return recursions.run_replication(job) if recursions.applies(job.spec) else run_replication(job)


@dataclass(frozen=True, kw_only=True)
class NetworkExperiment:
    """The simulation of one queueing network; made by `validate.simulate`.

    Parameters
    ----------
    spec : QueueingNetwork
        What to simulate.
    seed : int
        Everything random follows from it. Networks whose stations and classes have the same names
        meet the same random numbers at each.
    confidence : float
        Coverage of the intervals.
    passages : int
        Jobs of each replication that leave the network (in whatever way), or cycles of closed ones,
        while it is measured. Before that, as a warm-up, run a quarter as many.
    antithetic : bool
        Whether every second replication is the mirror image of the one before, with 1 - u for each
        random number u. The two are then one observation: give an even number of replications.
        They are correlated by -0.3 at best (M/M/1, load 0.5, short runs), so that a pair is worth
        up to three runs; long runs and rules that look at the state gain nothing.

    Notes
    -----
    A replication begins empty (closed classes at their reference). Memory does not depend on
    ``passages``. Whether the warm-up was enough is found afterwards, by MSER and the correlation of
    batches: the result's ``short``. Where jobs pile up, the result's ``stable`` is False and the
    times of the station are ``inf``. A single FIFO station without losses goes by recursion.

    Raises
    ------
    ValueError
        If an argument is out of range.
    RuntimeError
        If every job is blocked by another, or too many pile up to be kept.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Exponential
    >>> from qmodels.systems.stations.queueing_network import single_station
    >>> from validate import simulate
    >>> mm1 = single_station(arrivals=Exponential(mean=2.0), service=Exponential(mean=1.0))
    >>> result = simulate(mm1, passages=50_000, confidence=0.999)
    >>> 2.0 in result["mean_response_time"], 0.5 in result["utilization"]
    (True, True)
    """

    spec: QueueingNetwork
    seed: int = 0
    confidence: float = 0.95
    passages: int = 100_000
    antithetic: bool = False

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("system_response_time",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(replicate)

    def __post_init__(self) -> None:
        if not isinstance(self.spec, QueueingNetwork):
            raise ValueError(f"spec must be a QueueingNetwork, got {self.spec!r}")
        checks.count("passages", self.passages, minimum=1000)
        checks.seed(self.seed)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence!r}")

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return replications `start` to `stop` - 1."""
        return [
            Job(
                spec=self.spec,
                seed=self.seed,
                replication=k // 2 if self.antithetic else k,
                passages=self.passages,
                antithetic=self.antithetic and k % 2 == 1,
            )
            for k in range(start, stop)
        ]

    def summarize(
        self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float
    ) -> NetworkSimulation:
        """Return what the replications say together."""
        return summarize(
            self.spec,
            [run for _, run in runs],
            seed=self.seed,
            passages=self.passages,
            confidence=self.confidence,
            antithetic=self.antithetic,
            seconds=seconds,
        )
