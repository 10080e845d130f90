"""Pictures of single answers, and how every picture is made and saved: PNG, SVG or PDF, without a screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
