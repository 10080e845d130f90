"""What the way of a message's packets takes where nobody else sends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.systems.message_network import service_table, services
from qmodels.systems.messaging import MessageProgram

INJECTION = 2
"""From the source to its router. [cycles]"""


@dataclass(frozen=True, kw_only=True)
class MessagePath:
    """A path through the network.

    Parameters
    ----------
    channels : tuple of int
        Injection, links and ejection.
    head : float
        Time of a head from the source to the sink, without the cycle it is sent in. [cycles]
    response : float
        Time of a response, which meets no other traffic. [cycles]
    cycles_per_flit : float
        Of the narrowest channel.
    buffer_flits, credit_cycles : int
        Of the router: a packet longer than a buffer waits for credits.
    """

    channels: tuple[int, ...]
    head: float
    response: float
    cycles_per_flit: float
    buffer_flits: int
    credit_cycles: int

    def occupancy(self, flits: int) -> float:
        r"""Return the cycles for which a packet of *L* flits holds a channel.

        .. math:: L + \lfloor (L - 1) / B \rfloor \max(0, C - B)

        with buffers of *B* flits and a credit loop of *C* cycles; times the cycles of a flit.
        """
        stalls = (flits - 1) // self.buffer_flits * max(0, self.credit_cycles - self.buffer_flits)
        return (flits + stalls) * self.cycles_per_flit

    def latency(self, flits: int) -> float:
        """Return the cycles from sending a packet to its tail's arrival."""
        return self.head + self.occupancy(flits) - self.cycles_per_flit


def message_paths(program: MessageProgram) -> dict[tuple[int, int], MessagePath]:
    """Return the path between each pair of processes that exchange something."""
    table = service_table(program)
    _, known = services(program)
    pipeline = program.router.pipeline_cycles
    found = {}
    for number, service in enumerate(known):
        channels = table.path_channel[table.path_start[number] : table.path_start[number + 1]]
        routers = len(channels) - 1
        cycles = np.asarray(table.channel_cycles_per_flit)[channels]
        wires = float(np.sum(np.asarray(table.channel_delay)[channels]))
        way = INJECTION + pipeline * routers + wires
        found[service.source, service.target] = MessagePath(
            channels=tuple(channels.tolist()),
            head=way + float(np.sum(cycles - 1)),
            response=way + program.costs.response_cycles,
            cycles_per_flit=float(np.max(cycles)),
            buffer_flits=program.router.buffer_flits,
            credit_cycles=program.router.credit_cycles,
        )
    return found
