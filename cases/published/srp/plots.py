"""Pictures of the 16-SRP case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases.plots import new_figure
from cases.published.cell import select
from cases.published.plots import draw_bars, head, legend_below
from cases.published.reproduction import Reproduction
from cases.published.srp.growing_specs import IMAGES, VERSIONS
from cases.published.srp.specs import ALGORITHMS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(found: Reproduction) -> dict[str, Figure]:
    """Return the pictures."""
    return {
        "blurring": blurring_figure(found),
        "channels": claims_figure(found),
        "growing": growing_figure(found),
    }


def blurring_figure(found: Reproduction) -> Figure:
    """Return Table 6.1: published, model and simulated, fitted to one row and to the other."""
    figure, axes = new_figure(10, 4, columns=2)
    for one, fitted in zip(axes[0], ALGORITHMS, strict=True):
        cells = select(found.cells, table="table61", fitted_on=fitted)
        names = [f"{c['row']}\n{c['column']}\n{'fitted' if c.fitted else 'predicted'}" for c in cells]
        draw_bars(one, cells, names)
        head(one, f"fitted to the row {fitted}")
    axes[0, 0].set_ylabel("execution time [million cycles]")
    legend_below(figure, axes[0, 0])
    return figure


def claims_figure(found: Reproduction) -> Figure:
    """Return the statements about factors, congestion and channels: published, model, simulated."""
    claims = [claim for claim in found.claims if claim.holds is None and "million" not in claim.text]
    claims = [claim for claim in claims if not claim.text.startswith("pairs")]
    figure, axes = new_figure(10, 0.4 * len(claims) + 1.2)
    draw_bars(axes[0, 0], claims, [claim.text for claim in claims], horizontal=True)
    axes[0, 0].set_xlabel("ratio")
    legend_below(figure, axes[0, 0])
    return figure


def growing_figure(found: Reproduction) -> Figure:
    """Return execution times of the four versions on each image: published, model and simulated."""
    figure, axes = new_figure(10, 4, columns=len(IMAGES))
    for axis, image in zip(axes[0], IMAGES, strict=True):
        cells = select(found.cells, table="table62", column=image)
        draw_bars(axis, cells, [VERSIONS[cell["row"]].replace(", ", ",\n") for cell in cells])
        head(axis, f"image {image}")
    axes[0, 0].set_ylabel("execution time [million cycles]")
    legend_below(figure, axes[0, 0])
    return figure
