"""The chain of allocation trials on a free list that remembers runs of addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.packets.free_list import allocation_accesses


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialResult:
    """What the trials of one allocation cost and leave behind.

    Parameters
    ----------
    mean_rejected : float or array
        Head blocks pushed to the tail.
    mean_accesses, accesses_variance : float or array
        Pointer-memory accesses of the allocation.
    taken_busy_probability : float or array
        Probability that the block taken in the end is on a busy bank.
    """

    mean_rejected: Any
    mean_accesses: Any
    accesses_variance: Any
    taken_busy_probability: Any


def rejection_law(*, busy: float, busy_again: float, alloc_trial_count: int) -> FloatArray:
    """Return the probabilities of 0, 1, 2, ... rejections of the chain of `allocation_trials`.

    >>> rejection_law(busy=0.5, busy_again=0.2, alloc_trial_count=3)
    array([0.5, 0.4, 0.1])
    """
    reached = np.append(1.0, busy * busy_again ** np.arange(alloc_trial_count - 1.0))
    return np.asarray(reached - np.append(reached[1:], 0.0))


def allocation_trials(
    *, busy: npt.ArrayLike, busy_again: npt.ArrayLike, alloc_trial_count: npt.ArrayLike
) -> TrialResult:
    r"""Trials of one allocation as a Markov chain over the blocks examined.

    ``busy``: probability that the head block's bank is busy; ``busy_again``: probability that the next
    block's bank is busy given that the one before it was: near 1 where runs of the list stay on one bank,
    equal to ``busy`` where blocks are independent; ``alloc_trial_count``: most blocks examined, at least 1;
    the last one is taken whatever its bank.

    The chain starts busy with probability :math:`q` and stays busy with :math:`w`, hence
    :math:`P(R \ge k) = q w^{k-1}` rejections for :math:`1 \le k \le T-1`, and the block taken
    is on a busy bank with probability :math:`q w^{T-1}`. The accesses of :math:`R` rejections
    are those of `qmodels.systems.packets.free_list.allocation_accesses`. Exact for that chain; that the
    list is one (rejected blocks that come back from the tail as neighbours are not modelled)
    holds until the list has turned over.
    """
    q, w, most = np.broadcast_arrays(
        checks.probability("busy", busy),
        checks.probability("busy_again", busy_again),
        checks.count("alloc_trial_count", alloc_trial_count),
    )
    mean_rejected = np.zeros(q.shape)
    mean = np.zeros(q.shape)
    square = np.zeros(q.shape)
    reached = np.ones(q.shape)
    for rejected in range(int(most.max())):
        last = most == rejected + 1
        onward = np.where(last | (most <= rejected), 0.0, reached * (q if rejected == 0 else w))
        here = np.where(most > rejected, reached - onward, 0.0)
        accesses = allocation_accesses(rejected)
        mean_rejected += here * rejected
        mean += here * accesses
        square += here * accesses**2
        reached = onward
        if not reached.any():
            break
    return TrialResult(
        mean_rejected=mean_rejected[()],
        mean_accesses=mean[()],
        accesses_variance=np.maximum(square - mean**2, 0.0)[()],
        taken_busy_probability=(q * w ** (most - 1.0))[()],
    )
