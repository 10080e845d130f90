"""The measured error of the NUMA model by kind of machine."""

from __future__ import annotations

from pathlib import Path

from qmodels.evidence.error_map import ErrorMap, MeasuredError
from qmodels.systems.memory.numa import NumaMachine

ERRORS = ErrorMap(Path(__file__).with_name("error_map.csv"))


def kind_of(machine: NumaMachine) -> str:
    """Return the region of a machine in the error map, its placement and buffering; empty if it has none.

    Not measured: more than 16 cores, single buffers with constant computing, whose order never mixes,
    or with loads from global memory or a placement per core, and computing that varies more than an
    exponential time.
    """
    work = machine.work
    if machine.chip.cores > 16 or work.compute_scv > 1:
        return ""
    if work.double_buffering:
        return f"{work.placement}, double{' with loads' if work.global_loads else ''}"
    if not work.compute_scv or work.global_loads or work.placement == "per-core":
        return ""
    return f"{work.placement}, single"


def measured_error(machine: NumaMachine) -> dict[str, MeasuredError]:
    """Return the errors over machines of the same kind, by metric; empty where nothing was measured."""
    return ERRORS.at(region=kind_of(machine))
