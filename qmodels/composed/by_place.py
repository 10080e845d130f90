"""Pools at several places: as many systems of flows and pools as there are kinds of places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.composed.decomposition import Decomposition
from qmodels.composed.fixed_point.pool_waits import NO_POOLS, walk
from qmodels.composed.fixed_point.state import State
from qmodels.composed.parts import lookup_shares_of
from qmodels.markov.processes.moment_fits import ph_from_moments
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.lower import lower
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import ProgramForm, Site
from qmodels.systems.composed.steps import Acquire, Release, Step, all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.spec.named import Named
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import OnOff, Poisson

MOST_KINDS = 6
"""Kinds of places that are told apart; more are put together by how far they are from what they ask."""
ALIKE, CLOSED_ALIKE = 1.1, 1.3
"""By how many times programs may take longer, where nobody else is, at places of the same kind; where all
flows are closed no place is overloaded before others."""
UNLIKE = "the copies of pool {} are taken from as if they were equally far and equally often used"


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """A system whose pools have copies that are all alike."""

    system: System  # the system, with a flow and a pool for each kind of place
    names: Mapping[str, str] = field(default_factory=dict)  # what these are called in the system they are of
    doubts: tuple[str, ...] = ()  # what speaks against it


def by_place(system: System, form: ProgramForm) -> Places:
    """Return a system with a flow and a pool for each kind of place at which tokens are taken.

    A job uses the pool at its own place: the jobs of a place are a flow of their own, for
    Poisson arrivals exactly, and their pool is nobody else's. Places of a kind are as far from all that is
    asked, and as often used by each flow.
    """
    pools = [
        name
        for name, part in system.parts.items()
        if isinstance(part, Tokens) and len(system.place.get(name, ())) > 1
    ]
    apart, doubts = [], []
    for pool in pools:
        takes = [take for take in form.takes if take.part == pool]
        if all(_at_home(system, take) for take in takes):
            apart.append(pool)
        elif any(take.sources[[*system.place[pool]]].any() for take in takes):
            doubts.append(UNLIKE.format(pool))
    if not apart:
        return Places(system=system, doubts=tuple(doubts))
    flows = [system.flow(name) for name in dict.fromkeys(t.flow for t in form.takes if t.part in apart)]
    kinds = _kinds(_unloaded(system), tuple(flow.name for flow in flows), tuple(apart))
    if len(kinds) > 1 and any(flow.window for flow in flows):
        used = {node for kind in kinds for node in kind}
        place = {p: tuple(n for n in at if p not in apart or n in used) for p, at in system.place.items()}
        unlike = [UNLIKE.format(pool) for pool in apart]
        return Places(system=replace(system, place=Named(place)), doubts=(*doubts, *unlike))
    return replace(_split(system, flows, apart, kinds), doubts=tuple(doubts))


def _at_home(system: System, take: Site) -> bool:
    """Return whether tokens are taken where a job begins, from the pool there."""
    at = Counter(system.flow(take.flow).at)
    home = np.array([at[node] for node in range(system.places)]) / sum(at.values())
    return take.own and np.allclose(take.sources, home)


def _unloaded(system: System) -> System:
    """Return a system with what its jobs do alone: designs of other rates are as far from place to place."""
    flows = (
        replace(flow, think=None) if flow.closed else replace(flow, arrivals=Poisson(), rate=1.0)
        for flow in system.flows
    )
    return replace(system, flows=tuple(flows))


@lru_cache(maxsize=64)
def _kinds(system: System, names: tuple[str, ...], pools: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the kinds of places at which some flows begin."""
    found: dict[Any, dict[float, list[int]]] = {}
    flows = [system.flow(name) for name in names]
    nodes = sorted({node for flow in flows for node in flow.at})
    distances = _distances(system, {n: [flow for flow in flows if n in flow.at] for n in nodes})
    for node, far in distances.items():
        uses = tuple(flow.at.count(node) / len(flow.at) for flow in flows)
        here = tuple(node in system.place[pool] for pool in pools)
        found.setdefault((uses, here), {}).setdefault(far, []).append(node)
    kinds = []
    for by_time in found.values():
        times, spread = sorted(by_time), CLOSED_ALIKE if all(f.closed for f in flows) else ALIKE
        while len(bins := _bins(times, spread)) > MOST_KINDS:
            spread *= ALIKE
        kinds += [tuple(node for far in some for node in by_time[far]) for some in bins]
    return kinds


