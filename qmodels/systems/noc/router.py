"""The routers of a network-on-chip, and who comes first in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels import checks
from qmodels.systems.spec.ranges import Declared, choice, count, positive

ARBITRATIONS = ("round_robin", "fcfs", "priority", "weighted")
PRIORITIES = 8
"""Fixed priorities of the switches: 0 is served first, 7 last."""


@dataclass(frozen=True, kw_only=True)
class Router(Declared, prefix="router."):
    """Input-queued wormhole router with virtual channels and credits.

    A packet holds a virtual channel of the next buffer from its head to its tail, and the switch for
    as long as its flits follow one another, unless every flit competes for it.

    Notes
    -----
    The defaults are those of a one-stage router of BookSim2 [1]_ with speculative allocation: a
    flit alone takes 3 cycles a router and 2 at the ends, and a buffer place is free again after 5.

    References
    ----------
    .. [1] N. Jiang et al., "A detailed and flexible cycle-accurate network-on-chip simulator",
       ISPASS 2013.

    Examples
    --------
    >>> Router(buffer_flits=4).virtual_channels
    2
    """

    virtual_channels: int = count(2, maximum=32)  # Virtual channels of each input
    buffer_flits: int = count(8, maximum=32_767)  # Buffer of each virtual channel. [flits]
    # Cycles of a head through a router and the first cycle of wire behind it. [cycles]
    pipeline_cycles: int = count(3)
    # Cycles from a flit leaving a buffer until the next one can use its place, more than ``pipeline_cycles``.
    # [cycles]
    credit_cycles: int = count(5)
    # Who gets an output: inputs in turn; the packet that has been in the router longest; 8 fixed priorities
    # with the inputs in turn inside each; or inputs by the weights of their flows (fair bandwidth allocation)
    arbitration: str = choice("round_robin", ARBITRATIONS)
    # Whether a packet that has won the switch keeps it while its next flit is there and has a credit: packets
    # are then not interleaved on a link. Otherwise each flit competes anew, and packets in several virtual
    # channels share a link flit by flit. BookSim2's setting of that name, which it leaves off by default; the
    # two differ only with several virtual channels and flits
    hold_switch_for_packet: bool = True

    def _check_relations(self) -> None:
        credit, pipeline = np.asarray(self.credit_cycles), np.asarray(self.pipeline_cycles)
        if np.any(credit <= pipeline):
            raise ValueError(
                "router.credit_cycles must be more than pipeline_cycles = "
                f"{checks.shown(self.pipeline_cycles)}, got {checks.shown(self.credit_cycles)}"
            )


@dataclass(frozen=True, kw_only=True)
class QosRule(Declared, prefix="qos."):
    """Service that certain packets get."""

    # source, target: Nodes the rule is for; -1 for all
    source: int = count(-1, minimum=-1)
    target: int = count(-1, minimum=-1)
    # 0, the highest, to 7; -1 leaves that of the packet class. Used by the arbitration "priority"
    priority: int = count(-1, minimum=-1, maximum=PRIORITIES - 1)
    # Share of an output relative to others that want it. Used by the arbitration "weighted"
    weight: float = positive(1.0)
    # Whether the flow has a path of its own that others wait for (guaranteed throughput)
    circuit: bool = False


@dataclass(frozen=True, kw_only=True)
class PacketClass(Declared, prefix="packet."):
    """One kind of packet in a mix."""

    payload_bytes: int = count(128, minimum=0)  # Bytes beside the header. [bytes]
    # Flits of the packet; 0 derives them from header, payload and link width. [flits]
    flits: int = count(0, minimum=0)
    share: float = positive(1.0)  # Relative frequency: shares are divided by their sum
    priority: int = count(0, minimum=0, maximum=PRIORITIES - 1)  # 0, the highest, to 7
