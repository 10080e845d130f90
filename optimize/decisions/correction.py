"""A model's answers corrected by the simulations of some designs, with intervals that cover the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray, IntArray
from optimize.spaces.evaluation import LOAD
from optimize.spaces.numbering import Column, Columns
from optimize.spaces.space import Space

FLOOR = 1e-5  # added to a probability and to its complement before the logarithm of their ratio is taken
UNKNOWN = 0.3  # standard deviation of the logarithm of simulated over model where the model states no error
BLOCK = 20_000  # rows predicted at a time: bounds memory to some 100 MB at hundreds of points
LENGTH, LENGTH_SPREAD = 2.5, 0.8
NOISE, NOISE_SPREAD = 0.15, 1.2
SCALE_SPREAD = 0.8
"""Where the search for length scales (of standardised features), for noise and for the scale (both relative
to the scale given) starts, and how far in log units it may go at one standard deviation."""

FOLDS = 10  # parts of the simulated designs that are left out in turn
PSEUDO = 5
"""Scores of a normal distribution that are counted with those of the simulated designs: they are all there is
before the first simulation and weigh little after some tens."""

FREEDOM = 0.5
"""Degrees of freedom of Student's factor for each simulated design, by which the intervals from few designs
are widened: their parameters are the most probable ones, as if known. Chosen in view of
how intervals covered the 2,700 designs of the default study, all simulated."""


class Scale:
    """Scale on which values of a metric are compared: log ratio, log odds, or differences near 0."""

    def __init__(self, values: FloatArray, bounded: bool) -> None:
        finite = values[np.isfinite(values)]
        self.kind = "odds" if bounded else "ratio" if (finite > 0).all() else "difference"

    def forward(self, values: npt.ArrayLike) -> FloatArray:
        """Return values on the scale on which errors add."""
        given = np.asarray(values, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "odds":
                return np.asarray(np.log((given + FLOOR) / (1 - given + FLOOR)))
            return np.log(given) if self.kind == "ratio" else given

    def backward(self, values: FloatArray) -> FloatArray:
        """Return values of the metric."""
        if self.kind == "odds":
            share = 1 / (1 + np.exp(-values))
            return np.clip(share * (1 + 2 * FLOOR) - FLOOR, 0.0, 1.0)
        return np.exp(values) if self.kind == "ratio" else values

    def spread(self, values: FloatArray, stated: npt.ArrayLike | None) -> float:
        """Return the typical standard deviation on the scale for a stated mean error."""
        if stated is None:
            return UNKNOWN if self.kind != "difference" else UNKNOWN * float(np.nanstd(values) or 1.0)
        size = np.broadcast_to(np.asarray(stated, dtype=float), values.shape)
        if self.kind == "odds":
            size = size / np.maximum(values, FLOOR)
        known = np.isfinite(size) & np.isfinite(values)
        typical = float(np.median(size[known])) if known.any() else UNKNOWN
        return min(max(math.sqrt(math.pi / 2) * typical, 1e-3), 1.0)


def features_of(space: Space, table: Columns) -> FloatArray:
    """Return standardised columns that tell designs apart: varied fields and the fullest resource's load.

    A number that is never negative is taken by its logarithm (of 1 more if it can be 0), a word by one
    column for each choice.
    """
    columns: list[FloatArray] = []
    for name in space.choices:
        column: Column = table[name]
        if column.dtype.kind in "iuf" and (column >= 0).all():
            columns.append(np.log(column + (column.min() == 0)))
        elif column.dtype.kind in "iufb":
            columns.append(column.astype(float))
        else:
            parts = column.dtype == object  # which have no order
            seen = list(dict.fromkeys(column.tolist())) if parts else np.unique(column)
            columns += [np.array([one == choice for one in column.tolist()], float) for choice in seen[1:]]
    if LOAD in table and table[LOAD].dtype.kind in "iuf":
        columns.append(np.minimum(table[LOAD].astype(float), 1.0))
    return standardised(columns, len(table["design"]))


def standardised(columns: Iterable[npt.ArrayLike], rows: int) -> FloatArray:
    """Return those columns of numbers that vary, with mean 0 and standard deviation 1."""
    numbers = [np.asarray(column, dtype=float) for column in columns]
    kept = [(column - column.mean()) / column.std() for column in numbers if column.std() > 0]
    return np.stack(kept, axis=1) if kept else np.zeros((rows, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    r"""A Gaussian process fitted to a few points.

    The kernel is :math:`s^2 (1 + \exp(-\frac12 \sum_k (x_k - x'_k)^2 / l_k^2))`: an unknown level and
    an unknown smooth function. Without points the prediction is 0 with a standard deviation of
    :math:`\sqrt{2 s^2 + \sigma^2}`.

    Prediction and variance are those of [1]_, eq. 2.25 and 2.26.

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press, 2006.
    """

    points: FloatArray  # standardised features
    residual: FloatArray  # targets
    lengths: FloatArray  # length scales
    # scale, noise: standard deviations of the varying part of the function and of a target about it.
    scale: float
    noise: float

    @cached_property
    def _inverse(self) -> FloatArray:
        covariance = self._kernel(self.points) + np.eye(len(self.points)) * self.noise**2
        return np.asarray(np.linalg.inv(covariance))

    def _kernel(self, rows: FloatArray) -> FloatArray:
        one, two = rows / self.lengths, self.points / self.lengths
        squares = (one**2).sum(axis=1)[:, None] + (two**2).sum(axis=1) - 2 * one @ two.T
        return np.asarray(self.scale**2 * (1 + np.exp(-0.5 * np.maximum(squares, 0.0))))

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prediction of rows and its standard deviation, the noise included."""
        best, variance = np.zeros(len(rows)), np.full(len(rows), 2 * self.scale**2)
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            kernel = self._kernel(rows[part])
            best[part] = kernel @ (self._inverse @ self.residual)
            variance[part] -= ((kernel @ self._inverse) * kernel).sum(axis=1)
        return best, np.sqrt(np.maximum(variance, 0.0) + self.noise**2)


