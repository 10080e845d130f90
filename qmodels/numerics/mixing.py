"""Larger steps towards a fixed point, from the last ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels.checks import FloatArray

DEPTH = 4
"""Changes from which a step is made, at most."""
FARTHEST = 4.0
"""By how many times the last change of the answers a step may go beyond them."""
NARROW = 0.3
"""Largest share of a number by which it is changed."""
PLAIN = 1e-3
"""Singular values of the changes, over the largest, below which a direction is none."""


@dataclass(eq=False)
class Mixing:
    r"""Anderson's mixing for several positive numbers; those that are not are taken as they are.

    Notes
    -----
    With the numbers :math:`x_k` that were asked for, the answers :math:`f_k` and :math:`r_k = f_k - x_k` in
    shares of the numbers [1]_,

    .. math:: x_{k+1} = f_k - \sum_j \theta_j (f_{k-j+1} - f_{k-j}), \qquad
              \theta = \arg\min |r_k - \sum_j \theta_j (r_{k-j+1} - r_{k-j})|.

    Far away it is of depth one, the secant method, and the answers are taken as they are where that would go
    beyond the last two.

    References
    ----------
    .. [1] D. G. Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12, 1965.

    Examples
    --------
    >>> mixing, x = Mixing(), np.array([1.0])
    >>> for _ in range(6):
    ...     x = mixing.after(x, np.cos(x))
    >>> bool(abs(np.cos(x) - x)[0] < 1e-6)
    True
    """

    asked: list[FloatArray] = field(default_factory=list)
    found: list[FloatArray] = field(default_factory=list)

    def after(self, asked: FloatArray, found: FloatArray) -> FloatArray:
        """Return the next point to evaluate."""
        if asked.size != found.size:
            return found
        if self.asked and self.asked[-1].size != found.size:
            self.asked, self.found = [], []
        self.asked, self.found = [*self.asked[-DEPTH:], asked], [*self.found[-DEPTH:], found]
        before, answers = np.array(self.asked), np.array(self.found)
        some = np.all((before > 0) & (answers > 0) & np.isfinite(before) & np.isfinite(answers), axis=0)
        if len(before) < 2 or not some.any():
            return found
        before, answers = before[:, some], answers[:, some]
        left = answers / before - 1
        near = np.abs(left).max(axis=1) <= NARROW
        run = len(near) if near.all() else int(np.argmin(near[::-1]))
        # No more changes than numbers, lest they say the same.
        first = len(near) - min(max(run, 2), left.shape[1] + 1)
        changes, moves = np.diff(left[first:], axis=0), np.diff(answers[first:], axis=0)
        steps = np.linalg.lstsq(changes.T, left[-1], rcond=PLAIN)[0]
        following = answers[-1] - np.clip(steps, -FARTHEST, FARTHEST) @ moves
        if near[-2:].all():
            following = np.clip(following, (1 - NARROW) * answers[-1], (1 + NARROW) * answers[-1])
        elif not 0 <= steps[-1] <= 1:
            following = answers[-1]
        result = found.copy()
        result[some] = following
        return result


def numbers_in(*tables: dict[Any, float]) -> FloatArray:
    """Return the numbers of tables, one after the other."""
    return np.array([number for table in tables for number in table.values()])


def put_into(numbers: FloatArray, *tables: dict[Any, float]) -> None:
    """Put as many numbers into tables, in their order."""
    left = iter(numbers.tolist())
    for table in tables:
        table |= {key: next(left) for key in table}
