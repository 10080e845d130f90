"""Levels of LRU caches: copies everywhere, inclusive, exclusive, and shared with lines that stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.llc.characteristic_time import hit_ratios, solve_time, solve_times
from qmodels.llc.victim import next_lines, occupied_lines, victim_level

LAGS = 40
"""Beyond n dead times the slowest exponential is the whole survival function."""


def miss_gap(*, rate: npt.ArrayLike, dead_time: npt.ArrayLike, time: npt.ArrayLike) -> tuple[Any, Any]:
    r"""Survival function of the time between misses of a line, and its integral from 0.

    ``rate``: requests for the line per unit of time, Poisson; ``dead_time``: characteristic time :math:`T` of
    the cache: a request within it of the one before is a hit; ``time``: where to evaluate, >= 0. Returns
    survival, integral: of the broadcast shape.

    With :math:`b = a e^{-aT}`, the rate of misses, the survival function solves

    .. math:: F'(x) = -b F(x - T), \quad F = 1 \text{ on } [0, T],

    so that :math:`F(x) = \sum_k (-b)^k (x - kT)_+^k / k!`. The sum is used up to 40 dead times;
    after that :math:`F(x) = e^{-\theta x} / (1 - \theta T)` with
    :math:`\theta = -W_0(-bT)/T`. Exact up to rounding (1e-6). Derived here: the busy periods of
    an M/D/infinity queue have the same transform.
    """
    a, dead, x = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (rate, dead_time, time)))
    shape = a.shape
    a, dead, x = (np.atleast_1d(v) for v in (a, dead, x))
    b = a * np.exp(-a * dead)
    series = x <= LAGS * dead
    near = np.where(series, x, LAGS * dead)
    survival, integral = _series(b, dead, near)
    if not series.all():
        far = ~series
        late, late_integral = _tail(b[far], dead[far], x[far], integral[far])
        survival[far], integral[far] = late, late_integral
    return np.clip(survival, 0.0, 1.0).reshape(shape)[()], integral.reshape(shape)[()]


def _series(b: FloatArray, dead: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.nanmax(np.where(dead > 0, x / dead, 0.0), initial=0.0)
    survival, integral = np.ones_like(x), x.copy()
    scale = np.ones_like(x)
    for k in range(1, min(LAGS, int(most)) + 1):
        rest = np.maximum(x - k * dead, 0.0)
        scale = scale * -b / k
        power = scale * rest**k
        survival = survival + power
        integral = integral + power * rest / (k + 1)
    return survival, integral


def _tail(b: FloatArray, dead: FloatArray, x: FloatArray, until: FloatArray) -> tuple[FloatArray, FloatArray]:
    from scipy.special import lambertw

    start = LAGS * dead
    product = b * dead
    # Near 1/e two exponentials meet; both have died out by then.
    slow = product < 0.36
    root = np.where(slow, -np.real(lambertw(np.where(slow, -product, 0.0), 0)), 0.0)
    decay = np.where(dead > 0, root / np.where(dead > 0, dead, 1.0), b)
    height = np.where(slow, 1.0 / (1.0 - root), 0.0)
    at_start = height * np.exp(-decay * start)
    survival = height * np.exp(-decay * x)
    span = x - start
    weight = np.where(decay * span > 1e-12, -np.expm1(-decay * span) / np.where(decay > 0, decay, 1.0), span)
    return survival, until + at_start * weight


ROUNDS = 12
"""Times that the lines held by slices that wait for victims are computed anew, at most."""
SETTLED = 1e-4
"""Share of a slice by which they then change, at most."""
SMALL = 1e-5
TINY = 1e-300


def copy_levels(
    *, popularity: FloatArray, count: FloatArray, cores: int, private: Sequence[int], shared: int
) -> FloatArray:
    r"""Where requests hit when every level a request passes keeps a copy.

    ``popularity``, ``count``: probability that a request is for one line, and how many lines there are of
    each; ``cores``: cores, each with private levels of its own and an equal share of independent requests;
    ``private``: lines of each private level; ``shared``: lines of the level shared by all, 0 for none.
    Returns probability that a request that reaches the level hits there, the shared level last.

    The misses of a line at an LRU level form a renewal process with a dead time
    (`qmodels.llc.hierarchy`). A request reaches the next level after a gap with survival function
    :math:`F`, and hits if the gap is within that level's characteristic time :math:`T_2`:
    :math:`1 - F(T_2)`; with other cores, whose last miss is longer ago with probability
    :math:`1 - b \int_0^{T_2} F`, :math:`1 - F(T_2) (1 - b \int_0^{T_2} F)^{C-1}`. The lines held
    at a random moment fill the level. Misses of a later level are those of a dead time that gives
    the same rate.

    Approximation (constant characteristic times). Measured against simulation, two levels: see
    `tests/qmodels/llc/test_hierarchy.py`.
    """
    # A few nodes say how full caches are; what becomes of each line follows from that.
    node, number = smooth_nodes(popularity, count)
    few = node.size
    rate = np.append(node, popularity) / cores
    result, dead = [], np.zeros_like(rate)
    levels = [(lines, 1) for lines in private] + ([(shared, cores)] if shared else [])
    for lines, sharers in levels:
        if lines >= count[popularity > 0].sum():
            # Nothing is ever missed again.
            result.append(np.where(rate > 0, 1.0, 0.0))
            break
        missed = rate * np.exp(-rate * dead)

        def held(
            time: float, missed: FloatArray = missed[:few], dead: FloatArray = dead[:few], n: int = sharers
        ) -> tuple[FloatArray, FloatArray]:
            survival, integral = miss_gap(rate=rate[:few], dead_time=dead, time=time)
            absent = np.maximum(1.0 - missed * integral, 0.0)
            return 1.0 - absent**n, n * absent ** (n - 1) * missed * survival * time

        time = solve_time(held, number, lines, longest=_longest(missed))
        survival, integral = miss_gap(rate=rate, dead_time=dead, time=time)
        absent = np.maximum(1.0 - missed * integral, 0.0)
        result.append(1.0 - survival * absent ** (sharers - 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            dead = np.where(rate > 0, dead - np.log(survival) / rate, dead)
    while len(result) < len(levels):
        result.append(np.zeros_like(rate))
    return np.array(result)[:, few:]


def inclusive_levels(*, popularity: FloatArray, count: FloatArray, first: int, second: int) -> FloatArray:
    r"""Where requests hit with two levels of which the second holds all that the first one does.

    ``popularity``, ``count``: probability that a request is for one line, and how many lines there are of
    each; ``first``, ``second``: lines of the two levels; what the second evicts leaves the first as well.
    Returns probability that a request that reaches the level hits there.

    A line that is missed at the first level stays in the second for :math:`T_2`, unless it is
    missed again, and in the first for a busy period of gaps below :math:`T_1`, at most until
    :math:`T_2`. With the survival function :math:`F` of the gap between misses of an LRU cache,
    the mean time between misses is :math:`\int_0^{T_2} F + F(T_2) / a`.
    Approximation (constant characteristic times), derived here.
    """
    if second >= count[popularity > 0].sum():
        both = np.zeros((2, len(popularity)))
        both[0] = hit_ratios(popularity=popularity, capacity=first, count=count)
        both[1] = popularity > 0
        return both
    a = np.where(popularity > 0, popularity, 1.0)
    wanted = (popularity > 0).astype(float)

    def cycle(one: float, two: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        survival, integral = miss_gap(rate=a, dead_time=one, time=two)
        return survival, integral, integral + survival / a

    def first_held(one: float, two: float) -> FloatArray:
        survival, integral, length = cycle(one, two)
        return np.asarray(wanted * (integral - (1.0 - survival) / a) / length)

    def second_held(one: float, two: float) -> FloatArray:
        _, integral, length = cycle(one, two)
        return np.asarray(wanted * integral / length)

    def sloped(held: Callable[[float], FloatArray]) -> Callable[[float], tuple[FloatArray, FloatArray]]:
        def both(time: float) -> tuple[FloatArray, FloatArray]:
            here = held(time)
            return here, (held(time * (1.0 + SMALL)) - here) / SMALL

        return both

    longest = _longest(popularity)
    one = two = 0.0
    for _ in range(100):
        before = one, two
        two = solve_time(sloped(partial(second_held, one)), count, second, longest=longest)
        one = solve_time(sloped(partial(first_held, two=two)), count, first, longest=two)
        if np.allclose(before, (one, two), rtol=1e-9):
            break
    survival, _, length = cycle(one, two)
    return np.array([wanted * (1.0 - 1.0 / (a * length)), wanted * (1.0 - survival)])


def exclusive_levels(
    *,
    popularity: FloatArray,
    count: FloatArray,
    cores: int,
    private: Sequence[int],
    shared: npt.ArrayLike,
    slice_of_line: IntArray | None = None,
) -> FloatArray:
    r"""Where requests hit when a line stands in one level only and moves down as a victim.

    A hit moves the line to the core's first level; each level's victim goes to the next one, the
    last private level's to the shared one.

    ``popularity``, ``count``: probability that a request is for one line, and how many lines there are of
    each; ``cores``: cores, each with private levels of its own and an equal share of independent requests;
    ``private``: lines of each private level; ``shared``: lines of the shared level, or of each of its slices;
    0 for none; ``slice_of_line``: slice of each line, where there are several. Returns probability that a
    request that reaches the level hits there, the shared level last.

    A core's private levels together are one LRU cache of the sum of their sizes: exact. The shared level
    and its slices: `qmodels.llc.victim`. With one core this is LRU with the sum of all sizes.
    Approximation (constant characteristic times); measured errors in `tests/qmodels/llc/test_hierarchy.py`.
    """
    result, before = private_levels(
        private, lambda lines: hit_ratios(popularity=popularity, capacity=lines, count=count), len(popularity)
    )
    sizes = np.atleast_1d(np.asarray(shared, dtype=float))
    if sizes.sum() == 0:
        return np.array(result)
    rate, out = popularity / cores, 1.0 - before
    if not np.any(rate * out > 0):  # nothing ever leaves the private levels
        return np.array([*result, np.zeros_like(popularity)])
    group = np.zeros(len(rate), dtype=np.int64) if slice_of_line is None else slice_of_line

    def held(time: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, present, expired = victim_level(rate=rate, out=out, cores=cores, time=time)
        return present, cores * out * rate * time * expired

    def by_slice(weights: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(group, weights=weights, minlength=len(sizes)), dtype=float)

    longest = _longest(rate * out)
    asked = by_slice(count * popularity * out)
    per_request = 1.0 / np.maximum(asked, TINY)
    private_lines = by_slice(count * cores * (1.0 - out))
    full, time, change = sizes, None, None
    for _ in range(ROUNDS):
        time = solve_times(held, count=count, group=group, capacity=full, longest=longest, start=time)
        hit, present, expired = victim_level(rate=rate, out=out, cores=cores, time=time[group])
        now = occupied_lines(
            lines=sizes.astype(int),
            held=np.minimum(by_slice(count * present), full),
            usual=full,
            private=private_lines,
            hit=by_slice(count * popularity * out * hit) * per_request,
            expired=by_slice(count * popularity * out * expired) * per_request,
            share=asked / max(asked.sum(), TINY),
        )
        full, change = np.minimum(next_lines(full, now, change), sizes), now - full
        if np.all(np.abs(change) < SETTLED * sizes):
            break
    return np.array([*result, np.where(popularity > 0, hit, 0.0)])


def private_levels(
    private: Sequence[int], held: Callable[[int], FloatArray], lines: int
) -> tuple[list[FloatArray], FloatArray]:
    """Return where requests that reach each private level hit, and the hit ratios of all together.

    ``private``: lines of each level; together they are one cache of the sum of their sizes; ``held``:
    probability that such a cache of n lines holds each line; ``lines``: lines that are told apart.
    """
    result, total, before = [], 0, np.zeros(lines)
    for size in private:
        total += size
        upto = held(total)
        with np.errstate(divide="ignore", invalid="ignore"):
            local = np.where(before < 1.0, (upto - before) / (1.0 - before), 0.0)
        result.append(np.clip(local, 0.0, 1.0))
        before = upto
    return result, before


def _longest(rate: FloatArray) -> float:
    return float(100.0 / rate[rate > 0].min())


WIDTH = 0.02
"""Of a bin of numbers, on a logarithmic scale."""


def smooth_nodes(values: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Return numbers and how many there are of each, fewer than those that they stand for.

    ``count``: how many there are of each.

    Numbers in a bin :math:`e^{w}` wide become two, those of a Gauss rule with their first moments:

    .. math:: \sum_i f(x_i) = \sum_k n_k f(y_k)

    for every cubic f in each bin. The error of hit ratios of Zipf laws (0.6 to 1.2) was at most 1e-9.
    """
    order = np.argsort(-values, kind="stable")
    x, n = values[order], count[order]
    with np.errstate(divide="ignore"):
        bins = np.floor(np.log(x) / WIDTH)
    first = np.flatnonzero(np.append(True, bins[1:] != bins[:-1])[: x.size])
    total = np.add.reduceat(n, first)
    mean = np.add.reduceat(n * x, first) / total
    away = x - np.repeat(mean, np.diff(first, append=x.size))
    second, third = (np.add.reduceat(n * away**k, first) / total for k in (2, 3))
    # Bins of one number, or of equal ones, stay one.
    spread = second > (1e-9 * mean) ** 2
    deviation = np.sqrt(np.where(spread, second, 1.0))
    skew = np.where(spread, third, 0.0) / deviation**3 / 2
    root = np.hypot(skew, 1.0)
    low, high = mean + deviation * (skew - root), mean + deviation * (skew + root)
    upper = total * (root - skew) / (2 * root)
    nodes = np.concatenate([np.where(spread, high, mean), low[spread]])
    number = np.concatenate([np.where(spread, upper, total), (total - upper)[spread]])
    return nodes, number


