"""Figures of any result: the main metric along a sweep, where time goes. Importing it imports matplotlib."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure


class Shown(Figure):
    """A figure whose picture is its representation in a notebook, whether or not pyplot is in use."""

    def _repr_png_(self) -> bytes:
        picture = BytesIO()
        self.savefig(picture, format="png", dpi=110)
        return picture.getvalue()


class ShownAxes(Axes):
    """Axes whose picture is that of their figure."""

    def _repr_png_(self) -> bytes:
        figure: Any = self.figure
        return figure._repr_png_()


def own_axes(width: float = 6, height: float = 4) -> Any:
    """Return axes of a figure of their own; as the last value of a notebook's cell they are shown."""
    return Shown(figsize=(width, height), layout="constrained").add_subplot(axes_class=ShownAxes)


def sweep_figure(result: Any) -> Any:
    """Return the main metric (the first one) along the swept field with its interval; of two a heat map.

    Of more fields, or two swept together, it is drawn along the longest, a line for each other value.
    """
    name, shape = result.main, result.shape
    swept = result.swept() or {"point": np.arange(np.prod(shape)).reshape(shape)}
    columns = {one: np.ravel(np.broadcast_to(values, shape)) for one, values in swept.items()}
    y = np.ravel(np.broadcast_to(getattr(result.metrics[name], "best", result.metrics[name]), shape))
    axes = own_axes()
    figure = axes.figure
    what = f"{name.replace('_', ' ')} [{result.units[name]}]".removesuffix(" [1]")
    axes.set_title(result.title.partition(",")[0], loc="left")
    sizes = [len(np.unique(values)) for values in columns.values()]
    if len(columns) == 2 and min(sizes) > 1 and y.size == np.prod(sizes):
        _heat_map(axes, columns, y, what)
        return figure
    field = max(columns, key=lambda one: len(np.unique(columns[one])))
    x, along = columns[field], np.broadcast_to(swept[field], shape)
    ends = result.ends(name)
    band = None if ends is None else [np.ravel(np.broadcast_to(end, shape)) for end in ends]
    others = {one: values for one, values in columns.items() if one != field}
    # Along an axis on which the field stays the same is another sweep, named or not.
    same = [k for k in range(along.ndim) if not np.ptp(along, axis=k).any()]
    places = [np.ravel(np.indices(shape)[k]) for k in same]
    keys = np.stack([*others.values(), *places, np.zeros(x.size)], axis=1)
    for key in np.unique(keys, axis=0):
        mine = np.flatnonzero((keys == key).all(axis=1) & np.isfinite(y))
        mine = mine[np.argsort(x[mine])]
        label = ", ".join(f"{value:g}" for value in key[: len(others)])
        (line,) = axes.plot(x[mine], y[mine], marker=".", label=label)
        if band is not None:
            low, high = (np.where(np.isfinite(end), end, y)[mine] for end in band)
            axes.fill_between(x[mine], low, high, color=line.get_color(), alpha=0.2, lw=0)
    if band is not None:
        axes.set_title("band: 90 % of simulations", loc="right", fontsize="small")
    axes.set(xlabel=field, ylabel=what)
    if others:
        axes.legend(title=", ".join(others))
    return figure


def _heat_map(axes: Any, columns: dict[str, Any], values: Any, what: str) -> None:
    """Draw values over two fields, every combination a cell; those without a finite value are hatched."""
    (down, across), (rows, right) = columns, columns.values()
    (ys, y), (xs, x) = (np.unique(one, return_inverse=True) for one in (rows, right))
    cells = np.full((len(ys), len(xs)), np.nan)
    cells[y, x] = np.where(np.isfinite(values), values, np.nan)
    axes.set_facecolor("#dddddd")
    axes.patch.set_hatch("//")
    picture = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis_r")
    axes.figure.colorbar(picture, label=what)
    middle = np.nanmean([np.nanmin(cells), np.nanmax(cells)]) if np.isfinite(cells).any() else 0.0
    for (k, j), value in np.ndenumerate(cells):
        if cells.size > 80:
            break
        text = f"{value:.3g}" if np.isfinite(value) else "overloaded"
        plate = None if np.isfinite(value) else {"fc": "#dddddd", "ec": "none", "pad": 1}
        axes.annotate(text, (j, k), ha="center", va="center", fontsize="small", bbox=plate,
                      color="white" if value > middle else "black")  # fmt: skip
    for axis, name, ticks in ((axes.xaxis, across, xs), (axes.yaxis, down, ys)):
        axis.set_ticks(range(len(ticks)), [f"{one:g}" for one in ticks])
        axis.set_label_text(name)


def parts_figure(result: Any) -> Any:
    """Return the shares of the latency, or where a kind has none the load of its resources, as bars."""
    shares = result.latency_parts or result.utilization
    values = {str(name): float(value) for name, value in shares.items()} if isinstance(shares, dict) else {}
    unit = result.units[next(iter(result.metrics))] if result.latency_parts else "busy fraction"
    if not values:
        values = {name: float(value) for name, value in result.metrics.items() if result.units[name] == "1"}
        unit = "1"
    axes = own_axes(6, 0.8 + 0.3 * len(values))
    names = list(values)[::-1]
    axes.barh(names, [values[name] if np.isfinite(values[name]) else 0.0 for name in names])
    axes.set(xlabel=unit, title=result.title)
    return axes.figure
