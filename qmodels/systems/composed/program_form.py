"""The intermediate form of a system: its programs as postfix code, with tables of what the code names.

The analytic model and the simulator read it. A program is lowered once: every visit, packet, hold and
acquisition gets a row with what is known of it before any time is (how often a job comes there, from which
nodes, how many requests at once, which tokens it holds), and the code says how they follow each other. `fold`
evaluates code by functions for each instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.composed.batch_laws import (
    ONE,
    batch_companions,
    compound,
    law_mean,
    number_law,
    thinned_law,
)
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


class Op(IntEnum):
    """Instruction of a program's postfix code; its operands, `ProgramForm.children`, come first."""

    VISIT = 0
    """Requests to a part, each of which travels there and back; row: `Site`."""
    TRAVEL = 1
    """A packet; row: `Travel`."""
    HOLD = 2
    """Time that passes; row: `Delay`."""
    TAKE = 3
    """Wait for tokens; row: `Site`."""
    GIVE = 4
    """Give tokens back; row: the step."""
    MARK = 5
    """End of a stage; row: the step."""
    MOVE = 6
    """Jump to another node; row: the step."""
    SERIES = 7
    """One operand after the other; row: None."""
    CHOICE = 8
    """One operand at random; row: `Alternatives`."""
    PARALLEL = 9
    """All operands at once, until the last is done; row: `Branches`."""
    COPIES = 10
    """The operand a number of times at once; row: `Count`."""
    REPEAT = 11
    """The operand a number of times, one after the other; row: `Count`."""
    BLOCKS = 12
    """The first operand, an operation of a free list, the second for each of its blocks; row: the step."""
    LOOKUP = 13
    """The operand, which is what a look-up comes to; row: the step."""


LEAVES = frozenset((Op.VISIT, Op.TRAVEL, Op.HOLD, Op.TAKE, Op.GIVE, Op.MARK, Op.MOVE))
IDLE = frozenset((Op.MARK, Op.MOVE))
"""Instructions that take no time and no part."""
THREADED = frozenset((Op.SERIES, Op.COPIES, Op.REPEAT, Op.BLOCKS))
"""Instructions that, without a rule, hand the state from operand to operand."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LookupShares:
    """Shares of the look-ups of a cache by where they find their line."""

    # private, hit, miss: shares found in a private level, in the shared level, and nowhere.
    private: float
    hit: float
    miss: float
    slices: FloatArray  # share of the look-ups that get past the private levels by the slice they go to
    levels: tuple[float, ...]  # shares found in each private level


@dataclass(frozen=True, kw_only=True, eq=False)
class Leg:
    """Packets of one kind that a job sends through the interconnect."""

    flow: str  # the flow
    packets: float  # packets of a job, those among them that need not travel included
    # origin, target: share of the packets by node; those of the same node do not travel.
    origin: FloatArray
    target: FloatArray
    bytes: int  # payload [bytes]
    together: float  # packets that leave a node at the same time as one of these, itself included, mean
    held: tuple[str, ...]  # pools of which the job holds tokens, those taken first first

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray, FloatArray]:
        start, end = np.flatnonzero(self.origin), np.flatnonzero(self.target)
        shares = np.outer(self.origin[start], self.target[end]).ravel()
        sources, targets = np.repeat(start, end.size), np.tile(end, start.size)
        used = (sources != targets) & (shares != 0)
        return sources[used], targets[used], shares[used]

    @property
    def sources(self) -> IntArray:
        """First nodes of the pairs of different nodes."""
        return self._pairs[0]

    @property
    def targets(self) -> IntArray:
        """Second nodes of these."""
        return self._pairs[1]

    @property
    def shares(self) -> FloatArray:
        """Share of the packets of each pair; what is missing to 1 does not travel."""
        return self._pairs[2]


@dataclass(frozen=True, kw_only=True, eq=False)
class Site:
    """Requests of a step, at its place in the program, to a part."""

    number: int  # its place among all sites; that of an acquisition among all of these
    flow: str
    part: str
    step: Any
    visits: float  # issues of a job, mean
    batch: FloatArray  # probabilities of 0, 1, 2, ... requests an issue
    write: bool = False  # whether the requests write
    bytes: int = 0  # payload of a request [bytes]
    sources: FloatArray = field(default_factory=lambda: np.zeros(0))
    """Share of the issues from each node; empty if the part is not placed."""
    own: bool = False  # whether a job always goes to the copy at its own place
    # Of requests that copies of a job issued together and that have come apart since: the law of their
    # number; that of one otherwise.
    copies: FloatArray = field(default_factory=lambda: ONE)
    # there, back: legs of the packets of a request.
    there: int | None = None
    back: int | None = None
    held: tuple[str, ...] = ()  # pools of which the job holds tokens, those taken first first
    branched: bool = False  # whether branches or copies of a job come here

    @cached_property
    def requests(self) -> float:
        """Requests of a job, mean."""
        return self.visits * law_mean(self.batch)


@dataclass(frozen=True, eq=False)
class Travel:
    """A packet to where a job then is."""

    step: Any
    leg: int | None  # None where it need not travel


@dataclass(frozen=True, eq=False)
class Delay:
    """Time that passes."""

    step: Hold
    times: float  # how often for a job, mean
    mean: float
    variance: float
    counted: bool


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Probabilities of the operands of a choice."""

    shares: tuple[float, ...]
    step: Branch | Lookup


