"""The flows of a network-on-chip in arrays: what models and simulators read instead of the spec."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.noc.memory import Interleaved, Transactions
from qmodels.systems.noc.routes import ANY_CLASS, Integers, Routes
from qmodels.systems.noc.routing import find_routes

if TYPE_CHECKING:
    from qmodels.systems.noc.spec import Noc

INJECTION, LINK, EJECTION = 0, 1, 2
"""Kinds of channels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowTable:
    """Channels, flows and paths.

    Every node has an injection channel into a router and an ejection channel out of one, used or
    not. A flow is the packets of one class from a node to a node on one route.

    Parameters
    ----------
    nodes, routers, virtual_channels : int
        Sizes.
    channel_names : tuple of str
        Injection of node 0, 1, ..., links, ejection of node 0, 1, ...
    channel_kind : array of int
        `INJECTION`, `LINK` or `EJECTION`.
    channel_from, channel_to : array of int
        Routers, -1 for a network interface.
    channel_delay : array of int
        Cycles of wire beyond the first. [cycles]
    channel_cycles_per_flit : array of int
        1, or more for a link narrower than the network's. [cycles]
    source, target : array of int
        Nodes of each flow; flows are sorted by source.
    packet_class : array of int
        Position in the mix; of transactions 0 for writes and 1 for reads.
    order : array of int
        Position of the target in the cycle of the source.
    share : array of float
        Part of the source's packets; they add up to 1 for every source that sends.
    unit_rate : array of float
        Packets per cycle at injection rate 1; 0 in closed loops, whose rate is not given.
    rate : array of float
        Packets per cycle; for an array of injection rates with these in front: (loads, flows).
    flits : array of int
        Flits of a packet.
    priority : array of int
        0 (first) to 7.
    weight : array of float
        For weighted arbitration.
    circuit : array of bool
        Whether the flow has a path of its own.
    reply : array of int
        The flow that answers, -1 for none.
    source_start : array of int
        Where the flows of each node begin; one more at the end.
    source_step : array of int
        Packets of a node to the targets of one ``order`` before those of the next; 0 where the flow
        of each packet is drawn by its share.
    source_first : array of int
        Packet number at which the cycle of a node begins, -1 for one drawn at random.
    path_start : array of int
        Where the path of each flow begins; one more at the end.
    path_channel : array of int
        Channels from injection to ejection.
    path_vc_low, path_vc_high : array of int
        Virtual channels that may be used on each, from low to high - 1.
    """

    nodes: int
    routers: int
    virtual_channels: int
    channel_names: tuple[str, ...]
    channel_kind: Integers
    channel_from: Integers
    channel_to: Integers
    channel_delay: Integers
    channel_cycles_per_flit: Integers
    source: Integers
    target: Integers
    packet_class: Integers
    order: Integers
    share: FloatArray
    unit_rate: FloatArray
    rate: FloatArray
    flits: Integers
    priority: Integers
    weight: FloatArray
    circuit: npt.NDArray[np.bool_]
    reply: Integers
    source_start: Integers
    source_step: Integers
    source_first: Integers
    path_start: Integers
    path_channel: Integers
    path_vc_low: Integers
    path_vc_high: Integers

    def path(self, flow: int) -> tuple[str, ...]:
        """Return the names of the channels of one flow."""
        mine = self.path_channel[self.path_start[flow] : self.path_start[flow + 1]]
        return tuple(self.channel_names[c] for c in mine)

    def per_transaction(self) -> FloatArray:
        """Return the packets of every flow in a transaction, of closed loops."""
        asked = np.flatnonzero(self.reply >= 0)
        packets = np.zeros(self.source.size)
        packets[asked] = self.share[asked] / np.unique(self.source[asked]).size
        np.add.at(packets, self.reply[asked], packets[asked])
        return packets

    def channel_load(self) -> FloatArray:
        """Return the flits per cycle on every channel at injection rate 1."""
        flits = np.repeat(self.unit_rate * self.flits, np.diff(self.path_start))
        load = np.zeros(len(self.channel_names))
        np.add.at(load, self.path_channel, flits)
        return load


@lru_cache(maxsize=32)
def structure(noc: Noc) -> dict[str, object]:
    """Return the fields of the flow table that do not depend on the injection rate."""
    topology, links = noc.topology, noc.topology.links
    n, m = topology.nodes, len(topology.links)
    channels = _channels(noc)
    number = np.full((topology.routers, topology.routers), -1, dtype=np.int32)
    if links:
        number[tuple(np.array(links).T)] = n + np.arange(m)

    closed = isinstance(noc.traffic, Transactions)
    flows = _closed_flows(noc) if closed else _open_flows(noc)
    routes = find_routes(
        topology, noc.routing, source=flows["source"], target=flows["target"], ties=noc.ties, table=noc.routes
    )
    flows = {name: values[routes.pair] for name, values in flows.items()}
    for name in ("share", "unit_rate"):
        flows[name] = flows[name] * routes.share
    if closed and routes.pair.size > np.unique(routes.pair).size:
        raise ValueError("routes of transactions must be one for each pair of nodes, got splits")
    source_step, source_first = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    if isinstance(noc.traffic, Interleaved | Transactions):
        source_step[list(noc.traffic.initiators)] = noc.traffic.step_packets
        source_first[list(noc.traffic.initiators)] = noc.traffic.first_packets()
    service = _service(noc, flows["source"], flows["target"], flows["priority"])
    parts: dict[str, object] = {
        **channels,
        **flows,
        **service,
        **_paths(noc, routes, flows["source"], flows["target"], number),
        "source_start": np.searchsorted(flows["source"], np.arange(n + 1)),
        "source_step": source_step,
        "source_first": source_first,
    }
    for part in parts.values():
        if isinstance(part, np.ndarray):
            part.flags.writeable = False  # tables share it
    return parts


