"""Laws of one allocation: its accesses and rejections, and those from bank lists, a bitmap or a stack."""

from __future__ import annotations

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.packets.free_list import allocation_accesses

WORD = 64
"""Blocks of a word of the bitmap, its access being 64 bits wide."""


def bank_lists_busy(*, banks: int, busy: int) -> float:
    """Return the probability that no list of a bank that is not busy is left to take a block from.

    While each list has blocks this happens only if all banks can be busy at once; it is then
    counted as certain.
    """
    return float(busy >= banks)


def bitmap_busy(*, busy_probability: float, trials: int) -> tuple[float, FloatArray]:
    r"""Return the probability of a conflict and the law of the accesses of a bitmap.

    ``busy_probability``: probability q that a random block's bank is busy with another access; ``trials``:
    most words with free blocks examined.

    While most blocks are free, the word used last is emptied block by block, always with
    a free bank to choose until its last block: that one is on a busy bank with probability
    :math:`q`. It is then taken with one trial, and left for later with more. An allocation reads the
    word and writes it; once in 64 it reads an empty one first. An order-of-magnitude account for
    memories that are far from full.
    """
    conflict = busy_probability / WORD if trials == 1 else 0.0
    again = 1.0 / WORD + (busy_probability / WORD if trials > 1 else 0.0)
    return conflict, np.array([0.0, 0.0, 1.0 - again, again])


def stack_busy(*, busy_probability: float, trials: int) -> FloatArray:
    r"""Return the probability that the top 0, 1, ... blocks of a stack are all on busy banks.

    Blocks passed over stay on top: they gather no runs at a tail, and the stack is taken as
    independent, :math:`q^k`.
    """
    return np.asarray(busy_probability ** np.arange(trials + 1.0))


def accesses_law(busy_heads: FloatArray) -> FloatArray:
    """Return the law of an allocation's accesses from the probability of 0, 1, ... busy heads."""
    trials = len(busy_heads) - 1
    reached = np.append(busy_heads[:-1], 0.0)
    law = np.zeros(int(allocation_accesses(trials - 1)) + 1)
    for rejected in range(trials):
        law[int(allocation_accesses(rejected))] += reached[rejected] - reached[rejected + 1]
    return law


def rejection_law(*, busy: float, busy_again: float, alloc_trial_count: int) -> FloatArray:
    """Return the probabilities of 0, 1, 2, ... rejections of one allocation.

    The head's bank is busy with a probability, that of each further block with another.

    >>> rejection_law(busy=0.5, busy_again=0.2, alloc_trial_count=3)
    array([0.5, 0.4, 0.1])
    """
    reached = np.append(1.0, busy * busy_again ** np.arange(alloc_trial_count - 1.0))
    return np.asarray(reached - np.append(reached[1:], 0.0))
