"""Pictures of the 16-SRP case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cases.plots import BLUE, GREEN, ORANGE, new_figure, save
from cases.published.srp.specs import ALGORITHMS, PLACEMENTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.srp.reproduction import Reproduction


def save_plots(result: Reproduction, out: Path) -> list[Path]:
    """Write the pictures and return their paths."""
    from cases.published.srp.growing import times_figure

    figures = {
        "srp-blurring.png": blurring_figure(result),
        "srp-channels.png": claims_figure(result),
        "srp-growing.png": times_figure(result.growing),
    }
    for name, figure in figures.items():
        save(figure, out / name)
    return [out / name for name in figures]


def blurring_figure(result: Reproduction) -> Figure:
    """Return Table 6.1: published, model and simulated, fitted to one row and to the other."""
    figure, axes = new_figure(10, 4, columns=2)
    places = np.arange(len(PLACEMENTS) * len(ALGORITHMS))
    for one, fitted in zip(axes[0], ALGORITHMS, strict=True):
        cells = [cell for cell in result.cells if cell.fitted_on == fitted]
        for shift, name, color in (
            (-0.27, "published", ORANGE),
            (0, "model", GREEN),
            (0.27, "simulated", BLUE),
        ):
            one.bar(places + shift, [getattr(cell, name) for cell in cells], 0.26, color=color, label=name)
        labels = [
            f"{cell.algorithm}\n{cell.placement}\n{'predicted' if cell.predicted else 'fitted'}"
            for cell in cells
        ]
        one.set_xticks(places, labels, fontsize=7)
        one.set_title(f"fitted to the row {fitted}", fontsize=10, loc="left", fontweight="bold")
    axes[0, 0].set_ylabel("execution time [million cycles]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def claims_figure(result: Reproduction) -> Figure:
    """Return the statements about factors, congestion and channels: published, model, simulated."""
    claims = [claim for claim in reversed(result.claims) if "million" not in claim.text]
    figure, axes = new_figure(10, 0.33 * len(claims) + 1.2)
    one, places = axes[0, 0], np.arange(len(claims))
    one.barh(places + 0.2, [claim.model for claim in claims], 0.36, color=GREEN, label="model")
    one.barh(places - 0.2, [claim.simulated for claim in claims], 0.36, color=BLUE, label="simulated")
    known = [k for k, claim in enumerate(claims) if claim.published is not None]
    one.plot([claims[k].published for k in known], known, "D", color=ORANGE, label="published")
    one.set_yticks(places, [claim.text for claim in claims], fontsize=8)
    one.set_xlabel("ratio")
    one.legend(frameon=False, fontsize=9)
    return figure
