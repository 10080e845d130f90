"""How pictures of the gallery look, and how figures that our own plot methods return are found."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst, matplotlib_scraper

STYLE = {
    "figure.figsize": (6.4, 4.0),
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


def reset(gallery_conf: Any, script: str) -> None:
    """Set the style; each script begins with it."""
    mpl.rcParams.update(STYLE)


def figures(block: Any, variables: dict[str, Any], gallery_conf: Any) -> str:
    """Save the figures of pyplot, and those that a variable of the script holds."""
    text: str = matplotlib_scraper(block, variables, gallery_conf)
    paths = []
    for value in variables["example_globals"].values():
        if isinstance(value, Figure) and not hasattr(value, "number"):  # pyplot numbers its own
            paths.append(next(variables["image_path_iterator"]))
            value.savefig(paths[-1], format="png", dpi=110)
    return text + figure_rst(paths, gallery_conf["src_dir"])
