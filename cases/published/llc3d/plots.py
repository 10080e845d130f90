"""Pictures of the LLC-slice case: figures 13 to 25, simulated and from the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cases.plots import BLUE, GREEN, ORANGE, SHADES, new_figure
from cases.published.cell import select
from cases.published.llc3d.tables import FIGURES, HEADINGS, HIT_RATIOS, METRICS, scale
from cases.published.plots import draw_curves, head, legend_below
from cases.published.reproduction import Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = (BLUE, ORANGE, GREEN, SHADES[0], SHADES[4])


def figures(found: Reproduction) -> dict[str, Figure]:
    """Return a picture for each group of figures, and one of the hit ratios."""
    curves = {f"figures-{name}": curves_figure(found, name, METRICS) for name in FIGURES}
    return curves | {"hits": curves_figure(found, FIGURES[-1], HIT_RATIOS)}


def curves_figure(found: Reproduction, name: str, metrics: Sequence[str]) -> Figure:
    """Return the curves of some figures: simulated with intervals, the model dotted, the text's numbers."""
    figure, axes = new_figure(12, 4.6, columns=len(metrics))
    mine = select(found.cells, figures=name)
    curves = dict.fromkeys(cell["curve"] for cell in mine)
    for one, metric in zip(axes[0], metrics, strict=True):
        for curve, color in zip(curves, COLORS, strict=False):
            cells = select(mine, curve=curve, metric=metric)
            x = [cell["x"] for cell in cells]
            draw_curves(one, x, cells, scale=scale(metric), color=color, label=f"{curve}, ")
        one.set_xlabel(mine[0]["variable"])
        head(one, HEADINGS[metric])
        one.set_ylim(bottom=0)
        if mine[0]["variable"] == "entries per line":
            one.set_xscale("log", base=2)
            one.set_xticks(x, [f"{each:g}" for each in x])
    figure.suptitle(f"Figures {name}: simulated with intervals of 95 %", fontsize=10)
    legend_below(figure, axes[0, 0], columns=4)
    return figure
