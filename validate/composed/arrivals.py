"""When the jobs of flows come and how large they are: laws for the calendar, from the specs of flows."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.system import System
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.laws.times import Empirical, Exponential, Law, Replay
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
from validate.composed.state import FLOW
from validate.network.state import NONE, World
from validate.network.world import Sources

GOLDEN = (5.0**0.5 - 1.0) / 2.0


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


def set_traces(spec: System, world: World, flows: Any, replication: int, passages: int) -> None:
    """Let recorded flows begin at places that any number of replications covers evenly.

    Consecutive packets, as far as there are enough of them: from its end a recording begins again.
    """
    for flow, row in zip(spec.flows, flows, strict=True):
        if isinstance(flow.arrivals, Recorded):
            count = len(flow.arrivals.trace)
            places = max(count - passages, 1) if passages else count
            place = int((replication * GOLDEN) % 1.0 * places)
            world.laws["state"][[row["law"], row["sizes"]]] = place
