"""The exact program on spaces of three sizes, beside the exhaustive exploration of the two that can be.

``python -m cases.study.exact_sizes`` solves every question of `QUESTIONS` and writes
``cases/data/exact-sizes.csv``; with ``default``, ``full`` or ``fine`` that space only, the rows of the others
are kept. Of the small-packets workload; some five minutes on one core, of which the fine space takes four.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cases.study.exact import FINE_CHOICES, exact_case
from cases.study.packet_processor import (
    CHOICES,
    DATA,
    FULL_CHOICES,
    default_processor,
    default_space,
    solved_columns,
)
from cases.tables import columns_of, read_rows, write_table
from optimize.spaces.running import Plan, Runner
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor

FILE = DATA / "exact-sizes.csv"

SPACES: dict[str, Mapping[str, Iterable[Any]]] = {
    "default": CHOICES,
    "full": FULL_CHOICES,
    "fine": FINE_CHOICES,
}

QUESTIONS: tuple[tuple[str, dict[str, tuple[float | None, float | None]]], ...] = (
    ("packet_latency", {"cost": (None, 30.0), "overflow_probability": (None, 1e-3)}),
    ("cost", {"packet_latency_p99": (None, 800.0), "overflow_probability": (None, 1e-3)}),
)
"""What is minimised, and the ranges that hold meanwhile."""

OPTIONS: dict[str, dict[str, Any]] = {"default": {}, "full": {}, "fine": {"gap": 0.1}}
"""How closely the best design is sought."""

METRICS = ("packet_latency", "packet_latency_p99", "cost", "overflow_probability", "stable")


def exhaustive(space: Space) -> list[float]:
    """Return the least value of every question by looking at every design of a space."""

    def needed(spec: PacketProcessor) -> dict[str, Any]:
        columns = solved_columns(spec)
        return {name: columns[name] for name in METRICS}

    plan = Plan(space=space, evaluate=needed, vectorized="grid")
    table, _ = Runner(plan=plan).run(space.numbers(None))
    best = []
    for objective, limits in QUESTIONS:
        good = table["stable"].copy()
        for metric, (_, high) in limits.items():
            good &= table[metric] <= high
        best.append(float(table[objective][good].min(initial=np.inf)))
    return best


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return one row per question for a space."""
    space = default_space(default_processor(), choices=SPACES[name])
    start = time.process_time()
    references = exhaustive(space) if name != "fine" else [float("nan")] * len(QUESTIONS)
    spent = time.process_time() - start
    rows = []
    for (objective, limits), reference in zip(QUESTIONS, references, strict=True):
        start = time.process_time()
        found = exact_case(space, minimize=objective, subject_to=limits, **OPTIONS[name])
        rows.append(
            {
                "space": name,
                "designs": space.size,
                "minimize": objective,
                "limits": "; ".join(f"{metric} <= {high:g}" for metric, (_, high) in limits.items()),
                "exhaustive": reference,
                "exhaustive_cpu_seconds": round(spent, 1) if name != "fine" else float("nan"),
                "best": found.objective,
                "bound": found.bound,
                "gap": found.gap,
                "status": found.status,
                "evaluations": found.evaluations,
                "programs": found.solves,
                "cpu_seconds": round(time.process_time() - start, 1),
                "by_tables_alone": found.proposed_objective,
                "table_error_mean": found.errors[0].mean,
                "table_error_largest": found.errors[0].largest,
                "rests_on": found.rests_on,
            }
        )
        print({key: rows[-1][key] for key in ("space", "minimize", "best", "gap", "evaluations")}, flush=True)
    return rows


def main(names: list[str]) -> None:
    """Solve the named spaces and write the table."""
    known = read_rows(FILE) if FILE.exists() else []
    for name in names or list(SPACES):
        rows = rows_of(name)
        known = [row for row in known if row["space"] != name] + rows
        known.sort(key=lambda row: (row["designs"], row["minimize"] != "packet_latency"))
        write_table(FILE, columns_of(known))


if __name__ == "__main__":
    main(sys.argv[1:])
