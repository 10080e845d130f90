"""Pictures that several cases have: published, model and simulated over an axis, or as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cases.plots import BLUE, GREEN, ORANGE
from cases.published.cell import Cell, Number

COLORS = {"published": ORANGE, "model": GREEN, "simulated": BLUE}
MARKS = {"published": "s--", "model": "^:", "simulated": "o-"}


def draw_curves(
    axis: Any,
    x: Sequence[float],
    cells: Sequence[Cell],
    *,
    scale: float = 1.0,
    color: str | None = None,
    label: str = "",
) -> None:
    """Draw published, model and simulated numbers over an axis, the simulated ones with intervals.

    ``x``: places of the cells; ``cells``: the numbers; the paper may lack some; ``scale``: what numbers are
    multiplied with; ``color``: one for all three; ``label``: put before the names in the legend.
    """
    for which, mark in MARKS.items():
        points = [(place, scale * value) for place, cell in zip(x, cells, strict=True)
                  if (value := getattr(cell, which)) is not None]  # fmt: skip
        if points:
            style = {"color": color or COLORS[which], "label": f"{label}{which}"}
            axis.plot(*zip(*points, strict=True), mark, **style, markersize=5)
    if cells[0].low is not None:
        ends = np.array([[c.low, c.high] for c in cells], dtype=float)
        axis.vlines(x, *(scale * ends.T), color=color or COLORS["simulated"], linewidth=2)


def draw_bars(
    axis: Any, numbers: Sequence[Number], labels: Sequence[str], *, horizontal: bool = False
) -> None:
    """Draw published, model and simulated numbers beside each other, a group for each label."""
    places = np.arange(len(numbers))
    draw = axis.barh if horizontal else axis.bar
    for shift, (which, color) in zip((-0.27, 0.0, 0.27), COLORS.items(), strict=True):
        values = [np.nan if (v := getattr(one, which)) is None else v for one in numbers]
        draw(places + shift, values, 0.26, color=color, label=which)
    if horizontal:
        axis.set_yticks(places, labels, fontsize=8)
        axis.invert_yaxis()
    else:
        axis.set_xticks(places, labels, fontsize=7)
    axis.grid(visible=False, axis="y" if horizontal else "x")


def head(axis: Any, text: str) -> None:
    """Write what is drawn above it."""
    axis.set_title(text, fontsize=10, loc="left", fontweight="bold")


def legend_below(figure: Any, axis: Any, *, columns: int = 3) -> None:
    """Put the legend of an axis below the figure, each name once."""
    handles, labels = axis.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(
        list(unique.values()), list(unique), loc="outside lower center", ncols=columns, frameon=False
    )
