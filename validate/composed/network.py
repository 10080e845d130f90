"""The interconnect of a system: one network that carries the packets of all flows."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from qmodels.systems.composed.system import System
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import RateMatrix, uniform
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import mesh
from validate.composed.state import CHOICE
from validate.network.state import NONE
from validate.noc.replication import build_world
from validate.noc.state import World, grown

grown_network = grown


def new_network(spec: System) -> tuple[World | None, Any, Any]:
    """Return the network, the first way from each node to each, and the ways: flows of the network.

    Only nodes where parts are or jobs begin are connected.
    """
    if spec.network is None:
        return None, np.full((1, 1), NONE, dtype=np.int64), np.zeros(1, dtype=CHOICE)
    nodes, table = spec.network.topology.nodes, _table(spec, spec.network)
    if spec.replies:
        table = _side_by_side(table, _table(spec, spec.parts[spec.replies]))
    routes = np.full((nodes * (1 + bool(spec.replies)), nodes), NONE, dtype=np.int64)
    ways = np.zeros(table.source.size, dtype=CHOICE)
    order = np.lexsort((table.target, table.source))
    ways["at"] = order
    pairs = table.source[order] * nodes + table.target[order] % nodes
    share = table.rate[order] / np.bincount(pairs, weights=table.rate[order])[pairs]
    below = np.cumsum(share)
    firsts = np.flatnonzero(np.diff(pairs, prepend=NONE))
    ways["below"] = below - np.repeat(below[firsts] - share[firsts], np.diff([*firsts, pairs.size]))
    ways["below"][[*(firsts[1:] - 1), -1]] = 1.0  # the last way of a pair takes what rounding leaves
    routes.ravel()[pairs[firsts]] = firsts
    return build_world(spec.network, table, packets=1), routes, ways


def link_names(spec: System) -> list[tuple[str, str]]:
    """Return the links of the interconnect and of that of replies, those to and from the nodes included."""
    names = [name for name in (spec.interconnect, spec.replies) if name]
    return [(name, link) for name in names for link in _table(spec, spec.parts[name]).channel_names]


def _table(spec: System, noc: Noc) -> FlowTable:
    used = {node for at in spec.place.values() for node in at} | {n for f in spec.flows for n in f.at}
    return _all_pairs(noc, sorted(node for node in used if node < noc.topology.nodes)).flow_table()


def _side_by_side(first: FlowTable, second: FlowTable) -> FlowTable:
    """Return two networks that share nothing as one: nodes, routers and channels of the second come after."""
    apart = {
        "source": first.nodes,
        "target": first.nodes,
        "channel_from": first.routers,
        "channel_to": first.routers,
        "path_channel": len(first.channel_names),
        "path_start": first.path_channel.size,
        "source_start": first.source.size,
        "reply": first.source.size,
    }
    changes: dict[str, Any] = {"channel_names": first.channel_names + second.channel_names}
    for name in (field.name for field in fields(FlowTable)):
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, np.ndarray):
            other = np.where(other >= 0, other + apart.get(name, 0), other)
            if name in ("path_start", "source_start"):
                other = other[1:]
            changes[name] = np.concatenate([one, other], axis=-1).astype(one.dtype)
    return replace(first, **changes, nodes=first.nodes + second.nodes, routers=first.routers + second.routers)


def no_network() -> World:
    """Return a network that carries nothing."""
    noc = Noc(topology=mesh(1, 2), traffic=uniform(nodes=2))
    return build_world(noc, _all_pairs(noc, [0, 1]).flow_table(), packets=1)


def _all_pairs(noc: Noc, used: list[int]) -> Noc:
    """Return a network with a flow between each two of some nodes, of packets of one class."""
    rates = np.zeros((noc.topology.nodes, noc.topology.nodes))
    rates[np.ix_(used, used)] = 1.0
    np.fill_diagonal(rates, 0.0)
    if not rates.any():
        rates[0, -1] = 1.0
    matrix = RateMatrix(rates=tuple(map(tuple, rates.tolist())))
    return replace(noc, traffic=matrix, injection_rate=0.01, mix=())
