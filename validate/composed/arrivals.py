"""When the jobs of flows come and how large they are: laws for the calendar, from the specs of flows."""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import Hold, all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.laws.times import Empirical, Exponential, Law, Replay
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
from validate.composed.state import FLOW
from validate.network.state import NONE, World
from validate.network.world import Sources

GOLDEN = (5.0**0.5 - 1.0) / 2.0
SETTLED_HOLDS = 5.0
"""Mean holds after which the number of jobs held is all but stationary: e**-5 are missing."""


def new_flows(spec: System, sources: Sources, entries: list[int], places: list[int]) -> tuple[Any, Any]:
    """Return the flows, their laws added to the sources, and the nodes of parts and flows."""
    rows = np.zeros(len(spec.flows), dtype=FLOW)
    places = list(places)
    for row, flow, entry in zip(rows, spec.flows, entries, strict=True):
        row["entry"] = entry
        law, row["scale"] = (flow.think, 1.0) if flow.closed else _gaps(flow)
        row["law"] = sources.law(f"{'thinking' if flow.closed else 'arrivals'} {flow.name}", law)
        row["sizes"], row["segment_bytes"] = (
            sources.law(f"sizes {flow.name}", _bytes(flow)),
            flow.segment_bytes,
        )
        row["window"], row["population"] = flow.window or 0, flow.population
        row["rounds"] = flow.rounds or 0
        row["loses"] = flow.loses
        row["places_at"], row["places"] = len(places), len(flow.at)
        row["head"] = row["tail"] = NONE
        places += flow.at
        if len(flow.at) > 1 and not flow.closed:
            row["stream"] = sources.stream(f"places {flow.name}")
    return rows, np.array([*places, NONE], dtype=np.int64)


def _gaps(flow: Flow) -> tuple[Law, float]:
    """Return the law of the times between the arrivals of an open flow, and their scale."""
    mean = 1 / float(flow.mean_rate)
    match flow.arrivals:
        case Poisson():
            return Exponential(mean=mean), 1.0
        case OnOff():
            probability, fast, slow = (float(x) for x in flow.arrivals.phases)
            means = (mean / fast, mean / slow)
            return HyperExponential(probabilities=(probability, 1 - probability), means=means), 1.0
        case Recorded():
            times = flow.arrivals.trace.times_ns
            own = 1 / flow.arrivals.trace.packet_rate
            # Played round and round, its first packet comes a mean gap after its last one.
            return Replay(values=(own, *np.diff(times).tolist())), mean / own
        case law:
            return law, mean / law.mean  # type: ignore[union-attr, return-value]


def _bytes(flow: Flow) -> Law | None:
    """Return the law of the bytes of jobs."""
    if flow.sizes is None:
        return None
    if isinstance(flow.arrivals, Recorded):
        return Replay(values=tuple(flow.arrivals.trace.bytes.tolist()))
    return Empirical(values=flow.sizes.bytes, weights=flow.sizes.probability)


def set_traces(spec: System, world: World, flows: Any, replication: int) -> None:
    """Let recorded flows begin at places that any number of replications covers evenly."""
    for flow, row in zip(spec.flows, flows, strict=True):
        if isinstance(flow.arrivals, Recorded):
            place = int((replication * GOLDEN) % 1.0 * len(flow.arrivals.trace))
            world.laws["state"][[row["law"], row["sizes"]]] = place


class Rotations(NamedTuple):
    """Rotations of a recording that a replication plays."""

    period: float  # time of one rotation [ns]
    jobs: float  # jobs that arrive in it, those of other flows included
    warm_up: int  # rotations before measuring begins
    measured: int

    @property
    def total(self) -> int:
        """Jobs of all rotations."""
        return round((self.warm_up + self.measured) * self.jobs)

    def late(self, count: int) -> FloatArray:
        """Return instants of the last fifth of the warm-up, its end included, and the same at the end."""
        before = min(self.warm_up, self.measured) * np.linspace(0.2, 0.0, count)
        ends = self.warm_up + np.array([0.0, self.measured])
        return np.asarray(((ends[:, None] - before) * self.period).ravel())


def rotations(flows: Iterable[tuple[Any, float]], jobs: int, *, hold: float) -> Rotations | None:
    """Return the rotations of the longest recording of open flows; None if there is none.

    The flows are given by their arrivals and rates [1/ns]. What is measured are the full rotations that come
    nearest to n jobs, at least one. Before it come a quarter as many, at least one, in which a queue
    that keeps up becomes stationary, and at least `SETTLED_HOLDS` mean holds [ns].
    """
    flows = list(flows)
    periods = [len(arrivals.trace) / rate for arrivals, rate in flows if isinstance(arrivals, Recorded)]
    if not periods:
        return None
    arriving = max(periods) * sum(rate for _, rate in flows)
    measured = max(1, round(jobs / arriving))
    warm_up = max(1, ceil(measured / 4), ceil(SETTLED_HOLDS * hold / max(periods)))
    return Rotations(period=max(periods), jobs=arriving, warm_up=warm_up, measured=measured)


def system_rotations(spec: System, jobs: int) -> Rotations | None:
    """Return the rotations of a system's recording, see `rotations`."""
    opened = [flow for flow in spec.flows if not flow.closed]
    holds = [
        sum(float(step.time.mean) for step in all_steps(flow.program) if isinstance(step, Hold))
        for flow in opened
    ]
    return rotations([(f.arrivals, float(f.mean_rate)) for f in opened], jobs, hold=max(holds, default=0.0))
