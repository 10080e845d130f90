"""Quasi-birth-death processes: levels without end, finitely many phases in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.chains.stationary import ROW_SUM_TOLERANCE, single_class_law
from qmodels.markov.words import described
from qmodels.numerics.elimination import solve_transient

CRITICAL = 1e-12
"""Relative margin of the drift below which a process counts as critical, hence unstable."""


@dataclass(frozen=True, kw_only=True, eq=False)
class QBDResult:
    r"""Steady state of a QBD process, in matrix-geometric form.

    Parameters
    ----------
    stable : bool
        Whether a steady state exists.
    drift_ratio : float
        Mean rate up over mean rate down at high levels; stable below 1 (in a queue: the traffic
        intensity).
    boundary : array
        Probabilities of the phases of level 0 (0 where unstable).
    first : array
        Probabilities of the phases of level 1, :math:`\pi_1` (0 where unstable).
    rate_matrix : array
        R, with :math:`\pi_{n+1} = \pi_n R` for :math:`n \ge 1`.
    first_passage_matrix : array
        G, the law of the phase at the first visit to the next lower level.
    """

    stable: bool
    drift_ratio: float
    boundary: FloatArray
    first: FloatArray
    rate_matrix: FloatArray
    first_passage_matrix: FloatArray

    def level_phases(self, n: int) -> FloatArray:
        """Return the probabilities of the phases of level n."""
        level = int(checks.count("n", n, minimum=0))
        if level == 0:
            return self.boundary
        return np.asarray(self.first @ np.linalg.matrix_power(self.rate_matrix, level - 1))

    def level_probability(self, n: npt.ArrayLike) -> FloatArray:
        """Return the probability of level n (0 where unstable)."""
        levels = checks.count("n", n, minimum=0)
        found = {level: self.level_phases(level).sum() for level in np.unique(levels).tolist()}
        return np.array([found[level] for level in levels.ravel().tolist()]).reshape(levels.shape)[()]

    def level_tail(self, n: npt.ArrayLike) -> FloatArray:
        """Return the probability of level n and above (1 where unstable)."""
        levels = checks.count("n", n, minimum=0)
        if not self.stable:
            return np.ones(levels.shape)[()]
        found = {
            level: float(self.level_phases(level) @ self._beyond) if level else 1.0
            for level in np.unique(levels).tolist()
        }
        return np.array([found[level] for level in levels.ravel().tolist()]).reshape(levels.shape)[()]

    @property
    def mean_level(self) -> float:
        """Mean level; ``inf`` where unstable."""
        return self.mean_above(0)

    def mean_above(self, n: int) -> float:
        """Return the mean excess of the level over n, E[(level - n)+]; ``inf`` where unstable."""
        levels = int(checks.count("n", n, minimum=0))
        if not self.stable:
            return np.inf
        return float(self.level_phases(levels + 1) @ self._resolve(self._beyond))

    @property
    def level_variance(self) -> float:
        """Variance of the level; ``inf`` where unstable."""
        if not self.stable:
            return np.inf
        twice = self._resolve(self._beyond)
        second = 2 * self.first @ self._resolve(self.rate_matrix @ twice) + self.first @ twice
        return float(second - self.mean_level**2)

    @cached_property
    def decay_rate(self) -> float:
        """Ratio of successive level probabilities far up; 1 where unstable."""
        return float(np.max(np.abs(np.linalg.eigvals(self.rate_matrix)))) if self.stable else 1.0

    @cached_property
    def _beyond(self) -> FloatArray:
        return self._resolve(np.ones(self.first.size))

    def _resolve(self, right: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(np.eye(self.first.size) - self.rate_matrix, right))


@described("latouche1993")
def qbd(
    *,
    up: npt.ArrayLike,
    local: npt.ArrayLike,
    down: npt.ArrayLike,
    boundary_local: npt.ArrayLike,
    boundary_up: npt.ArrayLike | None = None,
    boundary_down: npt.ArrayLike | None = None,
) -> QBDResult:
    r"""Steady state of a quasi-birth-death process.

    Parameters
    ----------
    up, local, down : array_like, shape (m, m)
        Rates from a level >= 1 to the next higher level, within the level and (from level 2 on)
        to the next lower one; the diagonal of `local` makes the rows of all three sum to 0.
        [1 / time]
    boundary_local : array_like, shape (b, b)
        Rates within level 0, which may have phases of its own (and may gather several levels
        that differ from the rest). [1 / time]
    boundary_up : array_like, shape (b, m), optional
        Rates from level 0 to level 1; `up` by default.
    boundary_down : array_like, shape (m, b), optional
        Rates from level 1 to level 0; `down` by default. Its row sums are those of `down`.

    Returns
    -------
    Where the drift is not downwards (to 1e-12): stable False, infinite mean, tail 1.

    Raises
    ------
    If shapes do not fit, a rate is negative, a row does not sum to 0, or the phases of high
    levels have several closed classes.

    Notes
    -----
    Stable iff :math:`\theta A_0 \mathbf{1} < \theta A_2 \mathbf{1}` with
    :math:`\theta (A_0 + A_1 + A_2) = 0`. G comes from logarithmic reduction [1]_, in which every
    inverse is an elimination without subtraction;

    .. math:: R = A_0 (-A_1 - A_0 G)^{-1}, \qquad \pi_n = \pi_1 R^{n-1},

    and levels 0 and 1 from the chain censored on them. R is exact to rounding; the mean and the
    tail lose the factor 1 / (1 - decay rate) of it.

    Examples
    --------
    An M/M/1 queue whose server slows down to a quarter of its rate at times:

    >>> service = np.diag([2.0, 0.5])
    >>> mode = np.array([[-0.1, 0.1], [0.4, -0.4]])
    >>> arrivals = np.eye(2)
    >>> q = qbd(up=arrivals, local=mode - arrivals - service, down=service, boundary_local=mode - arrivals)
    >>> q.stable, round(q.drift_ratio, 4), round(q.mean_level, 4)
    (True, 0.5882, 1.9381)
    """
    a0, a1, a2, b0, b_up, b_down = _blocks(up, local, down, boundary_local, boundary_up, boundary_down)
    m, b = len(a1), len(b0)
    inner = a1 - np.diag(np.diagonal(a1))
    theta = single_class_law("up + local + down", a0 + inner + a2)
    rise, fall = float(theta @ a0.sum(axis=1)), float(theta @ a2.sum(axis=1))
    stable = rise < fall * (1 - CRITICAL)
    g = first_passage(a0, inner, a2)
    if stable:
        g = g / g.sum(axis=1, keepdims=True)
    escape = np.maximum(1.0 - g.sum(axis=1), 0.0)
    within = inner + a0 @ g
    leave = a2.sum(axis=1) + a0 @ escape
    rate_matrix = a0 @ solve_transient(within, leave, np.eye(m))
    boundary, first = np.zeros(b), np.zeros(m)
    if stable:
        censored = np.block([[b0, b_up], [b_down, within]])
        weights = single_class_law("level 0 and 1", censored)
        boundary, first = weights[:b], weights[b:]
        total = boundary.sum() + first @ np.linalg.solve(np.eye(m) - rate_matrix, np.ones(m))
        boundary, first = boundary / total, first / total
    return QBDResult(
        stable=stable,
        drift_ratio=rise / fall if fall > 0 else np.inf,
        boundary=boundary,
        first=first,
        rate_matrix=rate_matrix,
        first_passage_matrix=g,
    )


def _blocks(
    up: Any, local: Any, down: Any, boundary_local: Any, boundary_up: Any, boundary_down: Any
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Check the blocks and return them all."""
    a0, a2 = _block("up", up), _block("down", down)
    a1 = _block("local", local, signed=True)
    b0 = _block("boundary_local", boundary_local, signed=True)
    b_up = a0 if boundary_up is None else _block("boundary_up", boundary_up)
    b_down = a2 if boundary_down is None else _block("boundary_down", boundary_down)
    m, b = len(a1), len(b0)
    shapes = {
        "local": (a1, (m, m)),
        "up": (a0, (m, m)),
        "down": (a2, (m, m)),
        "boundary_local": (b0, (b, b)),
        "boundary_up": (b_up, (b, m)),
        "boundary_down": (b_down, (m, b)),
    }
    for name, (block, wanted) in shapes.items():
        if block.shape != wanted:
            raise ValueError(f"{name} must have shape {wanted}, got {block.shape}")
    _require_zero_sums("up + local + down", a0, a1, a2)
    _require_zero_sums("boundary_up + boundary_local", b_up, b0)
    _require_zero_sums("boundary_down - down", b_down, -a2)
    return a0, a1, a2, b0, b_up, b_down


