"""A free list whose blocks return one by one as they are read: the runs that rejected blocks leave in it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray

TOLERANCE = 1e-12
MOST_ROUNDS = 500
MOST_MATES = 8
"""Blocks rejected by one allocation that are told apart."""


@lru_cache(maxsize=4096)
def read_order_heads(
    *,
    banks: int,
    trials: int,
    other_access: float,
    access_within: float,
    access_again: float,
    other_packet: float,
    same_packet: float,
) -> tuple[FloatArray, float]:
    r"""Return busy heads in turn, and the probability of a block on the bank of its packet's block before.

    A bank is busy for one access.

    ``banks``, ``trials``: banks, and most blocks examined; ``other_access``: probability that a read comes
    right before an allocation: as often an allocation right after a read; ``access_within``: the same between
    two blocks of a packet; ``access_again``: the same if one came between the two before as well: ports at
    their steady paces take turns; ``other_packet``: probability that a block of another packet is allocated
    between two of a packet; ``same_packet``: probability that the block freed next is the next one of the
    same packet.

    An allocation right after a read that finds its head on the bank of that read puts this block at the tail,
    behind the block that has just been freed there: a *mate* of the same bank. Those rejected after a write
    stand alone. With :math:`g(k)` the probability that the k blocks behind one are all on its bank, from a
    chain over read blocks, their mates and lone ones, the first k heads are busy with probability
    :math:`a\,g(k-1)/b + (1-a)\,g(k)`: after a read the bank is any, after a write the head is the block that
    stood behind the one taken. What a packet's blocks have in common when it is stored follows from g and is
    what they have when they return: a fixed point. Approximate, see the error map: neighbours further apart,
    and the order in which reads and writes follow each other, are taken as independent.
    """
    any_bank, most = 1.0 / banks, min(trials - 1, MOST_MATES)
    alike = alike_again = any_bank
    run = np.append(1.0, np.full(trials, any_bank))
    for _ in range(MOST_ROUNDS):
        rejected = np.append(1.0, np.full(max(most - 1, 0), run[1])).cumprod()[:most]
        mates, lone = other_access * any_bank * rejected, (1.0 - other_access) * run[1] * rejected
        shares = np.concatenate(([1.0 - alike, alike], mates, lone))
        # To a block read: its kind then is that of one behind a block of its own bank.
        lone_next = lone[:1].sum() / (1.0 + lone[:1].sum())
        steps = np.zeros((len(shares), len(shares)))
        steps[:, 1] = (1.0 - lone_next) * alike
        steps[1, 1] = (1.0 - lone_next) * alike_again
        steps[2 + most :, 1] = any_bank
        if most > 0:
            steps[: 2 + most, 2 + most] = lone_next * any_bank
            further = [k for k in range(2, len(steps)) if k not in (1 + most, 1 + 2 * most)]
            for k, to, chance in [(0, 2, mates[0]), (1, 2, mates[0]), *((k, k + 1, run[1]) for k in further)]:
                steps[k] *= 1.0 - chance
                steps[k, to] += chance
        runs = [np.ones(len(shares))]
        for _ in range(trials):
            runs.append(steps @ runs[-1])
        run = np.array(runs) @ shares / shares.sum()
        between = (1.0 - any_bank) * run[1] + any_bank**2
        adjacent, adjacent_again = (
            (1.0 - other_packet) * ((1.0 - access) * run[trials] + access * between) + other_packet * any_bank
            for access in (access_within, access_again)
        )
        alike_again = same_packet * adjacent_again + (1.0 - same_packet) * any_bank
        before, alike = alike, same_packet * adjacent + (1.0 - same_packet) * any_bank
        if abs(alike - before) < TOLERANCE:
            break
    else:
        raise RuntimeError(
            f"the runs of a free list did not settle in {MOST_ROUNDS} rounds; use fewer trials"
        )
    heads = np.append(1.0, other_access * any_bank * run[:-1] + (1.0 - other_access) * run[1:])
    return heads, float(adjacent)
