"""The measured error of the NUMA model by kind of machine (``cases.published.srp.accuracy``)."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from qmodels.systems.memory.numa import NumaMachine

FILE = Path(__file__).with_name("numa_error_map.csv")


@cache
def _kinds() -> dict[tuple[str, str], tuple[float, float]]:
    """Return the mean and the largest size of the error [%] by placement and buffering."""
    with open(FILE, newline="", encoding="utf-8") as file:
        return {
            (row["placement"], row["buffering"]): (float(row["mean"]), float(row["largest"]))
            for row in csv.DictReader(file)
        }


def kind_of(machine: NumaMachine) -> tuple[str, str] | None:
    """Return the kind of a machine in the error map, None for what was not measured.

    Not measured: more than 16 cores, single buffers with constant computing, whose order never mixes,
    or with loads from global memory or a placement per core, and computing that varies more than an
    exponential time.
    """
    work = machine.work
    if machine.chip.cores > 16 or work.compute_scv > 1:
        return None
    if work.double_buffering:
        return work.placement, "double with loads" if work.global_loads else "double"
    if not work.compute_scv or work.global_loads or work.placement == "per-core":
        return None
    return work.placement, "single"


def measured_error(machine: NumaMachine) -> tuple[float, float] | None:
    """Return mean and largest size of the error of the execution time over machines of the same kind. [%].

    None where nothing was measured.
    """
    kind = kind_of(machine)
    return None if kind is None else _kinds().get(kind)
