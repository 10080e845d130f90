"""The 180 techniques of the data-queueing case: all of them, greedily, and which are Pareto optimal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cases.published.dqm.specs import ORDER, PUBLISHED_SEGMENTS, VMS1, greedy_space, scaled, technique_space
from cases.tables import text_table
from optimize.search.explore import explore
from optimize.spaces.space import Space
from qmodels.systems.packets.data_queueing import DataQueueing

OBJECTIVES = (
    "vms1_overflow_probability",
    "vms2_overflow_probability",
    "vms3_overflow_probability",
    "enqueue_overhead",
    "deletion_overhead",
)
"""The five dimensions of the paper's curve: overflows of the three lists, and both worst cases (sec. 5.3)."""

GREEDY = ("write_conflict_probability", "read_conflict_probability")
"""What the greedy exploration improves, weighted alike, to a tenth of a percent.

The paper judges by its tables of conflicts, which are printed so."""


Rows = tuple[dict[str, Any], ...]

METRICS = (*OBJECTIVES, "allocation_failure_probability", *GREEDY)
"""What is kept of each technique."""


def published_point(space: Space, design: int) -> dict[str, int]:
    """Return a technique as the paper names it: SmallPktSize 0 for a single list, its own Vms1Size."""
    point = dict(space.point(design))
    sizes = {scaled(size, int(space.base.data.segments)): size for size in VMS1}
    point["vms1_size"] = sizes[point["vms1_size"]]
    if point["small_packet_segments"] == 0 or point["vms1_size"] == PUBLISHED_SEGMENTS:
        point |= {"small_packet_segments": 0, "vms1_size": PUBLISHED_SEGMENTS}
    return point


def explore_techniques(
    base: DataQueueing, evaluate: Callable[[DataQueueing], Mapping[str, float]]
) -> tuple[Rows, Rows]:
    """Return what an evaluation finds of the 180 techniques, exhaustively and by the paper's greedy way.

    ``evaluate``: metrics of a technique. Returns the techniques with their metrics and the fronts that they
    are on: ``pareto`` in the five `OBJECTIVES`; ``survivor`` of the paper's rule, which drops a technique
    only if another is better in *all* objectives; ``optimal_overall`` in three numbers: failed allocations of
    all lists together, and both worst cases; the greedy exploration, one path, step by step: the parameter,
    the technique, its conflicts, and whether it was kept.
    """
    exhaustive = explore(technique_space(base), evaluate, minimize=OBJECTIVES)
    known = exhaustive.table
    pareto = np.isin(np.arange(known["design"].size), exhaustive.front)
    costs = np.stack([known[name] for name in OBJECTIVES], axis=1)
    beaten = np.any(np.all(costs[None] < costs[:, None], axis=2), axis=1)
    three = np.stack([known[name] for name in ("allocation_failure_probability", *OBJECTIVES[3:])], axis=1)
    no_worse = np.all(three[None] <= three[:, None], axis=2)
    dominated = np.any(no_worse & np.any(three[None] < three[:, None], axis=2), axis=1)
    fronts = {"pareto": pareto, "survivor": ~beaten, "optimal_overall": ~dominated}
    techniques = tuple(
        {
            **published_point(exhaustive.space, design),
            **{name: float(known[name][row]) for name in METRICS},
            **{name: bool(front[row]) for name, front in fronts.items()},
        }
        for row, design in enumerate(known["design"].tolist())
    )
    return techniques, _greedy(base, evaluate)


def _greedy(base: DataQueueing, evaluate: Callable[[DataQueueing], Mapping[str, float]]) -> Rows:
    def as_printed(spec: DataQueueing) -> dict[str, float]:
        answer = evaluate(spec)
        return {name: round(answer[name], 3) for name in GREEDY}

    greedy = explore(
        greedy_space(base), as_printed, minimize=GREEDY, method="greedy", order=ORDER, weights=[(0.5, 0.5)]
    )
    return tuple(
        {
            "scan": step.field or "start",
            **published_point(greedy.space, step.design),
            **dict(zip(("write", "read"), step.costs, strict=True)),
            "kept": step.kept,
        }
        for step in greedy.history
    )


def greedy_text(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the greedy exploration step by step."""
    lines = [
        [row["scan"], *(row[name] for name in ORDER), f"{100 * row['write']:.1f}", f"{100 * row['read']:.1f}",
         "*" if row["kept"] else ""]
        for row in rows
    ]  # fmt: skip
    headings = ["scan", "trials", "small", "vms1_size", "write %", "read %", "kept"]
    return "Greedy exploration in the paper's order (simulated)\n" + text_table(headings, lines)


def front_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the techniques that are optimal in failures and worst cases."""
    optimal, left, overall = (
        [row for row in rows if row[flag]] for flag in ("pareto", "survivor", "optimal_overall")
    )
    shown = (
        ("allocation_failure_probability", 100.0),
        ("enqueue_overhead", 1.0),
        ("deletion_overhead", 1.0),
        ("write_conflict_probability", 100.0),
        ("read_conflict_probability", 100.0),
    )
    # Grid points that are the same single list are shown once.
    lines = {
        tuple(row[name] for name in ORDER): [f"{factor * row[name]:.2f}" for name, factor in shown]
        for row in overall
    }
    headings = ["trials", "small", "vms1_size", "failures %", "enqueue", "deletion", "write %", "read %"]
    title = (
        f"Of {len(rows)} techniques {len(optimal)} are Pareto optimal in five objectives, {len(left)} are "
        f"left by the paper's rule, {len(overall)} are optimal in failures and both worst cases (simulated; "
        "worst cases in SRAM cycles):"
    )
    return title + "\n" + text_table(headings, [[*point, *values] for point, values in lines.items()])
