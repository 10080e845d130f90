"""Pictures of the LLC-slice case: figures 13 to 25, simulated and from the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cases.plots import BLUE, GREEN, ORANGE, SHADES, new_figure, save
from cases.published.llc3d.tables import HEADINGS, HIT_RATIOS, METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.llc3d.reproduction import Reproduction

COLORS = (BLUE, ORANGE, GREEN, SHADES[0], SHADES[4])
MARKS = "os^Dv"


def save_plots(result: Reproduction, out: Path) -> list[Path]:
    """Write a picture for each group of figures and return their paths."""
    from cases.published.llc3d.reproduction import FIGURES

    paths = []
    for figures in FIGURES:
        path = out / f"llc3d-figures-{figures}.png"
        save(curves_figure(result, figures, METRICS), path)
        paths.append(path)
    path = out / "llc3d-hits.png"
    save(curves_figure(result, FIGURES[-1], HIT_RATIOS), path)
    return [*paths, path]


def curves_figure(result: Reproduction, figures: str, metrics: tuple[str, ...]) -> Figure:
    """Return the curves of some figures: simulated with intervals, the model dotted, the text's numbers."""
    figure, axes = new_figure(12, 4.2, columns=len(metrics))
    mine = [cell for cell in result.cells if cell.figures == figures]
    for one, metric in zip(axes[0], metrics, strict=True):
        factor = 100.0 if "%" in HEADINGS[metric] else 1.0
        curves = dict.fromkeys(cell.curve for cell in mine)
        # Open marks of different shapes: curves lie on each other.
        for name, color, mark in zip(curves, COLORS, MARKS, strict=False):
            cells = [cell for cell in mine if (cell.curve, cell.metric) == (name, metric)]
            x = [cell.x for cell in cells]
            simulated = factor * np.array([cell.simulated for cell in cells])
            bounds = factor * np.array([[c.low for c in cells], [c.high for c in cells]])
            one.errorbar(
                x,
                simulated,
                yerr=np.abs(bounds - simulated),
                fmt=mark,
                markersize=5,
                markerfacecolor="none",
                color=color,
                label=name,
            )
            one.plot(x, [factor * cell.model for cell in cells], ":", color=color)
            said = [(cell.x, factor * cell.published) for cell in cells if cell.published is not None]
            if said:
                one.plot(*zip(*said, strict=True), "x", markersize=9, color="black", zorder=3)
        one.set_xlabel(mine[0].variable)
        one.set_title(HEADINGS[metric], fontsize=10, loc="left", fontweight="bold")
        one.set_ylim(bottom=0)
        if mine[0].variable == "entries per line":
            one.set_xscale("log", base=2)
            one.set_xticks(x, [f"{each:g}" for each in x])
    figure.suptitle(
        f"Figures {figures}: marks simulated (95 % interval), dotted the model, crosses the paper's text",
        fontsize=10,
    )
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure
