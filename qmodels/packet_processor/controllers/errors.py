"""Where the model with a memory behind controllers says nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.traffic.arrivals import OnOff, Recorded

DEVICES = ("DDR4-3200", "DDR5-6400")
"""Presets with whose timings it was measured."""
TRIALS_LOAD = 0.55
"""Load from which trials, which the followed sample does without, save so many conflicts that it shows."""


def behind_controllers(c: Columns, load: FloatArray) -> dict[str, npt.NDArray[np.bool_]]:
    """Reasons why designs are unlike those that were simulated, and which designs."""
    memory: Any = c.spec.dram
    known = any(memory.timing == PRESETS[name].timing for name in DEVICES)
    plan = memory.address_map
    permuted = isinstance(plan, Interleaved) and plan.permute != "none"
    everywhere = np.ones(load.shape, dtype=bool)
    return {
        f"timings of a memory other than {' or '.join(DEVICES)}": everywhere & (not known),
        "closed pages behind controllers: saturation up to 27 % off": everywhere & c.closed_pages,
        "banks that are permuted by the row": everywhere & permuted,
        "a scheduler other than fr-fcfs": everywhere & (memory.scheduler != "fr-fcfs"),
        "lists for small packets with a memory behind controllers": c.small > 0,
        f"several trials over banks in turn, above {TRIALS_LOAD:.0%}: latency up to 31 % too high": (
            (c.trials > 1) & (c.bank_step < c.row_blocks) & (load > TRIALS_LOAD)
        ),
        "bursts with a memory behind controllers": everywhere
        & isinstance(c.spec.workload.arrivals, OnOff | Recorded),
    }