def fit(points: FloatArray, residual: FloatArray, scale: float, start: Process | None = None) -> Process:
    """Return the process of the most probable length scales, scale and noise (maximum a posteriori).

    ``scale``: expected standard deviation of the residual, to begin with; ``start``: where the search begins.
    """
    from scipy.optimize import minimize

    features = points.shape[1]
    centre = np.log(np.r_[np.full(features, LENGTH), scale, NOISE * scale])
    spread = np.r_[np.full(features, LENGTH_SPREAD), SCALE_SPREAD, NOISE_SPREAD]
    begin = centre if start is None else np.log(np.r_[start.lengths, start.scale, start.noise])
    if len(points) >= 3:
        squares = (points[:, None, :] - points) ** 2
        begin = minimize(
            _loss, begin, args=(squares, residual, centre, spread), jac=True, method="L-BFGS-B",
            bounds=[(c - 4 * s, c + 4 * s) for c, s in zip(centre, spread, strict=True)],
            options={"maxiter": 60},
        ).x  # fmt: skip
    *lengths, scale, noise = np.exp(begin).tolist()
    return Process(points=points, residual=residual, lengths=np.array(lengths), scale=scale, noise=noise)


def _loss(
    theta: FloatArray, squares: FloatArray, residual: FloatArray, centre: FloatArray, spread: FloatArray
) -> tuple[float, FloatArray]:
    """Return the negative logarithm of the posterior of the parameters' logarithms, and its gradient."""
    lengths, (scale, noise) = np.exp(theta[:-2]), np.exp(theta[-2:])
    smooth = scale**2 * np.exp(-0.5 * squares @ lengths**-2.0)
    kernel = smooth + scale**2
    covariance = kernel + np.eye(len(residual)) * noise**2
    try:
        factor = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return 1e9, np.zeros_like(theta)
    inverse = np.linalg.inv(covariance)
    alpha = inverse @ residual
    away = (theta - centre) / spread
    value = 0.5 * residual @ alpha + np.log(np.diag(factor)).sum() + 0.5 * away @ away
    outer = inverse - np.outer(alpha, alpha)
    gradient = np.r_[
        0.5 * np.tensordot(outer * smooth, squares, axes=2) * lengths**-2.0,
        np.sum(outer * kernel),
        noise**2 * np.trace(outer),
    ]
    return float(value), gradient + away / spread


