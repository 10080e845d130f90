"""The picture of one comparison: errors with the reference's intervals, and where the time goes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from validate.comparison.metrics import is_share, signed_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = ("#1f6fb4", "#d1610e", "#2e7d32", "#6b4c9a", "#a6761d", "#6baed6", "#e6ab02", "#9e9ac8")
MOST_METRICS = 6
CURVE_POINTS = 60


def plot(sweep: Any, metrics: Sequence[str], x: str | None) -> Figure:
    """Do the work of `SweepComparison.plot`."""
    for name in metrics:
        checks.choice("metrics", name, sweep.metrics)
    shown = list(metrics) or _telling(sweep)
    axis = _axis(sweep) if x is None else x
    if x is not None and x != "load":
        checks.choice("x", x, dict.fromkeys(name for one in sweep.settings for name in one))
    if x == "load" and sweep.loads is None:
        raise ValueError("x must be a setting, the model says no 'load'")
    columns = min(len(shown), 3 if len(shown) > 4 else 2)
    rows = math.ceil(len(shown) / columns)
    from qmodels.systems.spec.pictures import Shown

    figure = Shown(figsize=(4.2 * columns + 0.6, 3.2 * rows + 0.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels[len(shown) :]:
        panel.set_visible(False)
    series = [] if axis is None else _with_curves(sweep, axis)
    for panel, metric in zip(panels, shown, strict=False):
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(color="#e8e8e8", linewidth=0.6)
        panel.set_axisbelow(True)
        if axis is None:
            _beside(panel, sweep, metric)
        else:
            _over(panel, sweep, metric, axis, series)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 4), frameon=False)
    return figure


def _telling(sweep: Any) -> list[str]:
    """Return the metrics worth a panel: those that vary over the points, the first six of them."""
    varying = [name for name in sweep.metrics if len({one.reference.best for one in sweep[name]}) > 1]
    return (varying or list(sweep.metrics))[:MOST_METRICS]


def _number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _values(sweep: Any, axis: str) -> list[Any]:
    if axis == "load" and sweep.loads is not None:
        return list(sweep.loads)
    return [one.get(axis) for one in sweep.settings]


def _axis(sweep: Any) -> str | None:
    """Return the setting with most different numbers, or the load where none differs in numbers."""
    names = dict.fromkeys(name for one in sweep.settings for name in one)
    counts = {
        n: len({one[n] for one in sweep.settings})
        for n in names
        if all(_number(s.get(n)) for s in sweep.settings)
    }
    best = max(counts, key=lambda name: counts[name], default=None)
    if best is not None and counts[best] > 1:
        return best
    return "load" if sweep.loads is not None and np.ptp(sweep.loads) > 0 else None


def _groups(sweep: Any, axis: str) -> dict[str, list[int]]:
    """Return the points of each combination of the other settings that vary, in the order of the axis."""
    xs = _values(sweep, axis)
    if axis == "load":
        return {"": sorted(range(len(sweep)), key=lambda k: xs[k])}
    names = dict.fromkeys(name for one in sweep.settings for name in one if name != axis)
    varied = [n for n in names if len({str(one.get(n)) for one in sweep.settings}) > 1]
    groups: dict[str, list[int]] = {}
    for k in sorted(range(len(sweep)), key=lambda k: xs[k]):
        label = ", ".join(f"{n} {sweep.settings[k].get(n)}" for n in varied)
        groups.setdefault(label, []).append(k)
    return groups


def _over(panel: Any, sweep: Any, metric: str, axis: str, series: Sequence[_Series]) -> None:
    xs = _values(sweep, axis)
    for number, one in enumerate(series):
        places = [k for k in one.places if metric in sweep.points[k].rows]
        if not places:
            continue
        colour, tail = COLOURS[number % len(COLOURS)], f", {one.label}" if one.label else ""
        curve_x: Any = [xs[k] for k in places]
        curve_y: Any = [sweep.points[k].rows[metric].model for k in places]
        if metric in one.curve:
            curve_x, curve_y = one.xs, one.curve[metric]
        finite = np.where(np.isfinite(curve_y), curve_y, np.nan)
        panel.plot(curve_x, finite, color=colour, linewidth=1.4, label=f"model{tail}")
        good = [k for k in places if np.isfinite(sweep.points[k].rows[metric].reference.best)]
        estimates = [sweep.points[k].rows[metric].reference for k in good]
        best = np.array([estimate.best for estimate in estimates])
        ends = np.array([(estimate.low, estimate.high) for estimate in estimates]).reshape(-1, 2).T
        panel.errorbar(
            [xs[k] for k in good],
            best,
            yerr=np.where(np.isfinite(ends), np.abs(ends - best), 0.0),
            fmt="o",
            markersize=4,
            capsize=2.5,
            color=colour,
            markerfacecolor="white",
            label=f"reference{tail}",
        )
    saturated = [xs[k] for k in range(len(sweep)) if not (sweep.stable[k] or k in sweep.undecided)]
    if saturated and len(series) == 1:
        panel.axvspan(min(saturated), max(xs), color="#f3e6e0", zorder=0)
        panel.axvline(
            min(saturated), color="#b05030", linewidth=0.9, linestyle=":", label="reference saturated"
        )
    panel.set_xlabel(axis.replace("_", " "))
    _label(panel, sweep, metric)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Series:
    """The points with one combination of the other settings, and the model's curve through them."""

    label: str
    places: list[int]
    xs: FloatArray
    curve: Mapping[str, FloatArray]


def _with_curves(sweep: Any, axis: str) -> list[_Series]:
    """Return the series; the model is solved between the points too where the setting is a real number."""
    values = _values(sweep, axis)
    found = []
    for label, places in _groups(sweep, axis).items():
        own = [values[k] for k in places]
        xs, curve = np.zeros(0), {}
        if (
            sweep.curve is not None
            and axis != "load"
            and len(own) > 1
            and any(isinstance(v, float) for v in own)
        ):
            xs = np.union1d(np.linspace(min(own), max(own), CURVE_POINTS), np.array(own, dtype=float))
            curve = dict(sweep.curve(sweep.settings[places[0]], axis, xs))
        found.append(_Series(label=label, places=places, xs=xs, curve=curve))
    return found


def _beside(panel: Any, sweep: Any, metric: str) -> None:
    rows = [one for one in sweep[metric] if np.isfinite(one.reference.best) and np.isfinite(one.model)]
    best = np.array([one.reference.best for one in rows])
    ends = np.array([(one.reference.low, one.reference.high) for one in rows]).reshape(-1, 2)
    panel.errorbar(
        best,
        [one.model for one in rows],
        xerr=np.abs(ends.T - best),
        fmt="o",
        markersize=4,
        color=COLOURS[0],
        markerfacecolor="white",
        label="points",
    )
    if rows:
        values = [*best, *(one.model for one in rows)]
        line = [min(values), max(values)]
        panel.plot(line, line, color="#888888", linewidth=0.8, label="model = reference")
    panel.set_xlabel("reference")
    _label(panel, sweep, metric, "model: ")


def _label(panel: Any, sweep: Any, metric: str, head: str = "") -> None:
    unit = sweep[metric][0].unit
    panel.set_ylabel(f"{head}{metric.replace('_', ' ')}" + (f" [{unit}]" if unit not in ("", "1") else ""))


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
