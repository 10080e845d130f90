"""Energy of a simulated packet processor: the events that happened, and the parts that were on."""

from __future__ import annotations

from qmodels.systems.packets.packet_processor import PacketProcessor
from validate.packet_processor import counts as c
from validate.packet_processor.resources import POINTER_MEMORY
from validate.packet_processor.run import Run


def energy_per_packet(spec: PacketProcessor, run: Run) -> float:
    """Return the energy of a carried packet [nJ] in a replication; ``inf`` if none was carried.

    Every event is one that the kernel counted as it happened; the pointer memory makes an access in each
    cycle in which it was busy.
    """
    carried = int(run.counts[c.LEFT_PACKETS])
    if carried == 0:
        return float("inf")
    price, width = spec.energy, float(spec.noc.link_width)
    spent = float(run.busy[POINTER_MEMORY] * spec.free_list.clock_ghz * price.pointer_nj)  # [nJ]
    for event, nanojoules in (
        (c.ACTIVATIONS, price.activation_nj),
        (c.BURSTS, price.burst_nj),
        (c.FLIT_HOPS, price.hop_pj_per_byte * width * 1e-3),
        (c.SLICE_ACCESSES, price.lookup_nj),
    ):
        spent += int(run.counts[event]) * float(nanojoules)
    on = float(price.router_mw + price.router_mw_per_byte * width) * spec.noc.topology.nodes  # [mW]
    for part, milliwatts in ((spec.channels, price.channel_mw), (spec.llc.slices, price.slice_mw)):
        on += int(part) * float(milliwatts)
    return (spent + on * run.duration * 1e-3) / carried  # a mW for a ns is a pJ
