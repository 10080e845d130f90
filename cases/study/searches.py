"""What the searches cost and what they missed, beside the exhaustive exploration of the same designs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cases.study.analysis import Analysis, Recall
from cases.study.packet_processor import GREEDY_ORDER
from cases.study.words.section import Section
from optimize.search.explore import explore

HEADINGS = {
    "method": "method",
    "evaluations": "designs solved",
    "seconds": "s besides solving",
    "best": "latency ns",
    "missed": "missed %",
}
"""Headings of the columns of `search_rows`."""


def search_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return one row per method that sought the least latency within the cost budget; none without one.

    The columns are those of `HEADINGS`. Searches are answered from the table of all designs, so that
    ``seconds`` are their own; ``missed`` is how much the best value exceeds the exhaustive one, relative,
    infinite where nothing feasible was found.
    """
    budget, exploration = analysis.budget, analysis.exploration
    if budget is None:
        return []
    least, _ = exploration.subject_to.get("cost", (None, None))
    limits = {**exploration.subject_to, "cost": (least, budget.limit)}

    def row(method: str, evaluations: int, seconds: float, best: float) -> dict[str, Any]:
        found = np.isfinite(best)
        missed = best / budget.latency - 1.0 if found else float(np.isfinite(budget.latency)) * np.inf
        return {
            "method": method,
            "evaluations": evaluations,
            "seconds": seconds,
            "best": best,
            "missed": np.nan_to_num(missed, nan=0.0, posinf=np.inf),
        }

    rows = [row("exhaustive", len(exploration.feasible), 0.0, budget.latency)]
    for method in ("greedy", "coordinate"):
        start = time.perf_counter()
        found = explore(
            exploration.space,
            Recall(exploration),
            minimize="packet_latency",
            subject_to=limits,
            vectorized=True,
            method=method,
            order=GREEDY_ORDER,
        )
        best = found.table["packet_latency"][found.feasible].min(initial=np.inf)
        rows.append(row(method, found.evaluations, time.perf_counter() - start, float(best)))
    return rows


def search_section(analysis: Analysis, title: str, lines: list[str]) -> Section:
    """Return the rows as a table below some sentences."""
    rows = [
        [round(100 * value, 3) if name == "missed" else value for name, value in row.items()]
        for row in search_rows(analysis)
    ]
    return Section(title=title, lines=lines, headings=list(HEADINGS.values()), rows=rows)
