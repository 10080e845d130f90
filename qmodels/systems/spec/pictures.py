"""Figures of any result: the main metric along a sweep, where time goes. Importing it imports matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.figure import Figure


class Shown(Figure):
    """A figure whose picture is its representation in a notebook, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()


def sweep_figure(result: Any) -> Any:
    """Return the main metric (the first one) along the swept field; of several fields along the longest."""
    figure = Shown(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    name = result.main
    swept = result.swept() or {"point": np.arange(np.prod(result.shape)).reshape(result.shape)}
    field = max(swept, key=lambda one: len(np.unique(swept[one])))
    along = np.broadcast_to(swept[field], result.shape)
    x, y = np.ravel(along), np.ravel(np.broadcast_to(result.metrics[name], result.shape))
    others = {one: np.ravel(values) for one, values in swept.items() if one != field}
    # Along an axis on which the field stays the same is another sweep, named or not.
    same = [k for k in range(along.ndim) if not np.ptp(along, axis=k).any()]
    places = [np.ravel(np.indices(result.shape)[k]) for k in same]
    keys = np.stack([*others.values(), *places, np.zeros(x.size)], axis=1)
    for key in np.unique(keys, axis=0):
        mine = (keys == key).all(axis=1) & np.isfinite(y)
        order = np.argsort(x[mine])
        label = ", ".join(f"{value:g}" for value in key[: len(others)])
        axes.plot(x[mine][order], y[mine][order], marker=".", label=label)
    axes.set(xlabel=field, ylabel=f"{name} [{result.units[name]}]", title=result.title.partition(",")[0])
    if others:
        axes.legend(title=", ".join(others))
    return figure


def parts_figure(result: Any) -> Any:
    """Return the shares of the latency, or where a kind has none the load of its resources, as bars."""
    shares = result.latency_parts or result.utilization
    values = {str(name): float(value) for name, value in shares.items()} if isinstance(shares, dict) else {}
    unit = result.units[next(iter(result.metrics))] if result.latency_parts else "busy fraction"
    if not values:
        values = {name: float(value) for name, value in result.metrics.items() if result.units[name] == "1"}
        unit = "1"
    figure = Shown(figsize=(6, 0.8 + 0.3 * len(values)), layout="constrained")
    axes = figure.add_subplot()
    names = list(values)[::-1]
    axes.barh(names, [values[name] if np.isfinite(values[name]) else 0.0 for name in names])
    axes.set(xlabel=unit, title=result.title)
    return figure
