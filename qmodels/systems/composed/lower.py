"""From the programs of a system to their intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import (
    ONE,
    batch_companions,
    compound,
    law_mean,
    number_law,
    thinned_law,
)
from qmodels.systems.composed.program_form import (
    Alternatives,
    Branches,
    Count,
    Delay,
    Leg,
    LookupShares,
    Op,
    ProgramForm,
    Site,
    Travel,
    window_of,
)
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


def block_bytes(system: System, name: str) -> int:
    """Return the bytes of a block of a memory: of a `Dram`, a segment of the flows that access it."""
    part = system.parts[name]
    if isinstance(part, DramSystem):
        return int(part.geometry.block_bytes)
    sizes = {
        flow.segment_bytes
        for flow in system.flows
        for step in all_steps(flow.program)
        if isinstance(step, Read | Write) and step.part == name
    }
    if len(sizes) > 1:
        raise ValueError(f"parts.{name} must be accessed by flows of one segment_bytes, got {sorted(sizes)}")
    return int(sizes.pop())


def lower(
    system: System,
    shares: Mapping[str, LookupShares] | None = None,
    at: Mapping[str, tuple[int, ...]] | None = None,
) -> ProgramForm:
    """Lower the programs of a system.

    ``shares``: of each cache, where look-ups find their line; equal shares if left out; ``at``: of some
    flows, the nodes where jobs begin instead.
    """
    at = {flow.name: flow.at for flow in system.flows} | dict(at or {})
    lowering = _Lowering(system, shares or {}, at)
    programs, roots = {}, {}
    for flow in system.flows:
        programs[flow.name], roots[flow.name] = lowering.flow(flow)
    columns = ("op", "rows", "children", "inside", "sites", "takes", "legs")
    return ProgramForm(
        programs=programs,
        roots={name: lowering.plain(node) for name, node in roots.items()},
        **{name: tuple(getattr(lowering, name)) for name in columns},
    )


Ends: TypeAlias = tuple[FloatArray, FloatArray]
"""Shares of packets by the node that they come from, and go to."""
Held: TypeAlias = tuple[tuple[str, int], ...]
"""Tokens that a job holds, by pool."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Here:
    """Position of a job in its program."""

    flow: Flow
    times: float  # how often it comes here
    place: FloatArray  # share of the times by node
    burst: FloatArray = field(default_factory=lambda: ONE)  # law of the copies that are here at once
    copies: FloatArray = field(default_factory=lambda: ONE)
    """Law of the copies of which this is one, since they came apart."""
    held: Held = ()
    branched: bool = False

    def split(self) -> Here:
        """Position after requests that were issued at once: they come apart."""
        if np.array_equal(self.burst, ONE):
            return self
        return replace(self, times=self.times * law_mean(self.burst), burst=ONE, copies=self.burst)

    def thinned(self, share: float) -> Here:
        """Return where a job does something with a probability; of several at once each does."""
        if np.array_equal(self.burst, ONE):
            return replace(self, times=self.times * share)
        return replace(self, burst=thinned_law(self.burst, share))

    @property
    def pools(self) -> tuple[str, ...]:
        """Pools of which tokens are held."""
        return tuple(pool for pool, _ in self.held)

    def after(self, pool: str, tokens: int) -> Here:
        """Position with n tokens more."""
        held = dict(self.held)
        left = held.get(pool, 0) + tokens
        if tokens < 0:
            held.pop(pool, None)  # what is left counts as taken last
        if left > 0:
            held[pool] = left
        return replace(self, held=tuple(held.items()))


