from dataclasses import fields, replace
from math import ceil

import pytest

from qmodels import DramSystem, dram
from qmodels.packets import Dram
from qmodels.systems.memory.dram_map import DramGeometry
from qmodels.systems.memory.dram_system import AddressTrace
from qmodels.systems.memory.dram_timing import PRESETS
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


# Clock in GHz, bytes of a rank's page, then per field the time in ns and the least cycles of the standard,
# or a whole number of cycles where it gives one. Sources, beside the standards:
# DRAMsim3, commit 2981759, configs/; Ramulator 2.1, commit c5b1c3a, python/ramulator/dram/; DRAMSys, commit
# 2107966, configs/memspec/; gem5, commit 1db206b, src/mem/DRAMInterface.py.
TABLES = {
    # JESD79-3F, DDR3-1600K, 8 Gb x8 with pages of 2 KB; DDR3_8Gb_x8_1600.ini, ddr3.py.
    "DDR3-1600": (
        0.8, 8 * 2048, {
            "burst": 4, "t_rcd": (13.75, 0), "cl": 11, "cwl": 8, "t_rp": (13.75, 0), "t_ras": (35.0, 0),
            "t_rrd_s": (7.5, 4), "t_rrd_l": (7.5, 4), "t_faw": (40.0, 0), "t_ccd_l": 4, "t_wtr_s": (7.5, 4),
            "t_wtr_l": (7.5, 4), "t_wr": (15.0, 0), "t_rtp": (7.5, 4), "t_refi": 7800.0, "t_rfc": (350.0, 0),
        },
    ),
    # JESD79-4B, DDR4-3200AA, 8 Gb x8 with pages of 1 KB; DDR4_8Gb_x8_3200.ini, ddr4.py.
    "DDR4-3200": (
        1.6, 8 * 1024, {
            "burst": 4, "t_rcd": (13.75, 0), "cl": 22, "cwl": 16, "t_rp": (13.75, 0), "t_ras": (32.0, 0),
            "t_rrd_s": (2.5, 4), "t_rrd_l": (4.9, 4), "t_faw": (21.0, 20), "t_ccd_l": (5.0, 5),
            "t_wtr_s": (2.5, 2), "t_wtr_l": (7.5, 4), "t_wr": (15.0, 0), "t_rtp": (7.5, 4),
            "t_refi": 7800.0, "t_rfc": (350.0, 0),
        },
    ),
    # JESD209-4, 8 Gb channels; JEDEC_512Mbx16_LPDDR4-2666.json, read and write latency of 1066 to 1333 MHz.
    "LPDDR4-2400": (
        1.2, 2048, {
            "burst": 8, "t_rcd": (18.0, 4), "cl": 24, "cwl": 12, "t_rp": (18.0, 4), "t_ras": (42.0, 3),
            "t_rrd_s": (10.0, 4), "t_rrd_l": (10.0, 4), "t_faw": (40.0, 0), "t_ccd_l": 8,
            "t_wtr_s": (10.0, 8), "t_wtr_l": (10.0, 8), "t_wr": (18.0, 6), "t_rtp": (7.5, 8),
            "t_refi": 3904.0, "t_rfc": (280.0, 0),
        },
    ),
    # JESD235A leaves the array to vendors: HBM2_8Gb_x128.ini, 4 Gb channels; the page is the standard's.
    "HBM2": (
        1.0, 2048, {
            "burst": 2, "t_rcd": 14, "cl": 14, "cwl": 4, "t_rp": 14, "t_ras": 34, "t_rrd_s": 4, "t_rrd_l": 6,
            "t_faw": 30, "t_ccd_l": 2, "t_wtr_s": 6, "t_wtr_l": 8, "t_wr": 16, "t_rtp": 6, "t_refi": 3900.0,
            "t_rfc": (260.0, 0),
        },
    ),
    # HMC2_8GB_4Lx16.ini, whose comment says 3.9 us of a refresh interval of 7.49 us; no standard has these.
    "HMC-vaults": (
        1.25, 256, {
            "burst": 4, "t_rcd": 17, "cl": 17, "cwl": 17, "t_rp": 17, "t_ras": 34, "t_rrd_s": 6, "t_rrd_l": 6,
            "t_faw": 27, "t_ccd_l": 6, "t_wtr_s": 3, "t_wtr_l": 3, "t_wr": 19, "t_rtp": 10,
            "t_refi": 9364 * 0.8, "t_rfc": (336.0, 0),
        },
    ),
    # JESD79-5, DDR5-6400AN, 16 Gb x8 with pages of 1 KB; ddr5.py, DDR5_6400_4x8 of gem5.
    "DDR5-6400": (
        3.2, 4 * 1024, {
            "burst": 8, "t_rcd": (14.375, 0), "cl": 46, "cwl": 44, "t_rp": (14.375, 0), "t_ras": (32.0, 0),
            "t_rrd_s": 8, "t_rrd_l": (5.0, 8), "t_faw": (10.0, 32), "t_ccd_l": (5.0, 8), "t_wtr_s": (2.5, 4),
            "t_wtr_l": (10.0, 16), "t_wr": (30.0, 0), "t_rtp": (7.5, 12), "t_refi": 3900.0,
            "t_rfc": (295.0, 0),
        },
    ),
    # JESD238 leaves the array to vendors: HBM3_6400Mbps of hbm3.py; tRFC of 8 Gb channels.
    "HBM3": (
        1.6, 1024, {
            "burst": 2, "t_rcd": 31, "cl": 20, "cwl": 10, "t_rp": 26, "t_ras": 45, "t_rrd_s": 4, "t_rrd_l": 5,
            "t_faw": 24, "t_ccd_l": 4, "t_wtr_s": 7, "t_wtr_l": 10, "t_wr": 33, "t_rtp": 9, "t_refi": 3900.0,
            "t_rfc": (350.0, 0),
        },
    ),
    # JESD209-5B, 8 Gb, bank groups, CKR 4:1; lpddr5.py, LPDDR5_6400_1x16_BG_BL16 of gem5. Of tRTP gem5 has 4
    # cycles and Ramulator 8: here BL/n of 2 and nRBTP of 4.
    "LPDDR5-6400": (
        0.8, 2048, {
            "burst": 2, "t_rcd": (18.0, 2), "cl": 17, "cwl": 9, "t_rp": (18.0, 2), "t_ras": (42.0, 3),
            "t_rrd_s": (5.0, 2), "t_rrd_l": (5.0, 2), "t_faw": (20.0, 0), "t_ccd_l": 4, "t_wtr_s": (6.25, 4),
            "t_wtr_l": (12.0, 4), "t_wr": (34.0, 3), "t_rtp": 2 + 4, "t_refi": 3900.0, "t_rfc": (210.0, 0),
        },
    ),
    # RubyMemoryControl.py of gem5, January 2013: bank busy 11, bus busy 2, turnaround 2 cycles.
    "gem5-DDR2-800": (0.4, None, {"burst": 2, "t_rc": 11, "t_rtrs": 2, "cl": 0, "t_rcd": 0, "t_faw": 0}),
}  # fmt: skip
UNSTATED = {"clock_ghz", "t_rc", "t_rtrs"}
"""Not in the tables: the clock stands beside them, a row's cycle follows, the bus turns as in a simulator."""


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_the_times_of_its_table(name):
    clock, page, times = TABLES[name]
    preset = PRESETS[name]
    timing, geometry = preset.timing, preset.geometry
    assert timing.clock_ghz == clock
    if page is not None:
        assert geometry.row_blocks * geometry.block_bytes == page
        assert set(times) == {item.name for item in fields(timing)} - UNSTATED
        assert timing.t_ras + timing.t_rp <= timing.t_rc <= timing.t_ras + timing.t_rp + 1
    found = {field: getattr(timing, field) for field in times}
    expected = {
        field: time
        if isinstance(time, int)
        else round(time * clock)  # an interval, the mean of many
        if isinstance(time, float)
        else max(ceil(time[0] * clock - 1e-9), time[1])
        for field, time in times.items()
    }
    assert found == expected
