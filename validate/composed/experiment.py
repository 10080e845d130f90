"""The simulation of a system: its replications and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import (
    SEGMENTS,
    Allocate,
    Each,
    Fork,
    Free,
    Repeat,
    Visit,
    all_steps,
    inner_steps,
    step_name,
)
from qmodels.systems.composed.system import System
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.stations.parts import INF, Station
from qmodels.systems.traffic.arrivals import Recorded
from validate.campaigns.experiment import Experiment
from validate.composed.instructions import program_of
from validate.composed.kernels import memories_of
from validate.composed.memories import named
from validate.composed.replication import FLOWS, PARTS, Run, SystemJob, resources, run_replication
from validate.composed.state import COLUMN_NAMES
from validate.composed.world import system_rotations
from validate.estimates.intervals import (
    FEWEST_OBSERVATIONS,
    mean_interval,
    periodic_stability,
    quantile_interval,
    stability,
    worst,
)
from validate.network.replication import WARM_UP_BATCHES, Replications


class _Replications(Replications):
    """The estimates of the runs of a system."""

    def __init__(self, spec: System, runs: Sequence[Run], *, confidence: float) -> None:
        super().__init__(runs, confidence=confidence)
        self.spec = spec
        self.flows, self.parts = self.columns("flows", FLOWS), self.columns("parts", PARTS)
        self.flow_times = self.stacked("flow_times")


def _metrics(spec: System, data: _Replications) -> dict[str, Estimate]:
    everything = list(range(len(spec.flows)))
    found: dict[str, dict[str, Estimate]] = {"": _flow_metrics(spec.flows, data, everything)}
    if len(everything) > 1:
        found |= {f"[{f.name}]": _flow_metrics((f,), data, [k]) for k, f in enumerate(spec.flows)}
    metrics = {
        name + place: one
        for name in ("latency", "latency_p99", "flow_throughput", "blocking_probability")
        for place, values in found.items()
        if (one := values.get(name)) is not None
    }
    if spec.ends:
        ends = data.flows["last_end"].max(axis=1)
        metrics["execution_time"] = mean_interval(ends, confidence=data.confidence)
    for number, name in enumerate(spec.parts):
        if data.parts["visits"][:, number].any():
            sums, visits = data.parts["time_sum"][:, number], data.parts["visits"][:, number]
            metrics[f"visit_latency[{name}]"] = data.ratio(sums, visits)
            if name in spec.turning:
                metrics[f"switch_ratio[{name}]"] = data.ratio(data.parts["turns"][:, number], visits)
    for number, (flow, name) in enumerate(program_of(spec).stages):
        ended, sums = data.stacked("stages")[:, number].T
        place = name if len(spec.flows) == 1 else f"{flow}, {name}"
        metrics[f"stage_latency[{place}]"] = data.ratio(sums, ended)
    caches = [name for name, part in spec.parts.items() if isinstance(part, CacheSystem)]
    for number, name in enumerate(caches):
        *hits, missed = data.stacked("lookups")[:, number].T
        found = sum(hits)
        metrics[f"hit_ratio[{name}]"] = data.share(found, found + missed)
    return metrics


def _flow_metrics(flows: Sequence[Flow], data: _Replications, rows: list[int]) -> dict[str, Estimate]:
    counts = {name: column[:, rows].sum(axis=1) for name, column in data.flows.items()}
    found = {
        "latency": data.ratio(counts["latency_sum"], counts["ended"]),
        "latency_p99": quantile_interval(
            data.histograms([1 + k for k in rows]), 0.99, confidence=data.confidence
        ),
        "flow_throughput": data.ratio(counts["ended"], data.time),
    }
    if any(_may_lose(data.spec, flow) for flow in flows):
        found["blocking_probability"] = data.share(counts["lost"], counts["lost"] + counts["ended"])
    return found


def _may_lose(spec: System, flow: Flow) -> bool:
    """Return whether a flow may lose jobs: at a full window or station, or for want of free blocks."""

    def bounded(step: Any) -> bool:
        part = spec.parts[step.part] if isinstance(step, Visit) else None
        return isinstance(part, Station) and part.capacity < INF

    return flow.loses or any(isinstance(s, Allocate) or bounded(s) for s in all_steps(flow.program))


def _latency_parts(spec: System, data: _Replications) -> dict[str, Estimate]:
    """Return the time of a job by part, without what nobody spends any at."""
    ended = data.flows["ended"].sum(axis=1)
    times = data.flow_times.sum(axis=1)
    names = (*spec.parts, *COLUMN_NAMES)
    return {
        name: data.ratio(times[:, k], ended)
        for k, name in enumerate(names)
        if name in spec.parts or times[:, k].any()
    }


def _utilization(spec: System, data: _Replications) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Return the busy share of each part, that of its busiest resource, and that of every resource."""
    parts: dict[str, Estimate] = {}
    members: dict[str, Estimate] = {}
    busy = data.stacked("busy")
    for k, (name, member) in enumerate(resources(spec)):
        share = data.busy(busy[:, k], data.time)
        if name not in parts or share.best > parts[name].best:
            parts[name] = share
        if member:
            members[f"{name} {member}"] = share
    return parts, members


