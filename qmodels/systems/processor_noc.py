"""The network-on-chip between packet engines and memory channels."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from qmodels import _check
from qmodels._check import Numeric
from qmodels.systems.topology import Topology


@dataclass(frozen=True, kw_only=True)
class ProcessorNoc:
    """Two networks of one topology: requests to the channels, responses to the initiators.

    Every directed link, injection and ejection included, is one first-come, first-served
    server that a NoC packet holds for as many cycles as it has flits; the head is in the next
    router ``router_cycles`` after it started on the link (cut-through, unlimited buffers), and
    the packet is delivered when its tail has left the ejection link. Initiators sit on nodes
    ``0..initiators-1``, channels on the contiguous nodes after them, as in [1]_ (Fig. 2).

    Numeric fields other than ``initiators`` may be arrays (a sweep).

    Parameters
    ----------
    topology : Topology
        Shape and routes ([1]_: Spidergon of 8, 16 or 32 nodes).
    initiators : int
        Packet engines, each on a node of its own ([1]_, first set-up: 4).
    link_width : int
        Width of every link ([1]_: 8, 16 or 32). [bytes]
    header_bytes : int
        Header of every NoC packet ([1]_: 8). [bytes]
    payload_bytes : int
        Largest payload of a NoC packet ([1]_: 128). [bytes]
    router_cycles : float
        Cycles for a head flit through a router and its outgoing link (our assumption). [cycles]
    clock_ghz : float
        Network clock ([1]_: 1). [GHz]

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs".
    """

    topology: Topology = field(default_factory=Topology)
    initiators: int = 4
    link_width: Numeric = 16
    header_bytes: Numeric = 8
    payload_bytes: Numeric = 128
    router_cycles: Numeric = 3
    clock_ghz: Numeric = 1.0

    def __post_init__(self) -> None:
        _check.count("noc.initiators", self.initiators, maximum=self.topology.nodes - 1)
        _check.count("noc.link_width", self.link_width)
        _check.count("noc.header_bytes", self.header_bytes)
        _check.count("noc.payload_bytes", self.payload_bytes)
        _check.nonnegative("noc.router_cycles", self.router_cycles)
        _check.positive("noc.clock_ghz", self.clock_ghz)

    def flits(self, payload_bytes: Numeric) -> Numeric:
        """Return the flits of a NoC packet with that payload: header and payload over the link width."""
        return -(-(self.header_bytes + payload_bytes) // self.link_width)

    def path(self, initiator: int, channel: int) -> tuple[int, ...]:
        """Return the nodes from an initiator to a channel."""
        return self.topology.route(initiator, self.initiators + channel)


def link_names(topology: Topology) -> tuple[str, ...]:
    """Return the names of all links of one network: node to node, then injection and ejection by node."""
    between = tuple(f"{u}->{v}" for u, v in topology.links)
    return (
        between
        + tuple(f"inject {n}" for n in range(topology.nodes))
        + tuple(f"eject {n}" for n in range(topology.nodes))
    )


@lru_cache(maxsize=65536)
def link_path(topology: Topology, source: int, target: int) -> tuple[int, ...]:
    """Return the links from source to target, injection to ejection, as positions in `link_names`."""
    route = topology.route(source, target)
    number = {link: k for k, link in enumerate(topology.links)}
    hops = tuple(number[hop] for hop in zip(route, route[1:], strict=False))
    return (len(number) + source, *hops, len(number) + topology.nodes + target)
