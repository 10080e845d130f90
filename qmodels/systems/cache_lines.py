"""Which cache line an entry stands in, which slice a line belongs to, and how popular lines are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from qmodels import _check
from qmodels._check import FloatArray
from qmodels.systems.address_map import scatter
from qmodels.systems.popularity import MOST_ENTRIES, Popularity

ASSIGNMENTS = ("consecutive", "random")
HASHES = ("modulo", "xor", "mixed")
HEAD_LINES = 2**13
TAIL_LINES = 2**13
ROUNDS = 4


def shuffled(entry: Any, *, entries: int, seed: int) -> Any:
    """Return the place of an entry in a random order of all: a bijection on ``0..entries-1``.

    Parameters
    ----------
    entry : int or integer array
        Entry numbers.
    entries : int
        How many there are, at most 2**40.
    seed : int
        Which order.

    Notes
    -----
    A Feistel network of four rounds on the next even power of two, walked on until it comes back
    into the range; products fit a signed 64-bit integer.

    Examples
    --------
    >>> sorted(shuffled(np.arange(7), entries=7, seed=1).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    half, keys = feistel(entries, seed)
    place = np.array(entry, dtype=np.int64)
    outside = np.ones(place.shape, dtype=bool)
    while outside.any():
        place[outside] = feistel_step(place[outside], half, keys)
        outside = place >= entries
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
    _check.choice("assignment", assignment, ASSIGNMENTS)
    if assignment == "random":
        entry = shuffled(entry, entries=entries, seed=seed)
    return entry // entries_per_line


def line_count(entries: int, entries_per_line: int) -> int:
    """Return the lines that hold all entries."""
    return -(-entries // entries_per_line)


def slice_of(line: Any, *, slices: int, hashing: str) -> Any:
    """Return the slice of a line.

    Parameters
    ----------
    line : int or integer array
        Line numbers (addresses in lines).
    slices : int
        Slices.
    hashing : {"modulo", "xor", "mixed"}
        The low-order part; the XOR of all groups of bits as wide as a slice number (a power of two
        of slices); or a well-mixed hash, modulo the slices.

    Examples
    --------
    >>> [slice_of(line, slices=4, hashing="xor") for line in (3, 4, 5, 7)]
    [3, 1, 0, 2]
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
    lines are grouped as the ranks are, and random ones are represented by 8,192 lines with one
    of the most popular entries each and 8,192 lines of the others, entries drawn with a fixed seed.
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
        return _frozen(np.bincount(where, weights=p, minlength=lines), np.ones(lines))
    p, count = popularity.groups()
    if assignment == "consecutive":
        if entries_per_line == 1:
            return _frozen(p, count)
        # Lines of a rank's neighbours: as popular as their middle rank, that is as their group.
        head = len(p[count == 1]) // entries_per_line * entries_per_line
        first = p[:head].reshape(-1, entries_per_line).sum(axis=1)
        return _frozen(
            np.concatenate((first, p[head:] * entries_per_line)),
            np.concatenate((np.ones(len(first)), count[head:] / entries_per_line)),
        )
    rng = np.random.default_rng(seed)
    # Neighbouring ranks beyond the head are close: entries are drawn by group.
    share = np.cumsum(count) / entries
    head = min(HEAD_LINES, lines)
    top = np.repeat(p, np.minimum(count, head).astype(int))[:head]
    rest = p.copy()

    def others(rows: int, columns: int) -> FloatArray:
        u = (
            rng.permuted(np.tile(np.arange(rows), (columns, 1)), axis=1).T + rng.random((rows, columns))
        ) / rows
        u = head / entries + u * (1.0 - head / entries)
        return np.asarray(rest[np.minimum(np.searchsorted(share, u), len(p) - 1)])

    with_top = top + others(head, entries_per_line - 1).sum(axis=1)
    without = others(TAIL_LINES, entries_per_line).sum(axis=1)
    number = max(lines - head, 0) / TAIL_LINES
    without *= (1.0 - with_top.sum()) / (number * without.sum())
    return _frozen(
        np.concatenate((with_top, without)), np.concatenate((np.ones(head), np.full(TAIL_LINES, number)))
    )


def _frozen(p: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    p.flags.writeable = count.flags.writeable = False
    return p, count