@dataclass(frozen=True, eq=False)
class Branches:
    """Operand of each branch of a fork; equal branches have one."""

    step: Fork
    order: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Count:
    """A number of copies or rounds."""

    law: FloatArray  # of 0, 1, 2, ...; of copies of copies that of all of them
    step: Each | Repeat | Fork


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramForm:
    """All programs of a system as postfix code, with the tables of its rows."""

    op: tuple[Op, ...]  # the code
    rows: tuple[Any, ...]  # the row of each instruction
    children: tuple[tuple[int, ...], ...]  # last instruction of each operand of each instruction
    # The same without what changes no time: copies and branches of one, copies of copies, look-ups' marks.
    inside: tuple[tuple[int, ...], ...]
    programs: dict[str, int]  # last instruction of the program of each flow
    roots: dict[str, int]  # the same with the tokens of the flow's window around it
    sites: tuple[Site, ...]  # visits, by number
    takes: tuple[Site, ...]  # acquisitions of tokens, numbered of their own
    legs: tuple[Leg, ...]  # packets

    def parts(self, network: str) -> tuple[str, ...]:
        """Return the parts that are visited, the interconnect among them."""
        asked = dict.fromkeys(site.part for site in self.sites)
        return (*asked, network) if self.legs else tuple(asked)

    def nothing(self, node: int) -> bool:
        """Return whether code does nothing that takes time or a part."""
        op = self.op[node]
        return (
            op in IDLE
            or (op == Op.SERIES and not self.inside[node])
            or (op == Op.TRAVEL and self.rows[node].leg is None)
        )

    def nodes(self, node: int) -> Iterator[int]:
        """Yield code and all inside of it that changes times, each before its operands."""
        yield node
        for operand in self.inside[node]:
            yield from self.nodes(operand)

    def parts_inside(self, pool: str, network: str) -> set[str]:
        """Return the parts that jobs go to that hold tokens of a pool."""
        found = {site.part for site in self.sites if pool in site.held}
        return found | ({network} if any(pool in leg.held for leg in self.legs) else set())

    @cached_property
    def nested_takes(self) -> set[tuple[str, str]]:
        """Pairs of pools: tokens of the second are taken while some of the first are held."""
        return {(pool, take.part) for take in self.takes for pool in take.held}

    @cached_property
    def pools(self) -> dict[str, set[str]]:
        """The pools, those inside others first, and those that are inside of each."""
        inside: dict[str, set[str]] = {take.part: set() for take in self.takes}
        for pool, inner in self.nested_takes:
            if pool != inner:
                inside[pool].add(inner)
        return dict(sorted(inside.items(), key=lambda item: len(item[1])))


