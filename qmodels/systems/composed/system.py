"""A system of parts: what it consists of, where the parts are, and which flows use them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import shown
from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.flow import Flow, nodes_text, read_nodes
from qmodels.systems.composed.parts import ServingPart, Tokens, part_types
from qmodels.systems.composed.steps import (
    SEGMENTS,
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Lookup,
    Move,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
    all_steps,
    inner_steps,
    step_name,
)
from qmodels.systems.laws.fields import keep
from qmodels.systems.memory.dram_system import Dram, DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import Kinds, NamedOf, check_parts
from qmodels.systems.stations.parts import Station

TAKES: dict[type[Any], tuple[type[Any], ...]] = {
    Visit: (Station, BankedChannels, ServingPart),
    Read: (DramSystem, Dram),
    Write: (DramSystem, Dram),
    Lookup: (CacheSystem,),
    Allocate: (FreeList,),
    Free: (FreeList,),
    Acquire: (Tokens,),
    Release: (Tokens,),
}
"""The parts that a step can be done with."""

GIVEN_BACK = {True: ("acquire", "release"), False: ("allocate", "free")}
"""The steps that take something, tokens or blocks, and those that give it back."""

MOST_TASKS = 2**16
"""Tasks of one job at the same time."""
MOST_ROUNDS = 2**24
"""Rounds of its loops in all."""


def check_programs(system: Any) -> None:
    """Refuse programs that the parts of a system cannot run."""
    used: set[str] = {system.interconnect, system.replies}
    for flow in system.flows:
        here = f"flow {flow.name!r}:"
        for step in {id(step): step for step in all_steps(flow.program)}.values():
            _check_step(system, flow, step, here)
            used.add(getattr(step, "part", getattr(step, "to", "")))
        _check_rounds(flow, flow.program, here)
        _check_at_once(flow, flow.program, 1, here)
        for part, number in _check_held(system, flow.program, Counter(), here).items():
            if number:
                first, last = GIVEN_BACK[isinstance(system.parts[part], Tokens)]
                raise ValueError(f"{here} '{first} {part}' must be followed by '{last} {part}', got none")
    for name, part in system.parts.items():
        if name not in used:
            what = "be the interconnect or left out" if isinstance(part, Noc) else "be used by a flow"
            raise ValueError(f"parts.{name} must {what}, got a part that no step names")


def _check_step(system: Any, flow: Any, step: Any, here: str) -> None:
    where = f"{here} {step_name(step)!r}"
    if isinstance(step, Send):
        _check_name(f"{where} must go to a part that is placed", step.to, list(system.place))
        _check_begins(flow, where)
        return
    if isinstance(step, Move):
        _check_begins(flow, where)
    name = getattr(step, "part", None)
    if name is not None:
        kinds = TAKES[type(step)]
        if not isinstance(system.parts.get(name), kinds):
            fitting = [n for n, part in system.parts.items() if isinstance(part, kinds)]
            _check_name(f"{where} must name a {' or '.join(kind.__name__ for kind in kinds)}", name, fitting)
        if name in system.place:
            _check_begins(flow, where)
        part = system.parts[name]
        inside = step.steps if isinstance(step, Allocate | Free) else ()
        for other in all_steps(inside):
            if isinstance(other, Allocate | Free):
                raise ValueError(
                    f"{where} must take or give back no blocks in its steps, got {step_name(other)!r}"
                )
        if getattr(step, "by_line", False) and not _looks_up(flow):
            raise ValueError(f"{where} must have a lookup in its program to go by its line, got none")
        if getattr(step, "same", False) and not isinstance(part, Station):
            raise ValueError(f"{where} must be at a Station to take the same time, got {type(part).__name__}")
        if isinstance(part, Station) and part.service_law(flow.name) is None:
            raise ValueError(f"{where} must have a service law for {flow.name!r}, got none")
        if isinstance(step, Allocate) and step.blocks != SEGMENTS and step.blocks > np.min(part.segments):
            rule = f"at most the {np.min(part.segments):.0f} blocks of the list"
            raise ValueError(f"{where} must take {rule}, got {step.blocks}")
    if SEGMENTS in (getattr(step, "blocks", None), getattr(step, "count", None)) and flow.sizes is None:
        raise ValueError(f"{here} sizes must be given for {step_name(step)!r} by segments, got None")


def _looks_up(flow: Any) -> bool:
    return any(isinstance(step, Lookup) for step in all_steps(flow.program))


def _check_name(rule: str, name: str, fitting: list[str]) -> None:
    if name not in fitting:
        listed = f" ({', '.join(fitting)})" if fitting else ""
        raise ValueError(f"{rule}{listed}, got {name!r}{checks.nearest(name, fitting)}")


def _check_begins(flow: Any, where: str) -> None:
    if not flow.at:
        raise ValueError(f"{where} must have a place to begin from: at must be nodes, got ()")


def _check_rounds(flow: Any, program: tuple[Any, ...], here: str, rounds: int = 1, tasks: int = 1) -> None:
    """Refuse loops in loops that no job comes out of in any reasonable time, and too many tasks at once."""
    for step in program:
        where, inner, at_once = f"{here} {step_name(step)!r}", rounds, tasks
        if isinstance(step, Each | Repeat):
            most = max(flow.sizes.segments(flow.segment_bytes)[0]) if step.count == SEGMENTS else step.count
            inner *= int(most)
            at_once *= int(most) if isinstance(step, Each) else 1
            for number, limit in ((at_once, MOST_TASKS), (inner, MOST_ROUNDS)):
                if number > limit:
                    rule = f"at most {limit} rounds in all, with those around it"
                    raise ValueError(f"{where} must make {rule}, got {number}")
        for inside in inner_steps(step):
            _check_rounds(flow, inside, here, inner, at_once)


def _check_at_once(flow: Any, program: tuple[Any, ...], around: int, here: str) -> None:
    """Refuse more requests at once than any memory is asked for."""
    for step in program:
        many: Any = step.count if isinstance(step, Each) else 1
        if isinstance(step, Read | Write):
            many = step.blocks
        if many == SEGMENTS:
            many = max(flow.sizes.segments(flow.segment_bytes)[0])
        at_once = around * int(many)
        if at_once > MOST_TASKS:
            rule = f"at most {MOST_TASKS} blocks or copies at once, with the copies that it is done in"
            raise ValueError(f"{here} {step_name(step)!r} must ask for {rule}, got {at_once}")
        for inside, inner in Counter(inner_steps(step)).items():
            equal = inner if isinstance(step, Fork) else 1
            _check_at_once(flow, inside, at_once * equal, here)


def _check_held(system: Any, program: tuple[Any, ...], held: Counter[str], here: str) -> Counter[str]:
    """Return the tokens that a job holds after a program, and whether it has blocks."""
    for step in program:
        where = f"{here} {step_name(step)!r}"
        match step:
            case Acquire():
                held[step.part] += step.tokens
                most = system.parts[step.part].count
                if held[step.part] > most:
                    rule = f"at most the {most} tokens of the pool"
                    raise ValueError(f"{where} must leave a job {rule}, got {held[step.part]}")
            case Release():
                held[step.part] -= step.tokens
                if held[step.part] < 0:
                    got = held[step.part] + step.tokens
                    raise ValueError(f"{where} must come after an acquire of as many tokens, got {got}")
            case Allocate():
                held[step.part] = 1
            case Free() if not held[step.part]:
                raise ValueError(f"{where} must come after an allocate, got none")
            case Read(addresses="allocated") | Write(addresses="allocated"):
                lists = [name for name, number in held.items() if number]
                if not any(isinstance(system.parts[name], FreeList) for name in lists):
                    raise ValueError(f"{where} to allocated blocks must come after an allocate, got none")
        ends = [_check_held(system, inside, Counter(held), here) for inside in inner_steps(step)]
        if isinstance(step, Free) and all(+end == +held for end in ends):
            held[step.part] = 0
            continue
        if not ends:
            continue
        if isinstance(step, Lookup):
            *ends, further = ends
            if +further != +held:
                left = _shown([further])
                raise ValueError(f"{where} must give back in 'further' what it takes there, got {left}")
        if isinstance(step, Branch | Lookup):
            if any(+end != +ends[0] for end in ends):
                raise ValueError(f"{where} must hold the same after each choice, got {_shown(ends)}")
            held = ends[0]
        elif any(+end != +held for end in ends):
            what = "each round" if isinstance(step, Repeat) else "each branch"
            raise ValueError(f"{where} must give back in {what} what it takes there, got {_shown(ends)}")
    return held


def _shown(ends: list[Counter[str]]) -> str:
    return " and ".join(
        ", ".join(f"{n} of {name!r}" for name, n in (+end).items()) or "nothing" for end in ends
    )


MOST_NODES = 65536


@dataclass(frozen=True, kw_only=True)
class System(Replaceable):
    """Parts, where they are placed on an interconnect, and flows whose jobs run programs over them.

    Times are in ns. The traffic that a part's own spec describes (of a `Noc` or a `DramSystem`) does not
    count: the flows are the traffic.

    Raises
    ------
    ValueError
        In a line that names the part, or the flow and the step: of an unknown part, a step that the part
        cannot do, a place outside the network, a part that no flow uses, tokens that are never
        released.

    Examples
    --------
    >>> from qmodels.systems.composed.steps import Visit
    >>> from qmodels.systems.laws.times import Exponential
    >>> from qmodels.systems.traffic.arrivals import Poisson
    >>> system = System(
    ...     parts={"parser": Station(service=Exponential(mean=2.0))},
    ...     flows=[Flow(arrivals=Poisson(), rate=0.2, program=(Visit("parser"),))],
    ... )
    >>> system.parts["parser"].service.mean, system.flows[0].name
    (2.0, 'jobs')
    """

    # `Noc`, `DramSystem`, `Dram`, `BankedChannels`, `CacheSystem`, `FreeList`, `Station` (service times in
    # ns), `Tokens`, or a `ServingPart` of one's own. A `Dram` keeps as many blocks in a row as segments of
    # the flows that access it fit
    parts: Any = field(metadata={"holds": NamedOf(Kinds(part_types))})
    flows: Any = field(metadata={"holds": tuple[Flow, ...]})  # What is done with them
    # Nodes of the interconnect where a part is, ranges as text: ``"56..63"``. One that is not placed is
    # wherever it is needed. The channels of a DRAM and the slices of a cache are spread over its nodes in
    # turn; stations, pools and parts of one's own stand at each node once
    place: Any = field(
        default_factory=lambda: Named({}), metadata={"holds": NamedOf(int | str | tuple[int, ...])}
    )
    interconnect: str = ""  # Name of the network between placed parts; the only `Noc` if left out
    # Name of a second `Noc` of the same routers, clock and nodes, if what comes back (blocks that were read,
    # answers to visits and lookups) has a network of its own
    replies: str = ""
    # Places from 0 on where there is no interconnect, or those beside its nodes, numbered after them; it
    # takes no time to go from or to one of these
    nodes: int = 0

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "latency", "latency_p99", "flow_throughput", "visit_latency", "hit_ratio", "blocking_probability",
            "execution_time", "switch_ratio",
        ),
        simulation=("stage_latency",),
        model=("saturation_factor",),
        sometimes=(
            "latency_p99", "visit_latency", "hit_ratio", "blocking_probability", "execution_time",
            "switch_ratio",
        ),
    )  # fmt: skip

    def __post_init__(self) -> None:
        check_parts(self)
        keep(
            self,
            nodes=int(checks.count("nodes", self.nodes, minimum=0, maximum=MOST_NODES)),
            parts=Named(_mapping("parts", self.parts)),
            place=Named({n: read_nodes(f"place.{n}", at) for n, at in _mapping("place", self.place).items()}),
            flows=_flows(self.flows),
        )
        known = tuple(part_types().values())
        for name, part in self.parts.items():
            if not isinstance(part, (*known, ServingPart)):
                words = ", ".join(kind.__name__ for kind in known)
                raise ValueError(f"parts.{name} must be a part ({words} or a ServingPart), got {shown(part)}")
        keep(self, parts=Named({n: _named(n, part) for n, part in self.parts.items()}))
        names = [flow.name for flow in self.flows]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"flows must be at least one, with names of their own, got {names!r}")
        if len({flow.rounds is None for flow in self.flows}) > 1:
            endless = ", ".join(repr(flow.name) for flow in self.flows if flow.rounds is None)
            raise ValueError(f"rounds must be given for all flows or for none, got none for {endless}")
        self._check_places()
        check_programs(self)

    def __to_toml__(self, table: Callable[[], dict[str, Any]], key: str) -> dict[str, Any]:
        written = table()
        for name, part in self.parts.items():
            if isinstance(part, Station):
                del written["parts"][name]["name"]  # it goes by its own
        return written | {"place": {name: nodes_text(at) for name, at in self.place.items()}}

    def _check_places(self) -> None:
        networks = [name for name, part in self.parts.items() if isinstance(part, Noc)]
        if not self.interconnect and len(networks) == 1:
            keep(self, interconnect=networks[0])
        if self.interconnect not in networks and (self.interconnect or networks):
            near = checks.nearest(str(self.interconnect), networks)
            raise ValueError(
                f"interconnect must name a Noc ({', '.join(networks)}), got {self.interconnect!r}{near}"
            )
        self._check_replies()
        for name in self.place:
            checks.choice("place", name, [n for n in self.parts if n not in networks])
        for name, at in self.place.items():
            self._check_nodes(f"place.{name}", at)
            if not at or len(set(at)) < len(at):
                raise ValueError(f"place.{name} must be one node or several different ones, got {at!r}")
        for flow in self.flows:
            self._check_nodes(f"flow {flow.name!r}: at", flow.at)

    def _check_replies(self) -> None:
        if not self.replies:
            return
        other = [name for name, part in self.parts.items() if isinstance(part, Noc)]
        checks.choice("replies", self.replies, [name for name in other if name != self.interconnect])
        there, back = self.parts[self.interconnect], self.parts[self.replies]
        for name in ("router", "clock_ghz"):
            if getattr(there, name) != getattr(back, name):
                rule = f"that of {self.interconnect!r}, {getattr(there, name)!r}"
                raise ValueError(f"parts.{self.replies}.{name} must be {rule}, got {getattr(back, name)!r}")
        if there.topology.nodes != back.topology.nodes:
            rule = f"the {there.topology.nodes} nodes of {self.interconnect!r}"
            raise ValueError(f"parts.{self.replies}.topology must have {rule}, got {back.topology.nodes}")

    def _check_nodes(self, name: str, at: tuple[int, ...]) -> None:
        if at and not self.places:
            raise ValueError(f"{name} must be left out without an interconnect or nodes, got {at!r}")
        if at and max(at) >= self.places:
            known = f"{self.interconnect or 'the system'!r} (0 to {self.places - 1})"
            raise ValueError(f"{name} must be nodes of {known}, got {max(at)}")

    @property
    def network(self) -> Noc | None:
        """The interconnect."""
        return self.parts[self.interconnect] if self.interconnect else None

    @property
    def ends(self) -> bool:
        """Whether the work of the flows ends."""
        return self.flows[0].rounds is not None

    @property
    def turning(self) -> frozenset[str]:
        """The pools whose tokens turn from one use to another."""
        steps = (step for flow in self.flows for step in all_steps(flow.program))
        return frozenset(step.part for step in steps if isinstance(step, Acquire) and step.use)

    @property
    def places(self) -> int:
        """Number of nodes, those of the interconnect first."""
        return self.nodes + (0 if self.network is None else int(self.network.topology.nodes))

    def flow(self, name: str) -> Flow:
        """Return the flow of a name."""
        return {flow.name: flow for flow in self.flows}[name]

    def copies(self, name: str) -> int:
        """Return the number of copies of a part: one at each of its nodes, of those that have copies."""
        single = not isinstance(self.parts[name], Station | Tokens | ServingPart)
        return 1 if single else max(1, len(self.place.get(name, ())))


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping from names to what goes by them, got {shown(value)}")
    return value


def _flows(value: Any) -> tuple[Flow, ...]:
    flows = (value,) if isinstance(value, Flow) else value
    if not isinstance(flows, list | tuple) or not all(isinstance(flow, Flow) for flow in flows):
        raise ValueError(f"flows must be a tuple of Flow, got {shown(value)}")
    return tuple(flows)


def _named(name: str, part: Any) -> Any:
    return replace(part, name=name) if isinstance(part, Station) else part
