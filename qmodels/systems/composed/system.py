"""A system of parts: what it consists of, where the parts are, and which flows use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from qmodels import checks
from qmodels.checks import shown
from qmodels.systems.composed.checks import check_programs
from qmodels.systems.composed.flow import Flow, nodes_text, read_nodes
from qmodels.systems.composed.parts import ServingPart, Tokens, part_types
from qmodels.systems.composed.steps import Acquire, all_steps
from qmodels.systems.laws.fields import keep
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.fields import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import Kinds, NamedOf, check_parts
from qmodels.systems.stations.parts import Station

MOST_NODES = 65536


@dataclass(frozen=True, kw_only=True)
class System(Replaceable):
    """Parts, where they are placed on an interconnect, and flows whose jobs run programs over them.

    Times are in ns. The traffic that a part's own spec describes (of a `Noc` or a `DramSystem`) does not
    count: the flows are the traffic.

    Parameters
    ----------
    parts : mapping of str to part
        `Noc`, `DramSystem`, `Dram`, `BankedChannels`, `CacheSystem`, `FreeList`, `Station` (service times in
        ns), `Tokens`, or a `ServingPart` of one's own. A `Dram` keeps as many blocks in a row as segments
        of the flows that access it fit.
    flows : tuple of Flow
        What is done with them.
    place : mapping of str to tuple of int or str
        Nodes of the interconnect where a part is, ranges as text: ``"56..63"``. One that is not placed is
        wherever it is needed. The channels of a DRAM and the slices of a cache are spread over its nodes in
        turn; stations, pools and parts of one's own stand at each node once.
    interconnect : str
        Name of the network between placed parts; the only `Noc` if left out.
    replies : str
        Name of a second `Noc` of the same routers, clock and nodes, if what comes back (blocks that were
        read, answers to visits and lookups) has a network of its own.
    nodes : int
        Places from 0 on where there is no interconnect, or those beside its nodes, numbered after them; it
        takes no time to go from or to one of these.

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

    parts: Any = field(metadata={"holds": NamedOf(Kinds(part_types))})
    flows: Any = field(metadata={"holds": tuple[Flow, ...]})
    place: Any = field(
        default_factory=lambda: Named({}), metadata={"holds": NamedOf(int | str | tuple[int, ...])}
    )
    interconnect: str = ""
    replies: str = ""
    nodes: int = 0

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "latency",
            "latency_p99",
            "flow_throughput",
            "visit_latency",
            "hit_ratio",
            "blocking_probability",
            "execution_time",
            "switch_ratio",
        ),
        simulation=("stage_latency",),
        model=("saturation_factor",),
        sometimes=(
            "latency_p99",
            "visit_latency",
            "hit_ratio",
            "blocking_probability",
            "execution_time",
            "switch_ratio",
        ),
    )

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
