"""The intermediate form of a system: its programs as postfix code, with tables of what the code names.

The analytic model and the simulator read it. A program is lowered once: every visit, packet, hold and
acquisition gets a row with what is known of it before any time is (how often a job comes there, from which
nodes, how many requests at once, which tokens it holds), and the code says how they follow each other. `fold`
evaluates code by functions for each instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.composed.parts import ONE, law_mean
from qmodels.systems.composed.steps import Branch, Each, Fork, Hold, Lookup, Repeat


class Op(IntEnum):
    """Instruction of postfix code, which comes after its operands, and its row."""

    VISIT = 0  # requests to a part, each of which travels there and back; a `Site`
    TRAVEL = 1  # a packet; a `Travel`
    HOLD = 2  # time that passes; a `Delay`
    TAKE = 3  # wait for tokens; a `Site`
    GIVE = 4  # give tokens back; the step
    MARK = 5  # end of a stage; the step
    MOVE = 6  # jump to another node; the step
    SERIES = 7  # the operands one after the other; None
    CHOICE = 8  # one operand at random; an `Alternatives`
    PARALLEL = 9  # all operands at once, until the last is done; a `Branches`
    COPIES = 10  # the operand several times at once; a `Count`
    REPEAT = 11  # the operand several times, one after the other; a `Count`
    BLOCKS = 12  # the first operand, a free list's operation, and the second for each of its blocks; the step
    LOOKUP = 13  # the operand, which is what a look-up comes to; the step


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
    def pairs(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of different nodes and their share of the packets; what is missing to 1 does not travel."""
        start, end = np.flatnonzero(self.origin), np.flatnonzero(self.target)
        shares = np.outer(self.origin[start], self.target[end]).ravel()
        sources, targets = np.repeat(start, end.size), np.tile(end, start.size)
        used = (sources != targets) & (shares != 0)
        return sources[used], targets[used], shares[used]


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
    def mean_batch(self) -> float:
        """Requests of an issue, mean."""
        return law_mean(self.batch)


class Travel(NamedTuple):
    """A packet to where a job then is."""

    step: Any
    leg: int | None  # None where it need not travel


class Delay(NamedTuple):
    """Time that passes: how often for a job, mean and variance, and whether latency includes it."""

    step: Hold
    times: float
    mean: float
    variance: float
    counted: bool


class Alternatives(NamedTuple):
    """Probabilities of the operands of a choice."""

    shares: tuple[float, ...]
    step: Branch | Lookup


class Branches(NamedTuple):
    """Number of the operand of each branch of a fork; equal branches have one."""

    order: tuple[int, ...]
    step: Fork


class Count(NamedTuple):
    """Law of the number of copies (of copies of copies that of all of them) or rounds."""

    law: FloatArray
    step: Each | Repeat | Fork


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramForm:
    """All programs of a system as postfix code, with the tables of its rows."""

    op: tuple[Op, ...] = ()  # the code
    rows: tuple[Any, ...] = ()  # the row of each instruction
    children: tuple[tuple[int, ...], ...] = ()  # last instruction of each operand of each instruction
    # The same without what changes no time: copies and branches of one, copies of copies, look-ups' marks.
    inside: tuple[tuple[int, ...], ...] = ()
    programs: Mapping[str, int] = field(default_factory=dict)  # last instruction of the program of each flow
    roots: Mapping[str, int] = field(default_factory=dict)  # the same with the tokens of the window around it
    sites: tuple[Site, ...] = ()  # visits, by number
    takes: tuple[Site, ...] = ()  # acquisitions of tokens, numbered of their own
    legs: tuple[Leg, ...] = ()  # packets

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

    ``node``: the last instruction of the code; ``rules``: ``rule(row, state)`` of a leaf, and
    ``rule(row, operands, run, state)`` of another instruction, where ``run(operand, state)`` evaluates an
    operand; ``state``: that at the beginning. Without a rule a leaf returns the state that it gets; a series,
    copies and rounds hand it from operand to operand.
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
