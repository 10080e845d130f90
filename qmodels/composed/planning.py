"""From the programs of a system to the plan that the model walks: how often, from where, how many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.bursts import Here, apart, beside, compound, integers, number_law, thinned
from qmodels.composed.plan import (
    ONE,
    Ask,
    Choice,
    Copies,
    Delay,
    Give,
    Leg,
    Node,
    Plan,
    Rounds,
    Series,
    Site,
    Take,
    Together,
    Travel,
)
from qmodels.composed.streams import LookupShares
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import (
    SEGMENTS,
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Mark,
    Move,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
    all_steps,
)
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import DramSystem


def window_of(flow: str) -> str:
    """Return the name of the implicit pool of a flow with a window."""
    return f"window {flow}"


def plan_of(system: System, shares: Mapping[str, LookupShares]) -> Plan:
    """Return the plan of a system.

    ``shares``: of each cache, where look-ups find their line.
    """
    planner = _Planner(system, shares)
    roots = {flow.name: planner.flow(flow) for flow in system.flows}
    return Plan(roots=roots, sites=tuple(planner.sites), takes=tuple(planner.takes), legs=tuple(planner.legs))


class _Planner:
    def __init__(self, system: System, shares: Mapping[str, LookupShares]) -> None:
        self.system, self.shares = system, shares
        self.sites: list[Site] = []
        self.takes: list[Site] = []
        self.legs: list[Leg] = []

    def flow(self, flow: Flow) -> Node:
        place = self._over(flow.at) if flow.at else np.zeros(0)
        here = Here(times=1.0, place=place, burst=ONE, copies=ONE)
        if not flow.window:
            return self._series(flow, flow.program, here)[0]
        pool = window_of(flow.name)
        take = self._take(flow, Acquire(pool), here)
        return Series((take, self._series(flow, flow.program, here)[0], Give(pool, 1)))

    def _over(self, nodes: Any) -> FloatArray:
        """Return equal shares of some nodes, of which one may stand there several times."""
        counts = np.bincount(np.asarray(nodes, dtype=np.int64), minlength=self.system.places)
        return np.asarray(counts / counts.sum(), dtype=float)

    def _series(self, flow: Flow, steps: tuple[Any, ...], here: Here) -> tuple[Node, Here]:
        nodes = []
        for step in steps:
            node, here = self._step(flow, step, here)
            nodes.append(node)
        return nodes[0] if len(nodes) == 1 else Series(tuple(nodes)), here

    def _step(self, flow: Flow, step: Any, here: Here) -> tuple[Node, Here]:
        kinds: dict[type[Any], Callable[[Flow, Any, Here], tuple[Node, Here]]] = {
            Visit: self._visit, Read: self._access, Write: self._access,
            Allocate: self._list, Free: self._list, Send: self._send, Lookup: self._lookup,
            Hold: self._hold, Mark: self._mark, Move: self._move,
            Acquire: self._acquire, Release: self._release,
            Fork: self._fork, Each: self._each, Repeat: self._repeat, Branch: self._branch,
        }  # fmt: skip
        return kinds[type(step)](flow, step, here)

    def _mark(self, flow: Flow, step: Mark, here: Here) -> tuple[Node, Here]:
        return Series(()), here

    def _move(self, flow: Flow, step: Move, here: Here) -> tuple[Node, Here]:
        return Series(()), replace(here, place=self._over(flow.at))

    def _visit(self, flow: Flow, step: Visit, here: Here) -> tuple[Node, Here]:
        nodes = self.system.place.get(step.part, ())
        if not nodes:
            return self._ask(flow, step, here)
        spread = self._over(nodes)
        # A copy at one's own place is the one that is asked.
        pairs = np.outer(here.place * (spread == 0), spread) + np.diag(here.place * (spread > 0))
        own = bool(np.all(spread[here.place > 0] > 0))
        return self._ask(flow, step, here, pairs=pairs, payloads=(step.bytes, step.reply_bytes), own=own)

    def _access(self, flow: Flow, step: Read | Write, here: Here) -> tuple[Node, Here]:
        write, blocks = isinstance(step, Write), number_law(flow, step.blocks)
        memory: DramSystem = self.system.parts[step.part]
        size = int(memory.geometry.block_bytes)
        options: dict[str, Any] = {"batch": blocks, "write": write, "size": size}
        nodes = self.system.place.get(step.part, ())
        if not nodes:
            return self._ask(flow, step, here, **options)
        spread = self._over([nodes[c % len(nodes)] for c in range(int(memory.geometry.channels))])
        payloads = (size, None) if write else (0, size)
        return self._ask(flow, step, here, pairs=np.outer(here.place, spread), payloads=payloads, **options)

    def _list(self, flow: Flow, step: Allocate | Free, here: Here) -> tuple[Node, Here]:
        # An operation is one request, however many blocks it is for; of several at once each is one.
        blocks = step.blocks if isinstance(step, Allocate) else self._held_blocks(flow, step.part)
        node, after = self._ask(
            flow, step, apart(here), batch=number_law(flow, blocks), write=isinstance(step, Free)
        )
        return node, after

    def _held_blocks(self, flow: Flow, part: str) -> int | str:
        taken = [s.blocks for s in all_steps(flow.program) if isinstance(s, Allocate) and s.part == part]
        if len(taken) == 1 or SEGMENTS in taken:
            return SEGMENTS if SEGMENTS in taken else taken[0]
        return sum(int(blocks) for blocks in taken)

    def _ask(
        self,
        flow: Flow,
        step: Any,
        here: Here,
        *,
        pairs: FloatArray | None = None,
        payloads: tuple[int, int | None] = (0, None),
        batch: FloatArray = ONE,
        write: bool = False,
        size: int = 0,
        own: bool = False,
    ) -> tuple[Node, Here]:
        issued = compound(here.burst, batch)
        requests = here.times * float(issued @ np.arange(issued.size))
        there = back = None
        if pairs is not None:
            there = self._leg(flow, requests, pairs, payloads[0], together=beside(issued))
            back = None if payloads[1] is None else self._leg(flow, requests, pairs.T, payloads[1])
        site = Site(
            number=len(self.sites),
            flow=flow.name,
            part=step.part,
            step=step,
            visits=here.times,
            batch=issued,
            write=write,
            bytes=size,
            sources=np.zeros(0) if pairs is None else here.place,
            own=own,
            copies=here.copies,
        )
        self.sites.append(site)
        return Ask(site, there, back), apart(here)

    def _leg(
        self, flow: Flow, packets: float, pairs: FloatArray, payload: int, *, together: float = 1.0
    ) -> int | None:
        if self.system.network is None:
            return None
        pairs = pairs * (1 - np.eye(len(pairs)))
        sources, targets = np.nonzero(pairs)
        if not sources.size:
            return None
        shares: FloatArray = pairs[sources, targets]
        self.legs.append(
            Leg(
                flow=flow.name,
                packets=packets,
                sources=integers(sources),
                targets=integers(targets),
                shares=shares,
                bytes=payload,
                together=together,
            )
        )
        return len(self.legs) - 1

    def _travel(self, flow: Flow, here: Here, pairs: FloatArray, payload: int) -> Node:
        packets = here.times * float(here.burst @ np.arange(here.burst.size))
        leg = self._leg(flow, packets, pairs, payload, together=beside(here.burst))
        return Series(()) if leg is None else Travel(leg)

    def _send(self, flow: Flow, step: Send, here: Here) -> tuple[Node, Here]:
        spread = self._over(self.system.place[step.to])
        node = self._travel(flow, here, np.outer(here.place, spread), step.bytes)
        return node, replace(apart(here), place=spread)

    def _lookup(self, flow: Flow, step: Lookup, here: Here) -> tuple[Node, Here]:
        found = self.shares[step.part]
        levels = found.levels if step.further else (found.private,)
        return self._search(flow, step, here, levels), apart(here)

    def _search(self, flow: Flow, step: Lookup, here: Here, levels: tuple[float, ...]) -> Node:
        """Look in private levels, by the shares found there, and beyond them."""
        found = self.shares[step.part]
        if not levels:
            return self._beyond(flow, step, here)
        come = sum(levels) + found.hit + found.miss
        share = levels[0] / come if come > 0 else 1.0
        inside, _ = self._series(flow, step.private, thinned(here, share))
        missed = thinned(here, 1 - share)
        further, missed = self._series(flow, step.further if levels[1:] else (), missed)
        deeper = self._search(flow, step, missed, levels[1:])
        return Choice((share, 1 - share), (inside, Series((further, deeper))))

    def _beyond(self, flow: Flow, step: Lookup, beyond: Here) -> Node:
        """Go to the slice of a line that no private level has."""
        found = self.shares[step.part]
        past = found.hit + found.miss
        nodes = self.system.place.get(step.part, ())
        there, back, place = None, None, beyond.place
        if nodes:
            place = np.zeros(beyond.place.size)
            np.add.at(place, [nodes[s % len(nodes)] for s in range(found.slices.size)], found.slices)
            there = self._travel(flow, beyond, np.outer(beyond.place, place), 0)
            back = (np.outer(beyond.place, place).T, step.reply_bytes)
        at = replace(beyond, place=place)
        share = found.hit / past if past > 0 else 1.0
        hit, _ = self._series(flow, step.hit, thinned(at, share))
        miss, _ = self._series(flow, step.miss, thinned(at, 1 - share))
        outside: list[Node] = [Choice((share, 1 - share), (hit, miss))]
        if there is not None and back is not None:
            outside = [there, *outside, self._travel(flow, apart(beyond), *back)]
        return Series(tuple(outside))

    def _hold(self, flow: Flow, step: Hold, here: Here) -> tuple[Node, Here]:
        mean = float(step.time.mean)
        variance = float(step.time.scv) * mean**2 if mean else 0.0
        return Delay(mean, variance, step.counted), apart(here) if variance else here

    def _acquire(self, flow: Flow, step: Acquire, here: Here) -> tuple[Node, Here]:
        return self._take(flow, step, here), here

    def _take(self, flow: Flow, step: Acquire, here: Here) -> Take:
        nodes = self.system.place.get(step.part, ())
        own = bool(nodes) and bool(np.all(self._over(nodes)[here.place > 0] > 0))
        site = Site(
            number=len(self.takes),
            flow=flow.name,
            part=step.part,
            step=step,
            visits=here.times,
            batch=here.burst,
            write=False,
            bytes=0,
            sources=here.place if nodes else np.zeros(0),
            own=own,
            copies=here.copies,
        )
        self.takes.append(site)
        return Take(site, step.tokens)

    def _release(self, flow: Flow, step: Release, here: Here) -> tuple[Node, Here]:
        return Give(step.part, step.tokens), here

    def _fork(self, flow: Flow, step: Fork, here: Here) -> tuple[Node, Here]:
        # Equal branches ask their first part at once.
        nodes = []
        for branch in dict.fromkeys(step.branches):
            count = step.branches.count(branch)
            nodes.append(self._copies(flow, branch, number_law(flow, count), here))
        return (nodes[0] if len(nodes) == 1 else Together(tuple(nodes))), apart(here)

    def _each(self, flow: Flow, step: Each, here: Here) -> tuple[Node, Here]:
        return self._copies(flow, step.steps, number_law(flow, step.count), here), apart(here)

    def _copies(self, flow: Flow, steps: tuple[Any, ...], law: FloatArray, here: Here) -> Node:
        inside, _ = self._series(flow, steps, replace(here, burst=compound(here.burst, law)))
        if np.array_equal(law, ONE):
            return inside
        # Copies of copies are as many copies: they all begin at once.
        return (
            Copies(compound(law, inside.law), inside.node)
            if isinstance(inside, Copies)
            else Copies(law, inside)
        )

    def _repeat(self, flow: Flow, step: Repeat, here: Here) -> tuple[Node, Here]:
        law = number_law(flow, step.count)
        rounds = float(law @ np.arange(law.size))
        here = apart(here) if rounds > 1 else here
        after = self._places_after(flow, step.steps, here)
        place = (here.place + (rounds - 1) * after) / rounds
        node, _ = self._series(flow, step.steps, replace(here, times=here.times * rounds, place=place))
        return Rounds(law, node), replace(apart(here), place=after)

    def _places_after(self, flow: Flow, steps: tuple[Any, ...], here: Here) -> FloatArray:
        """Return where a job is after some steps, without counting them."""
        aside = _Planner(self.system, self.shares)
        return aside._series(flow, steps, here)[1].place

    def _branch(self, flow: Flow, step: Branch, here: Here) -> tuple[Node, Here]:
        nodes, places = [], []
        for share, choice in zip(step.probabilities, step.choices, strict=True):
            node, after = self._series(flow, choice, thinned(here, share))
            nodes.append(node)
            places.append(share * after.place)
        return Choice(step.probabilities, tuple(nodes)), replace(apart(here), place=np.sum(places, axis=0))
