"""A tornado: what a metric does when every field alone moves over its range."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize.analysis.model import Model


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One field of a tornado: the metric at both ends of its range, the others at the spec."""

    field: str  # the field
    # low, high: the ends of its range.
    low: Any
    high: Any
    # at_low, at_high: the metric there.
    at_low: float
    at_high: float

    @property
    def swing(self) -> float:
        """``|at_high - at_low|``, 0 if both are equal, infinite ones included."""
        return 0.0 if self.at_high == self.at_low else abs(self.at_high - self.at_low)


@dataclass(frozen=True, kw_only=True)
class Tornado:
    """The outcome of `tornado`."""

    metric: str
    base: float  #: the metric at the spec
    bars: tuple[Bar, ...]  #: the largest swing first

    def __str__(self) -> str:
        width = max(len(bar.field) for bar in self.bars)
        lines = [f"{self.metric} = {self.base:.6g}"]
        for bar in self.bars:
            lines.append(
                f"{bar.field:<{width}}  {bar.low!s:>8} -> {bar.at_low:<12.6g} {bar.high!s:>8} ->"
                f" {bar.at_high:<12.6g} swing {bar.swing:.6g}"
            )
        return "\n".join(lines)

    def plot(self, axes: Any = None) -> Any:
        """Draw the bars around the value at the spec and return the axes; needs matplotlib.

        Infinite ends are drawn beyond all others and labelled. The value at the spec must be
        finite.
        """
        from qmodels.systems.spec.pictures import own_axes

        if not np.isfinite(self.base):
            raise ValueError(f"a tornado needs a finite {self.metric} at the spec, got {self.base}")
        if axes is None:
            axes = own_axes(7, 1.2 + 0.45 * len(self.bars))
        bars = self.bars[::-1]
        swings = np.array([[bar.at_low, bar.at_high] for bar in bars]) - self.base
        reach = np.abs(swings[np.isfinite(swings)]).max(initial=0.0) or abs(self.base) or 1.0
        drawn = np.clip(swings, -1.2 * reach, 1.2 * reach)
        for side, (end, colour) in enumerate((("low", "#4477aa"), ("high", "#cc6677"))):
            axes.barh(
                np.arange(len(bars)),
                drawn[:, side],
                left=self.base,
                height=0.6,
                color=colour,
                label=f"{end} end",
            )
            for row, bar in enumerate(bars):
                swing, value = swings[row, side], getattr(bar, end)
                right = swing > 0 or (swing == 0 and end == "high")
                text = f"{value:g}" if isinstance(value, float) else str(value)
                axes.annotate(
                    text if np.isfinite(swing) else f"{text}: infinite",
                    (self.base + drawn[row, side], row),
                    xytext=(4 if right else -4, 0),
                    textcoords="offset points",
                    ha="left" if right else "right",
                    va="center",
                    fontsize="small",
                )
        axes.axvline(self.base, color="black", linewidth=0.8)
        axes.set_yticks(np.arange(len(bars)), [bar.field for bar in bars])
        axes.set_xlabel(f"{self.metric} (line: {self.base:.4g} at the spec)")
        axes.margins(x=0.12)
        axes.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        return axes


def tornado(
    spec: Any, evaluate: Callable[[Any], object], ranges: Mapping[str, tuple[Any, Any]], *, metric: str
) -> Tornado:
    """Move every field alone to both ends of its range and see what a metric does.

    Parameters
    ----------
    spec : dataclass instance
        The design in the middle.
    evaluate : callable
        Takes a spec and returns metrics, as for `optimize.search.explore`.
    ranges : mapping
        ``{field: (low, high)}``; words and truth values are allowed.
    metric : str
        The metric.

    Returns
    -------
    Tornado
        One bar per field, the largest swing first. A metric may be infinite at an end.

    Raises
    ------
    ValueError
        For an unknown field or metric, no range, or NaN.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Link:
    ...     width: int = 16
    ...     load: float = 0.5
    >>> def model(link):
    ...     return {"latency": 128 / link.width / (1 - link.load)}
    >>> print(tornado(Link(), model, {"load": (0.4, 0.6), "width": (8, 32)}, metric="latency"))
    latency = 16
    width         8 -> 32                 32 -> 8            swing 24
    load        0.4 -> 13.3333           0.6 -> 20           swing 6.66667
    """
    if not ranges:
        raise ValueError("ranges must have at least one field, got none")
    model = Model(spec, evaluate, [metric])
    bars = []
    for field, pair in ranges.items():
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"ranges[{field!r}] must be a pair (low, high), got {pair!r}")
        at_low, at_high = model.refuse_nan(model({field: pair}), {field: pair})[:, 0].tolist()
        bars.append(Bar(field=field, low=pair[0], high=pair[1], at_low=at_low, at_high=at_high))
    base = float(model.refuse_nan(model({}), {})[0, 0])
    bars.sort(key=lambda bar: -bar.swing)
    return Tornado(metric=metric, base=base, bars=tuple(bars))
