"""The picture of one comparison: errors with the reference's intervals, and where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from validate.comparison.metrics import is_share, signed_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOOD, BAD, UNKNOWN = "#1f6fb4", "#d1610e", "#6b7280"


def comparison_figure(comparison: Any) -> Figure:
    """Do the work of `Comparison.plot`."""
    from qmodels.systems.spec.pictures import Shown

    shares = [_shares(answer) for answer in (comparison.model, comparison.reference)]
    both = all(shares)
    rows = list(comparison.rows.values())
    height = 1.4 + 0.28 * len(rows)
    figure = Shown(figsize=(7.5, height + (2.2 if both else 0)), layout="constrained")
    heights = [height, 2.2] if both else [height]
    panels = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_axisbelow(True)
        panel.grid(axis="x", color="#e8e8e8", linewidth=0.6)
    _errors(panels[0], rows)
    if both:
        _times(panels[1], dict(zip(("model", "reference"), shares, strict=True)))
    return figure


def _errors(panel: Any, rows: list[Any]) -> None:
    """Draw a line a metric; what has no finite error is said in words."""
    names = []
    panel.axvline(0, color="black", linewidth=0.8)
    for place, one in enumerate(reversed(rows)):
        names.append(f"{one.metric.replace('_', ' ')} [{'points' if is_share(one.metric) else '%'}]")
        error = one.stated_error
        if not np.isfinite(error):
            panel.annotate(" no finite error", (0, place), va="center")
            continue
        colour = UNKNOWN if one.inside is None else GOOD if one.inside else BAD
        if one.reference.confidence > 0:
            ends = [_against(one, end) for end in (one.reference.low, one.reference.high)]
            if np.isfinite(ends).all():
                panel.plot(ends, [place, place], color=colour, linewidth=2, alpha=0.5)
        panel.plot(error, place, "o", color=colour, markersize=5)
    for colour, words in (
        (GOOD, "inside the reference's interval"),
        (BAD, "outside"),
        (UNKNOWN, "no interval"),
    ):
        panel.plot([], [], "o", color=colour, label=words)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.set_xlabel("model minus reference [% of the reference, or percentage points]")
    panel.legend(fontsize=8, frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _against(one: Any, reference: float) -> float:
    """Return the error of the model were the reference at this end of its interval."""
    return 100 * float(signed_error(one.model, reference, relative=not is_share(one.metric)))


def _shares(answer: Any) -> dict[str, float]:
    """Return the shares of the latency of a model's or a simulation's answer, none if one is infinite."""
    parts = getattr(answer, "latency_parts", None) or {}
    single = {name: value for name, value in parts.items() if np.ndim(value) == 0}
    found = {name: float(getattr(value, "best", value)) for name, value in single.items()}
    return found if np.isfinite(list(found.values())).all() else {}


def _times(panel: Any, answers: dict[str, dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for shares in answers.values() for name in shares))
    left = np.zeros(len(answers))
    for k, name in enumerate(names):
        values = np.array([shares.get(name, 0.0) for shares in answers.values()])
        panel.barh(list(answers), values, left=left, height=0.6, color=f"C{k % 10}", label=name)
        left += values
    panel.invert_yaxis()
    panel.set_xlabel("mean latency [ns], by where it arises")
    panel.legend(fontsize=7, frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.3))
