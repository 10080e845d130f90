"""Pictures of the message-passing case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cases.plots import BLUE, GREEN, ORANGE, new_figure
from cases.published.cell import select
from cases.published.ocmpi.tables import FIGURES
from cases.published.plots import draw_bars, head, legend_below
from cases.published.reproduction import Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(found: Reproduction) -> dict[str, Figure]:
    """Return the pictures."""
    return {"cycles": cycles_figure(found), "service": service_figure(found)}


def cycles_figure(found: Reproduction) -> Figure:
    """Return the cycles of the library: published, solved and simulated."""
    cells = select(found.cells, unit="cycles")
    figure, axes = new_figure(8.5, 4.6)
    one = axes[0, 0]
    draw_bars(one, cells, [f"{c['name']}{' (fitted)' * c.fitted}" for c in cells], horizontal=True)
    one.set_xlabel("cycles")
    legend_below(figure, one)
    return figure


def service_figure(found: Reproduction) -> Figure:
    """Return by how much each process is slower with quality of service, for each figure of the paper."""
    figure, axes = new_figure(9, 8, rows=3)
    ranges = {
        "figure9": [(65, 70), (-15, -15)],
        "figure10": [(10, 34), (-20, -3)],
        "figure11": [(-35, -35), (-37, -37)],
    }
    for one, (section, title) in zip(axes[:, 0], FIGURES.items(), strict=True):
        rows = [row for row in found.tables["processes"] if row.section == section]
        places = np.arange(len(rows))
        for shift, source, color in ((-0.2, "simulated", BLUE), (0.2, "model", GREEN)):
            values = [row.change(source) for row in rows]
            one.bar(places + shift, values, width=0.4, color=color, label=source)
        for low, high in ranges[section]:
            one.axhspan(low - 0.4, high + 0.4, color=ORANGE, alpha=0.3, lw=0, zorder=0, label="published")
        one.axhline(0, color="black", linewidth=0.8)
        head(one, title)
        one.set_xticks(places, [str(row.process) for row in rows])
        one.grid(visible=False, axis="x")
        one.set_ylabel("slower [%]")
    axes[-1, 0].set_xlabel("ARM")
    legend_below(figure, axes[0, 0])
    return figure