Run: TypeAlias = Callable[[int, Any], Any]
Rules: TypeAlias = Mapping[Op, Callable[..., Any]]


def fold(form: ProgramForm, node: int, rules: Rules, state: Any) -> Any:
    """Evaluate code by functions for its instructions.

    Parameters
    ----------
    form : ProgramForm
        Where the code is.
    node : int
        Last instruction of the code.
    rules : mapping of Op to callable
        ``rule(row, state)`` of a leaf; ``rule(row, operands, run, state)`` of another instruction, where
        ``run(operand, state)`` evaluates an operand. Without a rule a leaf returns the state it gets, a
        series, copies and rounds hand it from operand to operand.
    state : object
        The state at the beginning.

    Returns
    -------
    object
        The value of the last rule.
    """

    def run(node: int, state: Any) -> Any:
        op = form.op[node]
        rule = rules.get(op)
        if op in LEAVES:
            return state if rule is None else rule(form.rows[node], state)
        if rule is not None:
            return rule(form.rows[node], form.inside[node], run, state)
        if op not in THREADED:
            raise KeyError(f"rules must have one for {op.name}, got none")
        for operand in form.inside[node]:
            state = run(operand, state)
        return state

    return run(node, state)


def window_of(flow: str) -> str:
    """Return the name of the implicit pool of a flow with a window."""
    return f"window {flow}"


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


def lower(system: System, shares: Mapping[str, LookupShares] | None = None) -> ProgramForm:
    """Lower the programs of a system.

    ``shares``: of each cache, where look-ups find their line; equal shares if left out.
    """
    lowering = _Lowering(system, shares or {})
    programs, roots = {}, {}
    for flow in system.flows:
        programs[flow.name], roots[flow.name] = lowering.flow(flow)
    return ProgramForm(
        op=tuple(lowering.op),
        rows=tuple(lowering.rows),
        children=tuple(lowering.children),
        inside=tuple(lowering.inside),
        programs=programs,
        roots={name: lowering.plain(node) for name, node in roots.items()},
        sites=tuple(lowering.sites),
        takes=tuple(lowering.takes),
        legs=tuple(lowering.legs),
    )


