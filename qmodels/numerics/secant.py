"""Larger steps towards a fixed point, from the two last ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray

FARTHEST = 4.0
"""By how many times the last change of the answers a step may go beyond them."""
NARROW = 0.3
"""Largest share of a number by which it is changed."""


@dataclass(eq=False)
class Secant:
    r"""The secant method for several positive numbers that one direction leads to their fixed point.

    Notes
    -----
    With the numbers :math:`x_k` that were asked for, the answers :math:`f_k` and :math:`r_k = f_k - x_k` in
    shares of the numbers,

    .. math:: x_{k+1} = f_k - \theta (f_k - f_{k-1}), \qquad
              \theta = \frac{(r_k - r_{k-1}) \cdot r_k}{|r_k - r_{k-1}|^2},

    Anderson's mixing [1]_ of depth one. Answers that are far away are taken as they are.

    References
    ----------
    .. [1] D. G. Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12, 1965.

    Examples
    --------
    >>> secant, x = Secant(), np.array([1.0])
    >>> for _ in range(6):
    ...     x = secant.after(x, np.cos(x))
    >>> bool(abs(np.cos(x) - x)[0] < 1e-6)
    True
    """

    asked: FloatArray | None = None
    found: FloatArray | None = None

    def after(self, asked: FloatArray, found: FloatArray) -> FloatArray:
        """Return the next point to evaluate."""
        before, self.asked, self.found = (self.asked, self.found), asked, found
        if before[0] is None or before[1] is None or np.any(found <= 0) or np.any(asked <= 0):
            return found
        now, last = found / asked - 1, before[1] / np.where(before[0] > 0, before[0], 1.0) - 1
        change = now - last
        if not change @ change > 0:
            return found
        step = float(np.clip(change @ now / (change @ change), -FARTHEST, FARTHEST))
        following = np.asarray(found - step * (found - before[1]))
        # Between the two last it is safe, beyond them where both were near.
        if 0 <= step <= 1:
            return following
        near = max(np.abs(now).max(), np.abs(last).max()) <= NARROW
        return np.clip(following, (1 - NARROW) * found, (1 + NARROW) * found) if near else found
