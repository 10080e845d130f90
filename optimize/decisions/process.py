"""Regression by a Gaussian process, small and own: prediction and its spread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from optimize.search.pareto import FloatArray

BLOCK = 20_000
"""Rows predicted at a time: bounds memory to some 100 MB at hundreds of points."""

STEADY = 1.0
"""Variance of the constant part of the kernel relative to that of the varying part."""

LENGTH, LENGTH_SPREAD = 2.5, 0.8
NOISE, NOISE_SPREAD = 0.15, 1.2
SCALE_SPREAD = 0.8
TREND, TREND_SPREAD = 0.5, 1.2
"""Where the search for length scales (of standardised features), for noise and for the scale (both relative
to the scale given) starts, and how far in log units it may go at one standard deviation."""


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
    # own: known variance of each target, beside the noise; evidence: logarithm of the posterior density.
    own: FloatArray | float = 0.0
    evidence: float = 0.0
    trend: float = 0.0  # standard deviation of a part linear and quadratic in every feature; 0: none

    @cached_property
    def _inverse(self) -> FloatArray:
        covariance = self._kernel(self.points) + np.eye(len(self.points)) * (self.noise**2 + self.own)
        return np.asarray(np.linalg.inv(covariance))

    @cached_property
    def _alpha(self) -> FloatArray:
        return np.asarray(self._inverse @ self.residual)

    def _kernel(self, rows: FloatArray) -> FloatArray:
        smooth = np.exp(-0.5 * _distances(rows, self.points, self.lengths))
        kernel = self.scale**2 * (STEADY + smooth)
        if self.trend:
            kernel += self.trend**2 * basis(rows) @ basis(self.points).T
        return np.asarray(kernel)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prediction of rows and its standard deviation, the noise included."""
        blocks = [self._predict(rows[start : start + BLOCK]) for start in range(0, len(rows), BLOCK)]
        best, spread = zip(*blocks, strict=True) if blocks else ((np.zeros(0),), (np.zeros(0),))
        return np.concatenate(best), np.concatenate(spread)

    def _predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        kernel = self._kernel(rows)
        known = ((kernel @ self._inverse) * kernel).sum(axis=1)
        variance = self.scale**2 * (STEADY + 1) - known
        if self.trend:
            variance += self.trend**2 * (basis(rows) ** 2).sum(axis=1)
        return kernel @ self._alpha, np.sqrt(np.maximum(variance, 0.0) + self.noise**2)


def _distances(rows: FloatArray, points: FloatArray, lengths: FloatArray) -> FloatArray:
    one, two = rows / lengths, points / lengths
    squares = (one**2).sum(axis=1)[:, None] + (two**2).sum(axis=1) - 2 * one @ two.T
    return np.maximum(squares, 0.0)


def basis(rows: FloatArray) -> FloatArray:
    """Return the features and their squares, which the trend is linear in."""
    return np.column_stack([rows, rows**2 - 1]) / np.sqrt(max(rows.shape[1], 1))


def fit(
    points: FloatArray,
    residual: FloatArray,
    scale: float,
    start: Process | None = None,
    own: FloatArray | float = 0.0,
    length: tuple[float, float] = (LENGTH, LENGTH_SPREAD),
    trend: bool = False,
) -> Process:
    """Return the process of the most probable length scales, scale and noise (maximum a posteriori).

    ``scale``: expected standard deviation of the residual, to begin with; ``start``: where the search begins;
    ``own``: known variance of each target; ``length``: what is expected of the length scales;
    ``trend``: whether a part linear and quadratic in every feature is allowed for.
    """
    from scipy.optimize import minimize

    features = points.shape[1]
    centre = np.log(np.r_[np.full(features, length[0]), scale, NOISE * scale])
    spread = np.r_[np.full(features, length[1]), SCALE_SPREAD, NOISE_SPREAD]
    if trend:
        centre, spread = np.r_[centre, np.log(TREND * scale)], np.r_[spread, TREND_SPREAD]
    begin = (
        centre
        if start is None
        else np.log(np.r_[start.lengths, start.scale, start.noise, [start.trend] * trend])
    )
    evidence = 0.0
    if len(points) >= 3:
        squares = (points[:, None, :] - points) ** 2
        tilt = basis(points) @ basis(points).T if trend else None
        found = minimize(
            _loss, begin, args=(squares, tilt, residual, centre, spread, own), jac=True, method="L-BFGS-B",
            bounds=[(c - 4 * s, c + 4 * s) for c, s in zip(centre, spread, strict=True)],
            options={"maxiter": 60},
        )  # fmt: skip
        begin, evidence = found.x, -float(found.fun)
    values = np.exp(begin)
    lengths, (scale, noise) = values[:features], map(float, values[features : features + 2])
    return Process(
        points=points,
        residual=residual,
        lengths=lengths,
        scale=scale,
        noise=noise,
        own=own,
        evidence=evidence,
        trend=float(values[-1]) if trend else 0.0,
    )


def _loss(
    theta: FloatArray,
    squares: FloatArray,
    tilt: FloatArray | None,
    residual: FloatArray,
    centre: FloatArray,
    spread: FloatArray,
    own: FloatArray | float,
) -> tuple[float, FloatArray]:
    """Return the negative logarithm of the posterior of the parameters' logarithms, and its gradient."""
    features = squares.shape[2]
    lengths, scale, noise = np.exp(theta[:features]), np.exp(theta[features]), np.exp(theta[features + 1])
    smooth = scale**2 * np.exp(-0.5 * squares @ lengths**-2.0)
    kernel = smooth + STEADY * scale**2
    tilted = 0.0 if tilt is None else np.exp(2 * theta[-1]) * tilt
    covariance = kernel + tilted + np.eye(len(residual)) * (noise**2 + own)
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
        *([] if tilt is None else [np.sum(outer * tilted)]),
    ]
    return float(value), gradient + away / spread
