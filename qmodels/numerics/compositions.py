"""Compositions of a number of jobs: tuples of the number of each kind."""

from __future__ import annotations

from itertools import combinations

Composition = tuple[int, ...]


def compositions(jobs: int, kinds: int) -> list[Composition]:
    """Return all ways in which so many jobs may be of several kinds.

    >>> compositions(2, 2)
    [(0, 2), (1, 1), (2, 0)]
    """
    ends = ((-1, *bars, jobs + kinds - 1) for bars in combinations(range(jobs + kinds - 1), kinds - 1))
    return [tuple(right - left - 1 for left, right in zip(e, e[1:], strict=False)) for e in ends]


def changed(state: Composition, kind: int, more: int) -> Composition:
    """Return the numbers with some more, or fewer, of a kind.

    >>> changed((0, 2), 1, -1)
    (0, 1)
    """
    return (*state[:kind], state[kind] + more, *state[kind + 1 :])