def first_passage(up: FloatArray, inner: FloatArray, down: FloatArray) -> FloatArray:
    """Return G by logarithmic reduction; `inner` holds the off-diagonal rates within a level."""
    m = len(up)
    step = solve_transient(inner, up.sum(axis=1) + down.sum(axis=1), np.concatenate([up, down], axis=1))
    high, low = step[:, :m], step[:, m:]
    g, reach = low.copy(), high.copy()
    for _ in range(100):  # doubles the levels reached: 40 even within 1e-12 of the critical load
        squares = np.concatenate([high @ high, low @ low], axis=1)
        step = solve_transient(high @ low + low @ high, squares.sum(axis=1), squares)
        high, low = step[:, :m], step[:, m:]
        gain = reach @ low
        g = g + gain
        reach = reach @ high
        if np.all(gain <= 1e-17 * g):
            break
    return g


def _block(name: str, value: Any, *, signed: bool = False) -> FloatArray:
    block = checks.finite(name, value)
    if block.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got shape {block.shape}")
    wrong = block < 0
    if signed:
        np.fill_diagonal(wrong, False)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        where = " off the diagonal" if signed else ""
        raise ValueError(f"{name} must be >= 0{where}, got {block[i, j]:.12g} in row {i}, column {j}")
    return block


def _require_zero_sums(name: str, *blocks: FloatArray) -> None:
    sums = np.sum([block.sum(axis=1) for block in blocks], axis=0)
    scale = np.sum([np.abs(block).sum(axis=1) for block in blocks], axis=0)
    wrong = np.abs(sums) > ROW_SUM_TOLERANCE * scale
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"{name} must have rows that sum to 0, row {k} sums to {sums[k]:.12g}")
