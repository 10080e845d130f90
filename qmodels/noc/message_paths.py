"""Zero-load time of a message's packets along their path."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.noc.alone import credit_loops, head_times
from qmodels.systems.programs.message_network import service_table, services
from qmodels.systems.programs.messaging import MessageProgram


@dataclass(frozen=True, kw_only=True)
class MessagePath:
    """A path through the network."""

    channels: tuple[int, ...]  # injection, links and ejection
    head: float  # time of a head from the source to the sink, without the cycle it is sent in [cycles]
    response: float  # time of a response, which meets no other traffic [cycles]
    cycles_per_flit: float  # of the narrowest channel
    buffer_flits: int  # buffer of the routers [flits]
    # Cycles by which a packet longer than a buffer waits for credits, each time it has filled one.
    late_cycles: float

    def occupancy(self, flits: int) -> float:
        """Return the cycles for which a packet holds a channel, see `qmodels.noc.alone.busy_times`."""
        return flits * self.cycles_per_flit + (flits - 1) // self.buffer_flits * self.late_cycles

    def latency(self, flits: int) -> float:
        """Return the cycles from sending a packet to its tail's arrival."""
        return self.head + self.occupancy(flits) - self.cycles_per_flit


def message_paths(program: MessageProgram) -> dict[tuple[int, int], MessagePath]:
    """Return the path between each pair of processes that exchange something."""
    table, router = service_table(program), program.router
    _, known = services(program)
    if not known:
        return {}
    heads, loops = head_times(table, router), credit_loops(table, router)
    per_flit = np.asarray(table.channel_cycles_per_flit, dtype=float)
    found = {}
    for number, service in enumerate(known):
        channels = table.path_channel[table.path_start[number] : table.path_start[number + 1]]
        slowest = float(per_flit[channels].max())
        found[service.source, service.target] = MessagePath(
            channels=tuple(channels.tolist()),
            head=float(heads[number]),
            # A response is one flit of a network of its own, in which no link is narrow.
            response=float(heads[number] - np.sum(per_flit[channels] - 1)) + program.costs.response_cycles,
            cycles_per_flit=slowest,
            buffer_flits=router.buffer_flits,
            late_cycles=max(0.0, float(loops[channels].max()) - router.buffer_flits * slowest),
        )
    return found
