"""Networks of the Spidergon STNoC's three set-ups, open and closed, and what Table II calibrates of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cases.published.numbers import data_folder, read_toml
from qmodels.systems.noc.memory import Transactions, interleaved, transactions
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topologies import crossbar, spidergon
from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.fields import replace_fields

WIDTHS, TRANSFERS = (8, 16, 32), (16, 32, 64, 128)
"""Bytes of a link, and of a transfer of an engine in Figure 4; Tables II and III have the last."""
PAYLOAD, HEADER = 128, 8
MEMORIES = 8
"""Memory nodes of the set-ups with engines; with fewer channels, these are spread over them."""
CONTROLLER_CYCLES = 30.0
"""Fixed latency of gem5's RubyMemoryControl of January 2013: 12 cycles of 2.5 ns. [network cycles]"""
FILE = data_folder("stnoc") / "calibrated.toml"


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Parameters of the closed loops that the paper does not give, calibrated on Table II."""

    think_cycles: float  # from an answer to the next request of an engine, mean [cycles]
    service_cycles: float  # time of a memory controller for a transfer [cycles]
    write_fraction: float  # part of the transfers that are writes


CALIBRATED, CROSSBAR = (Loop(**read_toml(FILE)[part]) for part in ("loop", "crossbar"))
"""Least squares of the model's relative errors in all of Table II, see `fit_loop`: on the Spidergon, and with
one crossbar in its place, in which packets wait at the memory nodes alone."""


def flits(link_width: int, transfer: int = PAYLOAD) -> int:
    """Return the flits of a packet with data."""
    return -(-(transfer + HEADER) // link_width)


def open_noc(
    *,
    channels: int,
    step: int = 1,
    link_width: int = 16,
    random: bool = False,
    one_packet: int = 6,
    rate: float = 0.01,
) -> Noc:
    """Return the set-up of 8 nodes: 4 CPUs write to 1, 2 or 4 of the other 4 nodes.

    ``channels``, ``step``, ``link_width``: as in the paper; the step is in packets, the width in bytes;
    ``random``: whether each packet goes to a random channel instead of the next one in turn; ``one_packet``:
    cycles beyond its length for which a packet holds a virtual channel, if that takes a packet only when the
    one before has left it, as in the routers of gem5's Garnet: with a buffer of a packet the place of each
    flit is then free again after a packet's length and these cycles. 4 are the credit loop of the router of
    one stage (of 5 cycles, less the one that the tail takes); 6 are calibrated on Table I with 4 channels. 0
    lets packets follow one another in a buffer, as in the other set-ups [cycles]; ``rate``: packets per cycle
    of a CPU.
    """
    longest = flits(link_width)
    return Noc(
        topology=spidergon(8),
        router=Router(buffer_flits=longest, credit_cycles=longest + one_packet if one_packet else 5),
        traffic=interleaved(
            initiators=range(4),
            channels=range(4, 8, 4 // channels),
            step=step,
            packet_bytes=PAYLOAD,
            addresses="random" if random else "sequential",
        ),
        injection_rate=rate,
        link_width=link_width,
        header_bytes=HEADER,
        packet_bytes=PAYLOAD,
    )


def engines_of(nodes: int = 32) -> int:
    """Return the DMA engines of a set-up: one node is left over.

    >>> engines_of(32), engines_of(16)
    (23, 7)
    """
    return nodes - MEMORIES - 1


def closed_noc(
    *,
    channels: int,
    link_width: int,
    loop: Loop = CALIBRATED,
    nodes: int = 32,
    transfer: int = PAYLOAD,
    network: Callable[[int], Topology] = spidergon,
) -> Noc:
    """Return a set-up with DMA engines: 23 in 32 nodes, or 7 in 16.

    Engines are on the first nodes, the 8 memory nodes behind them, one node is left over. A transfer of
    `transfer` bytes is a packet, and takes a controller as long as any other: a closed bank, one burst.
    """
    engines = engines_of(nodes)
    return Noc(
        topology=network(nodes),
        router=Router(buffer_flits=flits(link_width, transfer)),
        traffic=transactions(
            initiators=range(engines),
            channels=range(engines, engines + MEMORIES, MEMORIES // channels),
            think_cycles=loop.think_cycles,
            think_law="exponential",
            request_bytes=transfer,
            read_fraction=1 - loop.write_fraction,
            service_cycles=loop.service_cycles,
            latency_cycles=CONTROLLER_CYCLES,
            cut_through=True,
        ),
        link_width=link_width,
        header_bytes=HEADER,
        packet_bytes=PAYLOAD,
    )


def loop(width: int, channels: int, *, think: float = CALIBRATED.think_cycles, nodes: int = 32) -> Noc:
    """Return a set-up with engines that think for another time."""
    changed = replace(CALIBRATED, think_cycles=think)
    return closed_noc(channels=channels, link_width=width, nodes=nodes, loop=changed)


def crossed(noc: Noc) -> Noc:
    """Return a set-up with one crossbar, the loop calibrated on it; other times to think differ as much."""
    traffic = noc.traffic
    assert isinstance(traffic, Transactions)
    changed: dict[str, Any] = {
        "think_cycles": traffic.think_cycles - CALIBRATED.think_cycles + CROSSBAR.think_cycles,
        "service_cycles": CROSSBAR.service_cycles,
        "read_fraction": 1 - CROSSBAR.write_fraction,
    }
    return replace(noc, topology=crossbar(noc.topology.nodes), traffic=replace(traffic, **changed))


def resized(noc: Noc, transfer: int) -> Noc:
    """Return a set-up with transfers of another length."""
    return replace_fields(noc, {"packet_bytes": transfer, "traffic.request_bytes": transfer})
