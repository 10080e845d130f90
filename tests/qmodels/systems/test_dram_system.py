from __future__ import annotations

from dataclasses import replace

import pytest

from qmodels import DramSystem, dram
from qmodels.packets import Dram
from qmodels.systems.memory.dram_map import DramGeometry
from qmodels.systems.memory.dram_presets import PRESETS
from qmodels.systems.memory.dram_traffic import AddressTrace
from qmodels.systems.spec.text.toml import from_toml, to_toml


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_whole_systems_with_a_source(name):
    spec = dram(name)
    assert spec.timing == PRESETS[name].timing and PRESETS[name].source
    assert from_toml(to_toml(spec), DramSystem) == spec


def test_peak_bandwidth_of_known_devices():
    # 64 bit at 3200 MT/s; 8 channels of 128 bit at 2000 MT/s.
    assert dram("DDR4-3200").peak_gbytes == pytest.approx(25.6)
    assert dram("DDR3-1600").peak_gbytes == pytest.approx(12.8)
    assert dram("HBM2").peak_gbytes == pytest.approx(256.0)
    assert dram("LPDDR4-2400").peak_gbytes == pytest.approx(4.8)
    # Twice 32 bit and once 16 bit, 16 channels of 64 bit, all at 6400 MT/s.
    assert dram("DDR5-6400").peak_gbytes == pytest.approx(51.2)
    assert dram("LPDDR5-6400").peak_gbytes == pytest.approx(12.8)
    assert dram("HBM3").peak_gbytes == pytest.approx(819.2)


def test_bursts_and_pages_are_those_of_the_buses():
    # Bytes of a block over bytes of a channel: words of a burst, at two (LPDDR5: eight, HBM3: four) a cycle.
    for name, width, words, per_cycle, page in (
        ("DDR5-6400", 4, 16, 2, 4 * 1024),
        ("HBM3", 4, 8, 4, 1024),
        ("LPDDR5-6400", 2, 16, 8, 2048),
    ):
        spec = dram(name)
        assert spec.geometry.block_bytes == width * words
        assert spec.timing.burst * per_cycle == words
        assert spec.geometry.row_blocks * spec.geometry.block_bytes == page


@pytest.mark.parametrize("name", PRESETS)
def test_channels_may_be_as_many_as_a_system_has(name):
    assert dram(name, channels=64).geometry.channels == 64


def test_units():
    spec = dram("DDR4-3200")
    assert spec.clock_ghz == pytest.approx(1.6)
    assert spec.gbytes(0.25) == pytest.approx(25.6)
    assert AddressTrace(blocks=(1, 2, 3, 4), writes=(1, 0, 0, 0)).write_fraction == 0.25


def test_unknown_changes_are_named():
    with pytest.raises(ValueError, match="DramSystem has no field 'rank'; did you mean 'geometry.ranks' or"):
        dram("DDR4-3200", rank=2)


def test_derived_times_of_ddr4():
    t = dram("DDR4-3200").timing
    assert (t.row_gap, t.read_cycle, t.write_cycle) == (8.5, 74, 88)
    assert (t.read_to_write, t.write_to_read) == (12, 24)
    assert replace(t, t_faw=0).row_gap == 4
    assert DramGeometry(ranks=2).rank_banks == 16


def test_the_papers_bank():
    dram = Dram()
    assert (dram.banks, dram.burst_cycles, dram.recovery_cycles) == (8, 4, 8)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("policy", ["open", "closed"])
def test_presets_keep_the_row_cycle(preset, policy):
    timing = PRESETS[preset].timing
    dram = Dram.of_preset(preset, page_policy=policy, channels=2)
    cycle = dram.precharge_cycles + dram.burst_cycles + dram.recovery_cycles
    assert cycle == max(timing.t_rc, dram.precharge_cycles + timing.burst)
    assert (dram.channels, dram.clock_ghz) == (2, timing.clock_ghz)
