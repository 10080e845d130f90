"""Area and energy of DRAM channels by their standard."""

from dataclasses import replace

import pytest

from qmodels.systems.memory.dram_power import DEVICES, channel_price
from qmodels.systems.memory.dram_system import Dram, dram
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.packets.packet_processor import Cost, Energy, PacketProcessor


@pytest.mark.parametrize("name", DEVICES)
def test_prices_are_of_the_size_that_is_published(name):
    """Column accesses take 0.5 to 8 pJ/bit; an open row costs less than ten blocks of data."""
    spec = dram(name)
    price = channel_price(spec)
    assert 0.5 < price.burst_nj / (8 * spec.geometry.block_bytes) * 1000 < 8
    assert 0 < price.activation_nj < 10 * price.burst_nj and price.background_mw > 0
    assert 0.03 < price.area_mm2 / (spec.peak_gbytes / spec.geometry.channels) < 0.4


def test_stacked_memory_takes_less_of_all_than_modules():
    module, stack = channel_price(dram("DDR4-3200")), channel_price(dram("HBM2"))
    assert all(getattr(stack, name) < getattr(module, name) for name in vars(module))


def test_prices_follow_blocks_of_several_bursts_and_ranks():
    once, twice = channel_price(dram("HBM3")), channel_price(dram("HBM3").in_blocks(64))
    assert twice.burst_nj == pytest.approx(2 * once.burst_nj) and twice.area_mm2 == once.area_mm2
    assert channel_price(dram("HBM3", ranks=2)).background_mw == pytest.approx(2 * once.background_mw)


def test_devices_without_a_preset_have_no_price():
    assert channel_price(dram("DDR4-3200", t_rfc=0, t_refi=0)) is None
    assert channel_price(dram("gem5-DDR2-800")) is None and set(DEVICES) < set(PRESETS)


@pytest.mark.parametrize("name", ["DDR3-1600", "DDR4-3200", "DDR5-6400", "HBM2"])
def test_a_packet_processor_pays_for_the_devices_it_has(name):
    memory, usual = dram(name, channels=2), Cost().channel
    spec, plain = PacketProcessor(dram=memory), PacketProcessor(dram=Dram(channels=2))
    own = channel_price(memory).area_mm2
    assert spec.area == pytest.approx(plain.area + 2 * (own - usual))
    assert replace(spec, cost=Cost(channel=1.5)).area == pytest.approx(plain.area + 2 * (1.5 - usual))
    energy, _ = replace(spec, energy=Energy(burst_nj=1.5)).prices
    assert energy.burst_nj == 1.5 and energy.activation_nj == channel_price(memory).activation_nj
