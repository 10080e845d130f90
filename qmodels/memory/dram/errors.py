"""How far the DRAM model may be trusted: errors measured against simulators, as data beside it."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_presets import PRESETS
from qmodels.systems.memory.dram_system import DramSystem, dram
from qmodels.systems.memory.dram_timing import abstract
from qmodels.systems.memory.dram_traffic import (
    AddressTrace,
    DramTraffic,
    Packets,
    RandomBlocks,
    StridedBlocks,
)

TABLE = Path(__file__).with_name("dram_error_map.csv")
PATTERNS = Path(__file__).with_name("dram_pattern_errors.csv")
KINDS = ("random", "packets", "spread packets", "stream", "trace")
MOST_WAIT, MOST_CONFLICTS = 5.0, 2.0
"""Largest error of the mean wait, in %, and of the conflicts, in points, of what counts as validated."""


@cache
def _table() -> dict[tuple[str, int, bool], list[tuple[float, float, float]]]:
    """Return (load, error of the mean, error of the 99th percentile) by page policy, ranks, refresh."""
    table: dict[tuple[str, int, bool], list[tuple[float, float, float]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = row["page_policy"], int(row["ranks"]), row["refresh"] == "1"
            point = float(row["load"]), float(row["read_latency"]), float(row["read_latency_p99"])
            table.setdefault(key, []).append(point)
    return table


@cache
def _patterns() -> dict[tuple[str, str, bool], list[dict[str, float]]]:
    """Return the errors by load of a scheduler in or out of order, a kind of traffic, refresh or not."""
    table: dict[tuple[str, str, bool], list[dict[str, float]]] = {}
    with PATTERNS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = row.pop("scheduler"), row.pop("traffic"), row.pop("refresh") == "1"
            table.setdefault(key, []).append({name: float(value) for name, value in row.items()})
    return table


def kind_of(traffic: DramTraffic) -> str:
    """Return which of `KINDS` a traffic is."""
    if isinstance(traffic, Packets):
        return "spread packets" if traffic.spacing and traffic.blocks > 1 else "packets"
    return {RandomBlocks: "random", StridedBlocks: "stream", AddressTrace: "trace"}[type(traffic)]


def _drawn(spec: DramSystem) -> bool:
    """Return whether a system is one of those that `PATTERNS` was measured on a sample of."""
    t, g, plan, traffic = spec.timing, spec.geometry, spec.address_map, spec.traffic
    banks = g.groups, g.banks
    preset = any(
        t in (p.timing, replace(p.timing, t_refi=0, t_rfc=0))
        and banks == (p.geometry.groups, p.geometry.banks)
        for p in PRESETS.values()
    )
    only_banks = t == abstract(burst=t.burst, bank_busy=t.t_rc, latency=t.cl, clock_ghz=t.clock_ghz)
    return (
        (preset or (only_banks and 2 <= t.t_rc / t.burst <= 5 and banks == (1, 8)))
        and traffic.write_fraction == 0
        and g.ranks == 1
        and g.channels <= 4
        and (
            isinstance(traffic, RandomBlocks)
            or (isinstance(plan, Interleaved) and plan.step <= 8 and plan.bank_step <= 32)
        )
        and (not isinstance(traffic, Packets) or (traffic.blocks <= 24 and traffic.spacing <= 6))
        and (not isinstance(traffic, StridedBlocks) or traffic.stride <= 16)
        # Those drawn are random; what others do to banks may be anything.
        and not isinstance(traffic, AddressTrace)
    )


def _measured_on_patterns(spec: DramSystem, load: Any) -> tuple[Any, dict[str, FloatArray]]:
    scheduler = "in-order" if spec.scheduler == "in-order" else "ready"
    points = _patterns().get((scheduler, kind_of(spec.traffic), spec.timing.t_rfc > 0), [])
    if not points or not _drawn(spec):
        return np.zeros(load.shape, dtype=bool), {}
    good = np.array(
        [
            point["overloaded"] == 0
            and point["largest_wait"] <= MOST_WAIT
            and point["largest_conflicts"] <= MOST_CONFLICTS
            for point in points
        ]
    )
    loads = np.array([point["load"] for point in points])
    at = np.minimum(np.searchsorted(loads, load - 1e-9), loads.size - 1)
    inside = (load <= loads[-1] + 1e-9) & good[at]
    errors = {}
    for name in ("read_latency", "read_latency_p99"):
        largest = np.array([point[f"largest_{name}"] for point in points])
        errors[name] = np.where(load <= loads[-1] + 1e-9, largest[at], np.nan)[()]
    return inside, errors


def measured_error(spec: DramSystem, load: Any) -> tuple[Any, dict[str, FloatArray]]:
    """Return whether loads are in the measured range, and the errors at the nearest above. [%].

    Measured are random reads of DDR4-3200, its row hits not counted, with closed and open pages, one and
    two ranks, with and without refresh, oldest ready first or row hits first. Of other random reads, packets
    and streams a sample was measured; its loads count as in the range where all of it was within `MOST_WAIT`
    and `MOST_CONFLICTS` and none was overloaded in the simulation.
    """
    load = np.asarray(load, dtype=float)
    t = spec.timing
    measured = dram("DDR4-3200", t_refi=t.t_refi, t_rfc=t.t_rfc).timing
    like = (
        isinstance(spec.traffic, RandomBlocks)
        and spec.traffic.write_fraction == 0
        and spec.traffic.row_hit_probability == 0
        and spec.scheduler != "in-order"
        and spec.timing == measured
        and (spec.geometry.groups, spec.geometry.banks) == (4, 4)
        and (t.t_refi, t.t_rfc) in ((12480, 560), (0, 0))
    )
    points = sorted(_table().get((spec.page_policy, spec.geometry.ranks, t.t_rfc > 0), ()))
    if not like or not points:
        return _measured_on_patterns(spec, load)
    loads, mean, late = (np.array(column) for column in zip(*points, strict=True))
    inside = load <= loads[-1] + 1e-9
    at = np.minimum(np.searchsorted(loads, load), loads.size - 1)
    return inside, {"read_latency": mean[at][()], "read_latency_p99": late[at][()]}