class Correction:
    r"""Metrics of all rows, corrected by simulations of some; its arguments are as in `optimize.decide`.

    Notes
    -----
    The log ratio (log odds ratio) of simulated and model is a Gaussian process over the features,
    its parameters the most probable ones; the stated error gives the scale expected before.
    The interval is that of CV+ [1]_ with scores normalised by the predicted spread: the simulated designs
    are left out tenth by tenth, everything is fitted anew without them, and of the ends
    :math:`\mu_{-k(i)}(x) \pm r_i \sigma_{-k(i)}(x)` the quantiles are taken, where :math:`r_i` is how far
    design i was from its own prediction, in units of its own spread. It covers what a simulation of the
    design would show, noise included. From few designs it is wider by Student's factor (`FREEDOM`).

    References
    ----------
    .. [1] R. F. Barber, E. J. Candes, A. Ramdas and R. J. Tibshirani, "Predictive inference with the
       jackknife+", Annals of Statistics 49(1), 2021.
    """

    def __init__(
        self,
        table: Columns,
        features: FloatArray,
        stated: Mapping[str, npt.ArrayLike | None],
        bounded: Collection[str] = (),
        *,
        level: float,
        seed: int = 0,
    ) -> None:
        self._table, self._features, self._level, self._seed = table, features, level, seed
        self._scales = {name: Scale(table[name].astype(float), name in bounded) for name in stated}
        self._spreads = {
            name: scale.spread(table[name].astype(float), stated[name])
            for name, scale in self._scales.items()
        }
        self._last: dict[str, Process] = {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The corrected metrics."""
        return tuple(self._scales)

    def columns(
        self, name: str, rows: IntArray, simulated: FloatArray, *, calibrated: bool = True
    ) -> tuple[FloatArray, ...]:
        """Return low, best and high of a metric for all rows, given its simulated values of some rows.

        Ends that are not calibrated are those of the process, a tenth of the work.

        Where the model's value is not finite nothing is known: best is that value. Without simulations
        best is the model's value, and the interval the error that it states.
        """
        scale, model = self._scales[name], self._table[name].astype(float)
        start = scale.forward(model)
        with np.errstate(invalid="ignore"):
            shift = scale.forward(simulated) - start[rows]
        usable = np.isfinite(shift)
        low, best, high = self._shifts(name, rows[usable], shift[usable], FOLDS if calibrated else 0)
        finite = np.isfinite(start)
        ends = [scale.backward(np.where(finite, start + part, part)) for part in (low, best, high)]
        least = -np.inf if scale.kind == "difference" else 0.0
        return (
            np.where(finite, ends[0], least),
            np.where(finite & (best != 0), ends[1], model),
            np.where(finite, ends[2], 1.0 if scale.kind == "odds" else np.inf),
        )

    def _shifts(self, name: str, rows: IntArray, shift: FloatArray, folds: int) -> tuple[FloatArray, ...]:
        every, points, spread = self._features, self._features[rows], self._spreads[name]
        whole = fit(points, shift, spread, self._last.get(name))
        self._last[name] = whole
        parts = []
        count = len(rows)
        fold = np.random.default_rng([self._seed, count]).permutation(count) % FOLDS
        for k in range(min(folds, count) if count > 1 else 0):
            out = fold == k
            part = fit(points[~out], shift[~out], spread, whole)
            centre, own = part.predict(points[out])
            parts.append((part, np.abs(shift[out] - centre) / own))
        shares = (np.arange(PSEUDO) + 0.5) / PSEUDO if parts else np.array([self._level])
        parts.append((whole, np.array([NormalDist().inv_cdf((1 + share) / 2) for share in shares])))
        blocks = [
            _ends(parts, every[start : start + BLOCK], self._level) for start in range(0, len(every), BLOCK)
        ]
        best = whole.predict(every)[0]
        low, high = (np.concatenate(ends) for ends in zip(*blocks, strict=True))
        wider = _student(count, self._level)
        return best - wider * np.maximum(best - low, 0.0), best, best + wider * np.maximum(high - best, 0.0)


def _student(count: int, level: float) -> float:
    """Ratio of the width of an interval from few designs to that of a normal one."""
    if count == 0:
        return 1.0
    from scipy import special  # slow to load, and needed only once something was simulated

    quantile = (1 + level) / 2
    freedom = max(FREEDOM * count, 1.0)
    return float(special.stdtrit(freedom, quantile)) / NormalDist().inv_cdf(quantile)


def _ends(
    parts: list[tuple[Process, FloatArray]], rows: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the intervals: quantiles over what each process allows with its scores."""
    lows, highs = [], []
    for process, scores in parts:
        centre, own = process.predict(rows)
        lows.append(centre[:, None] - scores * own[:, None])
        highs.append(centre[:, None] + scores * own[:, None])
    low, high = np.concatenate(lows, axis=1), np.concatenate(highs, axis=1)
    rank = min(math.ceil(level * low.shape[1]), low.shape[1]) - 1
    return -np.partition(-low, rank, axis=1)[:, rank], np.partition(high, rank, axis=1)[:, rank]
