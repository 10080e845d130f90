"""The steps of a program: what a job of a flow does with the parts of its system.

A program is a tuple of steps, one after the other; steps that hold others make it a series-parallel graph.
Where a part is placed on the interconnect a step goes there and back: see each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from qmodels import checks
from qmodels.checks import shown
from qmodels.systems.laws.fields import keep, whole
from qmodels.systems.laws.kinds import require_law
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.nested import instance, spec_word

ADDRESSES = ("random", "sequential", "allocated", "looked-up")
"""Which blocks an access is to: any, the next ones of a stream (each step has one of its own unless
``stream=NAME`` joins them), those the job has allocated (more than it has go round them again; in the steps
of `Allocate` and `Free` all are to the one they are done for), or that of the line the job last looked for,
which has a row of its own in a bank that the line decides."""

DEEPEST = 32
"""How deep steps may be in one another."""

MOST_STEPS = 8192
"""Of a program, in all."""

SEGMENTS = "segments"
"""As many as the job has segments, see `Flow.sizes`."""


class _Step(Documented):
    """A step, what its fields hold checked by their names."""

    def __post_init__(self) -> None:
        word = spec_word(type(self))
        for name in list(vars(self)):
            value = _CHECKS[name](f"{word}.{name}", getattr(self, name))
            keep(self, **{name: value})
            if name == "steps" and not value and not hasattr(type(self), name):  # which may not be left out
                raise ValueError(f"{word}.{name} must have a step, got ()")
        stream, addresses = (getattr(self, name, "") for name in ("stream", "addresses"))
        if stream and addresses != "sequential":
            got = f"{shown(stream)} with addresses {shown(addresses)}"
            raise ValueError(f"{word}.stream is of sequential addresses, got {got}")


@dataclass(frozen=True)
class Visit(_Step):
    """Go to a station or another part that serves jobs, and wait until the service is over."""

    # Name of the part. Placed at several nodes it stands at each: the job goes to the one at its own place,
    # or else to any
    part: str
    # bytes, reply_bytes: Payload of the packets there and back, where the part is placed elsewhere. [bytes]
    bytes: int = field(default=0, kw_only=True)
    reply_bytes: int = field(default=0, kw_only=True)
    # Whether the service takes as long as the job's last one at the station (in a branch: that branch's), if
    # it had one, instead of a time of its own: of work that is done in equal pieces
    same: bool = field(default=False, kw_only=True)
    # Whether the job goes to the copy with the number of the slice that the line it last looked for belongs
    # to, see `Lookup`
    by_line: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Send(_Step):
    """Go to where a part is placed, and stay there."""

    to: str  # Name of a part that is placed; any of its nodes
    bytes: int = field(default=0, kw_only=True)  # Payload of the packet. [bytes]


@dataclass(frozen=True)
class Read(_Step):
    """Read blocks of a memory, all asked for at once, and wait for the last.

    Placed, a request of no payload goes to the node of the block's channel and the block comes back.
    """

    part: str  # Name of the memory
    blocks: int | str = 1  # How many
    addresses: str = "random"  # Which, see `ADDRESSES`. At random the first is, and the others follow it
    # Name of the stream of sequential addresses, which all steps share that access the part and name it; a
    # stream of the step's own if left out
    stream: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Write(_Step):
    """Write blocks of a memory, all sent at once, and wait until the last is in it.

    Placed, each block goes to the node of its channel; nothing comes back.
    """

    part: str  # Name of the memory
    blocks: int | str = 1  # How many
    addresses: str = "random"  # As for `Read`
    stream: str = field(default="", kw_only=True)  # As for `Read`


@dataclass(frozen=True)
class Lookup(_Step):
    """Look for a random entry in the caches; the look itself takes no time but that of its steps.

    Placed, a request of no payload goes to the node of the line's slice, unless a private cache has the line:
    the steps of a hit or a miss are done there, and ``reply_bytes`` come back. The job's place among
    those of its flow says which core's private caches it uses.
    """

    part: str  # Name of the caches
    # private, hit, miss: What the job does if a private level, the shared level, or none has the line
    private: tuple[Step, ...] = field(default=(), kw_only=True)
    hit: tuple[Step, ...] = field(default=(), kw_only=True)
    miss: tuple[Step, ...] = field(default=(), kw_only=True)
    # What it does before that at each private level after the first that is looked in
    further: tuple[Step, ...] = field(default=(), kw_only=True)
    reply_bytes: int = field(default=0, kw_only=True)  # Payload of the answer. [bytes]


@dataclass(frozen=True)
class Allocate(_Step):
    """Take free blocks, one after the other; a job for which there are too few is lost."""

    part: str  # Name of the free lists
    blocks: int | str = 1  # How many
    # What is done with each block as soon as it is taken, while the next one is: the job goes on when all of
    # it is done
    steps: tuple[Step, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Free(_Step):
    """Give back all blocks that the job has of a part."""

    part: str  # Name of the free lists
    # What is done with each block as soon as the list of the job's blocks has been followed to it. With them
    # the blocks return when all of it is done, which takes no further time
    steps: tuple[Step, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class Acquire(_Step):
    """Wait for tokens, first come, first served."""

    # Name of the pool. Placed at several nodes, each has a pool, and the job uses that of its own place
    part: str
    tokens: int = 1  # How many
    # What they are for, where they have to turn from one use to another (`Tokens.turning`)
    use: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Release(_Step):
    """Give tokens back."""

    part: str  # Name of the pool they were acquired from
    tokens: int = 1  # How many


@dataclass(frozen=True)
class Hold(_Step):
    """Let time pass."""

    time: Law  # How long. [ns]
    counted: bool = field(default=True, kw_only=True)  # Whether the latency of the flow includes it


@dataclass(frozen=True)
class Mark(_Step):
    """Note how long the job took since its last mark, or its beginning: ``stage_latency[name]``.

    Examples
    --------
    >>> Mark("stored")
    Mark(name='stored')
    """

    name: str  # What the time in between is called


@dataclass(frozen=True)
class Move:
    """Be at any of the flow's own nodes from now on, at random and at once: another engine takes over.

    Examples
    --------
    >>> Move()
    Move()
    """


@dataclass(frozen=True)
class Fork(_Step):
    """Do several branches at the same time, and go on when the last is done."""

    branches: tuple[tuple[Step, ...], ...]  # At least two

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.branches) < 2:
            raise ValueError(f"fork.branches must be at least two, got {shown(self.branches)}")


@dataclass(frozen=True)
class Each(_Step):
    """Do the same steps several times at the same time, and go on when the last is done."""

    steps: tuple[Step, ...]  # What is done
    count: int | str = SEGMENTS  # How often


@dataclass(frozen=True)
class Repeat(_Step):
    """Do the same steps several times, one after the other."""

    steps: tuple[Step, ...]  # What is done
    count: int | str  # How often


@dataclass(frozen=True)
class Branch(_Step):
    """Do one of several things, at random."""

    choices: tuple[tuple[Step, ...], ...]  # What may be done; nothing is a choice too
    probabilities: tuple[float, ...]  # Of each; they sum up to 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.choices) != len(self.probabilities) or abs(sum(self.probabilities) - 1) > 1e-9:
            raise ValueError(
                f"branch.probabilities must be one for each of {len(self.choices)} choices and sum up to 1, "
                f"got {shown(self.probabilities)}"
            )


Step: TypeAlias = (
    Visit | Send | Read | Write | Lookup | Allocate | Free | Acquire | Release | Hold | Mark | Move | Fork
    | Each | Repeat | Branch
)  # fmt: skip
STEPS = Step.__args__


def inner_steps(step: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the programs that a step holds, in the order of its fields."""
    match step:
        case Fork(branches=inside) | Branch(choices=inside):
            return tuple(inside)
        case Each(steps=steps) | Repeat(steps=steps) | Allocate(steps=steps) | Free(steps=steps):
            return (steps,) if steps else ()
        case Lookup():
            return (step.private, step.hit, step.miss, step.further)
    return ()


