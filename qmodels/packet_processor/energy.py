"""The energy of a packet from the events it causes and the background power of the parts."""

from __future__ import annotations

from qmodels.checks import Numeric
from qmodels.systems.packets.packet_processor import PacketProcessor


def energy_per_packet(
    spec: PacketProcessor,
    *,
    activations: Numeric,
    bursts: Numeric,
    flit_hops: Numeric,
    pointer_accesses: Numeric,
    lookups: Numeric,
    packet_rate: Numeric,
) -> Numeric:
    """Return the energy of one carried packet, in nJ.

    ``activations``, ``bursts``: rows opened and segments moved over a data bus, per carried packet;
    ``flit_hops``: flits per carried packet, each counted once per link it holds; ``pointer_accesses``,
    ``lookups``: pointer-memory accesses, and lookups, per carried packet; lookups cost nothing without
    slices; ``packet_rate``: carried packets, which share the background power [packets/ns].
    """
    price, width = spec.energy, spec.noc.link_width
    dynamic = (
        activations * price.activation_nj
        + bursts * price.burst_nj
        + flit_hops * width * price.hop_pj_per_byte / 1000
        + pointer_accesses * price.pointer_nj
        + lookups * price.lookup_nj * (spec.llc.slices > 0)
    )
    background_mw = (
        spec.channels * price.channel_mw
        + spec.llc.slices * price.slice_mw
        + spec.noc.topology.nodes * (price.router_mw + width * price.router_mw_per_byte)
    )
    return dynamic + background_mw / 1000 / packet_rate
