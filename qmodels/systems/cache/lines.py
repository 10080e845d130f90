"""Which cache line an entry stands in, which slice a line belongs to, and how popular lines are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.memory.memory_map import scatter
from qmodels.systems.traffic.popularity import MOST_ENTRIES, Popularity

ASSIGNMENTS = ("consecutive", "random")
HASHES = ("modulo", "xor", "mixed")
HEAD_LINES = 2**11
TAIL_LINES = 2**12
ROUNDS = 4
BLOCK = 2**15


def shuffled(entry: Any, *, entries: int, seed: int) -> Any:
    """Return the place of an entry in a random order of all: a bijection on ``0..entries-1``.

    ``entries``: how many there are, at most 2**40.

    A Feistel network of four rounds on the next even power of two, walked on until it comes back
    into the range; products fit a signed 64-bit integer.
    """
    half, keys = feistel(entries, seed)
    place = np.array(entry, dtype=np.int64, order="C")
    flat = place.reshape(-1)
    for first in range(0, flat.size, BLOCK):  # a block stays in the processor's cache
        block = feistel_step(flat[first : first + BLOCK], half, keys)
        while (outside := np.flatnonzero(block >= entries)).size:
            block[outside] = feistel_step(block[outside], half, keys)
        flat[first : first + BLOCK] = block
    return place if place.ndim else int(place)


def feistel(entries: int, seed: int) -> tuple[int, tuple[int, ...]]:
    """Return the bits of half a number and the round keys of `shuffled`."""
    half = max(1, (int(entries - 1).bit_length() + 1) // 2)
    return half, tuple(int(k) for k in np.random.SeedSequence(seed).generate_state(ROUNDS))


def feistel_step(place: Any, half: Any, keys: Any) -> Any:
    """Return the image of a number of ``2 half`` bits; the same in Python, NumPy and compiled code."""
    mask = (1 << half) - 1
    left, right = place >> half, place & mask
    for key in keys:
        mixed = ((right + 1) * 2654435761 + key) % 4294967296
        left, right = right, left ^ (((mixed ^ (mixed >> 15)) * 739982445 % 4294967296 >> 7) & mask)
    return left << half | right


def line_of(entry: Any, *, entries: int, entries_per_line: int, assignment: str, seed: int = 0) -> Any:
    """Return the line of an entry, 0 being the most popular one.

    With consecutive assignment entries of neighbouring ranks share a line, with random assignment
    (ranks are not addresses) any do.
    """
    checks.choice("assignment", assignment, ASSIGNMENTS)
    if assignment == "random":
        entry = shuffled(entry, entries=entries, seed=seed)
    return entry // entries_per_line


def line_count(entries: int, entries_per_line: int) -> int:
    """Return the lines that hold all entries."""
    return -(-entries // entries_per_line)


def slice_lines(lines: int, slices: int) -> IntArray:
    """Return the lines of each slice: the first ones have one more where they do not divide.

    >>> slice_lines(7, 3)
    array([3, 2, 2])
    """
    each, more = divmod(int(lines), int(slices))
    return np.full(int(slices), each) + (np.arange(int(slices)) < more)


def slice_of(line: Any, *, slices: int, hashing: str) -> Any:
    """Return the slice of a line.

    ``line``: line numbers (addresses in lines); ``hashing``: "modulo", the low-order part; "xor", that of
    all groups of bits as wide as a slice number (a power of two of slices); or "mixed", a well-mixed hash,
    modulo the slices.
    """
    if hashing == "modulo":
        return line % slices
    if hashing == "mixed":
        return scatter(line % 2147483648) % slices
    bits = (slices - 1).bit_length()
    folded, rest = line % slices, line >> bits
    while bits and np.any(rest):
        folded, rest = folded ^ (rest % slices), rest >> bits
    return folded


@lru_cache(maxsize=16)
def line_popularity(
    popularity: Popularity, entries_per_line: int, assignment: str, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return groups of lines: the probability of a request for one line, and how many lines there are.

    Up to ten million entries every line is a group of its own, numbered as by `line_of`. Above, consecutive
    lines are grouped as the ranks are, and random ones by the rank of their most popular entry into some
    eight thousand groups, their other entries drawn with the seed.
    """
    entries = popularity.entries
    lines = line_count(entries, entries_per_line)
    if entries <= MOST_ENTRIES:
        p = popularity.probabilities()
        where = line_of(
            np.arange(entries),
            entries=entries,
            entries_per_line=entries_per_line,
            assignment=assignment,
            seed=seed,
        )
        total = np.asarray(np.bincount(where, weights=p, minlength=lines), dtype=float)
        return _frozen(total, np.ones(lines))
    p, count = popularity.groups()
    if entries_per_line == 1:
        return _frozen(p, count)
    if assignment == "consecutive":
        # Lines of a rank's neighbours: as popular as their middle rank, that is as their group.
        head = len(p[count == 1]) // entries_per_line * entries_per_line
        first = p[:head].reshape(-1, entries_per_line).sum(axis=1)
        return _frozen(
            np.concatenate((first, p[head:] * entries_per_line)),
            np.concatenate((np.ones(len(first)), count[head:] / entries_per_line)),
        )
    return _frozen(*_random_lines(p, np.cumsum(count), lines, entries_per_line, seed))


def _random_lines(
    p: FloatArray, last: FloatArray, lines: int, entries_per_line: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return lines of random entries, grouped by the rank of their most popular entry.

    That rank is beyond r with probability ``(1 - r / entries)**entries_per_line``; the line's other entries
    are drawn from the ranks behind it.
    """
    rng = np.random.default_rng(seed)
    entries = last[-1]
    edges = np.unique(
        np.concatenate(
            (
                np.arange(HEAD_LINES + 1.0),
                np.geomspace(HEAD_LINES, entries, HEAD_LINES),
                -np.expm1(np.log1p(-np.arange(TAIL_LINES) / TAIL_LINES) / entries_per_line) * entries,
            )
        )
    )
    beyond = (1.0 - edges / entries) ** entries_per_line
    beyond[-1] = 0.0
    number = -lines * np.diff(beyond)
    best = (edges[:-1] + edges[1:]) / 2.0
    rows, rest = len(best), np.zeros(len(best))
    for _ in range(entries_per_line - 1):
        # One of each of n equal parts of the ranks behind, in random order.
        part = rng.permutation((np.arange(rows) + rng.random(rows)) / rows)
        rank = best + part * (entries - best)
        rest += p[np.minimum(np.searchsorted(last, rank, side="right"), len(p) - 1)]
    top = p[np.searchsorted(last, best, side="right")]
    rest *= (1.0 - number @ top) / (number @ rest)
    return top + rest, number


def _frozen(p: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    p.flags.writeable = count.flags.writeable = False
    return p, count