def all_steps(program: tuple[Any, ...]) -> list[Any]:
    """Return the steps of a program and those inside them, in order."""
    found = []
    for step in program:
        found.append(step)
        for inside in inner_steps(step):
            found += all_steps(inside)
    return found


def require_depth(name: str, program: tuple[Any, ...]) -> None:
    """Refuse programs whose steps are in one another deeper than `DEEPEST`."""
    level = program
    for _ in range(DEEPEST):
        level = tuple(one for step in level for inside in inner_steps(step) for one in inside)
        if not level:
            return
    raise ValueError(f"{name} must have its steps at most {DEEPEST} deep in one another, got more")


def require_size(name: str, steps: int) -> None:
    """Refuse programs of more steps than `MOST_STEPS`, those inside others among them."""
    if steps > MOST_STEPS:
        raise ValueError(f"{name} must have at most {MOST_STEPS} steps, got {steps}")


def step_name(step: Any) -> str:
    """Return a step as messages name it: ``read dram``."""
    of = getattr(step, "part", getattr(step, "to", ""))
    return f"{spec_word(type(step))} {of}".strip()


def read_program(name: str, value: Any) -> tuple[Any, ...]:
    """Return a program as a tuple; one step alone is one, too."""
    members = (value,) if isinstance(value, STEPS) else value
    if isinstance(members, str) or not isinstance(members, list | tuple):
        raise ValueError(f"{name} must be a tuple of steps, got {shown(value)}")
    for step in members:
        if not isinstance(step, STEPS):
            words = ", ".join(kind.__name__ for kind in STEPS)
            raise ValueError(f"{name} must be steps ({words}), got {shown(step)}")
    return tuple(members)


def _programs(name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ValueError(f"{name} must be a tuple of tuples of steps, got {shown(value)}")
    return tuple(read_program(name, one) for one in value)


def _count(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return whole(name, value, maximum=65536)
    if value != SEGMENTS:
        near = checks.nearest(value, (SEGMENTS,))
        raise ValueError(f"{name} must be a whole number >= 1 or {SEGMENTS!r}, got {shown(value)}{near}")
    return value


def _part_name(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be the name of a part, got {shown(value)}")
    return value


def _law(name: str, value: Any) -> Any:
    require_law(name, value)
    return value


def _shares(name: str, value: Any) -> tuple[float, ...]:
    return tuple(np.ravel(checks.probability(name, value)).tolist())


_text = partial(instance, (str,), "a text")

_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("part", "to", "name"), _part_name),
    **dict.fromkeys(("bytes", "reply_bytes"), partial(whole, minimum=0, maximum=2**20)),
    **dict.fromkeys(("same", "by_line", "counted"), partial(instance, (bool,), "true or false")),
    **dict.fromkeys(("blocks", "count"), _count),
    **dict.fromkeys(("private", "hit", "miss", "further", "steps"), read_program),
    **dict.fromkeys(("branches", "choices"), _programs),
    **dict.fromkeys(("use", "stream"), _text),
    "addresses": partial(checks.choice, allowed=ADDRESSES),
    "tokens": whole,
    "probabilities": _shares,
    "time": _law,
}
"""What the fields of steps may hold, as it is kept."""
