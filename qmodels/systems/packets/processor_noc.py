"""The networks-on-chip between packet engines and memory channels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray, Numeric
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.systems.noc.router import PacketClass, Router
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.ranges import Declared, count, positive


@dataclass(frozen=True, kw_only=True)
class ProcessorNoc(Declared, prefix="noc."):
    """Two networks of one topology: requests to the channels, responses to the initiators.

    Each is a wormhole network, see `qmodels.systems.noc.spec.Noc`: packets wait in the queue of their
    network interface, cross the routers flit by flit, and are delivered with their tail. Initiators
    sit on nodes ``0..initiators-1``, channels on the contiguous nodes after them, as in [1]_ (Fig. 2).

    Numeric fields other than ``initiators`` and those of the routers may be arrays (a sweep).

    Parameters
    ----------
    topology : Topology
        Shape and routes ([1]_: Spidergon of 8, 16 or 32 nodes).
    routing : str
        A routing with one path for each pair of nodes, see `qmodels.systems.noc.routing.find_routes`.
    router : Router
        All routers (our assumption: one stage, 2 virtual channels of 8 flits).
    initiators : int
        Packet engines, each on a node of its own ([1]_, first set-up: 4).
    link_width : int
        Width of every link ([1]_: 8, 16 or 32). [bytes]
    header_bytes : int
        Header of every NoC packet ([1]_: 8). [bytes]
    payload_bytes : int
        Largest payload of a NoC packet ([1]_: 128). [bytes]
    clock_ghz : float
        Network clock ([1]_: 1). [GHz]

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs".
    """

    topology: Topology = field(default_factory=Topology)
    routing: str = "default"
    router: Router = field(default_factory=Router)
    initiators: int = 4
    link_width: Numeric = count(16)
    header_bytes: Numeric = count(8)
    payload_bytes: Numeric = count(128)
    clock_ghz: Numeric = positive(1.0)

    def _check_relations(self) -> None:
        checks.count("noc.initiators", self.initiators, maximum=self.topology.nodes - 1)
        if self.topology.edge_widths:
            raise ValueError(
                "noc.topology.edge_widths must be left out, all links have the width noc.link_width, "
                f"got {self.topology.edge_widths!r}"
            )

    def flits(self, payload_bytes: Numeric) -> Numeric:
        """Return the flits of a NoC packet with that payload: header and payload over the link width."""
        return -(-(self.header_bytes + payload_bytes) // self.link_width)

    @cached_property
    def structure(self) -> ProcessorNoc:
        """The same with all numbers that do not change who sends to whom on which path set to 1."""
        return replace(self, link_width=1, header_bytes=1, payload_bytes=1, clock_ghz=1.0)

    def networks(self, channels: int) -> Networks:
        """Return the network of requests and that of responses.

        Raises
        ------
        ValueError
            If there is no path, more than one for a pair of nodes, or packets could wait for each other
            in a circle.
        """
        return _networks(self.structure, int(channels))


@dataclass(frozen=True, kw_only=True, eq=False)
class Networks:
    """Flow tables of requests and responses; their rates say nothing."""

    # requests, responses: one flow for each initiator and channel.
    requests: FlowTable
    responses: FlowTable
    flow: IntArray  # the flow of a request to a channel; of a response from it

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the channels of either network: injection, links, ejection."""
        return self.requests.channel_names


def one_network(noc: ProcessorNoc, channels: int, *, responses: bool, mix: tuple[PacketClass, ...]) -> Noc:
    """Return one of the networks with even traffic: every source sends to every target alike."""
    nodes, engines = noc.topology.nodes, noc.initiators
    wanted = np.zeros((nodes, nodes))
    wanted[:engines, engines : engines + channels] = 1.0
    matrix = wanted.T if responses else wanted
    return Noc(
        topology=noc.topology,
        routing=noc.routing,
        router=noc.router,
        traffic=RateMatrix(rates=tuple(map(tuple, matrix.tolist()))),
        injection_rate=0.0,
        mix=mix,
    )


@lru_cache(maxsize=64)
def _networks(noc: ProcessorNoc, channels: int) -> Networks:
    engines = noc.initiators
    flow = np.zeros((2, engines, channels), dtype=np.int64)
    tables = []
    for number in range(2):
        network = one_network(noc, channels, responses=number == 1, mix=(PacketClass(flits=1),))
        table = network.flow_table()
        if table.source.size != engines * channels:
            raise ValueError(f"noc.routing must have one path for each pair of nodes, got {noc.routing!r}")
        circle = network.find_deadlock()
        if circle is not None:
            raise ValueError(
                f"noc.router.virtual_channels must be more for {noc.topology.kind}: packets could wait for "
                f"each other on {' '.join(circle)}, got {noc.router.virtual_channels!r}"
            )
        ends: Any = (table.source, table.target) if number == 0 else (table.target, table.source)
        flow[number, ends[0], ends[1] - engines] = np.arange(table.source.size)
        tables.append(table)
    flow.flags.writeable = False
    return Networks(requests=tables[0], responses=tables[1], flow=flow)
