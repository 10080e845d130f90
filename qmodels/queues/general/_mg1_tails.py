"""Tails of waiting and response time of M/G/1, with the relative accuracy that rare levels need."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import comb
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.elementary import Exponentials
from qmodels.laws.formulas import Formulas
from qmodels.laws.phases import Phases
from qmodels.numerics.poisson import ExponentialSeries
from qmodels.numerics.quantile import quantile

_BISECTIONS = 200
_WORST = 0.01
"""Largest estimated error of a tail, relative, of which a quantile is given."""


class MG1Tails:
    """P(W > t) and P(W + S > t) of M/G/1 for t >= 0; 1 where ``idle = 1 - rho`` is not positive."""

    def __init__(self, service: Formulas, rho: FloatArray, idle: FloatArray, scale: FloatArray) -> None:
        self.service, self.scale = service, scale
        self.stable = idle > 0
        self.busy, self.idle = np.broadcast_arrays(
            np.where(self.stable, rho, 0.0), np.where(self.stable, idle, 1.0)
        )

    def waiting(self, t: FloatArray) -> FloatArray:
        """Return P(W > t)."""
        return self._with_error(t, False)[0]

    def response(self, t: FloatArray) -> FloatArray:
        """Return P(W + S > t)."""
        return self._with_error(t, True)[0]

    def waiting_quantile(self, p: FloatArray) -> FloatArray:
        """Return the quantile of W, or refuse it."""
        return self._quantile(p, False)

    def response_quantile(self, p: FloatArray) -> FloatArray:
        """Return the quantile of W + S, or refuse it."""
        return self._quantile(p, True)

    def _quantile(self, p: FloatArray, with_service: bool) -> FloatArray:
        found = np.asarray(quantile(lambda t: self._with_error(t, with_service)[0], p, scale=self.scale))
        error = self._with_error(np.where(np.isfinite(found), found, 0.0), with_service)[1]
        wrong = np.isfinite(found) & (found > 0) & (error > _WORST * (1 - p))
        if wrong.any():
            level = float(np.max(np.broadcast_to(p, wrong.shape)[wrong]))
            raise ValueError(
                f"p must be a level that the inversion of the transform resolves for this service law, "
                f"got {level:.17g}, where 1 - p is off by {float(np.max(error[wrong])):.2g}"
            )
        return found

    def _with_error(self, t: FloatArray, with_service: bool) -> tuple[FloatArray, FloatArray]:
        shape = np.broadcast_shapes(self.busy.shape, t.shape)
        later = np.broadcast_to(np.where(t > 0, t, 1.0), shape)
        tail, error = self._later(later, with_service)
        alone = self.service.tail(later) if with_service else 0.0
        served = self.busy > 0
        tail = np.where(served, np.clip(tail, 0.0, 1.0), alone)
        tail = np.where(self.stable, np.where(t > 0, tail, 1.0 if with_service else self.busy), 1.0)
        return tail, np.where(self.stable & served & (t > 0), error, 0.0)

    def _later(self, t: FloatArray, with_service: bool) -> tuple[FloatArray, FloatArray]:
        if isinstance(self.service, Exponentials):
            rates, weights = self._exponentials
            weights = weights[1 if with_service else 0]
            tail = sum(w * np.exp(-r * t) for w, r in zip(weights, rates, strict=True))
            return np.asarray(tail), np.zeros(t.shape)
        if isinstance(self.service, Phases):
            return _phases(self.service, self.busy, self.idle, with_service, t), np.zeros(t.shape)
        return self._shifted_inversion(t, with_service)

    @cached_property
    def _exponentials(self) -> tuple[FloatArray, FloatArray]:
        assert isinstance(self.service, Exponentials)
        return _exponentials(self.service, self.busy, self.idle)

    @cached_property
    def _decay_rate(self) -> FloatArray:
        return decay_rate(self.service, self.busy)

    def _shifted_inversion(self, t: FloatArray, with_service: bool) -> tuple[FloatArray, FloatArray]:
        r"""Invert the transform along a line through its first pole.

        With :math:`-\theta` that pole, :math:`e^{\theta t} P(W > t)` tends to a constant [1]_: what
        the inversion does to it is an error relative to the tail, however rare.

        .. [1] W. Feller, *An Introduction to Probability Theory and Its Applications*, volume 2,
           Wiley, 1971, section XII.5 (the estimate of Cramer and Lundberg).
        """
        service, busy, idle, theta = self.service, self.busy, self.idle, self._decay_rate
        mean = service.moment(1)

        def transform(nodes: Any) -> Any:
            s = nodes - theta
            aged = service.residual_complement(s)
            work = idle + busy * aged
            wait = busy * aged / (s * work)
            if not with_service:
                return wait
            far = np.abs(s) * mean > 0.1  # where the complement is near 1 and would cancel
            scaled = np.where(far, s * mean, 1.0)
            residual = np.where(far, (1 - service.laplace(s)) / scaled, 1 - aged)
            return wait + idle / work * mean * residual

        value, error = invert_tail(transform, t)
        shrink = np.exp(-theta * t)
        return shrink * value, shrink * error


def decay_rate(service: Formulas, busy: FloatArray) -> FloatArray:
    r"""Return the largest :math:`\theta` up to the law's own decay with :math:`\rho\, R^*(-\theta) \le 1`.

    :math:`R^*` is the transform of the residual service time. 0 for a law whose transform is
    known on the right half plane only.
    """
    shape = np.broadcast_shapes(busy.shape, np.shape(service.moment(1)))
    high, low = np.broadcast_to(service.decay(), shape), np.zeros(shape)
    if not high.any():
        return low
    for _ in range(_BISECTIONS):
        middle = low + 0.5 * (high - low)
        if np.all((middle <= low) | (middle >= high)):
            break
        with np.errstate(all="ignore"):
            residual = 1 - np.real(service.residual_complement(-middle))
            small = busy * residual <= 1
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return np.where(busy > 0, low, 0.0)


def _phases(
    service: Phases, busy: FloatArray, idle: FloatArray, with_service: bool, t: FloatArray
) -> FloatArray:
    r"""Return the tail for a phase-type service, itself phase-type: a sum of positive terms.

    The wait has the generator :math:`T + \rho\, t\, \beta` and starts with :math:`\rho\beta`, where
    :math:`\beta` is the law of the phase of a residual service and t the rates of completion
    (Neuts, *Matrix-Geometric Solutions in Stochastic Models*, 1981, section 3.9).
    """
    n = service.phases
    aged = service.initial @ service.solve(np.eye(n)) / service.mean
    ends = service.exit_rates
    result = np.empty(t.shape)
    busy, idle = np.broadcast_to(busy, t.shape), np.broadcast_to(idle, t.shape)
    for load in np.unique(busy):
        mine = busy == load
        start, matrix = load * aged, service.generator + load * np.outer(ends, aged)
        if with_service:
            left = float(idle[mine][0])
            start = np.concatenate([start, left * service.initial])
            onward = left * np.outer(ends, service.initial)
            matrix = np.block([[matrix, onward], [np.zeros((n, n)), service.generator]])
        result[mine] = ExponentialSeries(start, matrix, np.ones(len(start)))(t[mine])
    return result


def _exponentials(service: Exponentials, busy: FloatArray, idle: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return rates, and weights in the tails of W and of W + S, for a hyperexponential service.

    One exponential per branch, all weights positive.

    The poles :math:`-\eta` solve :math:`\rho \sum_i q_i / (1 - \eta m_i) = 1` with
    :math:`q_i = p_i m_i / m`, one below each :math:`1/m_i`. Each is kept as its distance from the
    nearer of its two neighbours, so that none cancels, and weighs
    :math:`(1 - \rho) / (\rho A')` times :math:`1/\eta` (wait) or :math:`1/\eta + m/\rho`
    (response), where :math:`A' = \sum_i q_i m_i / (1 - \eta m_i)^2`.
    """
    weight = service.probabilities * service.means
    means, where = np.unique(service.means[weight > 0], return_inverse=True)
    share = np.bincount(where, weights=weight[weight > 0]) / weight.sum()
    means, share = means[::-1], share[::-1]
    ends = 1 / means  # ascending
    load, left = np.where(busy > 0, busy, 1.0)[..., None], idle[..., None]
    mean = float(service.moment(1))
    rates, weights = [], []
    for i, end in enumerate(ends):
        begin = ends[i - 1] if i else 0.0
        gap = end - begin
        half = load[..., 0] * np.sum(share * ends / (ends - (begin + gap / 2)), axis=-1) > 1
        # x from the lower neighbour, or -x from the upper one.
        origin = np.where(half & (i > 0), begin, end)[..., None]
        sign = np.where(half & (i > 0), 1.0, -1.0)[..., None]
        low, high = np.zeros(origin.shape), np.full(origin.shape, gap)
        for _ in range(_BISECTIONS):
            x = np.where(low > 0, np.sqrt(low) * np.sqrt(high), high * 1e-3)
            x = np.where(high < 2 * low, low + 0.5 * (high - low), x)
            distance = (ends - origin) - sign * x
            with np.errstate(divide="ignore", over="ignore"):
                above = load * np.sum(share * ends / distance, axis=-1, keepdims=True) > 1
            # Above 1 the root is lower: nearer to the lower neighbour, farther from the upper one.
            shrink = above == (sign > 0)
            low, high = np.where(shrink, low, x), np.where(shrink, x, high)
            if np.all(high - low <= 2e-16 * high):
                break
        x = 0.5 * (low + high)
        distance = (ends - origin) - sign * x
        rate = (origin + sign * x)[..., 0]
        slope = np.sum(share * ends / distance**2, axis=-1)
        factor = left[..., 0] / (load[..., 0] * slope)
        rates.append(rate)
        weights.append((factor / rate, factor * (1 / rate + mean / load[..., 0])))
    return np.array(rates), np.moveaxis(np.array(weights), 1, 0)


