"""Pictures of the message-passing case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cases.plots import BLUE, GREEN, GREY, ORANGE, new_figure, save
from cases.published.ocmpi.tables import FIGURES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.ocmpi.reproduction import Reproduction


def save_plots(result: Reproduction, out: Path) -> list[Path]:
    """Write the pictures and return their paths."""
    figures = {"ocmpi-cycles.png": cycles_figure(result), "ocmpi-service.png": service_figure(result)}
    for name, figure in figures.items():
        save(figure, out / name)
    return [out / name for name in figures]


def cycles_figure(result: Reproduction) -> Figure:
    """Return the cycles of the library: published, solved and simulated."""
    cells = [cell for cell in result.cells if cell.unit == "cycles"]
    figure, axes = new_figure(8.5, 4.2)
    one = axes[0, 0]
    places = np.arange(len(cells))[::-1]
    one.barh(places, [cell.low for cell in cells], height=0.6, color=GREY, label="published")
    one.plot([cell.model for cell in cells], places + 0.12, "^", color=GREEN, label="model")
    one.plot([cell.simulated for cell in cells], places - 0.12, "o", color=BLUE, label="simulated")
    for place, cell in zip(places, cells, strict=True):
        end = max(cell.low, cell.simulated, cell.model)
        note = "calibrated" if cell.calibrated else f"{cell.error(cell.simulated):+.1f} %"
        one.annotate(note, (end, place), xytext=(8, 0), textcoords="offset points", va="center", fontsize=8)
    one.set_yticks(places, [cell.name for cell in cells])
    one.set_xlim(0, 1.15 * max(cell.low for cell in cells))
    one.grid(visible=False, axis="y")
    one.set_xlabel("cycles")
    figure.legend(*one.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def service_figure(result: Reproduction) -> Figure:
    """Return by how much each process is slower with quality of service, for each figure of the paper."""
    figure, axes = new_figure(9, 8, rows=3)
    ranges = {
        "figure9": [((65, 70), "first row"), ((-15, -15), "others, mean")],
        "figure10": [((10, 34), "others"), ((-20, -3), "prioritised")],
        "figure11": [((-35, -35), "ARM_14"), ((-37, -37), "ARM_0")],
    }
    for one, (section, title) in zip(axes[:, 0], FIGURES.items(), strict=True):
        rows = [row for row in result.finishes if row.section == section]
        places = np.arange(len(rows))
        one.bar(
            places - 0.2, [row.change("simulated") for row in rows], width=0.4, color=BLUE, label="simulated"
        )
        one.bar(places + 0.2, [row.change("model") for row in rows], width=0.4, color=GREEN, label="model")
        for (low, high), _ in ranges[section]:
            one.axhspan(low - 0.4, high + 0.4, color=ORANGE, alpha=0.3, lw=0, zorder=0, label="published")
        one.axhline(0, color="black", linewidth=0.8)
        one.set_title(title, fontsize=10, loc="left", fontweight="bold")
        one.set_xticks(places, [str(row.process) for row in rows])
        one.grid(visible=False, axis="x")
        one.set_ylabel("slower [%]")
    axes[-1, 0].set_xlabel("ARM")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(list(unique.values()), list(unique), loc="outside lower center", ncols=3, frameon=False)
    return figure
