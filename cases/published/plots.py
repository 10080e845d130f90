"""Pictures of a paper: cells, claims or rows over an axis, as bars or as dots, as its data describes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from textwrap import fill as wrapped
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.published.numbers import Cell, plain_row, select
from cases.published.tables import WHICH, evaluate, fill, loops
from cases.tables import BLUE, GREEN, GREY, ORANGE, SHADES, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = Mapping[str, Any]  # of a paper's data, or names that its expressions may use
COLORS = {"published": ORANGE, "model": GREEN, "simulated": BLUE}
MARKS = {"published": "s--", "model": "^:", "simulated": "o-"}
OTHERS = (BLUE, ORANGE, GREEN, *SHADES[:2], GREY)


def figure(found: Any, spec: Table, names: Table) -> Figure:
    """Return a picture of a paper's data: a panel for each entry, its loops gone through.

    A panel has cells, ``claims`` or ``rows_of`` a table, at a place (``where``); the ``kind``, curves, bars,
    barh or scatter; ``x``, an expression; ``series``, what is drawn by name, of cells published, model and
    simulated; ``by``, an expression that tells curves apart; ``lines``, ``points`` and ``bands`` beside them.
    """
    panels = [(one, each) for one in spec["panels"] for each in loops(one.get("for", {}), names)]
    rows = spec.get("rows", 1)
    picture, axes = new_figure(spec["size"][0], spec["size"][1], rows, -(-len(panels) // rows))
    for axis, (panel, each) in zip(axes.flat, panels, strict=True):
        _panel(axis, found, panel, each)
    legend(picture, axes.flat, 4)
    return picture


def legend(picture: Any, axes: Any, columns: int) -> None:
    """Put the legend of some axes below their picture, each name once."""
    handles = {n: h for axis in axes for h, n in zip(*axis.get_legend_handles_labels(), strict=True)}
    picture.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False,
        fontsize=9
    )  # fmt: skip


def _panel(axis: Any, found: Any, panel: Table, names: Table) -> None:
    where = {
        key: evaluate(value[1:], names) if str(value).startswith("=") else value
        for key, value in panel.get("where", {}).items()
    }
    every = found.claims if panel.get("claims") else found.tables.get(panel.get("rows_of"), found.cells)
    flat = [one.row() if isinstance(one, Cell) else plain_row(one) for one in every]
    rows = select(({**dict.fromkeys(where), **row} for row in flat), **where)
    series = panel.get("series", {name: name for name in WHICH})
    kind = panel.get("kind", "curves")
    if kind.startswith("bar"):
        _bars(axis, rows, series, panel, names)
    else:
        for label, mine in _parts(rows, panel.get("by", "''"), names):
            _curves(axis, mine, series, label, panel, names)
    for name, text in panel.get("lines", {}).items():
        value = found.value(text, "published")
        draw = axis.axvline if kind == "barh" else axis.axhline
        draw(value, color=ORANGE if name.endswith("with") else GREY, linestyle="--", label=name)
    for name, text in panel.get("points", {}).items():
        axis.plot(*zip(*evaluate(text, names), strict=True), "s-", color=ORANGE, fillstyle="none", label=name)
    for low, high in panel.get("bands", ()):
        axis.axhspan(low - 0.4, high + 0.4, color=ORANGE, alpha=0.3, lw=0, zorder=0, label="published")
    axis.set_title(fill(panel.get("title", ""), names), fontsize=10, loc="left", fontweight="bold")
    axis.set_xlabel(panel.get("xlabel", "" if kind.startswith("bar") else panel["x"]))
    axis.set_ylabel(panel.get("ylabel", ""))
    if not panel.get("bands"):
        axis.set_xlim(left=0) if kind == "barh" else axis.set_ylim(bottom=0)


def _parts(rows: Sequence[Any], by: str, names: Table) -> Iterator[tuple[str, list[Any]]]:
    """Yield the rows of each curve, with its name and its colour."""
    parts: dict[str, list[Any]] = {}
    for row in rows:
        parts.setdefault(evaluate(by, {**names, **row}), []).append(row)
    yield from parts.items()


def _curves(axis: Any, rows: Sequence[Any], series: Any, label: str, panel: Table, names: Table) -> None:
    """Draw numbers over an axis, simulated ones of cells with intervals."""
    x = [evaluate(panel["x"], {**names, **row}) for row in rows]
    if panel.get("even"):
        axis.set_xticks(range(len(x)), [f"{one:g}" for one in x])
        x = list(range(len(x)))
    count = len({line.get_color() for line in axis.get_lines()} | {str(c) for c in getattr(axis, "used", ())})
    for name, text in series.items():
        y = [evaluate(text, {**names, **row}) for row in rows]
        some = [(a, b) for a, b in zip(x, y, strict=True) if b is not None]
        color = OTHERS[count % len(OTHERS)] if label else COLORS.get(name, BLUE)
        mark = "o" if panel.get("kind") == "scatter" else MARKS.get(name, "o-")
        if some:
            axis.plot(
                *zip(*some, strict=True), mark, color=color, markersize=5, label=f"{label} {name}".strip()
            )
        if name == "simulated" and rows[0].get("low") is not None and "series" not in panel:
            axis.vlines(x, *([row[end] for row in rows] for end in ("low", "high")), color=color, linewidth=2)
        if "ring" in panel:
            ringed = [(a, b) for a, b, row in zip(x, y, rows, strict=True) if row[panel["ring"]]]
            style = {"markersize": 11, "fillstyle": "none", "color": "black"}
            axis.plot(*zip(*ringed, strict=True), "o", **style, label=panel["ringed"]) if ringed else None


def _bars(axis: Any, rows: Sequence[Any], series: Any, panel: Table, names: Table) -> None:
    """Draw numbers beside each other, a group for each row."""
    places, width, flat = np.arange(len(rows)), 0.8 / len(series), panel["kind"] == "barh"
    for k, (name, text) in enumerate(series.items()):
        values = [evaluate(text, {**names, **row}) for row in rows]
        shown = [np.nan if value is None else float(value) for value in values]
        color = COLORS.get(name, OTHERS[k])
        at = places + (k - (len(series) - 1) / 2) * width
        (axis.barh if flat else axis.bar)(at, shown, width, color=color, label=name)
    labels = [wrapped(str(evaluate(panel["x"], {**names, **row})), 60 if flat else 12) for row in rows]
    if flat:
        axis.set_yticks(places, labels, fontsize=8)
        axis.invert_yaxis()
    else:
        axis.set_xticks(places, labels, fontsize=7)
    axis.grid(visible=False, axis="y" if flat else "x")


def conclusions_figure(case: str, findings: Sequence[Any]) -> Figure:
    """Return a panel for each conclusion of a paper: its margin over what it hangs on, and where it turns."""
    rows = -(-len(findings) // 3)
    picture, axes = new_figure(13, 0.7 + 3.3 * rows, rows, 3)
    for axis, found in zip(axes.flat, findings, strict=False):
        _conclusion(axis, found)
    for axis in axes.flat[len(findings) :]:
        axis.set_visible(False)
    legend(picture, axes.flat, 5)
    picture.suptitle(f"{case}: margins of its conclusions; above 0 they hold", x=0.01, ha="left", fontsize=11)
    return picture


def _conclusion(axis: Any, found: Any) -> None:
    parameter, dark = found.conclusion.parameter, "#555555"
    axis.axhline(0, color=dark, linewidth=0.8)
    axis.plot(*zip(*found.curve, strict=True), "o-", color=BLUE, markersize=3, label="model")
    if found.checks:
        x, y, widths = zip(*((c.value, c.margin, c.half_width) for c in found.checks), strict=True)
        style = {"fmt": "s", "color": ORANGE, "markersize": 5, "capsize": 3, "fillstyle": "none"}
        axis.errorbar(x, y, yerr=widths, **style, label="simulated, 95 %")
    axis.axvline(parameter.value, color=dark, linewidth=1, linestyle=":", label="the paper, or our reading")
    if found.flip is not None:
        axis.axvspan(*found.flip, color=ORANGE, alpha=0.35, linewidth=2, label="flips")
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
    color = {"confirmed": GREEN, "contradicted": ORANGE}.get(found.verdict, "black")
    title = f"{found.conclusion.name}: {found.verdict}"
    axis.set_title(title, fontsize=10, loc="left", fontweight="bold", color=color)
    unit = f" [{parameter.unit}]" if parameter.unit else ""
    axis.set_xlabel(wrapped(f"{parameter.name}{unit}", 50), fontsize=8)
    axis.set_ylabel(wrapped(found.conclusion.margin, 38), fontsize=7)
    axis.tick_params(labelsize=8)
