"""What the searches cost and what they missed, beside the exhaustive exploration of the same designs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from cases.study.analysis import Analysis, Recall, limits_within
from cases.study.packet_processor import GREEDY_ORDER
from cases.study.words.section import Section
from optimize.search.explore import explore

HEADINGS = {
    "method": "method",
    "evaluations": "designs solved",
    "seconds": "s besides solving",
    "best": "latency ns",
    "missed": "missed %",
    "bound": "bound ns",
    "gap": "gap %",
}
"""Headings of the columns of `search_rows`."""


def search_rows(analysis: Analysis) -> list[dict[str, Any]]:
    """Return one row per method that sought the least latency within the cost budget; none without one.

    The columns are those of `HEADINGS`. Searches are answered from the table of all designs, so that
    ``seconds`` are their own; ``missed`` is how much the best value exceeds the exhaustive one, relative,
    infinite where nothing feasible was found. ``bound`` and ``gap`` are None for methods that have none.
    """
    budget, exploration = analysis.budget, analysis.exploration
    if budget is None:
        return []
    limits = limits_within(exploration, budget.limit)

    def row(method: str, evaluations: int, seconds: float, best: float, **known: Any) -> dict[str, Any]:
        found = np.isfinite(best)
        missed = best / budget.exhaustive - 1.0 if found else float(np.isfinite(budget.exhaustive)) * np.inf
        return {
            "method": method,
            "evaluations": evaluations,
            "seconds": seconds,
            "best": best,
            "missed": np.nan_to_num(missed, nan=0.0, posinf=np.inf),
            "bound": None,
            "gap": None,
        } | known

    rows = [
        row("exhaustive", len(exploration.feasible), 0.0, budget.exhaustive, bound=budget.exhaustive, gap=0.0)
    ]
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
    choice = budget.choice
    rows.append(
        row(
            f"exact program ({choice.status})",
            choice.evaluations,
            choice.seconds,
            np.inf if choice.objective is None else choice.objective,
            bound=choice.bound,
            gap=choice.gap,
        )
    )
    return rows


def search_section(analysis: Analysis, title: str, lines: list[str]) -> Section:
    """Return the rows as a table below some sentences."""
    rows = [
        [
            "" if value is None else round(100 * value, 3) if name in ("missed", "gap") else value
            for name, value in row.items()
        ]
        for row in search_rows(analysis)
    ]
    return Section(title=title, lines=lines, headings=list(HEADINGS.values()), rows=rows)