def _bins(times: list[float], spread: float) -> list[list[float]]:
    """Return ascending times in bins, in each of which the last is so many times the first at most."""
    bins: list[list[float]] = []
    for time in times:
        if bins and time <= spread * bins[-1][0]:
            bins[-1].append(time)
        else:
            bins.append([time])
    return bins


def _distances(system: System, flows: Mapping[int, list[Flow]]) -> dict[int, float]:
    """Latency of the programs of some flows from each place, at no load. [ns].

    All packets are one network's: at no load they do not meet.
    """
    shares = lookup_shares_of(system)
    forms = {
        node: lower(system, shares, dict.fromkeys((flow.name for flow in here), (node,)))
        for node, here in flows.items()
    }
    rates = {flow.name: 0.0 for flow in system.flows}
    sent = sum((form.legs for form in forms.values()), ())
    legs = Decomposition(system, ProgramForm(legs=sent)).leg_times(rates) if sent else ()
    known: dict[Any, Any] = {}
    found = {}
    for node, form in forms.items():
        state = State(system, form, Decomposition(system, form, known=known), rates=rates)
        mine, legs = legs[: len(form.legs)], legs[len(form.legs) :]
        answers = state.parts.evaluate(rates, legs=mine)
        names = sorted({flow.name for flow in flows[node]})
        found[node] = sum(walk(state, system.flow(n), answers, NO_POOLS)[0].span.mean for n in names)
    return found


def _split(system: System, flows: list[Flow], pools: list[str], kinds: list[tuple[int, ...]]) -> Places:
    several = len(kinds) > 1
    names: dict[str, str] = {}
    split: dict[str, list[Flow]] = {}
    place = dict(system.place)
    parts = dict(system.parts)
    for number, kind in enumerate(kinds):
        called = {pool: f"{pool} {number}" if several else pool for pool in pools}
        used = set(pools)
        if several:
            some = [(f, _part_of(f, kind, f"{f.name} {number}", called)) for f in flows]
            steps = [step for _, part in some if part for step in all_steps(part.program)]
            used = {step.part for step in steps if isinstance(step, Acquire)}
            for flow, part in some:
                if part is not None:
                    names[part.name] = flow.name
                    split.setdefault(flow.name, []).append(part)
        for pool, new in called.items():
            if new in used:
                parts[new], place[new] = parts[pool], tuple(n for n in system.place[pool] if n in kind)
                names |= {new: pool} if several else {}
    if several:
        for pool in pools:
            del parts[pool], place[pool]
        parts = {name: _served(part, names) for name, part in parts.items()}
    parted = [one for flow in system.flows for one in split.get(flow.name, [flow])]
    return Places(
        system=replace(system, parts=Named(parts), place=Named(place), flows=tuple(parted)), names=names
    )


def _part_of(flow: Flow, kind: tuple[int, ...], name: str, pools: Mapping[str, str]) -> Flow | None:
    """Return the jobs of a flow that begin at places of a kind, None if there are none."""
    at = tuple(node for node in flow.at if node in kind)
    if not at:
        return None
    found = replace(flow, name=name, at=at, program=_renamed(flow.program, pools))
    if flow.closed:
        turns = [flow.at[job % len(flow.at)] in kind for job in range(flow.population)]
        return replace(found, population=sum(turns)) if any(turns) else None
    share = len(at) / len(flow.at)
    arrivals: Any = flow.arrivals
    if isinstance(arrivals, OnOff):
        arrivals = replace(arrivals, on_packets=max(arrivals.on_packets * share, 1.0))
    elif not isinstance(arrivals, Poisson):
        arrivals = ph_from_moments(mean=1.0, scv=float(share * arrivals.scv + 1 - share))
    return replace(found, arrivals=arrivals, rate=float(flow.mean_rate) * share)


def _renamed(value: Any, pools: Mapping[str, str]) -> Any:
    """Return steps with other names of pools."""
    if isinstance(value, tuple):
        return tuple(_renamed(each, pools) for each in value)
    if isinstance(value, Acquire | Release):
        return replace(value, part=pools.get(value.part, value.part))
    if isinstance(value, Step):
        inner = {f.name: getattr(value, f.name) for f in fields(value)}
        return replace(value, **{k: _renamed(v, pools) for k, v in inner.items() if isinstance(v, tuple)})
    return value


def _served(part: Any, names: Mapping[str, str]) -> Any:
    """Return a station that serves the parts of a flow as it does the flow."""
    if not isinstance(part, Station) or not isinstance(part.service, tuple):
        return part
    laws = dict(part.service)
    more = {new: laws[old] for new, old in names.items() if old in laws}
    return replace(part, service={**laws, **more})
