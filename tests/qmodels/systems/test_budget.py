"""The cost is a sum of priced parts: a price raised by one adds the number of parts."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from qmodels.systems.packets.budget import Cost, Energy
from qmodels.systems.packets.packet_processor import PacketProcessor

BASE = PacketProcessor()
SPEC = replace(
    BASE,
    noc=replace(BASE.noc, initiators=8, link_width=8),
    dram=replace(BASE.dram, channels=3),
    llc=replace(BASE.llc, slices=2, slice_lines=1024),
    free_list=replace(BASE.free_list, segments=2**20, alloc_trial_count=4),
)
# Spidergon of 16 nodes: three links out of each node; 8 engines and 3 channels, in and out.
LINKS = 16 * 3 + 2 * (8 + 3)
PARTS = {
    "channel": 3,
    "router": 16,
    "router_per_byte": 16 * 8,
    "wire_per_byte": LINKS * 8,
    "slice_per_kib": 2 * 64,
    "pointer_per_mib": 8,
    "trial": 3,
}


def test_every_price_has_its_parts():
    assert set(PARTS) == {item.name for item in fields(Cost)}


@pytest.mark.parametrize(("price", "parts"), PARTS.items())
def test_cost_counts_the_parts(price, parts):
    nothing = Cost(**dict.fromkeys(PARTS, 0))
    assert replace(SPEC, cost=nothing).area == 0
    assert replace(SPEC, cost=replace(nothing, **{price: 1})).area == pytest.approx(parts, rel=1e-12)
    dearer = replace(Cost(), **{price: getattr(Cost(), price) + 1})
    assert replace(SPEC, cost=dearer).area == pytest.approx(SPEC.area + parts, rel=1e-12)


def test_a_sweep_is_one_call():
    channels = np.array([1, 2, 4])
    sweep = replace(SPEC, dram=replace(SPEC.dram, channels=channels))
    one_by_one = [replace(SPEC, dram=replace(SPEC.dram, channels=int(c))).area for c in channels]
    assert sweep.area == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize("name", [item.name for item in fields(Energy)])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_energy_messages(name, value):
    with pytest.raises(ValueError, match=rf"^energy.{name} must be finite and >= 0, got {value}$"):
        Energy(**{name: value})


@pytest.mark.parametrize("name", [item.name for item in fields(Cost)])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_cost_messages(name, value):
    with pytest.raises(ValueError, match=rf"^cost.{name} must be finite and >= 0, got {value}$"):
        Cost(**{name: value})