STEPS, CLOSE = 60, 1e-5
FOREVER = 1e-12
"""Rate of a stage that no line outlasts, by that of the other lines."""
LEAST = 1e-280


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
    others = np.maximum(total - rate, np.maximum(1e-9 * total, LEAST))
    wanted = count * (rate > 0)
    most = (wanted * present(FOREVER * others)).sum(axis=1, keepdims=True)
    fits = held >= most * (1 - 1e-9)
    target = np.where(fits, 0.5 * most, held)
    goal = np.log(np.maximum(target, LEAST) / np.maximum(most - target, LEAST))
    level = np.zeros_like(goal)
    if start is not None:
        near = np.log(start / others)[:, :1]
        level = np.where(near > -10.0, near, level)
    slope = np.full_like(goal, -1.0)
    before = step = None
    # The secant method on the logit of the share against the logarithm of the rate: nearly a straight line.
    for _ in range(STEPS):
        there = (wanted * present(others * np.exp(level))).sum(axis=1, keepdims=True)
        now = np.log(np.maximum(there, LEAST) / np.maximum(most - there, LEAST))
        if before is not None and step is not None:
            moved = np.abs(step) > CLOSE / 100.0
            slope = np.where(moved, np.clip((now - before) / np.where(moved, step, 1.0), -10.0, -0.1), slope)
        before, step = now, np.where(fits, 0.0, np.clip((goal - now) / slope, -3.0, 3.0))
        level = level + step
        if np.abs(step).max() < CLOSE:
            break
    return np.asarray(np.where(fits, FOREVER, np.exp(level)) * others)
