"""The flows of a network-on-chip in arrays: what models and simulators read instead of the spec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.guarded import guarded
from qmodels.systems.laws.kinds import LAWS, require_law
from qmodels.systems.laws.times import Geometric, Law
from qmodels.systems.noc.memory import Interleaved, Transactions
from qmodels.systems.noc.patterns import Pattern, Permutation, RateMatrix
from qmodels.systems.noc.router import PacketClass, QosRule
from qmodels.systems.noc.routes import EJECTION, INJECTION, LINK, Integers, Paths, PathTable, Routes
from qmodels.systems.noc.topology import Topology
from qmodels.systems.traffic.arrivals import OnOff, Poisson


@dataclass(frozen=True, kw_only=True)
class Bernoulli:
    """One packet with the same probability in every cycle, independently.

    The gaps are geometric; their squared coefficient of variation is 1 minus the rate.
    """


InjectionProcess = Bernoulli | Poisson | OnOff | Law
"""All packets but those of `Bernoulli` arrive in continuous time and are injected in the next cycle.

Of a law of their gaps the shape counts, not the mean."""


@guarded
def bursts(*, scv: float, peak_to_mean: float = 4.0) -> OnOff:
    """Return the on/off process whose gaps have a squared coefficient of variation.

    Parameters
    ----------
    scv : float
        Squared coefficient of variation of the gaps, above 1.
    peak_to_mean : float
        Rate in a burst over the mean rate.

    Raises
    ------
    ValueError
        If the SCV is too small: bursts have at least one packet on average.

    Examples
    --------
    >>> bursts(scv=12.25).on_packets
    10.0
    """
    for name, value in (("scv", scv), ("peak_to_mean", peak_to_mean)):
        checks.one_number(name, value)
        checks.positive(name, value)
    if not scv > 1:
        raise ValueError(f"scv of bursts must be > 1, got {scv!r}")
    if not peak_to_mean > 1:
        raise ValueError(f"peak_to_mean must be > 1, got {peak_to_mean!r}")
    quiet = (1 - 1 / peak_to_mean) ** 2
    least = 1 + 2 * quiet
    if scv < least:
        raise ValueError(f"scv must be >= {least:g} with peak_to_mean {peak_to_mean:g}, got {scv!r}")
    return OnOff(on_packets=(scv - 1) / (2 * quiet), peak_to_mean=peak_to_mean)


def injection_process(value: object) -> InjectionProcess:
    """Return a process by its name, ``"bernoulli"`` or ``"poisson"``, or as it is."""
    if isinstance(value, str):
        word = checks.choice("process", value, ("bernoulli", "poisson"))
        return Poisson() if word == "poisson" else Bernoulli()
    if isinstance(value, LAWS):
        require_law("process", value, tuple(law for law in LAWS if law is not Geometric))
    elif not isinstance(value, Bernoulli | Poisson | OnOff):
        rule = "Bernoulli, Poisson, OnOff or a law of gaps"
        raise ValueError(f"process must be {rule}, got {checks.shown(value)}")
    return value


Traffic = Pattern | Permutation | RateMatrix | Interleaved | Transactions


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTable(PathTable):
    """Channels, flows and paths; flows are sorted by source.

    A flow is the packets of one class from a node to a node on one route.
    """

    # nodes, routers: Sizes
    nodes: int
    routers: int
    packet_class: Integers  # Position in the mix; of transactions 0 for writes and 1 for reads
    order: Integers  # Position of the target in the cycle of the source
    share: FloatArray  # Part of the source's packets; they add up to 1 for every source that sends
    unit_rate: FloatArray  # Packets per cycle at injection rate 1; 0 in closed loops, whose rate is not given
    rate: FloatArray  # Packets per cycle; for an array of injection rates with these in front: (loads, flows)
    reply: Integers  # The flow that answers, -1 for none
    source_start: Integers  # Where the flows of each node begin; one more at the end
    # Packets of a node to the targets of one ``order`` before those of the next; 0 where the flow of each
    # packet is drawn by its share
    source_step: Integers
    source_first: Integers  # Packet number at which the cycle of a node begins, -1 for one drawn at random

    def per_transaction(self) -> FloatArray:
        """Return the packets of every flow in a transaction, of closed loops."""
        asked = np.flatnonzero(self.reply >= 0)
        packets = np.zeros(self.source.size)
        packets[asked] = self.share[asked] / np.unique(self.source[asked]).size
        np.add.at(packets, self.reply[asked], packets[asked])
        return packets

    def channel_load(self) -> FloatArray:
        """Return the flits per cycle on every channel at injection rate 1."""
        return self.paths.by_channel(self.unit_rate * self.flits, len(self.channel_names))


def channels(topology: Topology, link_width: int) -> dict[str, object]:
    """Return the channels of a network in the fields of a `FlowTable`."""
    n, m = topology.nodes, len(topology.links)
    ends = np.array(topology.links, dtype=np.int64).reshape(-1, 2)
    nodes, outside = np.arange(n), np.full(n, -1)
    widths = np.array(topology.link_widths, dtype=np.int64)
    width = np.where(widths > 0, widths, link_width)
    none, once = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    return {
        "nodes": n,
        "routers": topology.routers,
        "channel_names": (
            *(f"inject {k}" for k in range(n)),
            *(f"{u}->{v}" for u, v in topology.links),
            *(f"eject {k}" for k in range(n)),
        ),
        "channel_kind": np.repeat([INJECTION, LINK, EJECTION], [n, m, n]),
        "channel_from": np.concatenate([outside, ends[:, 0], topology.ejects_from(nodes)]),
        "channel_to": np.concatenate([topology.injects_into(nodes), ends[:, 1], outside]),
        "channel_delay": np.concatenate([none, np.array(topology.link_delays, dtype=np.int64), none]),
        "channel_cycles_per_flit": np.concatenate([once, np.maximum(1, -(-link_width // width)), once]),
    }


def open_flows(
    traffic: Traffic, matrix: FloatArray, classes: Sequence[PacketClass], flits: Sequence[int]
) -> dict[str, np.ndarray]:
    """Return the flows of nodes that send packets of some classes, with the flits of each.

    ``matrix``: of the traffic.
    """
    source, target = np.nonzero(matrix)
    order = np.broadcast_to(0, source.size)
    if isinstance(traffic, Interleaved):
        position = np.zeros(len(matrix), dtype=np.int64)
        position[list(traffic.targets)] = np.arange(len(traffic.targets))
        order = position[target]
    parts = np.array([one.share for one in classes])
    parts = parts / parts.sum()
    rate, k = matrix[source, target], len(classes)
    share = rate / matrix.sum(axis=1)[source]
    number = np.broadcast_to(0, source.size)  # what is alike for all flows takes no room
    if k > 1:
        number = np.tile(np.arange(k), source.size)
        source, target, order = source.repeat(k), target.repeat(k), order.repeat(k)
        share, rate = share.repeat(k) * parts[number], rate.repeat(k) * parts[number]

    def of_class(values: Sequence[int]) -> Integers:
        return np.array(values)[number] if k > 1 else np.broadcast_to(values[0], source.size)

    flows = {
        "source": source,
        "target": target,
        "order": order,
        "packet_class": number,
        "share": share,
        "unit_rate": rate,
        "flits": of_class(flits),
        "priority": of_class([one.priority for one in classes]),
        "reply": np.broadcast_to(-1, source.size),
    }
    if not isinstance(traffic, Interleaved):
        return flows  # sorted by source, target and class
    by_order = np.lexsort((number, target, order, source))
    return {name: values[by_order] for name, values in flows.items()}


def closed_flows(traffic: Transactions, nodes: int, sizes: tuple[int, int]) -> dict[str, np.ndarray]:
    """Return the flows of requests and responses; `sizes` are the flits of those that carry data, or not."""
    traffic.check_nodes(nodes)
    kinds = [(0, 1 - traffic.read_fraction), (1, traffic.read_fraction)]
    rows = []
    for initiator in traffic.initiators:
        for order, channel in enumerate(traffic.channels):
            for kind, share in kinds:
                if share > 0:
                    there, back = share / len(traffic.channels), share / len(traffic.initiators)
                    rows.append((initiator, order, channel, kind, there, sizes[kind]))
                    rows.append((channel, 0, initiator, kind, back, sizes[1 - kind]))
    rows.sort()
    initiators = set(traffic.initiators)
    asked = {(row[0], row[2], row[3]): k for k, row in enumerate(rows) if row[0] not in initiators}
    columns = list(zip(*rows, strict=True))
    return {
        "source": np.array(columns[0]),
        "target": np.array(columns[2]),
        "order": np.array(columns[1]),
        "packet_class": np.array(columns[3]),
        "share": np.array(columns[4], dtype=float),
        "unit_rate": np.zeros(len(rows)),
        "flits": np.array(columns[5]),
        "priority": np.zeros(len(rows), dtype=np.int64),
        "reply": np.array([asked[row[2], row[0], row[3]] if row[0] in initiators else -1 for row in rows]),
    }


def service(
    rules: Sequence[QosRule], source: Integers, target: Integers, priority: Integers
) -> dict[str, object]:
    """Return priority, weight and circuit of flows; the first rule of quality of service counts."""
    if not rules:
        weight, circuit = np.broadcast_to(1.0, source.size), np.broadcast_to(False, source.size)
        return {"priority": priority, "weight": weight, "circuit": circuit}
    weight, circuit = np.ones(source.size), np.zeros(source.size, dtype=bool)
    ruled = np.zeros(source.size, dtype=bool)
    for rule in rules:
        mine = ~ruled
        if rule.source >= 0:
            mine &= source == rule.source
        if rule.target >= 0:
            mine &= target == rule.target
        ruled |= mine
        weight[mine], circuit[mine] = rule.weight, rule.circuit
        if rule.priority >= 0:
            priority = np.where(mine, rule.priority, priority)
    return {"priority": priority, "weight": weight, "circuit": circuit}


def paths(
    topology: Topology,
    v: int,
    source: Integers,
    target: Integers,
    route: Callable[[Integers, Integers], Routes],
    *,
    classes: bool,
    at_once: int,
) -> tuple[Integers, FloatArray, Paths]:
    """Return pair and share of each route between pairs of nodes, and the paths.

    ``route``: what finds the routes of some pairs; ``classes``: whether the VC classes of routes count, each
    with half of the `v` channels; ``at_once``: pairs that it is given.
    """
    n, m = topology.nodes, len(topology.links)
    number = np.full((topology.routers, topology.routers), -1, dtype=np.int32)
    if m:
        number[tuple(np.array(topology.links).T)] = n + np.arange(m)
    parts = []
    for first in range(0, max(source.size, 1), at_once):
        some = slice(first, first + at_once)
        routes = route(source[some], target[some])
        onward = np.ones(routes.routers.size, dtype=bool)
        onward[routes.start[1:] - 1] = False
        here = np.flatnonzero(onward)
        link = number[routes.routers[here], routes.routers[here + 1]]
        vc_class = routes.vc_class[here] if classes and v > 1 else np.zeros(0, dtype=np.int8)
        parts.append(
            (
                routes.legs.astype(np.int32),
                routes.pair + first,
                routes.share,
                np.diff(routes.start) - 1,
                link,
                vc_class,
            )
        )
    legs, pair, share, sizes, link, vc_class = zip(*parts, strict=True)
    before = np.cumsum([0, *(size.size for size in sizes)], dtype=np.int32)
    legs = np.concatenate([some + count for some, count in zip(legs, before[:-1], strict=True)], axis=1)
    pair, share, sizes, link, vc_class = map(np.concatenate, (pair, share, sizes, link, vc_class))
    low, high = np.broadcast_to(np.int8(0), link.shape), np.broadcast_to(np.int8(v), link.shape)
    if vc_class.size:
        low = np.where(vc_class == 1, np.int8(v // 2), np.int8(0))
        high = np.where(vc_class == 0, np.int8(v // 2), np.int8(v))
    found = Paths(
        virtual_channels=v,
        first=source[pair],
        last=n + m + target[pair],
        legs=legs,
        leg_start=np.append(0, np.cumsum(sizes)),
        link=link,
        vc_low=low,
        vc_high=high,
    )
    return pair, share, found