class _Lowering:
    def __init__(
        self, system: System, shares: Mapping[str, LookupShares], at: Mapping[str, tuple[int, ...]]
    ) -> None:
        self.system, self.shares, self.at = system, dict(shares), at
        self.op: list[Op] = []
        self.rows: list[Any] = []
        self.children: list[tuple[int, ...]] = []
        self.inside: list[tuple[int, ...]] = []
        self.sites: list[Site] = []
        self.takes: list[Site] = []
        self.legs: list[Leg] = []
        self.kinds: dict[type[Any], Callable[[Any, Here], tuple[int, Here]]] = {
            Visit: self._visit, Read: self._access, Write: self._access,
            Allocate: self._list, Free: self._list, Send: self._send, Lookup: self._lookup,
            Hold: self._hold, Mark: self._mark, Move: self._move,
            Acquire: self._acquire, Release: self._release,
            Fork: self._fork, Each: self._each, Repeat: self._repeat, Branch: self._branch,
        }  # fmt: skip

    def put(self, op: Op, row: Any = None, children: Sequence[int] = ()) -> int:
        """Add an instruction; return its number."""
        self.op.append(op)
        self.children.append(tuple(children))
        inside = tuple(self.plain(child) for child in children)
        if op == Op.COPIES and self.op[inside[0]] == Op.COPIES:
            # Copies of copies are as many copies: they all begin at once.
            row = row._replace(law=compound(row.law, self.rows[inside[0]].law))
            inside = self.inside[inside[0]]
        self.rows.append(row)
        self.inside.append(inside)
        return len(self.op) - 1

    def plain(self, node: int) -> int:
        """Return the code that takes as long: without copies of one and forks of one kind of branch."""
        while (
            self.op[node] == Op.LOOKUP
            or (self.op[node] == Op.COPIES and np.array_equal(self.rows[node].law, ONE))
            or (self.op[node] == Op.PARALLEL and len(self.inside[node]) == 1)
        ):
            node = self.inside[node][0]
        return node

    def flow(self, flow: Flow) -> tuple[int, int]:
        """Lower the program of a flow; return its last instruction, and that after its window."""
        here = Here(flow=flow, times=1.0, place=self._over(self.at[flow.name]) if flow.at else np.zeros(0))
        if not flow.window:
            program = self._series(flow.program, here)[0]
            return program, program
        step = Acquire(window_of(flow.name))
        take, here = self._acquire(step, here)
        program = self._series(flow.program, here)[0]
        give = self.put(Op.GIVE, Release(step.part))
        return program, self.put(Op.SERIES, None, (take, program, give))

    def _over(self, nodes: Any) -> FloatArray:
        """Return equal shares of some nodes, of which one may stand there several times."""
        counts = np.bincount(np.asarray(nodes, dtype=np.int64), minlength=self.system.places)
        return np.asarray(counts / counts.sum(), dtype=float)

    def _series(self, steps: tuple[Any, ...], here: Here) -> tuple[int, Here]:
        nodes = []
        for step in steps:
            node, here = self.kinds[type(step)](step, here)
            nodes.append(node)
        return (nodes[0] if len(nodes) == 1 else self.put(Op.SERIES, None, nodes)), here

    def _mark(self, step: Mark, here: Here) -> tuple[int, Here]:
        return self.put(Op.MARK, step), here

    def _move(self, step: Move, here: Here) -> tuple[int, Here]:
        return self.put(Op.MOVE, step), replace(here, place=self._over(self.at[here.flow.name]))

    def _visit(self, step: Visit, here: Here) -> tuple[int, Here]:
        nodes = self.system.place.get(step.part, ())
        if not nodes:
            return self._ask(step, here)
        spread = self._over(nodes)
        own = bool(np.all(spread[here.place > 0] > 0))
        # A copy at one's own place is the one that is visited.
        ends = here.place * (spread == 0), spread
        return self._ask(step, here, ends=ends, payloads=(step.bytes, step.reply_bytes), own=own)

    def _access(self, step: Read | Write, here: Here) -> tuple[int, Here]:
        write, memory = isinstance(step, Write), self.system.parts[step.part]
        size = block_bytes(self.system, step.part)
        options: dict[str, Any] = {"batch": number_law(here.flow, step.blocks), "write": write, "size": size}
        nodes = self.system.place.get(step.part, ())
        if not nodes:
            return self._ask(step, here, **options)
        several = memory.geometry.channels if isinstance(memory, DramSystem) else memory.channels
        ends = here.place, self._over([nodes[c % len(nodes)] for c in range(int(several))])
        payloads = (size, None) if write else (0, size)
        return self._ask(step, here, ends=ends, payloads=payloads, **options)

    def _list(self, step: Allocate | Free, here: Here) -> tuple[int, Here]:
        # An operation is one request, however many blocks it is for; of several at once each is one.
        blocks = step.blocks if isinstance(step, Allocate) else _held_blocks(here.flow, step.part)
        law = number_law(here.flow, blocks)
        node, after = self._ask(step, here.split(), batch=law, write=isinstance(step, Free))
        if not step.steps:
            return node, after
        each, _ = self._series(step.steps, replace(after, burst=law, branched=True))
        return self.put(Op.BLOCKS, step, (node, each)), after

    def _ask(
        self,
        step: Any,
        here: Here,
        *,
        ends: Ends | None = None,
        payloads: tuple[int, int | None] = (0, None),
        batch: FloatArray = ONE,
        write: bool = False,
        size: int = 0,
        own: bool = False,
    ) -> tuple[int, Here]:
        issued = compound(here.burst, batch)
        requests = here.times * law_mean(issued)
        there = back = None
        if ends is not None:
            there = self._leg(here, requests, ends, payloads[0], batch_companions(issued))
            back = None if payloads[1] is None else self._leg(here, requests, ends[::-1], payloads[1])
        sources = np.zeros(0) if ends is None else here.place
        site = self._site(
            step, here, self.sites, batch=issued, sources=sources, write=write, bytes=size, own=own,
            there=there, back=back,
        )  # fmt: skip
        self.sites.append(site)
        return self.put(Op.VISIT, site), here.split()

    def _site(self, step: Any, here: Here, sites: list[Site], **more: Any) -> Site:
        more |= {"visits": here.times, "copies": here.copies, "branched": here.branched}
        more |= {"flow": here.flow.name, "part": step.part, "step": step, "held": here.pools}
        return Site(number=len(sites), **more)

    def _leg(self, here: Here, packets: float, ends: Ends, payload: int, together: float = 1.0) -> int | None:
        pairs = np.count_nonzero(ends[0]) * np.count_nonzero(ends[1]) - np.count_nonzero(ends[0] * ends[1])
        if self.system.network is None or not pairs:
            return None
        leg = Leg(
            flow=here.flow.name, packets=packets, origin=ends[0], target=ends[1], bytes=payload,
            together=together, held=here.pools,
        )  # fmt: skip
        self.legs.append(leg)
        return len(self.legs) - 1

    def _travel(self, step: Any, here: Here, ends: Ends, payload: int) -> int:
        packets = here.times * law_mean(here.burst)
        leg = self._leg(here, packets, ends, payload, batch_companions(here.burst))
        return self.put(Op.TRAVEL, Travel(step, leg))

    def _send(self, step: Send, here: Here) -> tuple[int, Here]:
        spread = self._over(self.system.place[step.to])
        node = self._travel(step, here, (here.place, spread), step.bytes)
        return node, replace(here.split(), place=spread)

    def _lookup(self, step: Lookup, here: Here) -> tuple[int, Here]:
        if step.part not in self.shares:
            self.shares[step.part] = _equal_shares(self.system.parts[step.part])
        found = self.shares[step.part]
        levels = found.levels if step.further else (found.private,)
        node, held = self._search(step, here, levels)
        return self.put(Op.LOOKUP, step, (node,)), replace(here.split(), held=held)

    def _search(self, step: Lookup, here: Here, levels: tuple[float, ...]) -> tuple[int, Held]:
        """Look in private levels, by the shares found there, and beyond them."""
        found = self.shares[step.part]
        if not levels:
            return self._beyond(step, here)
        come = sum(levels) + found.hit + found.miss
        share = levels[0] / come if come > 0 else 1.0
        inside, _ = self._series(step.private, here.thinned(share))
        missed = here.thinned(1 - share)
        further, missed = self._series(step.further if levels[1:] else (), missed)
        deeper, held = self._search(step, missed, levels[1:])
        outside = self.put(Op.SERIES, None, (further, deeper))
        return self.put(Op.CHOICE, Alternatives((share, 1 - share), step), (inside, outside)), held

    def _beyond(self, step: Lookup, beyond: Here) -> tuple[int, Held]:
        """Go to the slice of a line that no private level has."""
        found = self.shares[step.part]
        past = found.hit + found.miss
        nodes, place, there = self.system.place.get(step.part, ()), beyond.place, []
        if nodes:
            place = np.zeros(beyond.place.size)
            np.add.at(place, [nodes[s % len(nodes)] for s in range(found.slices.size)], found.slices)
            there = [self._travel(step, beyond, (beyond.place, place), 0)]
        at = replace(beyond, place=place)
        share = found.hit / past if past > 0 else 1.0
        hit, _ = self._series(step.hit, at.thinned(share))
        miss, end = self._series(step.miss, at.thinned(1 - share))
        outside = [*there, self.put(Op.CHOICE, Alternatives((share, 1 - share), step), (hit, miss))]
        if nodes:
            ends = place, beyond.place
            outside.append(self._travel(step, beyond.split(), ends, step.reply_bytes))
        return self.put(Op.SERIES, None, outside), end.held

    def _hold(self, step: Hold, here: Here) -> tuple[int, Here]:
        mean = float(step.time.mean)
        variance = float(step.time.scv) * mean**2 if mean else 0.0
        node = self.put(Op.HOLD, Delay(step, here.times, mean, variance, step.counted))
        return node, here.split() if variance else here

    def _acquire(self, step: Acquire, here: Here) -> tuple[int, Here]:
        nodes = self.system.place.get(step.part, ())
        own = bool(nodes) and bool(np.all(self._over(nodes)[here.place > 0] > 0))
        sources = here.place if nodes else np.zeros(0)
        site = self._site(step, here, self.takes, batch=here.burst, sources=sources, own=own)
        self.takes.append(site)
        return self.put(Op.TAKE, site), here.after(step.part, step.tokens)

    def _release(self, step: Release, here: Here) -> tuple[int, Here]:
        return self.put(Op.GIVE, step), here.after(step.part, -step.tokens)

    def _fork(self, step: Fork, here: Here) -> tuple[int, Here]:
        kinds = {branch: kind for kind, branch in enumerate(dict.fromkeys(step.branches))}
        order = tuple(kinds[branch] for branch in step.branches)
        # Equal branches make their first visit at once.
        nodes = [
            self._copies(step, branch, number_law(here.flow, order.count(kind)), replace(here, branched=True))
            for branch, kind in kinds.items()
        ]
        return self.put(Op.PARALLEL, Branches(order, step), nodes), here.split()

    def _each(self, step: Each, here: Here) -> tuple[int, Here]:
        law = number_law(here.flow, step.count)
        inside = here if np.array_equal(law, ONE) else replace(here, branched=True)
        return self._copies(step, step.steps, law, inside), here.split()

    def _copies(self, step: Any, steps: tuple[Any, ...], law: FloatArray, here: Here) -> int:
        inside, _ = self._series(steps, replace(here, burst=compound(here.burst, law)))
        return self.put(Op.COPIES, Count(law, step), (inside,))

    def _repeat(self, step: Repeat, here: Here) -> tuple[int, Here]:
        law = number_law(here.flow, step.count)
        rounds = law_mean(law)
        here = here.split() if rounds > 1 else here
        aside = _Lowering(self.system, self.shares, self.at)
        after = aside._series(step.steps, here)[1].place
        place = (here.place + (rounds - 1) * after) / rounds
        node, _ = self._series(step.steps, replace(here, times=here.times * rounds, place=place))
        return self.put(Op.REPEAT, Count(law, step), (node,)), replace(here.split(), place=after)

    def _branch(self, step: Branch, here: Here) -> tuple[int, Here]:
        nodes, ends = [], []
        for share, choice in zip(step.probabilities, step.choices, strict=True):
            node, after = self._series(choice, here.thinned(share))
            nodes.append(node)
            ends.append(after)
        node = self.put(Op.CHOICE, Alternatives(step.probabilities, step), nodes)
        place = np.sum([p * end.place for p, end in zip(step.probabilities, ends, strict=True)], axis=0)
        return node, replace(here.split(), place=place, held=ends[-1].held)


def _held_blocks(flow: Flow, part: str) -> int | str:
    """Blocks that a job has of a free list."""
    taken = [s.blocks for s in all_steps(flow.program) if isinstance(s, Allocate) and s.part == part]
    if len(taken) == 1 or SEGMENTS in taken:
        return SEGMENTS if SEGMENTS in taken else taken[0]
    return sum(int(blocks) for blocks in taken)


def _equal_shares(caches: Any) -> LookupShares:
    levels = len(caches.private)
    slices = caches.shared.slices if caches.shared is not None else 1
    each = 1.0 / (levels + 2)
    equal = np.full(slices, 1.0 / slices)
    return LookupShares(private=levels * each, hit=each, miss=each, slices=equal, levels=(each,) * levels)
