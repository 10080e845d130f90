"""A picture of a paper's conclusions: each margin over what it hangs on, and where it turns."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from textwrap import fill
from typing import TYPE_CHECKING, Any

from cases.plots import BLUE, GREEN, GREY, ORANGE, new_figure
from cases.published.conclusions.found import CONFIRMED, CONTRADICTED, Found

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3


def figure(case: str, findings: Sequence[Found]) -> Figure:
    """Return a panel for each conclusion of a paper."""
    rows = -(-len(findings) // COLUMNS)
    picture, axes = new_figure(13, 0.7 + 3.3 * rows, rows, COLUMNS)
    for axis, found in zip(axes.flat, findings, strict=False):
        _panel(axis, found)
    for axis in axes.flat[len(findings) :]:
        axis.set_visible(False)
    handles = {name: handle for axis in axes.flat for handle, name in zip(*_legend(axis), strict=True)}
    picture.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    picture.suptitle(f"{case}: margins of its conclusions; above 0 they hold", x=0.01, ha="left", fontsize=11)
    return picture


def _legend(axis: Any) -> Any:
    return axis.get_legend_handles_labels()


def _panel(axis: Any, found: Found) -> None:
    parameter = found.conclusion.parameter
    colors = {CONFIRMED: GREEN, CONTRADICTED: ORANGE}
    axis.axhline(0, color="#555555", linewidth=0.8)
    axis.plot(*zip(*found.curve, strict=True), "o-", color=BLUE, markersize=3, label="model")
    if found.checks:
        ends = ([c.value for c in found.checks], [c.margin for c in found.checks])
        widths = [c.half_width for c in found.checks]
        style = {"fmt": "s", "color": ORANGE, "markersize": 5, "capsize": 3, "fillstyle": "none"}
        axis.errorbar(*ends, yerr=widths, **style, label="simulated, 95 %")
    axis.axvline(
        parameter.value, color="#555555", linewidth=1, linestyle=":", label="the paper, or our reading"
    )
    if found.flip is not None:
        low, high = found.flip
        axis.axvspan(low, high, color=ORANGE, alpha=0.35, linewidth=2, label="flips")
    if parameter.open is not None:
        axis.axvspan(*parameter.open, color=GREY, alpha=0.3, linewidth=0, label="left open by the text")
    if parameter.grid[0] > 0 and parameter.grid[-1] / parameter.grid[0] > 15:
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter("")
    else:
        axis.locator_params(axis="x", nbins=6)
    sizes = [abs(margin) for _, margin in found.curve] + [abs(check.margin) for check in found.checks]
    if max(sizes) > 100 * max(median(sizes), 0.1):
        axis.set_yscale("symlog", linthresh=max(median(sizes), 0.1))
    title = f"{found.conclusion.name}: {found.verdict}"
    axis.set_title(
        title, fontsize=10, loc="left", fontweight="bold", color=colors.get(found.verdict, "black")
    )
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    axis.set_xlabel(fill(f"{parameter.name}{unit}", 50), fontsize=8)
    axis.set_ylabel(fill(found.conclusion.margin, 38), fontsize=7)
    axis.tick_params(labelsize=8)
