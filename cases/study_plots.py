"""Pictures of a study: the front with its simulated points, and the error of the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.check import LOAD_OF_THE_CLAIM, half_widths, model_error
from cases.plots import BLUE, GREEN, GREY, ORANGE, label, new_figure, save
from optimize.pareto import FloatArray
from qmodels.systems.metrics import is_relative

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from cases.check import Check
    from cases.study import Part, Study

VIEWS = (("cost", "packet_latency"), ("energy_per_packet", "saturation_throughput"))
"""The two projections of the front that are drawn."""

COMPARED = (
    "packet_latency",
    "packet_latency_p99",
    "lookup_latency",
    "write_latency",
    "read_latency",
    "saturation_throughput",
    "energy_per_packet",
    "pointer_accesses_per_allocation",
    "write_conflict_probability",
    "read_conflict_probability",
    "row_hit_ratio",
    "llc_hit_ratio",
    "max_utilization",
)


def save_plots(study: Study, directory: Path) -> list[Path]:
    """Write the pictures of a study into a directory and return their paths."""
    figures = {"front": front_figure(study)}
    if any(part.check is not None and len(part.check.rows) for part in study.parts):
        figures["errors"] = error_figure(study)
    paths = []
    for name, figure in figures.items():
        for suffix in (".png", ".svg"):
            paths.append(directory / f"{name}{suffix}")
            save(figure, paths[-1])
    return paths


def front_figure(study: Study) -> Figure:
    """Return all designs, the front, its knee and the simulated designs, one row per workload."""
    rows = len(study.parts)
    figure, axes = new_figure(11, 4.2 * rows + 0.5, rows, len(VIEWS))
    for part, pair in zip(study.parts, axes, strict=True):
        for (x, y), one in zip(VIEWS, pair, strict=True):
            _front(one, part, x, y)
    handles: dict[str, Any] = {}
    for one in axes.flat:
        found = one.get_legend_handles_labels()
        handles |= dict(zip(found[1], found[0], strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9
    )
    return figure


def _front(axes: Axes, part: Part, x: str, y: str) -> None:
    exploration, check = part.analysis.exploration, part.check
    table = exploration.table
    shown = table["stable"] & exploration.feasible
    axes.scatter(
        table[x][shown],
        table[y][shown],
        s=7,
        color=GREY,
        linewidths=0,
        rasterized=True,
        label="design (analytic)",
    )
    front = exploration.front
    axes.scatter(
        table[x][front],
        table[y][front],
        s=12,
        color=BLUE,
        linewidths=0,
        rasterized=True,
        label="Pareto front in five objectives (analytic)",
    )
    if check is not None and len(check.rows):
        simulated = check.simulated.table
        for k, row in enumerate(check.rows):
            pair = [[table[name][row], _finite(simulated[name])[k]] for name in (x, y)]
            axes.plot(pair[0], pair[1], color=ORANGE, linewidth=0.8, alpha=0.6)
        axes.errorbar(
            _finite(simulated[x]),
            _finite(simulated[y]),
            xerr=half_widths(simulated, x),
            yerr=half_widths(simulated, y),
            fmt="s",
            ms=5,
            mfc="none",
            color=ORANGE,
            capsize=2,
            elinewidth=1,
            label="simulated with 95 % interval; line to the analytic value",
        )
    if exploration.knee is not None:
        knee = exploration.knee
        axes.scatter(
            table[x][knee],
            table[y][knee],
            marker="*",
            s=190,
            color=GREEN,
            edgecolors="white",
            linewidths=0.8,
            zorder=5,
            label="knee (analytic)",
        )
    budget = part.analysis.budget
    if budget is not None and budget.row is not None:
        axes.scatter(
            table[x][budget.row],
            table[y][budget.row],
            marker="D",
            s=46,
            color="none",
            edgecolors="black",
            zorder=6,
            label="least latency within the budget (MILP, analytic)",
        )
        if x == "cost":
            axes.axvline(budget.limit, color="black", linewidth=0.8, linestyle=":", label="cost budget")
    if y.endswith("latency") and len(front):
        # Designs near saturation would squeeze the front into a corner.
        top = 2.0 * float(np.median(table[y][front]))
        checked = check.simulated.table[y] if check is not None and len(check.rows) else np.zeros(1)
        axes.set_ylim(0, max(top, 1.05 * float(checked.max(where=np.isfinite(checked), initial=0.0))))
    axes.set_xlabel(label(x))
    axes.set_ylabel(label(y))
    axes.set_title(part.name, fontsize=10, loc="left", fontweight="bold")


def _finite(values: FloatArray) -> FloatArray:
    """Return values with NaN, which is not drawn, for the infinite ones of a saturated design."""
    return np.where(np.isfinite(values), values, np.nan)


def error_figure(study: Study) -> Figure:
    """Return the signed error of the model in each metric at each simulated design of each workload."""
    parts = [(part, part.check) for part in study.parts if part.check is not None and len(part.check.rows)]
    figure, axes = new_figure(10, 4.6 * len(parts), len(parts), 1)
    for (part, check), (one,) in zip(parts, axes, strict=True):
        _errors(one, part, check)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _errors(axes: Axes, part: Part, check: Check) -> None:
    table, simulated, rows = part.analysis.exploration.table, check.simulated.table, check.rows
    metrics = [metric for metric in COMPARED if metric in simulated]
    high_load = table["bottleneck_load"][rows] > LOAD_OF_THE_CLAIM
    axes.axvspan(-10, 10, color="#eef4ea", zorder=0)
    axes.axvline(0, color="black", linewidth=0.8)
    errors = {metric: 100 * model_error(metric, table[metric][rows], simulated[metric]) for metric in metrics}
    sizes = np.abs(np.concatenate(list(errors.values())))
    limit = float(np.clip(1.1 * sizes.max(where=np.isfinite(sizes), initial=0.0), 15.0, 100.0))
    spread = np.linspace(0.2, -0.2, len(rows)) if len(rows) > 1 else np.zeros(1)
    for place, error in enumerate(reversed(errors.values())):
        beyond = np.abs(error) > limit
        for chosen, color, marker in ((~high_load, BLUE, "o"), (high_load, ORANGE, "^")):
            kept = chosen & ~beyond
            axes.scatter(
                error[kept],
                (place + spread)[kept],
                color=color,
                marker=marker,
                s=20,
                alpha=0.75,
                linewidths=0,
            )
        for side, align in ((-1, "left"), (1, "right")):
            count = int((beyond & (np.sign(error) == side)).sum())
            if count:
                axes.annotate(
                    f"{count} beyond", (side * limit, place), ha=align, va="center", fontsize=8, color=ORANGE
                )
    axes.scatter([], [], color=BLUE, s=20, label="busiest resource up to 80 % loaded")
    axes.scatter([], [], color=ORANGE, marker="^", s=20, label="busiest resource above 80 % loaded")
    units = ["%" if is_relative(metric) else "points" for metric in reversed(metrics)]
    names = [metric.replace("_", " ") for metric in reversed(metrics)]
    axes.set_yticks(range(len(metrics)), [f"{name} [{u}]" for name, u in zip(names, units, strict=True)])
    axes.set_xlim(-limit, limit)
    axes.set_xlabel(
        "analytic minus simulated [% of the simulated value, or percentage points]; shaded: within 10"
    )
    axes.set_title(
        f"{part.name}: error of the model at {len(rows)} simulated designs",
        fontsize=10,
        loc="left",
        fontweight="bold",
    )