def _numbers(spec: System, data: _Replications) -> dict[str, Estimate]:
    flows = {flow.name: data.flows["number"][:, k] for k, flow in enumerate(spec.flows)}
    parts = {name: data.parts["number"][:, k] for k, name in enumerate(spec.parts)}
    return {name: data.ratio(areas, data.time) for name, areas in (flows | parts).items()}


def _waiting_for(spec: System, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the parts with visits under way when nothing was left to happen."""
    waiting = np.sum([r.waiting for r in runs if np.isfinite(r.stuck)], axis=0)
    return tuple(name for name, number in zip(spec.parts, waiting, strict=True) if number)


def _growing(spec: System, runs: Sequence[Run]) -> dict[str, bool | None]:
    """Return of the flows whose jobs may pile up whether these keep up."""
    ended = np.array([r.departures[WARM_UP_BATCHES:].sum() for r in runs])
    growth = [_growth(r) / max(n, 1.0) for r, n in zip(runs, ended, strict=True)] if _replays(spec) else None
    return {
        flow.name: stability([r.numbers[WARM_UP_BATCHES:, k] for r in runs], left=ended)
        if growth is None
        else periodic_stability([grown[k] for grown in growth])
        for k, flow in enumerate(spec.flows)
        if not (flow.closed or flow.loses)
    }


def _replays(spec: System) -> bool:
    """Return whether there is a recorded flow: batches are then parts of its rotations."""
    return any(isinstance(flow.arrivals, Recorded) for flow in spec.flows)


def _growth(run: Run) -> FloatArray:
    """Return by how much the mean number of jobs of each flow grew over the rotations that are measured.

    From the last quarter of the warm-up to the same instants as many rotations later.
    """
    ends = np.append(0.0, np.cumsum(run.times))
    begin, part = ends[WARM_UP_BATCHES], ends[WARM_UP_BATCHES] / 4
    areas = np.vstack([np.zeros(run.numbers.shape[1]), np.cumsum(run.numbers * run.times[:, None], axis=0)])
    late = [np.interp([begin - part, begin, ends[-1] - part, ends[-1]], ends, column) for column in areas.T]
    return (np.array(late) @ [1.0, -1.0, -1.0, 1.0]) / max(part, np.finfo(float).tiny)


def _short(spec: System, data: _Replications) -> bool:
    """Return whether the runs are too short: those of a recording, whose length is given, for few jobs."""
    if _replays(spec):
        ended = [run.departures[WARM_UP_BATCHES:].sum() for run in data.runs]
        return bool(min(ended) < FEWEST_OBSERVATIONS)
    return data.unsettled()


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
        spec, data = self.spec, _Replications(self.spec, runs, confidence=self.confidence)
        growing = _growing(spec, runs)
        overloaded = tuple(name for name, keeps_up in growing.items() if keeps_up is False)
        stuck = any(np.isfinite(r.stuck) for r in runs)
        stable = False if stuck else worst(growing.values())
        metrics = _metrics(spec, data)
        parts = _latency_parts(spec, data)
        if stable is False:
            endless = data.exactly(INF)
            late = ("latency", "latency_p99", "visit_latency", "stage_latency")
            metrics |= {name: endless for name in metrics if name.partition("[")[0] in late}
            parts = dict.fromkeys(parts, endless)
        utilization, members = _utilization(spec, data)
        waiting = _waiting_for(spec, runs) if stuck else ()
        facts = [f"overloaded: jobs of {', '.join(overloaded)} pile up"] if overloaded else []
        facts += [f"stuck: every job waits for another, at {', '.join(waiting)}"] if waiting else []
        return dict(
            metrics=metrics,
            latency_parts=parts,
            utilization=utilization | members,
            bottleneck=max(utilization, key=lambda name: utilization[name].best, default=""),
            stable=stable,
            short=not (stuck or spec.ends) and _short(spec, data),
            effort={"passages": self.passages, "events": sum(r.events for r in runs)},
            facts=tuple(facts),
            details={
                "numbers": _numbers(spec, data),
                "visit_rates": {
                    name: data.ratio(data.parts["visits"][:, k], data.time)
                    for k, name in enumerate(spec.parts)
                },
                "waiting_for": waiting,
                "overloaded": overloaded,
            },
        )


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
