"""Where the requests of the LLC-slice processor find their lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels._check import FloatArray
from qmodels.systems.cache_lines import line_popularity
from qmodels.systems.llc_processor import LlcProcessor
from qmodels.systems.popularity import Zipf

DRAWN = 100_000
"""Entries that are put into lines at random, in as many tables as they make: the answer is the average."""
FEWEST_TABLES = 2
MOST_IN_TABLES = 250_000
"""Beyond so many entries one assignment says it all, and lines are taken in groups."""
STEPS, SHIFT = 60, 1e-4
TINY = 1e-280
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class HitRatios:
    """What the caches find.

    Parameters
    ----------
    l1, l2, llc : float
        Shares of the requests at each level that find their line there.
    slice_shares : ndarray
        Share of the LLC's requests that goes to each slice, a row for each table that was drawn.
    """

    l1: float
    l2: float
    llc: float
    slice_shares: FloatArray

    @property
    def misses(self) -> tuple[float, float, float]:
        """Shares of all requests that miss L1, that miss L2 too, and that miss every cache."""
        after_l1 = 1.0 - self.l1
        after_l2 = after_l1 * (1.0 - self.l2)
        return after_l1, after_l2, after_l2 * (1.0 - self.llc)


def hit_ratios(spec: LlcProcessor) -> HitRatios:
    r"""Return the hit ratios of every level.

    Parameters
    ----------
    spec : LlcProcessor
        The processor.

    Returns
    -------
    HitRatios

    Notes
    -----
    A line that is requested with probability p stays in an LRU cache of m lines until m others
    were requested. The time to that is taken to be Erlang of m stages, each at a rate in
    proportion to the requests of the others:

    .. math:: h = 1 - q(p), \quad q(p) = \left(1 + \frac{p}{\kappa (P - p)}\right)^{-m},
              \quad \sum h = m,

    where P is the sum of all p. It is exact for m = 1, and for many lines the characteristic-time
    approximation. A core's L1 and L2 are one LRU cache of all their lines, since what L1 evicts
    goes to L2 and what is found there leaves it. Cores evict a line at the rate
    :math:`\nu = p (1 - h)` and ask its slice for it at the same rate. With these as Poisson
    streams the line is in its slice for a share of time

    .. math:: o = \frac{1 - q(2\nu)}{1 + q(2\nu)}, \quad \sum o = m

    if it stays when it is found (the sums now over the lines of the slice), and
    :math:`o = (1 - q(2\nu)) / 2` if it then leaves. A core that asks for what it evicted itself
    finds it if it comes back in time, whatever the others do. Lines that leave make room that stays
    empty until the next line comes to that slice: a chain of births and deaths says how much.

    Approximation: what all caches find together is within 0.9 percentage points of simulation in each
    of the 188 designs of ``processor_errors.csv``.

    Examples
    --------
    >>> found = hit_ratios(LlcProcessor())
    >>> round(found.l1, 3), round(found.l2, 3), round(found.llc, 2)
    (0.009, 0.034, 0.16)
    """
    p, count = _lines(spec.popularity, spec.entries_per_line, spec.assignment)
    tables, slices = len(p), spec.llc_slices
    in_l1, private = (_lru(p, count, m) for m in (spec.l1_lines, spec.l1_lines + spec.l2_lines))
    l1, both = (_share((count * p * h).sum() / tables) for h in (in_l1, private))
    l2 = max(both - l1, 0.0) / (1.0 - l1) if l1 < 1.0 else 0.0
    if slices == 0 or not np.any(private < 1.0):
        return HitRatios(l1=l1, l2=l2, llc=0.0, slice_shares=np.full((1, max(slices, 1)), 1 / max(slices, 1)))
    rate = p * (1.0 - private)
    if np.all(count == 1.0):
        rate, own, count = (_by_slice(x, slices) for x in (rate, p / spec.cores, count))
        shares = (count * rate).sum(axis=1).reshape(tables, slices)
        shares = shares / shares.sum(axis=1, keepdims=True)
    else:
        own, count, shares = p / spec.cores, count / slices, np.full((1, slices), 1 / slices)
    return HitRatios(l1=l1, l2=l2, llc=_llc_hit_ratio(spec, rate, own, count), slice_shares=shares)


@lru_cache(maxsize=32)
def _lines(popularity: Zipf, per_line: int, assignment: str) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each line and how many there are of it, a row for each assignment."""
    entries = popularity.entries
    if entries > MOST_IN_TABLES:
        p, count = line_popularity(popularity, per_line, assignment, 0)
        return p[None], count[None]
    tables = 1 if assignment == "consecutive" or per_line == 1 else max(FEWEST_TABLES, DRAWN // entries)
    padded = np.zeros((tables, -(-entries // per_line) * per_line))
    padded[:, :entries] = popularity.probabilities()
    if tables > 1:
        rng = np.random.default_rng(0)
        padded[:, :entries] = rng.permuted(padded[:, :entries], axis=1)
    p = padded.reshape(tables, -1, per_line).sum(axis=2)
    return p, np.ones_like(p)


def _by_slice(values: FloatArray, slices: int) -> FloatArray:
    """Return the values of lines, those of each table in a row, with a row for each slice of each table."""
    tables, lines = values.shape
    padded = np.zeros((tables, -(-lines // slices) * slices))
    padded[:, :lines] = values
    return padded.reshape(tables, -1, slices).transpose(0, 2, 1).reshape(tables * slices, -1)


def _lru(p: FloatArray, count: FloatArray, lines: int) -> FloatArray:
    """Return the probability that an LRU cache holds each line."""
    return 1.0 - _outlived(p, _stage_rates(p, p, count, lines, float(lines), _requested), lines)


def llc_load(spec: LlcProcessor, hits: HitRatios) -> float:
    """Return what the LLC would have to do if no request were refused, over what it can do; 0 without LLC."""
    return spec.arrival_rate * hits.misses[1] / (spec.llc_rate * spec.llc_slices) if spec.llc_slices else 0.0


def _llc_hit_ratio(spec: LlcProcessor, rate: FloatArray, own: FloatArray, count: FloatArray) -> float:
    """Return the hit ratio of the LLC from the rates at which its lines come, a row for each slice."""
    keep, lines = spec.llc_hit == "keep", spec.slice_lines
    share = _kept if keep else _removed
    held, found = float(lines), 0.0
    for _ in range(1 if keep else 4):
        stage = _stage_rates(rate, 2.0 * rate, count, lines, held, share)
        present = share(_outlived(2.0 * rate * (spec.cores - 1) / spec.cores, stage, lines))
        hit = 1.0 - _outlived(own, stage, lines) * (1.0 - present)
        found = _share((count * rate * hit).sum() / (count * rate).sum())
        held = lines - (0.0 if keep else _empty_places(found, lines, spec.llc_slices))
    return found


def _share(value: float) -> float:
    """Return a share without what rounding adds to 0 or 1."""
    return 0.0 if value < ROUNDING else 1.0 if value > 1.0 - ROUNDING else float(value)


def _empty_places(hit: float, lines: int, slices: int) -> float:
    """Return the mean number of a slice's places that were left and not yet taken."""
    weight, total, mean = 1.0, 1.0, 0.0
    for empty in range(1, lines + 1):
        # A line that leaves one slice sends another line to any of them.
        weight *= hit * (1 - 1 / slices) * (lines - empty + 1) / lines
        total += weight
        mean += empty * weight
        if weight < 1e-9:
            break
    return mean / total


def _requested(outlived: FloatArray) -> FloatArray:
    return 1.0 - outlived


def _kept(outlived: FloatArray) -> FloatArray:
    return (1.0 - outlived) / (1.0 + outlived)


def _removed(outlived: FloatArray) -> FloatArray:
    return (1.0 - outlived) / 2.0


def _outlived(rate: FloatArray, stage: FloatArray, stages: int) -> FloatArray:
    """Return the probability that nothing of this rate happens in an Erlang time."""
    return np.asarray(np.exp(-stages * np.log1p(rate / stage)))


def _stage_rates(
    rate: FloatArray,
    renewal: FloatArray,
    count: FloatArray,
    stages: int,
    held: float,
    share: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Return the rate of each line's stages, such that in every row as many lines are there as are held.

    In proportion to the rate at which the other lines of the row come; a line stays for the
    stages, anew with every renewal, and is there for the ``share`` of the time.
    """
    total = (count * rate).sum(axis=1, keepdims=True)
    others = np.maximum(total - rate, np.maximum(1e-9 * total, TINY))
    wanted = rate > 0
    most = share(np.zeros(1))[0] * (count * wanted).sum(axis=1, keepdims=True)
    fits = held >= most * (1 - 1e-9)
    target = np.where(fits, 0.5 * most, held)
    goal = np.log(np.maximum(target, TINY) / np.maximum(most - target, TINY))
    level = np.zeros_like(goal)

    def logit(at: FloatArray) -> FloatArray:
        held_now = share(_outlived(renewal, others * np.exp(at), stages))
        there = (count * held_now * wanted).sum(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(there, TINY) / np.maximum(most - there, TINY)))

    # Newton's method on the logit of the share against the logarithm of the rate: nearly a straight line.
    for _ in range(STEPS):
        now = logit(level)
        slope = np.minimum((logit(level + SHIFT) - now) / SHIFT, -0.1)
        step = np.where(fits, 0.0, np.clip((goal - now) / slope, -3.0, 3.0))
        level = level + step
        if np.abs(step).max() < 1e-6:
            break
    return np.asarray(np.where(fits, 1e-12, np.exp(level)) * others)
