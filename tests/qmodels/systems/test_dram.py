"""Messages of the DRAM spec."""

from __future__ import annotations

import pytest

from qmodels.systems.memory.dram import Dram
from qmodels.systems.memory.dram_presets import PRESETS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"channels": 0}, "dram.channels must be a whole number from 1 to 16, got 0"),
        ({"channels": 17}, "dram.channels must be a whole number from 1 to 16, got 17"),
        ({"channels": [1, 2.5]}, "dram.channels must be a whole number from 1 to 16, got 2.5"),
        ({"banks": 0}, "dram.banks must be a whole number from 1 to 4096, got 0"),
        ({"interleaving_step": 0}, "dram.interleaving_step must be a whole number from 1 to 1048576, got 0"),
        (
            {"interleaving_step": float("nan")},
            "dram.interleaving_step must be a whole number from 1 to 1048576, got nan",
        ),
        ({"bank_step": -1}, "dram.bank_step must be a whole number from 1 to 1048576, got -1"),
        (
            {"page_policy": "opne"},
            "dram.page_policy must be one of open, closed, got 'opne'; did you mean 'open'?",
        ),
        ({"burst_cycles": 0}, "dram.burst_cycles must be finite and > 0, got 0"),
        ({"recovery_cycles": -1}, "dram.recovery_cycles must be finite and >= 0, got -1"),
        ({"precharge_cycles": float("inf")}, "dram.precharge_cycles must be finite and >= 0, got inf"),
        ({"access_cycles": float("nan")}, "dram.access_cycles must be finite and >= 0, got nan"),
        (
            {"refresh_interval_cycles": 100, "refresh_cycles": 60},
            "dram.refresh_interval_cycles must be at least twice dram.refresh_cycles = 60, got 100",
        ),
        ({"refresh_cycles": -1}, "dram.refresh_cycles must be finite and >= 0, got -1"),
        ({"row_bytes": 0.5}, "dram.row_bytes must be a whole number >= 1, got 0.5"),
        ({"clock_ghz": -0.4}, "dram.clock_ghz must be finite and > 0, got -0.4"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        Dram(**arguments)


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


def test_unknown_preset():
    with pytest.raises(
        ValueError, match="preset must be one of .*, got 'DDR4-3201'; did you mean 'DDR4-3200'?"
    ):
        Dram.of_preset("DDR4-3201")
