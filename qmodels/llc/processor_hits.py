"""Where the requests of the LLC-slice processor find their lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.llc.hierarchy import LEAST, kept_hit, lru_held, stage_rates
from qmodels.llc.victim import next_lines, occupied_lines, victim_level
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.cache.spec import line_popularity
from qmodels.systems.traffic.popularity import Zipf

DRAWN = 100_000
"""Entries that are put into lines at random, in as many tables as they make: the answer is the average."""
FEWEST_TABLES = 2
MOST_IN_TABLES = 250_000
"""Beyond n entries one assignment says it all, and lines are taken in groups."""
ROUNDS = 12
"""Times that the lines held by slices that wait for victims are computed anew, at most."""
SETTLED = 1e-3
"""Relative change of these numbers at which they are known."""
GROUPS = 512
"""Lines of a slice that are told apart, at most, where lines leave the LLC when found."""
ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class HitRatios:
    """Hit ratios of the caches."""

    # l1, l2, llc: shares of the requests at each level that find their line there.
    l1: float
    l2: float
    llc: float
    # Share of the LLC's requests that goes to each slice, a row for each table that was drawn.
    slice_shares: FloatArray

    @property
    def misses(self) -> tuple[float, float, float]:
        """Shares of all requests that miss L1, that miss L2 too, and that miss every cache."""
        after_l1 = 1.0 - self.l1
        after_l2 = after_l1 * (1.0 - self.l2)
        return after_l1, after_l2, after_l2 * (1.0 - self.llc)


def hit_ratios(spec: LlcProcessor) -> HitRatios:
    """Return the hit ratios of every level.

    A core's L1 and L2 are one LRU cache of all their lines (`lru_held`), since what L1 evicts goes to L2 and
    what is found there leaves it. If a line stays in its slice when it is found see `kept_hit`. If it then
    leaves, a fetch by any core takes it from all: `qmodels.llc.victim`, whose places that were left and not
    yet taken stay empty.

    Approximation: what all caches find together is within 0.9 percentage points of simulation in each
    of 188 designs around the published one, whose lines stay. Where they leave, within
    0.7 points in 160 designs of 1 to 64 cores with an LLC of 2 to 200 % of the table. Where they stay in an
    LLC much larger than few private caches, too low: by 11 points with one core and 85 % of the table.
    """
    p, count = _lines(spec.popularity, spec.entries_per_line, spec.assignment)
    tables, slices = len(p), spec.llc_slices
    in_l1, private = (lru_held(p, count, m) for m in (spec.l1_lines, spec.l1_lines + spec.l2_lines))
    l1, both = (_share((count * p * h).sum() / tables) for h in (in_l1, private))
    l2 = max(both - l1, 0.0) / (1.0 - l1) if l1 < 1.0 else 0.0
    rate = p * (1.0 - private)
    if slices == 0 or not np.any(rate > 0.0):
        return HitRatios(l1=l1, l2=l2, llc=0.0, slice_shares=np.full((1, max(slices, 1)), 1 / max(slices, 1)))
    own, lines = p / spec.cores, spec.slice_lines
    if np.all(count == 1.0):
        rate, own, count = (_by_slice(x, slices) for x in (rate, own, count))
        shares = (count * rate).sum(axis=1).reshape(tables, slices)
        shares = shares / shares.sum(axis=1, keepdims=True)
        level = _Slices(rate=rate, own=own, count=count, lines=np.tile(lines, tables), share=shares.ravel())
    else:
        lines, alike = np.unique(lines, return_counts=True)
        shares = np.full((1, slices), 1 / slices)
        rate, own, count = (np.repeat(x, len(lines), axis=0) for x in (rate, own, count / slices))
        level = _Slices(
            rate=rate, own=own, count=count, lines=lines, share=shares[0, : len(lines)], alike=alike
        )
    if spec.llc_hit == "keep":
        hit = kept_hit(level.rate, level.own, level.count, level.lines, spec.cores)
        found = level.hit_ratio(hit)
    else:
        found = _removed_hit_ratio(spec, level)
    return HitRatios(l1=l1, l2=l2, llc=_share(found), slice_shares=shares)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Slices:
    """Slices in rows: of each line what all cores ask for and one core wants, and how many there are of it.

    ``lines`` fit into each, ``share`` of the requests go to it, and ``alike`` slices are like it.
    """

    rate: FloatArray
    own: FloatArray
    count: FloatArray
    lines: IntArray
    share: FloatArray
    alike: npt.ArrayLike = 1

    def hit_ratio(self, hit: FloatArray) -> float:
        """Return the hit ratio of all requests, from the probability of each line."""
        asked = np.asarray(self.alike).reshape(-1, 1) * self.count * self.rate
        return float((asked * hit).sum() / asked.sum())


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


def _removed_hit_ratio(spec: LlcProcessor, level: _Slices) -> float:
    """Return the hit ratio of the LLC where lines leave it when found."""
    level, lines = _grouped(level), level.lines
    rate, own, count = level.rate, level.own, level.count
    out = np.divide(rate, own * spec.cores, out=np.zeros_like(rate), where=own > 0)

    def found(stage: FloatArray) -> FloatArray:
        parts = np.zeros((3, *own.shape))
        for number in np.unique(lines):
            rows = lines == number
            few = {"rate": own[rows], "out": out[rows], "time": number / stage[rows]}
            parts[:, rows] = victim_level(**few, cores=spec.cores, stages=int(number))
        return parts

    asked = (count * rate).sum(axis=1)
    private = (count * spec.cores * (1.0 - out)).sum(axis=1)
    full, stage, change = lines.astype(float), None, None
    for _ in range(ROUNDS):
        stage = stage_rates(rate, count, full[:, None], lambda stage: found(stage)[1], stage)
        hit, present, expired = found(stage)
        now = occupied_lines(
            lines=lines,
            held=np.minimum((count * present).sum(axis=1), full),
            usual=full,
            private=private,
            hit=(count * rate * hit).sum(axis=1) / asked,
            expired=(count * rate * expired).sum(axis=1) / asked,
            share=level.share,
        )
        full, change = np.minimum(next_lines(full, now, change), lines), now - full
        if np.all(np.abs(change) < SETTLED * lines):
            break
    return level.hit_ratio(hit)


def _grouped(level: _Slices) -> _Slices:
    """Return rows of at most `GROUPS` lines: the most popular as they are, others in equal groups."""
    rate, own, count = level.rate, level.own, level.count
    lines = rate.shape[1]
    if lines <= GROUPS:
        return level
    order = np.argsort(-own, axis=1)
    rate, own, count = (np.take_along_axis(values, order, axis=1) for values in (rate, own, count))
    cuts = np.unique(
        np.concatenate(
            (np.arange(GROUPS // 2), np.linspace(GROUPS // 2, lines, GROUPS // 2 + 1)[:-1].astype(int))
        )
    )
    number = np.add.reduceat(count, cuts, axis=1)
    rate, own = (
        np.add.reduceat(count * values, cuts, axis=1) / np.maximum(number, LEAST) for values in (rate, own)
    )
    return replace(level, rate=rate, own=own, count=number)


def _share(value: float) -> float:
    """Return a share without what rounding adds to 0 or 1."""
    return 0.0 if value < ROUNDING else 1.0 if value > 1.0 - ROUNDING else float(value)
