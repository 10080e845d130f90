"""The parts of a packet processor, for its drawing."""

from __future__ import annotations

from typing import Any

from qmodels.systems.noc.picture import positions
from qmodels.systems.packets.packet_processor import PacketProcessor


def system(base: PacketProcessor) -> dict[str, Any]:
    """Return what the drawing needs of the base spec; varied fields are taken from the designs."""
    topology = base.noc.topology
    return {
        "initiators": int(base.noc.initiators),
        "network": f"{topology.kind}, {topology.nodes} nodes",
        "places": positions(topology).round(4).tolist(),
        "links": [list(link) for link in topology.links],
        "routers": [int(topology.injects_into(node)) for node in range(topology.nodes)],
        "channels": int(base.channels),
        "slices": int(base.llc.slices),
        "link_width": int(base.noc.link_width),
    }
