"""The picture of an exploration: its designs along two of the objectives, the front and the knee marked."""

from __future__ import annotations

from typing import Any

import numpy as np


def draw(found: Any, axes: Any) -> None:
    """Draw the designs of an `Exploration` that have finite values on axes.

    With one objective it stands over the field that is varied most.
    """
    x, y = found.objectives[:2] if len(found.objectives) > 1 else (_widest(found), found.objectives[0])
    across, up = (_numbers(found.table[name]) for name in (x, y))
    shown = np.isfinite(across) & np.isfinite(up)
    front = np.zeros(len(shown), dtype=bool)
    front[found.front] = True
    for mask, style in (
        (shown & ~found.feasible, {"c": "lightgrey", "marker": "x", "label": "not feasible"}),
        (shown & found.feasible & ~front, {"c": "grey", "s": 12, "label": "feasible"}),
        (shown & front, {"c": "tab:blue", "s": 28, "label": "front"}),
    ):
        if mask.any():
            axes.scatter(across[mask], up[mask], **style)
    if found.knee is not None and shown[found.knee]:
        knee = (across[found.knee], up[found.knee])
        right = knee[0] > np.mean(axes.get_xlim())
        axes.annotate(
            f"knee: design {found.table['design'][found.knee]}",
            knee,
            xytext=(-8 if right else 8, 8),
            textcoords="offset points",
            ha="right" if right else "left",
        )
        axes.scatter(*knee, facecolors="none", edgecolors="tab:red", s=90)
    if (hidden := len(shown) - int(shown.sum())) > 0:
        axes.set_title(f"{hidden} of {len(shown)} designs are infinite there", fontsize="small")
    for name, label, values in ((x, axes.set_xlabel, found.table[x]), (y, axes.set_ylabel, found.table[y])):
        goal = "least" if name in found.minimize else "most" if name in found.maximize else ""
        label(f"{name} ({goal} is best)" if goal else name)
        if _numbers(values) is not values and axes.get_xlabel() == name:
            axes.set_xticks(np.arange(len(np.unique(values))), np.unique(values))
    axes.legend(fontsize="small")


def _widest(found: Any) -> str:
    return str(max(found.space.choices, key=lambda name: len(np.unique(found.table[name]))))


def _numbers(values: Any) -> Any:
    """Return a column as numbers: words by their place in the alphabet."""
    if np.issubdtype(np.asarray(values).dtype, np.number):
        return values
    return np.unique(values, return_inverse=True)[1].astype(float)
