"""A network-on-chip and its traffic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import Numeric
from qmodels.systems.laws.times import Law
from qmodels.systems.noc.flows import (
    Bernoulli,
    FlowTable,
    channels,
    closed_flows,
    injection_process,
    open_flows,
    paths,
    service,
)
from qmodels.systems.noc.memory import Interleaved, Transactions
from qmodels.systems.noc.patterns import Pattern, Permutation, RateMatrix, uniform
from qmodels.systems.noc.router import PacketClass, QosRule, Router
from qmodels.systems.noc.routes import SourceRoute, find_deadlock
from qmodels.systems.noc.routing import ROUTINGS, TIES, find_routes, pairs_at_once
from qmodels.systems.noc.topology import Topology, afford_routes
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.fields import field_names
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, positive
from qmodels.systems.spec.text.reading import Place
from qmodels.systems.traffic.arrivals import OnOff, Poisson

SLOT_BYTES = 16
"""What a slot of a flit carries: a request, the header of an answer, or a quarter of a line."""
SLOT_WIRE_BYTES = 17
"""The same on the wire: flits of 68 bytes have four slots."""


def cxl_fields(
    hosts: int,
    devices: int,
    *,
    lanes: int = 8,
    gigatransfers: float = 32.0,
    attach_ns: float = 80.0,
    switch_ns: float = 90.0,
) -> dict[str, Any]:
    """Return the fields of a `Noc` of hosts and memory devices around one CXL switch.

    The hosts are the nodes from 0, the devices those behind them, the switch is the last node. A flit of the
    network is a slot of 16 bytes: a request of no payload is one of them, the answer with a line of 64
    bytes five. Virtual channels and their buffers hold what is under way, so that a link can be full.

    ``hosts``, ``devices``: how many of each; ``lanes``: lanes of each link; ``gigatransfers``: rate of a lane
    (CXL 2.0: 32), a bit each [GT/s]; ``attach_ns``: what a link adds to an idle access there and back, the
    ports at both ends included; between 70 and 90 ns without a switch [1]_ [ns]; ``switch_ns``: what the
    switch adds to it, there and back; 90 ns a switch is told of XConn's first one for CXL 2.0 [2]_ [ns].

    Half of the times are the way there, half the way back. Flits of CXL 2.0 have 68 bytes: four slots and
    4 bytes for the protocol and the check sum [3]_.

    References
    ----------
    .. [1] H. Li et al., "Pond: CXL-based memory pooling systems for cloud platforms", ASPLOS 2023.
    .. [2] https://asplos.dev/wiki/pcie-cxl/pcie.html
    .. [3] Compute Express Link specification, revision 2.0, 2020.

    Examples
    --------
    >>> pool = cxl_fields(4, 2)
    >>> pool["topology"].nodes, pool["topology"].route(0, 5)
    (7, (0, 6, 5))
    >>> round(pool["link_width"] * pool["clock_ghz"], 1)
    30.1
    """
    for name, value, most in (("hosts", hosts, 256), ("devices", devices, 256), ("lanes", lanes, 16)):
        checks.one_number(name, value)
        checks.count(name, value, maximum=most)
    checks.positive("gigatransfers", gigatransfers)
    checks.nonnegative("attach_ns", attach_ns)
    checks.nonnegative("switch_ns", switch_ns)
    clock = lanes * gigatransfers / 8 / SLOT_WIRE_BYTES
    pipeline = Router().pipeline_cycles
    own = 3 * pipeline + 2
    wire = round((attach_ns + switch_ns) / 2 * clock) - own
    if wire < 0:
        least = 2 * own / clock
        raise ValueError(
            f"attach_ns and switch_ns must be {least:.3g} ns together or more, got "
            f"{attach_ns + switch_ns:.3g}"
        )
    first, second = wire // 2, wire - wire // 2
    switch = hosts + devices
    ways = [((end, switch), first) for end in range(switch)] + [
        ((switch, end), second) for end in range(switch)
    ]
    ways.sort()
    buffer = 2 * second + pipeline + Router().credit_cycles
    star = Topology(
        kind="custom",
        nodes=switch + 1,
        edges=tuple(way for way, _ in ways),
        edge_delays=tuple(delay for _, delay in ways),
    )
    return {
        "topology": star,
        "router": Router(buffer_flits=buffer),
        "link_width": SLOT_BYTES,
        "header_bytes": SLOT_BYTES,
        "packet_bytes": 64,
        "clock_ghz": clock,
    }


USUAL_RATE = 0.01
"""Packets per cycle of a node that sends, where nothing says how many."""


@dataclass(frozen=True, kw_only=True)
class Noc(Replaceable, Declared):
    """Routers, links and the packets they carry.

    Raises
    ------
    ValueError
        If a part does not fit another; what concerns routes, when `flow_table` is called.

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs" (flits of a packet).

    Examples
    --------
    >>> from qmodels.systems.noc.topology import spidergon
    >>> noc = Noc(topology=spidergon(16), link_width=16, traffic=uniform(nodes=16), injection_rate=0.04)
    >>> noc.flits(128), noc.flow_table().path(5)
    (9, ('inject 0', '0->8', '8->7', '7->6', 'eject 6'))
    """

    topology: Topology = field(default_factory=Topology)  # See `qmodels.systems.noc.topology`
    routing: str = choice("default", ROUTINGS)  # See `qmodels.systems.noc.routing.find_routes`
    routes: tuple[SourceRoute, ...] = ()  # The tables of the sources, for the routing "table"
    ties: str = choice("first", TIES)  # Which way round a ring if both are equally long
    # Whether the virtual channels are divided into two classes on hops for which the routing names one
    # (rings, tori, o1turn): the lower and the upper half
    vc_classes: str = choice("dateline", ("dateline", "none"))
    router: Router = field(default_factory=Router)  # All routers
    # Who sends to whom; left out, all nodes to all alike
    traffic: Pattern | Permutation | RateMatrix | Interleaved | Transactions = None  # type: ignore[assignment]
    # Packets per cycle of a node that sends, on average over these nodes; not used by transactions. An array
    # is a load curve. Left out, a `RateMatrix` has its own rates, and all else 0.01; given, the rates of a
    # matrix are scaled to this mean. See `mean_rate`. [packets/cycle]
    injection_rate: Numeric = None
    # When packets are injected; also ``"bernoulli"`` or ``"poisson"``. Of a law of their gaps the shape
    # counts; the model takes exponential and hyperexponential ones, the simulator all
    process: Bernoulli | Poisson | OnOff | Law = field(default_factory=Bernoulli)
    link_width: int = count(16)  # Width of the links: a flit. [bytes]
    header_bytes: int = count(8, minimum=0)  # Header of every packet. [bytes]
    packet_bytes: int = count(128, minimum=0)  # Data of a packet. [bytes]
    # Flits of a packet, which then has no more data than fits in; 0 derives them: ceil((header + data) / link
    # width). [flits]
    flits_per_packet: int = count(0, minimum=0)
    # Several kinds of packets, instead of ``packet_bytes`` and ``flits_per_packet``
    mix: tuple[PacketClass, ...] = ()
    # Priorities, weights and circuits of flows; the first rule for a flow counts
    qos: tuple[QosRule, ...] = ()
    clock_ghz: float = positive(1.0)  # Clock of the network. [GHz]

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "packet_latency", "packet_latency_p95", "packet_latency_p99", "source_queue_delay",
            "traversal_delay", "delivered_rate", "bandwidth", "max_utilization", "transaction_latency",
            "transaction_rate",
        ),
        model=("zero_load_latency", "saturation_rate"),
        sometimes=("packet_latency_p95", "packet_latency_p99", "transaction_latency", "transaction_rate"),
    )  # fmt: skip

    __toml_keys__: ClassVar[tuple[str, ...]] = ("cxl",)

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Any:
        """Read also a pattern, by its word or in a table, that leaves out the nodes of the topology.

        The parameters of a `qmodels.noc.cxl_pool` lie under all other keys.
        """
        if isinstance(value, dict) and "cxl" in value:
            pool = cls(**place.at("cxl").made(value["cxl"], cxl_fields))
            return place.changed(pool, {k: v for k, v in value.items() if k != "cxl"})
        pattern = value.get("traffic") if isinstance(value, dict) else None
        if isinstance(pattern, str):
            pattern = {"pattern": pattern}
        if not isinstance(pattern, dict) or "pattern" not in pattern or "nodes" in pattern:
            return value
        topology = place.at("topology").read(value.get("topology", {}), Topology)
        return {**value, "traffic": {**pattern, "nodes": topology.nodes}}

    def __post_init__(self) -> None:
        object.__setattr__(self, "process", injection_process(self.process))
        if self.traffic is None and isinstance(self.topology, Topology):
            object.__setattr__(self, "traffic", uniform(nodes=self.topology.nodes))
        super().__post_init__()
        self._check_rate()
        if self.mix and isinstance(self.traffic, Transactions):
            raise ValueError("mix must be left out with transactions, which have sizes of their own")
        for rule in self.qos:
            for name in ("source", "target"):
                checks.count(f"qos.{name}", getattr(rule, name), minimum=-1, maximum=self.topology.nodes - 1)
        self._check_traffic()

    def _check_rate(self) -> None:
        bernoulli = isinstance(self.process, Bernoulli)
        if self.injection_rate is not None:
            checks.nonnegative("injection_rate", self.injection_rate)
            if bernoulli:
                checks.probability("injection_rate of a Bernoulli process", self.injection_rate)
        elif bernoulli and isinstance(self.traffic, RateMatrix) and self.traffic.largest_rate > 1:
            raise ValueError(
                "traffic.rates must let a source of a Bernoulli process send at most 1 packet/cycle, "
                f"got {self.traffic.largest_rate:.6g}: give injection_rate to scale them"
            )

    def _check_traffic(self) -> None:
        self.traffic.check_nodes(self.topology.nodes)
        if not isinstance(self.traffic, Interleaved | Transactions):
            return
        wrong = sorted(set(self.traffic.initiators) - set(self.topology.initiators))
        if wrong:
            raise ValueError(f"traffic.initiators must be nodes with that role, got {wrong[0]}")
        wrong = sorted(set(self.traffic.targets) - set(self.topology.memories))
        if wrong:
            raise ValueError(f"traffic.channels must be nodes with the role memory, got {wrong[0]}")

    @property
    def mean_rate(self) -> Numeric:
        """Injection rate of a node that sends: the one given, or the own of the traffic [packets/cycle]."""
        if self.injection_rate is not None:
            return self.injection_rate
        return self.traffic.mean_rate if isinstance(self.traffic, RateMatrix) else USUAL_RATE

    @property
    def packet_classes(self) -> tuple[PacketClass, ...]:
        """The kinds of packets: the mix, or the one kind."""
        return self.mix or (PacketClass(payload_bytes=self.packet_bytes, flits=self.flits_per_packet),)

    def flits(self, payload_bytes: int) -> int:
        """Return the flits of a packet with that payload, at least 1."""
        return max(1, -(-(self.header_bytes + payload_bytes) // self.link_width))

    def class_flits(self, packet: PacketClass) -> int:
        """Return the flits of a packet of a class."""
        return packet.flits or self.flits(packet.payload_bytes)

    def class_payload(self, packet: PacketClass) -> int:
        """Return the data of a packet of a class: no more than fits into its flits. [bytes]."""
        room = self.class_flits(packet) * self.link_width - self.header_bytes
        return min(packet.payload_bytes, max(0, room))

    def flow_table(self) -> FlowTable:
        """Return channels, flows and paths in arrays, which are shared: do not change them.

        Networks that differ in the injection rate alone share everything else.
        """
        # Rate, process and clock do not enter; fixed values let them share what is in the cache.
        plain = replace(self, injection_rate=0.0, process=Bernoulli(), clock_ghz=1.0)
        parts: dict[str, Any] = _structure(plain)
        load = np.asarray(self.mean_rate, dtype=float)
        return FlowTable(**parts, rate=load[..., None] * parts["unit_rate"])

    def find_deadlock(self) -> tuple[str, ...] | None:
        """Return a circle of channels in which packets may wait for each other, see `find_deadlock`."""
        return find_deadlock(self.flow_table())


def cxl_pool(hosts: int, devices: int, **changes: Any) -> Noc:
    """Return hosts and memory devices around one CXL switch.

    Parameters
    ----------
    hosts, devices : int
        How many of each; the hosts are the nodes from 0, the switch is the last node.
    **changes
        Parameters of `qmodels.systems.noc.spec.cxl_fields`, and fields of `Noc`.

    Examples
    --------
    >>> pool = cxl_pool(4, 2, lanes=16)
    >>> pool.topology.nodes, pool.flits(0), pool.flits(64)
    (7, 1, 5)
    """
    own = {name: changes.pop(name) for name in list(changes) if name not in field_names(Noc)}
    return Noc(**cxl_fields(hosts, devices, **own) | changes)


@lru_cache(maxsize=32)
def _structure(noc: Noc) -> dict[str, object]:
    """Return the fields of the flow table that do not depend on the injection rate."""
    topology, traffic, v = noc.topology, noc.traffic, noc.router.virtual_channels
    n, closed = topology.nodes, isinstance(traffic, Transactions)
    if isinstance(traffic, Transactions):
        sizes = noc.flits(traffic.request_bytes), noc.flits(traffic.response_bytes)
        flows = closed_flows(traffic, n, sizes)
    else:
        kinds = noc.packet_classes
        matrix = traffic.matrix(n)
        afford_routes("topology", topology, int(np.count_nonzero(matrix)) * len(kinds), noc.routing)
        flows = open_flows(traffic, matrix, kinds, [noc.class_flits(one) for one in kinds])
    find = partial(find_routes, topology, noc.routing, ties=noc.ties, table=noc.routes)
    pair, share, found = paths(
        topology,
        v,
        flows["source"],
        flows["target"],
        lambda source, target: find(source=source, target=target),
        classes=noc.vc_classes == "dateline",
        at_once=pairs_at_once(topology, noc.routing) or max(1, flows["source"].size),
    )
    if pair.size > flows["source"].size:
        flows = {name: values[pair] for name, values in flows.items()}
        for name in ("share", "unit_rate"):
            flows[name] = flows[name] * share
    if closed and np.any(pair[1:] == pair[:-1]):
        raise ValueError("routes of transactions must be one for each pair of nodes, got splits")
    source_step, source_first = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    if isinstance(traffic, Interleaved | Transactions):
        source_step[list(traffic.initiators)] = traffic.step_packets
        source_first[list(traffic.initiators)] = traffic.first_packets()
    source, target = flows["source"], flows["target"]
    parts: dict[str, object] = {
        **channels(topology, noc.link_width),
        **flows,
        **service(noc.qos, source, target, flows["priority"]),
        "paths": found,
        "virtual_channels": v,
        "source_start": np.searchsorted(source, np.arange(n + 1)),
        "source_step": source_step,
        "source_first": source_first,
    }
    for part in (*parts.values(), *vars(found).values()):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False  # tables share it
    return parts
