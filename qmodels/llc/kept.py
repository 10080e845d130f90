"""LRU caches by the Erlang time that a line stays, and a shared level whose lines stay when found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.llc.hierarchy import private_levels

STEPS, CLOSE = 60, 1e-5
FOREVER = 1e-12
"""Rate of a stage that no line outlasts, by that of the other lines."""
TINY = 1e-280


def kept_levels(
    *,
    popularity: FloatArray,
    count: FloatArray,
    cores: int,
    private: Sequence[int],
    shared: npt.ArrayLike,
    slice_of_line: IntArray | None = None,
) -> FloatArray:
    r"""Where requests hit when victims move down, and what the shared level has stays there when found.

    ``popularity``, ``count``: probability that a request is for one line, and how many lines there are of
    each; ``cores``: cores, each with private levels of its own and an equal share of independent requests;
    ``private``: lines of each private level; ``shared``: lines of the shared level, or of each of its slices;
    0 for none; ``slice_of_line``: slice of each line, where there are several. Returns probability that a
    request that reaches the level hits there, the shared level last.

    A core's private levels together are one LRU cache of the sum of their sizes: see `lru_held` for it, and
    `kept_hit` for the shared level.
    """
    p, number = popularity[None], count[None]
    result, before = private_levels(private, lambda lines: lru_held(p, number, lines)[0], len(popularity))
    sizes = np.atleast_1d(np.asarray(shared, dtype=np.int64))
    if sizes.sum() == 0:
        return np.array(result)
    slices = np.zeros(len(popularity), dtype=np.int64) if slice_of_line is None else slice_of_line
    order = np.argsort(slices, kind="stable")
    mine = np.bincount(slices, minlength=len(sizes))
    column = np.arange(len(order)) - np.repeat(np.cumsum(mine) - mine, mine)

    def by_slice(values: FloatArray) -> FloatArray:
        rows = np.zeros((len(sizes), int(mine.max())))
        rows[slices[order], column] = values[order]
        return rows

    rate, own, number = (by_slice(v) for v in (popularity * (1.0 - before), popularity / cores, count))
    hit = np.zeros_like(popularity)
    hit[order] = kept_hit(rate, own, number, sizes, cores)[slices[order], column]
    return np.array([*result, np.where(popularity > 0, hit, 0.0)])


def lru_held(p: FloatArray, count: FloatArray, lines: int) -> FloatArray:
    r"""Return the probability that an LRU cache holds each line, for each row of lines.

    A line that is requested with probability p stays in a cache of m lines until m others
    were requested. The time to that is taken to be Erlang of m stages, each at a rate in
    proportion to the requests of the others:

    .. math:: h = 1 - q(p), \quad q(p) = \left(1 + \frac{p}{\kappa (P - p)}\right)^{-m},
              \quad \sum h = m,

    where P is the sum of all p. It is exact for m = 1, and for many lines the characteristic-time
    approximation.
    """

    def held(stage: FloatArray) -> FloatArray:
        return 1.0 - outlived(p, stage, lines)

    return held(stage_rates(p, count, np.full((len(p), 1), float(lines)), held))


def kept_hit(rate: FloatArray, own: FloatArray, count: FloatArray, lines: IntArray, cores: int) -> FloatArray:
    r"""Return the probability that a request finds each line in a shared level where it stays when found.

    ``rate``: requests of all cores for each line, a row for each slice [1/time]; ``own``: requests of one
    core for it, those that its private caches answer included [1/time]; ``count``: lines of each kind;
    ``lines``: that each slice holds.

    Cores evict a line at the rate :math:`\nu` at which they ask the level for it. With these as Poisson
    streams it is there for a share of time

    .. math:: o = \frac{1 - q(2\nu)}{1 + q(2\nu)}, \quad \sum o = m

    with q as in `lru_held`, the sums over the lines of the slice, and a core that asks for what it evicted
    itself finds it if it comes back in time, whatever the others do. Approximation.
    """
    stages = lines[:, None]

    def present(stage: FloatArray, share: float = 1.0) -> FloatArray:
        gone = outlived(2.0 * share * rate, stage, stages)
        return (1.0 - gone) / (1.0 + gone)

    stage = stage_rates(rate, count, stages.astype(float), present)
    others = present(stage, (cores - 1) / cores)
    return 1.0 - outlived(own, stage, stages) * (1.0 - others)


def outlived(rate: FloatArray, stage: FloatArray, stages: int | IntArray) -> FloatArray:
    """Return the probability that nothing of this rate happens in an Erlang time."""
    return np.asarray(np.exp(-stages * np.log1p(rate / stage)))


def stage_rates(
    rate: FloatArray,
    count: FloatArray,
    held: FloatArray,
    present: Callable[[FloatArray], FloatArray],
    start: FloatArray | None = None,
) -> FloatArray:
    """Return the rate of each line's stages, such that in every row as many lines are present as are held.

    In proportion to the rate at which the other lines of the row come. Rows that cannot hold so many
    keep what they have for ever. ``start`` may be the rates for nearly the same ``held``.
    """
    total = (count * rate).sum(axis=1, keepdims=True)
    others = np.maximum(total - rate, np.maximum(1e-9 * total, TINY))
    wanted = count * (rate > 0)
    most = (wanted * present(FOREVER * others)).sum(axis=1, keepdims=True)
    fits = held >= most * (1 - 1e-9)
    target = np.where(fits, 0.5 * most, held)
    goal = np.log(np.maximum(target, TINY) / np.maximum(most - target, TINY))
    level = np.zeros_like(goal)
    if start is not None:
        near = np.log(start / others)[:, :1]
        level = np.where(near > -10.0, near, level)
    slope = np.full_like(goal, -1.0)
    before = step = None
    # The secant method on the logit of the share against the logarithm of the rate: nearly a straight line.
    for _ in range(STEPS):
        there = (wanted * present(others * np.exp(level))).sum(axis=1, keepdims=True)
        now = np.log(np.maximum(there, TINY) / np.maximum(most - there, TINY))
        if before is not None and step is not None:
            moved = np.abs(step) > CLOSE / 100.0
            slope = np.where(moved, np.clip((now - before) / np.where(moved, step, 1.0), -10.0, -0.1), slope)
        before, step = now, np.where(fits, 0.0, np.clip((goal - now) / slope, -3.0, 3.0))
        level = level + step
        if np.abs(step).max() < CLOSE:
            break
    return np.asarray(np.where(fits, FOREVER, np.exp(level)) * others)