Held: TypeAlias = tuple[tuple[str, int], ...]
"""Tokens that a job holds, by pool."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Here:
    """Position of a job in its program."""

    times: float  # how often it comes here
    place: FloatArray  # share of the times by node
    burst: FloatArray = field(default_factory=lambda: ONE)  # law of the copies that are here at once
    copies: FloatArray = field(default_factory=lambda: ONE)
    """Law of the copies of which this is one, since they came apart."""
    held: Held = ()
    branched: bool = False

    def split(self) -> Here:
        """Return what follows requests that were issued at once: they come apart."""
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
        """Return what follows when so many tokens more are held."""
        held = dict(self.held)
        left = held.get(pool, 0) + tokens
        if tokens < 0:
            held.pop(pool, None)  # what is left counts as taken last
        if left > 0:
            held[pool] = left
        return replace(self, held=tuple(held.items()))


class _Lowering:
    def __init__(self, system: System, shares: Mapping[str, LookupShares]) -> None:
        self.system, self.shares = system, dict(shares)
        self.op: list[Op] = []
        self.rows: list[Any] = []
        self.children: list[tuple[int, ...]] = []
        self.inside: list[tuple[int, ...]] = []
        self.sites: list[Site] = []
        self.takes: list[Site] = []
        self.legs: list[Leg] = []
        self.kinds: dict[type[Any], Callable[[Flow, Any, Here], tuple[int, Here]]] = {
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
            row = replace(row, law=compound(row.law, self.rows[inside[0]].law))
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
        here = Here(times=1.0, place=self._over(flow.at) if flow.at else np.zeros(0))
        if not flow.window:
            program = self._series(flow, flow.program, here)[0]
            return program, program
        step = Acquire(window_of(flow.name))
        take, here = self._acquire(flow, step, here)
        program = self._series(flow, flow.program, here)[0]
        give = self.put(Op.GIVE, Release(step.part))
        return program, self.put(Op.SERIES, None, (take, program, give))

    def _over(self, nodes: Any) -> FloatArray:
        """Return equal shares of some nodes, of which one may stand there several times."""
        counts = np.bincount(np.asarray(nodes, dtype=np.int64), minlength=self.system.places)
        return np.asarray(counts / counts.sum(), dtype=float)

    def _series(self, flow: Flow, steps: tuple[Any, ...], here: Here) -> tuple[int, Here]:
        nodes = []
        for step in steps:
            node, here = self.kinds[type(step)](flow, step, here)
            nodes.append(node)
        return (nodes[0] if len(nodes) == 1 else self.put(Op.SERIES, None, nodes)), here

    def _mark(self, flow: Flow, step: Mark, here: Here) -> tuple[int, Here]:
        return self.put(Op.MARK, step), here

    def _move(self, flow: Flow, step: Move, here: Here) -> tuple[int, Here]:
        return self.put(Op.MOVE, step), replace(here, place=self._over(flow.at))

    def _visit(self, flow: Flow, step: Visit, here: Here) -> tuple[int, Here]:
        nodes = self.system.place.get(step.part, ())
        if not nodes:
            return self._ask(flow, step, here)
        spread = self._over(nodes)
        own = bool(np.all(spread[here.place > 0] > 0))
        # A copy at one's own place is the one that is visited.
        ends = here.place * (spread == 0), spread
        return self._ask(flow, step, here, ends=ends, payloads=(step.bytes, step.reply_bytes), own=own)

    def _access(self, flow: Flow, step: Read | Write, here: Here) -> tuple[int, Here]:
        write, memory = isinstance(step, Write), self.system.parts[step.part]
        size = block_bytes(self.system, step.part)
        options: dict[str, Any] = {"batch": number_law(flow, step.blocks), "write": write, "size": size}
        nodes = self.system.place.get(step.part, ())
        if not nodes:
            return self._ask(flow, step, here, **options)
        several = memory.geometry.channels if isinstance(memory, DramSystem) else memory.channels
        ends = here.place, self._over([nodes[c % len(nodes)] for c in range(int(several))])
        payloads = (size, None) if write else (0, size)
        return self._ask(flow, step, here, ends=ends, payloads=payloads, **options)

    def _list(self, flow: Flow, step: Allocate | Free, here: Here) -> tuple[int, Here]:
        # An operation is one request, however many blocks it is for; of several at once each is one.
        law = number_law(flow, step.blocks if isinstance(step, Allocate) else _held_blocks(flow, step.part))
        node, after = self._ask(flow, step, here.split(), batch=law, write=isinstance(step, Free))
        if not step.steps:
            return node, after
        each, _ = self._series(flow, step.steps, replace(after, burst=law, branched=True))
        return self.put(Op.BLOCKS, step, (node, each)), after

    def _ask(
        self,
        flow: Flow,
        step: Any,
        here: Here,
        *,
        ends: tuple[FloatArray, FloatArray] | None = None,
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
            there = self._leg(flow, here, requests, ends, payloads[0], together=batch_companions(issued))
            back = None if payloads[1] is None else self._leg(flow, here, requests, ends[::-1], payloads[1])
        site = Site(
            number=len(self.sites),
            flow=flow.name,
            part=step.part,
            step=step,
            visits=here.times,
            batch=issued,
            write=write,
            bytes=size,
            sources=np.zeros(0) if ends is None else here.place,
            own=own,
            copies=here.copies,
            there=there,
            back=back,
            held=here.pools,
            branched=here.branched,
        )
        self.sites.append(site)
        return self.put(Op.VISIT, site), here.split()

    def _leg(
        self,
        flow: Flow,
        here: Here,
        packets: float,
        ends: tuple[FloatArray, FloatArray],
        payload: int,
        *,
        together: float = 1.0,
    ) -> int | None:
        pairs = np.count_nonzero(ends[0]) * np.count_nonzero(ends[1]) - np.count_nonzero(ends[0] * ends[1])
        if self.system.network is None or not pairs:
            return None
        self.legs.append(
            Leg(
                flow=flow.name,
                packets=packets,
                origin=ends[0],
                target=ends[1],
                bytes=payload,
                together=together,
                held=here.pools,
            )
        )
        return len(self.legs) - 1

    def _travel(
        self, flow: Flow, step: Any, here: Here, ends: tuple[FloatArray, FloatArray], payload: int
    ) -> int:
        packets, together = here.times * law_mean(here.burst), batch_companions(here.burst)
        leg = self._leg(flow, here, packets, ends, payload, together=together)
        return self.put(Op.TRAVEL, Travel(step, leg))

    def _send(self, flow: Flow, step: Send, here: Here) -> tuple[int, Here]:
        spread = self._over(self.system.place[step.to])
        node = self._travel(flow, step, here, (here.place, spread), step.bytes)
        return node, replace(here.split(), place=spread)

    def _lookup(self, flow: Flow, step: Lookup, here: Here) -> tuple[int, Here]:
        if step.part not in self.shares:
            self.shares[step.part] = _equal_shares(self.system.parts[step.part])
        found = self.shares[step.part]
        levels = found.levels if step.further else (found.private,)
        node, held = self._search(flow, step, here, levels)
        return self.put(Op.LOOKUP, step, (node,)), replace(here.split(), held=held)

    def _search(self, flow: Flow, step: Lookup, here: Here, levels: tuple[float, ...]) -> tuple[int, Held]:
        """Look in private levels, by the shares found there, and beyond them."""
        found = self.shares[step.part]
        if not levels:
            return self._beyond(flow, step, here)
        come = sum(levels) + found.hit + found.miss
        share = levels[0] / come if come > 0 else 1.0
        inside, _ = self._series(flow, step.private, here.thinned(share))
        missed = here.thinned(1 - share)
        further, missed = self._series(flow, step.further if levels[1:] else (), missed)
        deeper, held = self._search(flow, step, missed, levels[1:])
        outside = self.put(Op.SERIES, None, (further, deeper))
        return self.put(Op.CHOICE, Alternatives((share, 1 - share), step), (inside, outside)), held

    def _beyond(self, flow: Flow, step: Lookup, beyond: Here) -> tuple[int, Held]:
        """Go to the slice of a line that no private level has."""
        found = self.shares[step.part]
        past = found.hit + found.miss
        nodes, place, there = self.system.place.get(step.part, ()), beyond.place, []
        if nodes:
            place = np.zeros(beyond.place.size)
            np.add.at(place, [nodes[s % len(nodes)] for s in range(found.slices.size)], found.slices)
            there = [self._travel(flow, step, beyond, (beyond.place, place), 0)]
        at = replace(beyond, place=place)
        share = found.hit / past if past > 0 else 1.0
        hit, _ = self._series(flow, step.hit, at.thinned(share))
        miss, end = self._series(flow, step.miss, at.thinned(1 - share))
        outside = [*there, self.put(Op.CHOICE, Alternatives((share, 1 - share), step), (hit, miss))]
        if nodes:
            ends = place, beyond.place
            outside.append(self._travel(flow, step, beyond.split(), ends, step.reply_bytes))
        return self.put(Op.SERIES, None, outside), end.held

    def _hold(self, flow: Flow, step: Hold, here: Here) -> tuple[int, Here]:
        mean = float(step.time.mean)
        variance = float(step.time.scv) * mean**2 if mean else 0.0
        node = self.put(Op.HOLD, Delay(step, here.times, mean, variance, step.counted))
        return node, here.split() if variance else here

    def _acquire(self, flow: Flow, step: Acquire, here: Here) -> tuple[int, Here]:
        nodes = self.system.place.get(step.part, ())
        site = Site(
            number=len(self.takes),
            flow=flow.name,
            part=step.part,
            step=step,
            visits=here.times,
            batch=here.burst,
            sources=here.place if nodes else np.zeros(0),
            own=bool(nodes) and bool(np.all(self._over(nodes)[here.place > 0] > 0)),
            copies=here.copies,
            held=here.pools,
            branched=here.branched,
        )
        self.takes.append(site)
        return self.put(Op.TAKE, site), here.after(step.part, step.tokens)

    def _release(self, flow: Flow, step: Release, here: Here) -> tuple[int, Here]:
        return self.put(Op.GIVE, step), here.after(step.part, -step.tokens)

    def _fork(self, flow: Flow, step: Fork, here: Here) -> tuple[int, Here]:
        kinds = {branch: kind for kind, branch in enumerate(dict.fromkeys(step.branches))}
        order = tuple(kinds[branch] for branch in step.branches)
        # Equal branches make their first visit at once.
        nodes = [
            self._copies(
                flow, step, branch, number_law(flow, order.count(kind)), replace(here, branched=True)
            )
            for branch, kind in kinds.items()
        ]
        return self.put(Op.PARALLEL, Branches(step, order), nodes), here.split()

    def _each(self, flow: Flow, step: Each, here: Here) -> tuple[int, Here]:
        law = number_law(flow, step.count)
        inside = here if np.array_equal(law, ONE) else replace(here, branched=True)
        return self._copies(flow, step, step.steps, law, inside), here.split()

    def _copies(self, flow: Flow, step: Any, steps: tuple[Any, ...], law: FloatArray, here: Here) -> int:
        inside, _ = self._series(flow, steps, replace(here, burst=compound(here.burst, law)))
        return self.put(Op.COPIES, Count(law, step), (inside,))

    def _repeat(self, flow: Flow, step: Repeat, here: Here) -> tuple[int, Here]:
        law = number_law(flow, step.count)
        rounds = law_mean(law)
        here = here.split() if rounds > 1 else here
        aside = _Lowering(self.system, self.shares)
        after = aside._series(flow, step.steps, here)[1].place
        place = (here.place + (rounds - 1) * after) / rounds
        node, _ = self._series(flow, step.steps, replace(here, times=here.times * rounds, place=place))
        return self.put(Op.REPEAT, Count(law, step), (node,)), replace(here.split(), place=after)

    def _branch(self, flow: Flow, step: Branch, here: Here) -> tuple[int, Here]:
        nodes, ends = [], []
        for share, choice in zip(step.probabilities, step.choices, strict=True):
            node, after = self._series(flow, choice, here.thinned(share))
            nodes.append(node)
            ends.append(after)
        node = self.put(Op.CHOICE, Alternatives(step.probabilities, step), nodes)
        place = np.sum([p * end.place for p, end in zip(step.probabilities, ends, strict=True)], axis=0)
        return node, replace(here.split(), place=place, held=ends[-1].held)


def _held_blocks(flow: Flow, part: str) -> int | str:
    """Return how many blocks a job has of a free list."""
    taken = [s.blocks for s in all_steps(flow.program) if isinstance(s, Allocate) and s.part == part]
    if len(taken) == 1 or SEGMENTS in taken:
        return SEGMENTS if SEGMENTS in taken else taken[0]
    return sum(int(blocks) for blocks in taken)


def _equal_shares(caches: Any) -> LookupShares:
    levels = len(caches.private)
    slices = caches.shared.slices if caches.shared is not None else 1
    each = 1.0 / (levels + 2)
    return LookupShares(
        private=levels * each,
        hit=each,
        miss=each,
        slices=np.full(slices, 1.0 / slices),
        levels=(each,) * levels,
    )
