"""Sobol indices: how the variance of a metric is shared among fields with ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize import checks
from optimize.analysis.model import Model, words
from optimize.search.pareto import FloatArray
from qmodels.systems.spec.fields import find_field

RESAMPLES, TOGETHER = 1000, 50
"""Resamples of the bootstrap, and how many at a time."""


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
        point = words({field: column[k] for field, column in columns.items()})
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
