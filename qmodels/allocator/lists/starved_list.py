"""A free list that runs dry: the last blocks of an overloaded memory, where few trials are left."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels.allocator.lists._windows import Window, canonical
from qmodels.checks import FloatArray, IntArray

MOST_LENGTH = 512
"""Free blocks up to which the length of the list is followed at most."""
PACKETS_FOLLOWED = 3
"""Largest packets that fit into what is followed; above, it only matters that the list returns."""
ROUNDS = 2
"""Times that the sizes stored are computed from the sizes refused, from no refusals."""
ENUMERATED = 8
"""Blocks, those that keep banks busy included, whose banks are enumerated while the list is drained."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StarvedList:
    """How often an overloaded list is nearly empty."""

    refused: FloatArray  # probability that a packet of each size is refused
    writes: FloatArray  # allocations from a list of 1, 2, ... blocks, per refused packet
    given_up: float  # blocks that a refused packet had taken when it was given up, mean [blocks]
    one_taken: float  # probability that it had taken one block, all there was
    writes_per_refusal: float  # all allocations per refused packet


@lru_cache(maxsize=1024)
def starved_list(
    *, segments: tuple[int, ...], offered: tuple[float, ...], refused: float, whole: bool
) -> StarvedList:
    r"""Lengths of a list from which more is asked than is returned, near its end.

    ``segments``: blocks of a packet, ascending [blocks]; ``offered``: shares of the sizes among the packets
    offered; ``refused``: share of the segments that are refused, above 0 and below 1; ``whole``: whether a
    packet that finds fewer free blocks than it needs is refused at once; otherwise it takes what there is, is
    given up, and its blocks return.

    The free blocks as a random walk: packets come and go in random order, :math:`(1 - P) m / m'` of them
    go per packet offered, with mean sizes m offered and m' stored, so that as many blocks return
    as stay taken. The walk is cut off far above where lists are short, which changes how often the list
    is short but little of what happens then: shares are scaled to the share P of segments refused.
    Approximate: packets are written at once; what returns meanwhile counts as later.
    """
    sizes, asks = np.array(segments), np.array(offered)
    top = int(min(MOST_LENGTH, PACKETS_FOLLOWED * sizes[-1]))
    free = np.arange(top + 1)
    too_large = asks @ (sizes[:, None] > free)
    down = _moves(sizes, asks, top)
    taking = down + np.diag(too_large)
    kept, mean = asks, float(sizes @ asks)
    for _ in range(ROUNDS):
        comes = 1.0 / (1.0 + (1.0 - refused) * mean / float(sizes @ kept))
        giving = _moves(sizes, kept, top).T
        giving[-1] += 1.0 - giving.sum(axis=0)
        balance = comes * taking + (1.0 - comes) * giving - np.eye(top + 1)
        balance[-1] = 1.0
        law = np.maximum(np.linalg.solve(balance, free == top), 0.0)
        fits = np.cumsum(law[::-1])[::-1]
        turned_away = 1.0 - np.where(sizes <= top, fits[np.minimum(sizes, top)], 0.0)
        kept = asks * (1.0 - turned_away)
        kept = kept / kept.sum()
    lost, total = float((sizes * asks) @ turned_away), float(asks @ turned_away)
    given_up = np.zeros(top + 1) if whole else law * too_large / total
    # From the lengths where packets begin down to those where they end, given up at 0.
    passed = given_up + (law * (1.0 - too_large) - down @ law) / total
    return StarvedList(
        refused=np.minimum(turned_away * refused * mean / lost, 1.0),
        writes=np.cumsum(passed[::-1])[::-1][1:],
        given_up=float(given_up @ free),
        one_taken=float(given_up[1]),
        writes_per_refusal=lost / total * (1.0 - refused) / refused + float(given_up @ free),
    )


def _moves(sizes: IntArray, share: FloatArray, top: int) -> FloatArray:
    """Return the matrix of the moves down by a packet's size, to the row's length from the column's."""
    inside = sizes <= top
    chance = np.zeros(top + 1)
    chance[sizes[inside]] = share[inside]
    down = np.arange(top + 1)[None, :] - np.arange(top + 1)[:, None]
    return np.where(down > 0, chance[np.maximum(down, 0)], 0.0)


@lru_cache(maxsize=256)
def drained_conflicts(*, banks: int, trials: int, busy: int) -> tuple[float, ...]:
    r"""Probability of a conflict at the allocation that finds 1, 2, ... blocks in a list drained to its end.

    The banks of `ENUMERATED` blocks are random, the first of them busy; no more heads are
    examined than there are blocks. With three trials and more the blocks passed over last are often alike.

    Exact for that beginning, by enumeration up to a renaming of banks; longer lists have passed over
    more blocks: with 3 trials the last block's probability rises from 0.166 to 0.173 from 6 blocks to 7.
    """
    length = max(ENUMERATED - busy, 1)
    random = 1.0 - (1.0 - 1.0 / banks) ** busy
    if busy == 0 or busy >= ENUMERATED or trials == 1 or (trials == 2 and busy == 1):
        return tuple(random ** min(trials, left) for left in range(1, length + 1))
    starts: dict[Window, float] = {(): 1.0}
    for _ in range(ENUMERATED):
        longer: dict[Window, float] = {}
        for names, chance in starts.items():
            known = max(names, default=-1) + 1
            for bank in range(min(known + 1, banks)):
                longer[*names, bank] = chance * (1 if bank < known else banks - known) / banks
        starts = longer
    states = defaultdict(float, {(n[busy:], n[:busy]): chance for n, chance in starts.items()})
    conflicts = []
    for left in range(length, 0, -1):
        conflict = 0.0
        after: defaultdict[tuple[Window, Window], float] = defaultdict(float)
        for (listed, window), chance in states.items():
            place = 0
            while place < min(trials, left) - 1 and listed[place] in window:
                place += 1
            taken = listed[place]
            conflict += chance * (taken in window)
            names = canonical((taken, *window[:-1], *listed[place + 1 :], *listed[:place]))
            after[names[busy:], names[:busy]] += chance
        states = after
        conflicts.append(conflict)
    return tuple(reversed(conflicts))
