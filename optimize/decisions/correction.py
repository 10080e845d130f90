"""A model's answers corrected by the simulations of some designs, with intervals that cover the others."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from optimize.decisions.process import BLOCK, Process, fit
from optimize.search.pareto import FloatArray, IntArray
from optimize.spaces.numbering import Column, Columns
from optimize.spaces.space import Space
from optimize.spaces.stability import LOAD

FLOOR = 1e-5
"""Added to a probability and to its complement before the logarithm of their ratio is taken."""

UNKNOWN = 0.3
"""Standard deviation of the logarithm of simulated over model where the model states no error."""

FOLDS = 10
"""Parts of the simulated designs that are left out in turn."""

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
    kept = [(column - column.mean()) / column.std() for column in columns if column.std() > 0]
    rows = len(table["design"])
    return np.stack(kept, axis=1) if kept else np.zeros((rows, 1))


class Correction:
    r"""Metrics of all rows, corrected by simulations of some.

    Parameters
    ----------
    table : dict of str to ndarray
        Every design by the model.
    features : ndarray of shape (rows, features)
        See `features_of`.
    stated : mapping of str to array_like or None
        The metrics to correct with the mean size of the error that the model states of itself:
        relative to the true value, or a difference for those in `bounded`; None where it states nothing.
    bounded : collection of str
        Metrics between 0 and 1.
    level : float
        Share of the designs that the intervals are to cover.
    seed : int
        Of the folds.

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
