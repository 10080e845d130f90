"""How far the DRAM model may be trusted: errors measured against simulators, as data beside it."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels._check import FloatArray
from qmodels.systems.dram_system import DramSystem, dram
from qmodels.systems.dram_traffic import RandomBlocks

TABLE = Path(__file__).with_name("dram_error_map.csv")
PATTERNS = Path(__file__).with_name("dram_pattern_errors.csv")
KINDS = ("random", "packets", "spread packets", "stream", "trace")


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


def measured_error(spec: DramSystem, load: Any) -> tuple[Any, dict[str, FloatArray]]:
    """Return whether loads are in the measured range, and the errors at the nearest above. [%].

    Measured are random reads of DDR4-3200, its row hits not counted, with closed and open pages, one and
    two ranks, with and without refresh, oldest ready first or row hits first.
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
        return np.zeros(load.shape, dtype=bool), {}
    loads, mean, late = (np.array(column) for column in zip(*points, strict=True))
    inside = load <= loads[-1] + 1e-9
    at = np.minimum(np.searchsorted(loads, load), loads.size - 1)
    return inside, {"read_latency": mean[at][()], "read_latency_p99": late[at][()]}
