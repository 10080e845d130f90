"""The model's energy is a sum of priced events: a price raised by one adds the number of events."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from qmodels import PacketProcessor
from qmodels.packet_processor.energy import energy_per_packet
from qmodels.packets import Energy

BASE = PacketProcessor()
SPEC = replace(
    BASE,
    noc=replace(BASE.noc, initiators=8, link_width=8),
    dram=replace(BASE.dram, channels=3),
    llc=replace(BASE.llc, slices=2, slice_lines=1024),
)
EVENTS = {
    "activations": 2.0,
    "bursts": 10.0,
    "flit_hops": 500.0,
    "pointer_accesses": 20.0,
    "lookups": 4.0,
    "packet_rate": 0.01,
}

PER_PACKET = {
    "activation_nj": 2,
    "burst_nj": 10,
    "hop_pj_per_byte": 500 * 8 / 1000,
    "pointer_nj": 20,
    "lookup_nj": 4,
    # A milliwatt during the 100 ns between packets is 0.1 nJ.
    "channel_mw": 3 * 0.1,
    "slice_mw": 2 * 0.1,
    "router_mw": 16 * 0.1,
    "router_mw_per_byte": 16 * 8 * 0.1,
}


def test_every_price_has_its_events():
    assert set(PER_PACKET) == {item.name for item in fields(Energy)}


@pytest.mark.parametrize(("price", "parts"), PER_PACKET.items())
def test_energy_counts_the_events(price, parts):
    nothing = Energy(**dict.fromkeys(PER_PACKET, 0))
    assert energy_per_packet(replace(SPEC, energy=nothing), **EVENTS) == 0
    assert energy_per_packet(replace(SPEC, energy=replace(nothing, **{price: 1})), **EVENTS) == pytest.approx(
        parts, rel=1e-12
    )


def test_lookups_without_slices_cost_no_slice_energy():
    without = replace(SPEC, llc=replace(SPEC.llc, slices=0))
    only_lookups = Energy(**dict.fromkeys(PER_PACKET, 0) | {"lookup_nj": 1})
    assert energy_per_packet(replace(without, energy=only_lookups), **EVENTS) == 0