_DISCRETIZATION = 25.0  # error exp(-25) = 1e-11 of a tail probability, rounding error exp(12.5) eps = 6e-11
_TERMS, _AVERAGED = 40, 15
_WEIGHTS = np.array([comb(_AVERAGED, k) for k in range(_AVERAGED + 1)]) / 2.0**_AVERAGED
_ROUNDING = np.finfo(float).eps


def invert_tail(transform: Callable[[Any], Any], t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return f(t) for t > 0 from its Laplace transform, f bounded and smooth at t, and its error.

    The Euler algorithm of J. Abate and W. Whitt, "Numerical inversion of Laplace transforms of
    probability distributions", ORSA Journal on Computing 7, 1995, pp. 36-43: a Fourier series
    summed with binomial averages of its partial sums. `transform` gets the nodes along a new
    first axis. The error is an estimate: what one term less would change, the rounding of the sum,
    and the discretization of a constant.
    """
    t = np.asarray(t, dtype=float)
    steps = np.arange(_TERMS + _AVERAGED + 1).reshape((-1,) + (1,) * t.ndim)
    nodes = (_DISCRETIZATION + 2j * np.pi * steps) / (2 * t)
    terms = np.real(transform(nodes)) * np.where(steps % 2, -1.0, 1.0)
    terms[0] *= 0.5
    partial_sums = np.cumsum(terms, axis=0)[_TERMS - 1 :]
    average = np.tensordot(_WEIGHTS, partial_sums[1:], axes=1)
    change = np.abs(average - np.tensordot(_WEIGHTS, partial_sums[:-1], axes=1))
    rounding = _ROUNDING * np.abs(terms).sum(axis=0)
    unit = np.exp(_DISCRETIZATION / 2) / t
    return unit * average, unit * (change + rounding) + np.exp(-_DISCRETIZATION)
