"""The simulation of a system: its replications and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qmodels import checks
from qmodels.systems.composed.steps import (
    SEGMENTS,
    Allocate,
    Each,
    Fork,
    Free,
    Repeat,
    all_steps,
    inner_steps,
    step_name,
)
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import INF, Station
from validate.campaigns.experiment import Experiment
from validate.composed.arrivals import system_rotations
from validate.composed.kernels import memories_of, named
from validate.composed.replication import Run, SystemJob, run_replication
from validate.composed.summary import summarize


@dataclass(frozen=True, kw_only=True)
class SystemExperiment(Experiment):
    """The simulation of one system; made by `validate.simulate`.

    Systems whose parts and flows have the same names meet the same random numbers at each.

    Notes
    -----
    A replication begins empty, with the jobs of closed flows at the beginning of their programs. Where
    the jobs of an open flow pile up, or every job waits for another, the result's ``stable`` is False and
    times are ``inf``.

    A recorded trace is one rotation of periodic traffic, whose first packet comes a mean gap after the last
    one. Full rotations are simulated, of several traces those of the longest: as many as come nearest to
    ``passages`` jobs of all open flows are measured, at least one, after a quarter as many, at least one.

    Work that ends (`Flow.rounds`) is followed from its start until all is done, whatever ``passages`` says;
    ``execution_time`` is when that is.

    Raises
    ------
    ValueError
        If an argument is out of range, or a station blocks others when it is full.

    Examples
    --------
    >>> from qmodels.systems.composed.flow import Flow
    >>> from qmodels.systems.composed.steps import Visit
    >>> from qmodels.systems.composed.system import System
    >>> from qmodels.systems.laws.times import Exponential
    >>> from qmodels.systems.traffic.arrivals import Poisson
    >>> system = System(
    ...     parts={"parser": Station(service=Exponential(mean=2.0))},
    ...     flows=[Flow(arrivals=Poisson(), rate=0.25, program=(Visit("parser"),))],
    ... )
    >>> experiment = SystemExperiment(spec=system, confidence=0.999)
    >>> runs = [(job, run_replication(job)) for job in experiment.jobs(0, 4)]
    >>> result = experiment.summarize(runs, replications=4, seconds=0.0)
    >>> 4.0 in result.latency, 0.5 in result.utilization["parser"]
    (True, True)
    """

    # Jobs of each replication that end (or are lost) while it is measured. Before that, as a warm-up, run a
    # quarter as many
    passages: int = 20_000

    job_type = SystemJob
    run_type = Run
    precise = ("latency",)
    run_replication = staticmethod(run_replication)

    def lengths(self) -> list[tuple[str, float]]:
        """Return the jobs that a replication simulates, those of the rotations of a trace."""
        replay = system_rotations(self.spec, self.passages)
        return [("passages", self.passages if replay is None else replay.total)]

    def work(self) -> tuple[str, float, float]:
        """Return the longest program's steps, and those of all jobs."""
        most = {f"flows.{flow.name}.program": _steps(flow, flow.program) for flow in self.spec.flows}
        field = max(most, key=lambda name: most[name])
        return field, most[field], self.lengths()[0][1] * most[field]

    def check(self) -> None:
        """Refuse options out of range and parts that cannot be simulated."""
        checks.count("passages", self.passages, minimum=1000)
        for name, part in self.spec.parts.items():
            if isinstance(part, Station) and part.capacity != INF and part.when_full != "loss":
                raise ValueError(
                    f"parts.{name}.when_full must be 'loss' in a system, got {part.when_full!r}: "
                    "let jobs hold tokens for the places"
                )

        for name in named(self.spec, FreeList):
            memories = memories_of(self.spec, name)
            if len(memories) > 1:
                raise ValueError(
                    f"parts.{name} must have its blocks in one memory, got {', '.join(memories)}"
                )
        for flow in self.spec.flows:
            lists = {step.part for step in all_steps(flow.program) if isinstance(step, Allocate)}
            if len(lists) > 1:
                raise ValueError(
                    f"flow {flow.name!r}: program must allocate from one free list to be simulated, "
                    f"got {', '.join(sorted(lists))}"
                )
            for step in all_steps(flow.program):
                if _free_at_once(step) > 1:
                    raise ValueError(
                        f"flow {flow.name!r}: program must give blocks back in one branch at most to be "
                        f"simulated, which gives back all of the job's, got {step_name(step)!r}"
                    )

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        return summarize(self.spec, runs, passages=self.passages, confidence=self.confidence)


def _free_at_once(step: Any) -> int:
    """Return the branches of a fork, or at least two of an each, that give blocks back."""
    times = 2 if isinstance(step, Each) and step.count != 1 else 1
    inside = inner_steps(step) if isinstance(step, Each | Fork) else ()
    return times * sum(any(isinstance(inner, Free) for inner in all_steps(steps)) for steps in inside)


def _steps(flow: Any, program: tuple[Any, ...]) -> int:
    """Return the steps that a job of a flow makes at most."""
    total = len(program)
    for step in program:
        rounds = step.count if isinstance(step, Each | Repeat) else 1
        if rounds == SEGMENTS:
            rounds = max(flow.sizes.segments(flow.segment_bytes)[0])
        total += int(rounds) * sum(_steps(flow, inside) for inside in inner_steps(step))
    return total
