"""The STNoC case: its three set-ups as specs."""

from __future__ import annotations

from dataclasses import dataclass

from cases.published.rows import data_folder, read_toml
from qmodels.systems.noc.memory import interleaved, transactions
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topologies import spidergon

WIDTHS = (8, 16, 32)
PAYLOAD, HEADER = 128, 8
TRANSFERS = (16, 32, 64, 128)
"""Bytes of a transfer of an engine in Figure 4; Tables II and III have the last."""

MEMORIES = 8
"""Memory nodes of the set-ups with engines; with fewer channels, these are spread over them."""

CONTROLLER_CYCLES = 30.0
"""Fixed latency of gem5's RubyMemoryControl of January 2013: 12 cycles of 2.5 ns. [network cycles]"""


FILE = data_folder("stnoc") / "calibrated.toml"


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What the paper does not say of the closed loops, calibrated on Table II."""

    think_cycles: float  # from an answer to the next request of an engine, mean [cycles]
    service_cycles: float  # time of a memory controller for a transfer [cycles]
    write_fraction: float  # part of the transfers that are writes


CALIBRATED = Loop(**read_toml(FILE)["loop"])
"""Least squares of the model's relative errors in all of Table II, see `calibration`."""


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
    *, channels: int, link_width: int, loop: Loop = CALIBRATED, nodes: int = 32, transfer: int = PAYLOAD
) -> Noc:
    """Return a set-up with DMA engines: 23 in 32 nodes, or 7 in 16.

    Engines are on the first nodes, the 8 memory nodes behind them, one node is left over. A transfer of
    `transfer` bytes is a packet, and takes a controller as long as any other: a closed bank, one burst.
    """
    engines = engines_of(nodes)
    return Noc(
        topology=spidergon(nodes),
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
