"""How many held-out simulated designs the 90 % intervals of a decision cover, by workload.

``python -m cases.decision_errors.coverage`` replays studies under every workload kept
(`cases.decision_errors.kept`): the model is solved anew, simulations are looked up, and the intervals of all
designs that the study did not simulate are compared with their simulation. A minute on one core.
"""

from __future__ import annotations

import numpy as np

from cases.decision_errors.kept import METRICS, WORKLOADS, Kept, file_of
from cases.study.packet_processor import DATA
from cases.tables import as_columns, write_table
from optimize.decisions.decision import Decision

FILE = DATA / "decision-coverage.csv"

POINTS, FEW = 80, 40
"""Designs that a study simulates: of thousands, and of the hundred drawn ones."""

EARLY = 5, 10, 20
"""Designs simulated when intervals are looked at early."""

SEEDS = range(4)

COUNTED = METRICS[:-1]
"""All but the overflow, which is 0 in nearly every design."""


def covered(kept: Kept, decision: Decision, metric: str) -> tuple[float, float]:
    """Return the share of held-out designs that keep up and lie within, and the median half-width."""
    table, truth = decision.table, kept.table
    held = ~table["simulated"] & truth["stable"] & np.isfinite(kept.model.table[metric])
    low, high, value = table[f"{metric}_low"][held], table[f"{metric}_high"][held], truth[metric][held]
    return float(np.mean((low <= value) & (value <= high))), float(np.median((high - low) / 2 / value))


def main() -> None:
    """Print and keep the coverage by workload, designs simulated and metric."""
    rows = []
    for workload in filter(lambda name: file_of(name).exists(), WORKLOADS):
        kept = Kept.load(workload)
        for count in (*EARLY, POINTS if workload == WORKLOADS[0] else FEW):
            decisions = [kept.decide(count, seed, noise=False) for seed in SEEDS]
            found = [_row(kept, decisions, metric) for metric in COUNTED]
            mean = np.mean([row["covered"] for row in found])
            print(f"{workload}, {count} simulated: {100 * mean:.1f} % within", flush=True)
            rows += [{"workload": workload, "simulated": count} | row for row in found]
    write_table(FILE, as_columns(rows))


def _row(kept: Kept, decisions: list[Decision], metric: str) -> dict[str, str | int | float]:
    """Return what the intervals of one metric cover in some studies."""
    shares, halves = zip(*(covered(kept, one, metric) for one in decisions), strict=True)
    return {
        "designs": len(kept.table["design"]),
        "studies": len(decisions),
        "metric": metric,
        "covered": round(float(np.mean(shares)), 4),
        "least": round(min(shares), 4),
        "half_width": round(float(np.mean(halves)), 4),
    }


if __name__ == "__main__":
    main()
