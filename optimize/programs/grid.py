"""Whether an integer program can tell its sums apart: values on a grid that is not too fine."""

from __future__ import annotations

import numpy as np

from optimize.search.pareto import FloatArray

RESOLUTION = 1e-6
"""Differences that programs tell apart, in the largest range of an objective within a component."""


def grid_step(numbers: FloatArray, sizes: FloatArray) -> float | None:
    """Return the step of the grid that numbers lie on, up to the rounding they have.

    By Euclid's algorithm; as 1 is one of the numbers, the step is one over a whole number.

    ``numbers``: from 0 to 1, 1 among them if any is above 0; ``sizes``: what each was rounded at: the size of
    what it was computed from. Returns none if the step is finer than 1e-5.

    >>> grid_step(np.array([0.0, 0.3, 1.0]), np.array([0.0, 0.3, 1.0]))
    0.1
    >>> grid_step(np.array([0.0, 1e-20, 1.0]), np.array([0.0, 1e-20, 1.0])) is None
    True
    """
    step = 1.0
    for level in np.unique(numbers).tolist():
        a, b = step, level
        while b > RESOLUTION:
            a, b = b, a % b
            b = 0.0 if a - b < RESOLUTION else b
        step = a
        if step < 10 * RESOLUTION:
            return None
    count = np.round(1 / step)
    off_grid = np.abs(numbers - np.round(numbers * count) / count)
    rounding = np.minimum(4 * float(np.finfo(float).eps) * (numbers + sizes), RESOLUTION / 10)
    return float(1 / count) if (off_grid <= rounding).all() else None
