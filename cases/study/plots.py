"""The picture of a study: latency over cost, the front a line, the star, simulated designs with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.study.goals import choice_word, words
from cases.study.study import Part, Study
from cases.tables import GREEN, GREY, new_figure, save
from optimize.search.pareto import FloatArray, nondominated
from qmodels.systems.spec.conditions import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#e45756", "#72b7b2", "#eeca3b")
"""Colours of the choices of a field."""

COLOURED = "channels"  # the field by whose choices designs are coloured where it varies
TIMES = ("latency", "time", "delay")  # words in the names of metrics that are drawn upwards


@dataclass(frozen=True, kw_only=True)
class View:
    """The two axes of the picture, and the field of the colours."""

    x: str
    y: str
    colour: str = ""

    @classmethod
    def of(cls, part: Part) -> View:
        """Return the view of a workload: a time over the cost, as far as these are objectives."""
        model = part.model
        varied = {name: values for name, values in model.space.choices.items() if len(values) > 1}
        widest = max(varied or model.space.choices, key=lambda name: len(model.space.choices[name]))
        goals = model.objectives
        times = [name for name in goals if any(word in name for word in TIMES)]
        y = (times or [name for name in goals if name != "cost"] or list(goals))[0]
        others = [name for name in goals if name != y]
        x = "cost" if "cost" in others else others[0] if others else widest
        fields = [name for name in varied if name != x]
        fields.sort(key=lambda name: (name.rpartition(".")[2] != COLOURED, -len(varied[name])))
        return cls(x=x, y=y, colour=fields[0] if fields else "")

    def line(self, part: Part) -> Any:
        """Return the rows of the front that no other beats in these two metrics, from left to right."""
        decision, model = part.decision, part.model
        rows = decision.front
        if not rows.size:
            return rows
        up = [name in model.maximize for name in (self.x, self.y)]
        points = np.stack([self.values(part, name)[rows] for name in (self.x, self.y)], axis=1)
        if self.x not in model.objectives:
            return rows[np.argsort(points[:, 0], kind="stable")]
        rows = rows[nondominated(points, maximize=up)]
        return rows[np.argsort(self.values(part, self.x)[rows], kind="stable")]

    def values(self, part: Part, name: str) -> FloatArray:
        """Return a column as numbers: the choices of a field of words by their places."""
        column = part.decision.table[name]
        return column.astype(float) if column.dtype.kind in "iufb" else self.places(part, name)

    @staticmethod
    def places(part: Part, name: str) -> FloatArray:
        """Return the choices of a field by their places."""
        places = {choice: float(k) for k, choice in enumerate(part.model.space.choices[name])}
        return np.array([places[value] for value in part.decision.table[name].tolist()])


def axis_label(part: Part, name: str) -> str:
    """Return a metric or field in words, with its unit."""
    unit = unit_of(part.model.space.base, name)
    return words(name) + ("" if unit == "1" else f" [{unit}]")


def latency_limit(part: Part, view: View) -> float:
    """Return where the upward axis ends: near saturation it would squeeze the front into a corner."""
    values, front = view.values(part, view.y), part.decision.front
    middle = float(np.median(values[front]))
    seen = values[part.decision.simulated]
    largest = float(seen.max(where=np.isfinite(seen), initial=0.0))
    return min(max(2.0 * middle, 1.08 * largest), 5.0 * middle)


def save_plots(study: Study, directory: Path) -> list[Path]:
    """Write the picture of a study into a directory, as PNG and SVG, and return the paths."""
    figure = front_figure(study)
    paths = [directory / "front.png", directory / "front.svg"]
    for path in paths:
        save(figure, path)
        figure.set_layout_engine("none")  # laid out once: the other file is the same picture
    return paths


def front_figure(study: Study) -> Figure:
    """Return all designs, the front, the simulated designs and the star, one picture for each workload."""
    figure, axes = new_figure(8.5, 4.8 * len(study.parts), len(study.parts), 1)
    for part, (one,) in zip(study.parts, axes, strict=True):
        _draw(one, part)
    return figure


def _draw(axes: Axes, part: Part) -> None:
    view, decision = View.of(part), part.decision
    x, y = view.values(part, view.x), view.values(part, view.y)
    shown = decision.feasible & np.isfinite(x) & np.isfinite(y)
    column = decision.table[view.colour] if view.colour else np.zeros(len(x))
    choices = part.model.space.choices[view.colour] if view.colour else (0,)
    for k, choice in enumerate(choices):
        mine = shown & np.array([value == choice for value in column.tolist()], dtype=bool)
        axes.scatter(
            x[mine], y[mine], s=9, color=PALETTE[k % len(PALETTE)], alpha=0.35, lw=0, rasterized=True
        )
        if view.colour:
            text = f"{words(view.colour)} {choice_word(choice)}" if k == 0 else f"{choice_word(choice)}"
            axes.scatter([], [], s=36, color=PALETTE[k % len(PALETTE)], label=text)
    line = view.line(part)
    axes.plot(x[line], y[line], color="black", lw=1.6, label="front")
    rows = decision.simulated
    rows = rows[np.isfinite(x[rows]) & np.isfinite(y[rows])]
    ends = np.array([[decision.interval(name, int(row)) for row in rows] for name in (view.x, view.y)
                     if name in decision.model.table]) if rows.size else np.zeros((0, 0, 3))  # fmt: skip
    if ends.size:
        error = [np.abs(one[:, [0, 2]] - one[:, [1]]).T for one in ends]
        spread = {"xerr": error[0] if len(error) == 2 else None, "yerr": error[-1]}
        spread = {name: one for name, one in spread.items() if one is not None and np.isfinite(one).all()}
        axes.errorbar(x[rows], y[rows], **spread, fmt="o", ms=6, mfc="white", color="black", capsize=3,
                      label="simulated, 90 % interval")  # fmt: skip
    if decision.chosen is not None:
        spot = x[decision.chosen], y[decision.chosen]
        axes.scatter(*spot, marker="*", s=330, color=GREEN, edgecolors="white", zorder=7,
                     label=f"best: design {part.design(decision.chosen)}")  # fmt: skip
    if not decision.front.size:
        axes.set_title(f"{part.name}: no design is feasible", fontsize=14, loc="left")
    else:
        axes.set_title(part.name, fontsize=14, loc="left")
        if view.y in part.model.minimize:
            top = latency_limit(part, view)
            inside = x[shown & (y <= top)]
            margin = 0.04 * float(np.ptp(inside))
            axes.set(ylim=(0, top), xlim=(inside.min() - margin, inside.max() + margin) if margin else None)
    axes.set_xlabel(axis_label(part, view.x), fontsize=13)
    axes.set_ylabel(axis_label(part, view.y), fontsize=13)
    axes.tick_params(labelsize=12, color=GREY)
    source = "dots: model" + (",\ncorrected by simulations" if decision.simulated.size else "")
    axes.legend(fontsize=10, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), title=source)
