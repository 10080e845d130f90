"""Pictures of a study: the front with its simulated points, and the error of the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.plots import BLUE, GREEN, GREY, ORANGE, label, new_figure, save
from cases.study.check import LOAD_OF_THE_CLAIM, Check, half_widths, model_error
from cases.study.parts import Part, Study
from cases.study.several_picture import several_figure
from cases.tables import many
from optimize.search.pareto import FloatArray
from optimize.spaces.numbering import Columns
from qmodels.systems.spec.metrics import is_relative

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

VIEWS = (("cost", "packet_latency_p99"), ("cost", "saturation_data_rate"))
"""The two projections of the front that are drawn."""

COMPARED = (
    "packet_latency",
    "packet_latency_p99",
    "lookup_latency",
    "write_latency",
    "read_latency",
    "saturation_data_rate",
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
    together = several_figure(study)
    if together is not None:
        figures["traffic"] = together
    paths = []
    for name, figure in figures.items():
        for suffix in (".png", ".svg"):
            paths.append(directory / f"{name}{suffix}")
            save(figure, paths[-1])
            figure.set_layout_engine("none")  # laid out once: the other file is the same picture
    return paths


def front_figure(study: Study) -> Figure:
    """Return all designs, the front, the starred and the simulated designs, one row per workload."""
    rows = len(study.parts)
    figure, axes = new_figure(11, 4.2 * rows + 0.5, rows, len(VIEWS))
    for part, pair in zip(study.parts, axes, strict=True):
        for (x, y), one in zip(VIEWS, pair, strict=True):
            _View(one, part, x, y).draw()
    handles: dict[str, Any] = {}
    for one in axes.flat:
        found = one.get_legend_handles_labels()
        handles |= dict(zip(found[1], found[0], strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=2, frameon=False, fontsize=9
    )
    return figure


def latency_limit(part: Part, metric: str) -> float:
    """Return where the axis of a latency ends: near saturation it would squeeze the front into a corner."""
    table, front = part.analysis.exploration.table, part.analysis.exploration.front
    middle = float(np.median(table[metric][front]))
    checked = part.check.simulated.table.get(metric, np.zeros(0)) if part.check is not None else np.zeros(0)
    largest = float(checked.max(where=np.isfinite(checked), initial=0.0))
    return min(max(2.0 * middle, 1.08 * largest), 5.0 * middle)


LOOKS: dict[str, dict[str, Any]] = {
    "design (analytic)": {"s": 7, "color": GREY, "linewidths": 0, "rasterized": True},
    "saturated by the model (a latency stands at the edge)": {
        "marker": "x", "s": 9, "color": GREY, "linewidths": 0.7, "rasterized": True,
    },
    "Pareto front (analytic)": {
        "s": 12, "color": BLUE, "linewidths": 0, "rasterized": True,
    },
    "simulated: beyond the axis": {
        "marker": "^", "s": 42, "facecolors": "none", "edgecolors": ORANGE, "zorder": 6,
    },
    "simulated: saturated (a latency stands at the edge)": {
        "marker": "^", "s": 42, "facecolors": ORANGE, "edgecolors": ORANGE, "zorder": 6,
    },
    "knee of the model, contradicted: not recommended": {
        "marker": "X", "s": 70, "color": "black", "edgecolors": "white", "linewidths": 0.8, "zorder": 5,
    },
    **dict.fromkeys(
        ("starred: best simulated", "starred: knee (analytic)"),
        {"marker": "*", "s": 190, "color": GREEN, "edgecolors": "white", "linewidths": 0.8, "zorder": 7},
    ),
}  # fmt: skip
"""What each kind of mark looks like, by its words in the legend."""

SIMULATED: dict[str, Any] = {
    "fmt": "s", "ms": 5, "mfc": "none", "color": ORANGE, "capsize": 2, "elinewidth": 1,
}  # fmt: skip
"""What simulated designs look like, with their intervals."""


class _View:
    """One projection of the designs of a part onto two metrics."""

    def __init__(self, axes: Axes, part: Part, x: str, y: str) -> None:
        self.axes, self.part, self.x, self.y = axes, part, x, y
        self.table = part.analysis.exploration.table
        front = part.analysis.exploration.front
        self.top = latency_limit(part, y) if "latency" in y and len(front) else None

    def draw(self) -> None:
        """Draw all designs, the front, the simulated designs and what is starred."""
        exploration, axes = self.part.analysis.exploration, self.axes
        self._dots("design (analytic)", exploration.feasible)
        self._mark("saturated by the model (a latency stands at the edge)", self.table, ~self.table["stable"])
        self._dots("Pareto front (analytic)", exploration.front)
        if self.part.check is not None and len(self.part.check.rows):
            self._simulated(self.part.check)
        self._stars()
        if self.top is not None:
            axes.set_ylim(0, self.top)
        axes.set_xlabel(label(self.x))
        axes.set_ylabel(label(self.y))
        axes.set_title(self.part.name, fontsize=10, loc="left", fontweight="bold")

    def _dots(self, text: str, rows: Any) -> None:
        """Draw designs by their analytic values, those inside the axes."""
        self.axes.scatter(self.table[self.x][rows], self.table[self.y][rows], label=text, **LOOKS[text])

    def _mark(self, text: str, table: Columns, rows: Any) -> None:
        """Draw rows of a table, if there are any; at its edge what is beyond the axis, or infinite."""
        x, y = table[self.x][rows], table[self.y][rows]
        if len(x):
            inside = y if self.top is None else np.minimum(y, self.top)
            self.axes.scatter(x, inside, clip_on=False, label=text, **LOOKS[text])

    def _simulated(self, check: Check) -> None:
        """Draw the simulated designs, each with a line to its analytic value."""
        x, y, top, simulated = self.x, self.y, self.top, check.simulated.table
        stable = simulated["stable"] | simulated["undecided"]
        beyond = stable & (simulated[y] > (np.inf if top is None else top))
        for k, row in enumerate(check.rows):
            ends = [self.table[y][row], simulated[y][k]]
            # An axis without an end has finite values only.
            heights = ends if top is None else np.minimum(ends, top)
            places = [self.table[x][row], simulated[x][k]]
            self.axes.plot(places, heights, color=ORANGE, linewidth=0.8, alpha=0.6)
        inside = stable & ~beyond
        self.axes.errorbar(
            simulated[x][inside],
            simulated[y][inside],
            xerr=half_widths(simulated, x)[inside],
            yerr=half_widths(simulated, y)[inside],
            label="simulated with 90 % interval; line to the analytic value",
            **SIMULATED,
        )
        self._mark("simulated: beyond the axis", simulated, beyond)
        self._mark("simulated: saturated (a latency stands at the edge)", simulated, ~stable)

    def _stars(self) -> None:
        """Draw the recommended design, and the knee of the model where that is another."""
        star, check, knee = self.part.star, self.part.check, self.part.analysis.exploration.knee
        if knee is not None and star.against_knee:
            self._mark("knee of the model, contradicted: not recommended", self.table, [knee])
        if star.row is not None and star.by_simulation and check is not None:
            self._mark("starred: best simulated", check.simulated.table, check.rows == star.row)
        elif star.row is not None:
            self._mark("starred: knee (analytic)", self.table, [star.row])


def error_figure(study: Study) -> Figure:
    """Return the signed error of the model in each metric at each simulated design of each workload."""
    parts = [(part, part.check) for part in study.parts if part.check is not None and len(part.check.rows)]
    figure, axes = new_figure(10, 4.6 * len(parts), len(parts), 1)
    for (part, check), (one,) in zip(parts, axes, strict=True):
        _errors(one, part, check)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _beyond(axes: Axes, error: FloatArray, limit: float, height: float) -> None:
    """Write at each edge how many errors are beyond it, or infinite."""
    for side, align in ((-1, "left"), (1, "right")):
        mine = error[np.sign(error) == side]
        infinite = int(np.isinf(mine).sum())
        finite = int((np.abs(mine) > limit).sum()) - infinite
        words = [f"{count} {what}" for count, what in ((finite, "beyond"), (infinite, "infinite")) if count]
        if words:
            spot = (side * limit, height)
            axes.annotate(f" {', '.join(words)} ", spot, ha=align, va="center", fontsize=7, color=ORANGE)


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
        beyond, heights = np.abs(error) > limit, place + spread
        for chosen, color, marker in ((~high_load, BLUE, "o"), (high_load, ORANGE, "^")):
            kept, edge = chosen & ~beyond, chosen & beyond
            look: dict[str, Any] = {"color": color, "linewidths": 0}
            axes.scatter(error[kept], heights[kept], marker=marker, s=20, alpha=0.75, **look)
            ends = limit * np.sign(error[edge])
            axes.scatter(ends, heights[edge], marker="X", s=26, clip_on=False, zorder=5, **look)
        _beyond(axes, error, limit, place - 0.34)
    axes.scatter([], [], color=BLUE, s=20, label="busiest resource up to 80 % loaded")
    axes.scatter([], [], color=ORANGE, marker="^", s=20, label="busiest resource above 80 % loaded")
    if any((np.abs(error) > limit).any() for error in errors.values()):
        axes.scatter(
            [],
            [],
            color="black",
            marker="X",
            s=26,
            label="beyond the axis, or infinite: saturated by one of the two",
        )
    units = ["%" if is_relative(metric) else "points" for metric in reversed(metrics)]
    names = [metric.replace("_", " ") for metric in reversed(metrics)]
    axes.set_yticks(range(len(metrics)), [f"{name} [{u}]" for name, u in zip(names, units, strict=True)])
    axes.set_xlim(-limit, limit)
    axes.set_xlabel(
        "analytic minus simulated [% of the simulated value, or percentage points]; shaded: within 10"
    )
    axes.set_title(
        f"{part.name}: error of the model at {many(len(rows), 'simulated design')}",
        fontsize=10,
        loc="left",
        fontweight="bold",
    )
