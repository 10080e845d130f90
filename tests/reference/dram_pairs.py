"""Read what was measured of DRAMsim3 and Ramulator (dram_latency.csv) for tests and the error map."""

import csv
from dataclasses import dataclass
from pathlib import Path

from qmodels.systems.memory.dram_system import DramSystem, RandomBlocks, dram

OVERHEAD = {"DRAMsim3": 1, "Ramulator 1": 0}
"""Cycles that an access spends in the controller of each before its first command can be given."""


@dataclass(frozen=True)
class Pair:
    """A system and its mean and 99th percentile read latency by simulator, without their overhead."""

    spec: DramSystem
    refresh: bool
    mean: dict[str, float]
    standard_error: dict[str, float]
    p99: dict[str, float]
    per_second: dict[str, float]


def pairs() -> list[Pair]:
    """Return all points."""
    with Path(__file__).with_name("dram_latency.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    points: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        names = ("page_policy", "ranks", "refresh", "row_hits", "writes", "arrival_rate")
        points.setdefault(tuple(row[name] for name in names), []).append(row)
    found = []
    for (policy, ranks, refresh, hits, writes, rate), both in points.items():
        spec = dram(
            "DDR4-3200",
            ranks=int(ranks),
            page_policy=policy,
            traffic=RandomBlocks(
                arrival_rate=float(rate), row_hit_probability=float(hits), write_fraction=float(writes)
            ),
            **({} if refresh == "1" else {"t_refi": 0, "t_rfc": 0}),
        )
        by = {row["simulator"]: row for row in both}
        found.append(
            Pair(
                spec=spec,
                refresh=refresh == "1",
                mean={name: float(row["mean_latency"]) - OVERHEAD[name] for name, row in by.items()},
                standard_error={name: float(row["standard_error"]) for name, row in by.items()},
                p99={name: float(row["latency_p99"]) - OVERHEAD[name] for name, row in by.items()},
                per_second={
                    name: 1.1 * int(row["requests"]) / float(row["seconds"]) for name, row in by.items()
                },
            )
        )
    return found
