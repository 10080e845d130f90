"""Pictures of single answers, and how every picture is made and saved: PNG, SVG or PDF, without a screen."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels.systems.spec.metrics import METRICS
from qmodels.systems.spec.whole import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FORMATS = (".png", ".svg", ".pdf")
GREY, BLUE, ORANGE, GREEN = "#c8ccd0", "#1f6fb4", "#d1610e", "#2e7d32"
SHADES = ("#6b4c9a", "#9e9ac8", "#1f6fb4", "#6baed6", "#a6761d", "#e6ab02", "#d1610e")
"""Of the shares of the latency, in their order."""


def require_format(path: Path) -> None:
    """Refuse a picture file of another format before any work is done."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"plot must be a file that ends in {', '.join(FORMATS)}, got {str(path)!r}")


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the file appears whole or not at all."""
    import matplotlib

    # A fixed salt and no date: the same study gives the same file.
    with whole(path) as part, matplotlib.rc_context({"svg.hashsalt": "qmodels", "svg.fonttype": "path"}):
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower())
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=150, metadata=metadata)


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """Return a figure without a screen, and its axes in rows and columns."""
    from qmodels.systems.spec.pictures import Shown

    figure = Shown(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color="#e8e8e8", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes


def label(metric: str) -> str:
    """Return the axis label of a metric."""
    unit = METRICS[metric].unit
    return metric.replace("_", " ").replace("p99", "(99th percentile)") + (
        "" if unit == "1" else f" [{unit}]"
    )


def parts_figure(
    answers: Mapping[str, Mapping[str, float]],
    title: str,
    *,
    what: str = "mean packet latency",
    unit: str = "ns",
) -> Figure:
    """Return where the time goes: one stacked bar of shares, by default of the latency, for each answer."""
    figure, axes = new_figure(9, 1.6 + 0.8 * len(answers))
    one = axes[0, 0]
    names = list(next(iter(answers.values())))
    longest = 0.0
    for place, shares in enumerate(reversed(list(answers.values()))):
        left = 0.0
        endless = not np.isfinite(sum(shares.values()))
        for name, shade in zip(names, cycle(SHADES), strict=False):
            value = 0.0 if endless else float(shares.get(name, 0.0))
            one.barh(place, value, left=left, height=0.6, color=shade, label=name if place == 0 else None)
            left += value
        longest = max(longest, left)
        one.annotate(
            " saturated: no steady state" if endless else f" {left:.4g} {unit}",
            (left, place),
            va="center",
            fontsize=9,
        )
    one.set_yticks(range(len(answers)), list(reversed(list(answers))))
    one.set_xlim(0, 1.15 * longest or 1)
    one.grid(visible=False, axis="y")
    one.set_xlabel(f"{what} [{unit}]")
    one.set_title(title, fontsize=10, loc="left", fontweight="bold")
    figure.legend(
        *one.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    return figure
