"""Metrics over ranges of fields: a tornado of each alone, Sobol indices of all together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import Model, point_words
from qmodels.systems.spec.fields import find_field


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


RESAMPLES, TOGETHER = 1000, 50  # resamples of the bootstrap, and how many at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class SobolIndices:
    """The outcome of `sobol`: shares of the variance, one for each field, with bootstrap intervals."""

    metric: str
    fields: tuple[str, ...]
    first: FloatArray  #: what a field explains alone; an estimate, so slightly negative at times
    first_interval: FloatArray  #: (fields, 2)
    total: FloatArray  #: what a field takes part in, interactions included
    total_interval: FloatArray
    mean: float  #: of the metric over the ranges
    variance: float
    evaluations: int  #: samples times (fields + 2)

    def __str__(self) -> str:
        width = max(map(len, self.fields))
        lines = [f"{self.metric}: mean {self.mean:.6g}, variance {self.variance:.6g}"]
        for k, field in enumerate(self.fields):
            first, total = self.first_interval[k], self.total_interval[k]
            lines.append(
                f"{field:<{width}}  first {self.first[k]:6.3f} [{first[0]:6.3f}, {first[1]:6.3f}]"
                f"  total {self.total[k]:6.3f} [{total[0]:6.3f}, {total[1]:6.3f}]"
            )
        return "\n".join(lines)


def sobol(
    spec: Any,
    evaluate: Callable[[Any], object],
    ranges: Mapping[str, Sequence[Any]],
    *,
    metric: str,
    samples: int = 1024,
    confidence: float = 0.95,
    seed: int = 0,
    vectorized: bool = False,
) -> SobolIndices:
    r"""Share out the variance of a metric among fields that vary over ranges, independently.

    Parameters
    ----------
    spec : dataclass instance
        The design; fields without a range keep its values.
    evaluate : callable
        Takes a spec and returns metrics, as for `optimize.search.explore`.
    ranges : mapping
        ``{field: (low, high)}`` of two floats for a uniform distribution; otherwise a sequence
        of choices, all equally likely (whole numbers, words).
    metric : str
        A numeric metric, finite over all ranges.
    samples : int
        A power of 2; ``samples * (fields + 2)`` designs are evaluated.
    confidence : float
        Level of the bootstrap intervals.
    seed : int
        Of the scrambled Sobol sequence and the bootstrap.
    vectorized : bool
        Whether `evaluate` broadcasts over specs with arrays in their fields; all ranges must
        be numeric then.

    Returns
    -------
    SobolIndices
        First-order and total indices with intervals.

    Raises
    ------
    ValueError
        For an unknown field or metric, fewer than two fields, a metric that is not finite
        (with the point) or does not vary, or samples that are no power of 2.

    Notes
    -----
    .. math:: S_i = \frac{\mathrm{Var}\, E[f \mid x_i]}{\mathrm{Var} f}, \quad
       S_{T_i} = \frac{E\, \mathrm{Var}[f \mid x_{\sim i}]}{\mathrm{Var} f},

    by ``scipy.stats.sobol_indices`` [1]_ of a scrambled Sobol sequence. The intervals are of the percentile
    bootstrap (1,000 resamples), which ignores that the sequence is quasi-random and so tends to be wide.

    References
    ----------
    .. [1] A. Saltelli et al., "Variance based sensitivity analysis of model output. Design and
       estimator for the total sensitivity index", Computer Physics Communications 181, 2010.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Link:
    ...     width: int = 16
    ...     load: float = 0.5
    >>> def model(link):
    ...     return {"latency": 128 / link.width / (1 - link.load)}
    >>> result = sobol(Link(), model, {"width": [8, 16, 32], "load": (0.1, 0.6)},
    ...                metric="latency", samples=256, vectorized=True)
    >>> result.first.round(2), bool((result.total > result.first).all())
    (array([0.78, 0.17]), True)
    """
    if isinstance(samples, bool) or not isinstance(samples, int) or samples < 2 or samples & (samples - 1):
        raise ValueError(f"samples must be a power of 2, got {samples!r}")
    checks.share("confidence", confidence)
    fields = tuple(ranges)
    if len(fields) < 2:
        raise ValueError(f"sobol needs at least two fields, got {list(fields)}")
    for field in fields:
        find_field(spec, field)
    from scipy.stats import qmc

    unit = qmc.Sobol(d=2 * len(fields), seed=seed, bits=64).random(samples)
    parts = [unit[:, : len(fields)], unit[:, len(fields) :]]
    for k in range(len(fields)):
        mixed = parts[0].copy()
        mixed[:, k] = parts[1][:, k]
        parts.append(mixed)
    values = _at_points(spec, evaluate, ranges, metric, np.concatenate(parts), vectorized)
    blocks = values.reshape(len(fields) + 2, samples)
    plain = blocks[:2]
    if not np.ptp(plain) > 0:
        raise ValueError(f"metric {metric!r} does not vary over the ranges: it is {plain[0, 0]} everywhere")
    ((first, total),) = _indices(blocks[:, None])
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, samples, (TOGETHER, samples)) for _ in range(RESAMPLES // TOGETHER)]
    resampled = np.concatenate([_indices(blocks[:, rows]) for rows in drawn])
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    intervals = np.nanquantile(resampled, tails, axis=0)
    return SobolIndices(
        metric=metric,
        fields=fields,
        first=first,
        first_interval=intervals[:, 0].T,
        total=total,
        total_interval=intervals[:, 1].T,
        mean=float(plain.mean()),
        variance=float(plain.var()),
        evaluations=values.size,
    )


def _indices(blocks: FloatArray) -> FloatArray:
    """Return first and total indices (resamples, 2, fields) from values at A, B and the mixed samples."""
    from scipy.stats import sobol_indices

    a, b, *mixed = blocks
    with np.errstate(all="ignore"):  # a resample may happen not to vary
        found = sobol_indices(func={"f_A": a, "f_B": b, "f_AB": np.array(mixed)}, n=blocks.shape[2])
    shape = (len(a), len(mixed))
    return np.stack([found.first_order.reshape(shape), found.total_order.reshape(shape)], axis=1)


def _at_points(
    spec: Any,
    evaluate: Callable[[Any], object],
    ranges: Mapping[str, Sequence[Any]],
    metric: str,
    unit: FloatArray,
    vectorized: bool,
) -> FloatArray:
    """Return the metric at points of the unit cube, finite."""
    columns = {field: _quantiles(field, ranges[field], u) for field, u in zip(ranges, unit.T, strict=True)}
    for field, column in columns.items():
        if vectorized and not isinstance(column, np.ndarray):
            raise ValueError(f"{field} must have numbers to choose from for a vectorized model")
    values = Model(spec, evaluate, [metric], vectorized=vectorized)(columns)[:, 0]
    if not np.isfinite(values).all():
        k = int((~np.isfinite(values)).argmax())
        point = point_words({field: column[k] for field, column in columns.items()})
        raise ValueError(f"metric {metric!r} must be finite over the ranges, got {values[k]} at {point}")
    return values


def _quantiles(field: str, values: Sequence[Any], unit: FloatArray) -> Any:
    """Return values of a field at points from 0 to 1: an array, or a list if they are no numbers."""
    choices = list(values)
    if len(choices) < 2:
        raise ValueError(f"{field} must have a range (low, high) or choices, got {values!r}")
    if len(choices) == 2 and all(isinstance(one, float) for one in choices):
        low, high = choices
        if not -np.inf < low < high < np.inf:
            raise ValueError(f"{field} must have low < high, both finite, got {values!r}")
        return low + (high - low) * unit
    rows = np.minimum((unit * len(choices)).astype(int), len(choices) - 1)
    if all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in choices):
        return np.array(choices)[rows]
    return [choices[row] for row in rows]
