"""Which designs are worth a simulation: those of which it can still change whether they are taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optimize.checks import Range
from optimize.decisions.decision import BoolArray
from optimize.search.pareto import FloatArray, IntArray, ideal_distance, nondominated

DRAWS = 32
"""Possible truths that are drawn."""

QUANTILE = 1.645
"""Half a 90 % interval in standard deviations of a normal distribution."""

AT_RANDOM = 1 / 3
"""Share of the simulations whose designs are drawn from all, so that intervals hold for all."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """Means and covariances of some rows."""

    rows: IntArray  # which
    # low, best, high: objectives and limited metrics.
    low: dict[str, FloatArray]
    best: dict[str, FloatArray]
    high: dict[str, FloatArray]
    stable: FloatArray  # probability that each keeps up


def chances(
    known: Known,
    *,
    minimize: tuple[str, ...],
    maximize: tuple[str, ...],
    subject_to: dict[str, Range],
    seed: int,
) -> tuple[FloatArray, FloatArray]:
    """Return for each row the probability to be on the front, and that to be its knee.

    Every metric is drawn from two half normal distributions that have the interval's ends at
    their 5 and 95 %, independently of the others.
    """
    rng = np.random.default_rng(seed)
    count, goals = len(known.rows), minimize + maximize
    mask = [name in maximize for name in goals]
    front, knee = np.zeros(count), np.zeros(count)
    for _ in range(DRAWS if count else 0):
        drawn = {}
        for name, best in known.best.items():
            normal = rng.standard_normal(count) / QUANTILE
            with np.errstate(invalid="ignore"):
                away = np.where(normal > 0, known.high[name] - best, best - known.low[name])
            drawn[name] = best + normal * np.where(np.isfinite(away), away, 0.0)
        able = rng.random(count) < known.stable
        for name, (least, most) in subject_to.items():
            able &= (drawn[name] >= (-np.inf if least is None else least)) & (
                drawn[name] <= (np.inf if most is None else most)
            )
        rows = np.flatnonzero(able & np.isfinite([drawn[name] for name in goals]).all(axis=0))
        values = np.stack([drawn[name][rows] for name in goals], axis=1)
        on = np.flatnonzero(nondominated(values, maximize=mask)) if len(rows) else rows
        if len(on):
            front[rows[on]] += 1
            nearest = ideal_distance(values[on], values[on], maximize=mask).argmin()
            knee[rows[on[nearest]]] += 1
    return front / DRAWS, knee / DRAWS


def next_rows(
    count: int,
    *,
    first: int | None,
    known: Known,
    front: FloatArray,
    knee: FloatArray,
    free: BoolArray,
    population: IntArray,
    seed: int,
) -> IntArray:
    """Return the rows to simulate next.

    ``first``: the one that must be among them: the design that would be chosen; ``known``, ``front``,
    ``knee``: see `chances`; ``free``: which of all rows may be simulated; ``population``: rows of which some
    are drawn at random.

    A third is drawn from all designs, a quarter of the rest are those likeliest to be the knee, and
    the others are drawn in proportion to the entropy of being on the front.
    """
    rng = np.random.default_rng(seed)
    picked: list[int] = [] if first is None else [first]
    free = free.copy()
    free[picked] = False

    def take(rows: IntArray) -> None:
        picked.extend(rows.tolist())
        free[rows] = False

    rest = max(count - len(picked), 0)
    at_random = min(round(rest * AT_RANDOM), int(free[population].sum()))
    take(rng.choice(population[free[population]], at_random, replace=False))
    likely = np.argsort(-knee, kind="stable")[: max(count - len(picked), 0) // 4]
    likely = known.rows[likely[knee[likely] > 0]]
    take(likely[free[likely]])
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = np.nan_to_num(-front * np.log(front) - (1 - front) * np.log(1 - front))
    weight = np.where(free[known.rows], entropy + 1e-6, 0.0)
    wanted = min(max(count - len(picked), 0), int((weight > 0).sum()))
    if wanted:
        take(known.rows[rng.choice(len(weight), wanted, replace=False, p=weight / weight.sum())])
    return np.array(picked[: max(count, 1)], dtype=np.int64)
