"""The picture of several workloads: how the best design moves, and the regret of each choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cases.plots import BLUE, GREEN, GREY, ORANGE, SHADES, label, new_figure
from cases.study.parts import Study
from cases.study.words.several import Several, several

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

X, Y = "cost", "packet_latency"


def several_figure(study: Study) -> Figure | None:
    """Return the best designs of several workloads among their fronts, and all regrets; None for one."""
    found = several(study)
    if found is None:
        return None
    figure, axes = new_figure(12, max(4.6, 2.2 + 0.42 * len(found.candidates)), 1, 2)
    _moves(axes[0, 0], found)
    _regrets(axes[0, 1], found)
    return figure


def _colors(found: Several) -> dict[str, str]:
    colors = [BLUE, ORANGE, *SHADES]
    return {name: colors[k % len(colors)] for k, name in enumerate(found.choice.names)}


def _moves(axes: Axes, found: Several) -> None:
    """Draw the fronts, the best design of each workload and where the first one's best would be."""
    choice, colors = found.choice, _colors(found)
    main, heights = choice.best[0], []
    for name, best in zip(choice.names, choice.best, strict=True):
        one = found.explorations[name]
        front = one.front[np.isfinite(one.table[Y][one.front])]
        axes.scatter(one.table[X][front], one.table[Y][front], s=7, color=colors[name], alpha=0.25, lw=0)
        if len(front):
            heights.append(float(np.median(one.table[Y][front])))
        if best is not None:
            spot = _spot(found, name, best)
            axes.scatter(
                *spot, marker="o", s=70, color=colors[name], zorder=5, label=f"best for {name}: {best}"
            )
            if main not in (None, best):
                axes.annotate("", spot, _spot(found, choice.names[0], main), zorder=4,
                              arrowprops={"arrowstyle": "->", "color": "#555555", "lw": 1.2})  # fmt: skip
        if choice.chosen is not None:
            axes.scatter(*_spot(found, name, choice.chosen), marker="*", s=170, color=GREEN,
                         edgecolors=colors[name], lw=1.2, zorder=6)  # fmt: skip
    if choice.chosen is not None:
        axes.scatter([], [], marker="*", s=170, color=GREEN, label=f"robust, under each: {choice.chosen}")
    if heights:
        axes.set_ylim(0, 4 * max(heights))
    axes.set(xlabel=label(X), ylabel=label(Y))
    axes.set_title(
        f"How the best design moves ({found.values}; dots: fronts of the model)", fontsize=10, loc="left"
    )
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, loc="upper right")


def _spot(found: Several, name: str, design: Any) -> tuple[float, float]:
    return float(found.value(name, design, X)), float(found.value(name, design, Y))


def _regrets(axes: Axes, found: Several) -> None:
    """Draw a row for each choice with its regret under each workload."""
    colors, candidates = _colors(found), found.candidates
    table = {design: found.choice.regret_of(design) for design in candidates}
    finite = [value for row in table.values() for value in row.values() if np.isfinite(value)]
    end = 1.12 * max([*finite, 0.05])
    for place, (design, row) in enumerate(reversed(table.items())):
        known = [value for value in row.values() if np.isfinite(value)]
        if known:
            axes.plot([min(known), max(known)], [place, place], color=GREY, lw=2.5, zorder=1)
        for k, (name, value) in enumerate(row.items()):
            if np.isfinite(value):
                axes.scatter(value, place, s=55, color=colors[name], zorder=3, clip_on=False)
            else:
                axes.annotate(f"fails under {name}", (end, place + 0.22 * k - 0.11), ha="right", va="center",
                              fontsize=8, color=colors[name])  # fmt: skip
        if design == found.choice.chosen:
            axes.axhspan(place - 0.4, place + 0.4, color="#eef4ea", zorder=0)
    names = [f"{design}\n{words.replace(', ', chr(10))}" for design, words in candidates.items()]
    axes.set_yticks(range(len(names)), names[::-1], fontsize=8)
    for name, color in colors.items():
        axes.scatter([], [], s=55, color=color, label=f"under {name}")
    axes.set(xlim=(0, end), ylim=(-0.6, len(names) - 0.4), xlabel="regret [ranges of an objective]")
    axes.set_title("What each choice regrets", fontsize=10, loc="left")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=3)
