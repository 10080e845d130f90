"""Numerical inversion of a Laplace transform."""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import Any

import numpy as np

from qmodels.checks import FloatArray

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
