"""A flow of a system: jobs that come, each of which runs the same program."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

from qmodels import checks
from qmodels.checks import Numeric
from qmodels.systems.composed.program_text import parse, program_text
from qmodels.systems.composed.steps import Step, all_steps, read_program, require_depth, require_size
from qmodels.systems.laws.fields import keep, whole
from qmodels.systems.laws.kinds import require_law
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.nested import check_parts
from qmodels.systems.spec.ranges import choice
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
from qmodels.systems.traffic.sizes import SizeLaw
from qmodels.systems.traffic.trace import Trace

WHEN_FULL = ("wait", "loss")

MOST = 2**20
"""Jobs of a population or a window, and bytes of a segment."""


@dataclass(frozen=True, kw_only=True)
class Flow(Documented):
    """Jobs that arrive, or a fixed number that goes round, and what each does.

    Raises
    ------
    ValueError
        If a number is out of range, or the flow is neither open nor closed.

    Examples
    --------
    >>> from qmodels.systems.composed.steps import Visit
    >>> flow = Flow(arrivals=Poisson(), rate=0.2, program=(Visit("parser"),))
    >>> flow.closed, flow.mean_rate, flow == Flow(arrivals=Poisson(), rate=0.2, program="visit parser")
    (False, 0.2, True)
    """

    name: str = "jobs"  # Name, unique in the system; the class of its jobs at stations
    # When the jobs of an open flow arrive: of a law, the times between them in ns; a trace is `Recorded`.
    # Left out for a closed flow
    arrivals: Poisson | OnOff | Recorded | Law | None = None
    # Jobs that arrive; needed by `Poisson` and `OnOff`, which have none of their own. Given, the rates of a
    # law or a trace are scaled to it. [1/ns]
    rate: Numeric = None
    # Most jobs of an open flow that are in the system at once; without a limit if left out
    window: int | None = None
    # Whether jobs that come when the window is full wait outside or are lost
    when_full: str = choice("wait", WHEN_FULL)
    population: int = 0  # Jobs of a closed flow, which begin again when they are done
    # How often each job of a closed flow begins; after that it is gone. The flows of a system have all rounds
    # or none: work that ends. For ever if left out
    rounds: int | None = None
    # Time between the end of a job of a closed flow and its next beginning; not part of the latency. [ns]
    think: Law | None = None
    # Nodes of the interconnect where jobs begin and end, at random; in a closed flow they take turns, and
    # each job keeps its own. Ranges as text: ``"0..7, 12"``. Empty where the program needs no interconnect
    at: Any = field(default=(), metadata={"holds": int | str | tuple[int, ...]})
    sizes: SizeLaw | None = None  # Sizes of the jobs' packets; a recorded trace brings its own
    segment_bytes: int = 64  # Size of a segment, the unit of steps that count in segments. [bytes]
    # What a job does, see `qmodels.systems.composed.steps`; or the same as text, a step a line, see
    # `qmodels.systems.composed.program_text`. Kept as steps, written as text
    program: Any = field(metadata={"holds": str | tuple[Step, ...]})

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "." in self.name:
            rule = "a text without a dot and not empty"
            raise ValueError(f"flow name must be {rule}, got {checks.shown(self.name)}")
        here = f"flow {self.name!r}:"
        for name, least in (("window", 1), ("population", 0), ("rounds", 1), ("segment_bytes", 1)):
            value = getattr(self, name)
            if name not in ("window", "rounds") or value is not None:
                keep(self, **{name: whole(f"{here} {name}", value, minimum=least, maximum=MOST)})
        keep(
            self,
            program=_program(f"{here} program", self.program),
            arrivals=Recorded(trace=self.arrivals) if isinstance(self.arrivals, Trace) else self.arrivals,
            at=read_nodes(f"{here} at", self.at),
        )
        check_parts(self, f"{here} ")
        checks.choice(f"{here} when_full", self.when_full, WHEN_FULL)
        if self.loses and self.window is None:
            raise ValueError(f"{here} window must be given with when_full 'loss', got None")
        require_depth(f"{here} program", self.program)
        require_size(f"{here} program", len(all_steps(self.program)))
        if not self.program:
            raise ValueError(f"{here} program must have a step, got ()")
        if (self.arrivals is None) == (self.population == 0):
            raise ValueError(f"{here} either arrivals or a population must be given, got {self._source()}")
        for name in ("rate", "window") if self.closed else ("think", "rounds"):
            if getattr(self, name) is not None:
                kind = "a closed" if self.closed else "an open"
                raise ValueError(
                    f"{here} {name} must be left out in {kind} flow, got {getattr(self, name)!r}"
                )
        if self.think is not None:
            require_law(f"{here} think", self.think)
        if not self.closed:
            self._check_open(here)

    def __to_toml__(self, table: Callable[[], dict[str, Any]], key: str) -> dict[str, Any]:
        written = table() | {"at": nodes_text(self.at), "program": program_text(self.program)}
        if isinstance(self.arrivals, Recorded):
            del written["sizes"]  # a trace brings its own
        return written

    def _source(self) -> str:
        return "neither" if self.arrivals is None else "both"

    def _check_open(self, here: str) -> None:
        if isinstance(self.arrivals, get_args(Law)):
            require_law(f"{here} arrivals", self.arrivals)
        if self.rate is not None:
            checks.positive(f"{here} rate", self.rate)
        elif isinstance(self.arrivals, Poisson | OnOff):
            raise ValueError(
                f"{here} rate must be given with {type(self.arrivals).__name__} arrivals, got None"
            )
        if isinstance(self.arrivals, Recorded):
            if self.sizes not in (None, self.arrivals.sizes):
                raise ValueError(
                    f"{here} sizes must be left out with recorded arrivals, which bring their own"
                )
            keep(self, sizes=self.arrivals.sizes)

    @property
    def closed(self) -> bool:
        """Whether a fixed number of jobs goes round."""
        return self.population > 0

    @property
    def loses(self) -> bool:
        """Whether jobs that come when the window is full are lost."""
        return self.when_full == "loss"

    @property
    def mean_rate(self) -> Any:
        """Jobs of an open flow that arrive. [1/ns]."""
        if self.rate is not None:
            return self.rate
        if isinstance(self.arrivals, Recorded):
            return self.arrivals.trace.packet_rate
        return 1.0 / self.arrivals.mean  # type: ignore[union-attr]


def _program(name: str, value: Any) -> tuple[Any, ...]:
    return parse(value, name) if isinstance(value, str) else read_program(name, value)


MOST_NODES = 65536
"""Nodes that a text may name."""

LONG = 3
"""Nodes in a row from which they are written as a range."""


def read_nodes(name: str, value: Any) -> tuple[int, ...]:
    """Return node numbers: of one, of several, or of a text of numbers and ranges with both their ends.

    >>> read_nodes("place.dram", "0..3, 8"), read_nodes("place.dram", range(2)), read_nodes("place.dram", 5)
    ((0, 1, 2, 3, 8), (0, 1), (5,))
    """
    if isinstance(value, str):
        return tuple(node for part in value.split(",") for node in _range(name, part.strip(), value))
    nodes = tuple(value) if isinstance(value, list | tuple | range) else (value,)
    for node in nodes:
        checks.one_number(name, node)
    return tuple(checks.count(name, nodes, minimum=0).tolist())


def _range(name: str, part: str, whole: str) -> range:
    found = re.fullmatch(r"(\d{1,9})(?:\.\.(\d{1,9}))?", part)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    if not first <= last < first + MOST_NODES:
        raise ValueError(f"{name} must be nodes such as 0..7, 12, got {whole!r}")
    return range(first, last + 1)


def nodes_text(nodes: tuple[int, ...]) -> Any:
    """Return nodes as files have them: a text where some stand in a row, or else the list of them.

    >>> nodes_text((0, 1, 2, 3, 8)), nodes_text((5, 7))
    ('0..3, 8', [5, 7])
    """
    runs: list[list[int]] = []
    for node in nodes:
        if runs and node == runs[-1][-1] + 1:
            runs[-1].append(node)
        else:
            runs.append([node])
    if all(len(run) < LONG for run in runs):
        return list(nodes)
    texts = ([f"{run[0]}..{run[-1]}"] if len(run) >= LONG else map(str, run) for run in runs)
    return ", ".join(text for run in texts for text in run)