def _channels(noc: Noc) -> dict[str, object]:
    topology = noc.topology
    n, m = topology.nodes, len(topology.links)
    ends = np.array(topology.links, dtype=np.int64).reshape(-1, 2)
    nodes, outside = np.arange(n), np.full(n, -1)
    widths = np.array(topology.link_widths, dtype=np.int64)
    width = np.where(widths > 0, widths, noc.link_width)
    none, once = np.zeros(n, dtype=np.int64), np.ones(n, dtype=np.int64)
    return {
        "nodes": n,
        "routers": topology.routers,
        "virtual_channels": noc.router.virtual_channels,
        "channel_names": (
            *(f"inject {k}" for k in range(n)),
            *(f"{u}->{v}" for u, v in topology.links),
            *(f"eject {k}" for k in range(n)),
        ),
        "channel_kind": np.repeat([INJECTION, LINK, EJECTION], [n, m, n]),
        "channel_from": np.concatenate([outside, ends[:, 0], topology.ejects_from(nodes)]),
        "channel_to": np.concatenate([topology.injects_into(nodes), ends[:, 1], outside]),
        "channel_delay": np.concatenate([none, np.array(topology.link_delays, dtype=np.int64), none]),
        "channel_cycles_per_flit": np.concatenate([once, np.maximum(1, -(-noc.link_width // width)), once]),
    }


def _open_flows(noc: Noc) -> dict[str, np.ndarray]:
    matrix = noc.traffic.matrix(noc.topology.nodes)
    source, target = np.nonzero(matrix)
    order = np.zeros(source.size, dtype=np.int64)
    if isinstance(noc.traffic, Interleaved):
        position = np.zeros(noc.topology.nodes, dtype=np.int64)
        position[list(noc.traffic.targets)] = np.arange(len(noc.traffic.targets))
        order = position[target]
    classes = noc.packet_classes
    parts = np.array([one.share for one in classes])
    parts = parts / parts.sum()
    k = len(classes)
    rate = matrix[source, target]
    number = np.tile(np.arange(k), source.size)
    flows = {
        "source": source.repeat(k),
        "target": target.repeat(k),
        "order": order.repeat(k),
        "packet_class": number,
        "share": (rate / matrix.sum(axis=1)[source]).repeat(k) * parts[number],
        "unit_rate": rate.repeat(k) * parts[number],
        "flits": np.array([noc.class_flits(one) for one in classes])[number],
        "priority": np.array([one.priority for one in classes])[number],
        "reply": np.full(number.size, -1),
    }
    by_order = np.lexsort((flows["packet_class"], flows["target"], flows["order"], flows["source"]))
    return {name: values[by_order] for name, values in flows.items()}


def _closed_flows(noc: Noc) -> dict[str, np.ndarray]:
    traffic = noc.traffic
    assert isinstance(traffic, Transactions)
    traffic.matrix(noc.topology.nodes)  # checks the nodes
    sizes = noc.flits(traffic.request_bytes), noc.flits(traffic.response_bytes)
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


def _service(noc: Noc, source: Integers, target: Integers, priority: Integers) -> dict[str, object]:
    """Return what the rules of quality of service say; the first rule for a flow counts."""
    weight, circuit = np.ones(source.size), np.zeros(source.size, dtype=bool)
    ruled = np.zeros(source.size, dtype=bool)
    for rule in noc.qos:
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


def _paths(
    noc: Noc, routes: Routes, source: Integers, target: Integers, number: Integers
) -> dict[str, np.ndarray]:
    n, m = noc.topology.nodes, len(noc.topology.links)
    v = noc.router.virtual_channels
    lengths = np.diff(routes.start)  # routers; one more channel
    start = np.append(0, np.cumsum(lengths + 1))
    channel = np.empty(start[-1], dtype=np.int32)
    channel[start[:-1]] = source
    channel[start[1:] - 1] = n + m + target
    inner = np.ones(start[-1], dtype=bool)
    inner[start[:-1]] = inner[start[1:] - 1] = False
    hop = np.ones(routes.routers.size, dtype=bool)
    hop[routes.start[1:] - 1] = False
    here = np.flatnonzero(hop)
    channel[inner] = number[routes.routers[here], routes.routers[here + 1]]
    vc_class = np.full(start[-1], ANY_CLASS, dtype=np.int8)
    if noc.vc_classes == "dateline" and v > 1:
        vc_class[inner] = routes.vc_class[here]
    return {
        "path_start": start,
        "path_channel": channel,
        "path_vc_low": np.where(vc_class == 1, v // 2, 0).astype(np.int32),
        "path_vc_high": np.where(vc_class == 0, v // 2, v).astype(np.int32),
    }
