"""The law of the next bank that reproduces itself: writer and reader of a free list alike."""

from __future__ import annotations

import numpy as np

from qmodels._check import FloatArray
from qmodels.allocator._list_chain import ListChain, PacketRules
from qmodels.allocator._taken_law import TakenLaw
from qmodels.allocator._trial_states import TrialRules

TOLERANCE = 1e-9
"""Largest change of a probability per allocation, in one round, at which the iteration ends."""
MOST_ROUNDS = 1000
STEPS = 20
"""Steps of the chain for each new table, at least; packets of more blocks need that many."""


def steady_heads(trials: TrialRules, packets: PacketRules) -> tuple[FloatArray, float]:
    """Return busy heads in turn, and the probability of a block on the bank of the one before.

    Parameters
    ----------
    trials, packets : TrialRules, PacketRules
        How allocations go, and how packets are stored.

    Returns
    -------
    array, float
        Probability that the first 0, 1, ... blocks examined are all on busy banks; probability
        that a packet's block is on the bank of that packet's block before it.

    Raises
    ------
    RuntimeError
        If the table still changes after `MOST_ROUNDS` rounds.

    Notes
    -----
    In turn: so many steps of the joint chain under the table, and a new table from what the
    reader met. Both converge together; neither is known to do so for every list.
    """
    from scipy.sparse import csr_matrix

    chain = ListChain(trials, packets)
    used, flat = np.unique(np.concatenate((chain.source, chain.target)), return_inverse=True)
    source, target = flat[: len(chain.source)], flat[len(chain.source) :]
    order = np.argsort(target, kind="stable")
    ends = np.concatenate(([0], np.cumsum(np.bincount(target, minlength=used.size))))
    column, constant, factor = source[order], chain.weight[order], chain.parameter[order]
    seen_from = np.searchsorted(used, chain.seen_from)
    law = TakenLaw(chain)
    table, begins = law.independent()
    mass = np.full(used.size, 1.0 / used.size)
    steps = max(STEPS, round(packets.mean_size))
    for _ in range(MOST_ROUNDS):
        # Read from its end: -1 is the factor 1, and further down are the laws of the bank taken.
        values = np.concatenate((table.ravel(), law.taken(table, begins).ravel()[::-1], [1.0]))
        matrix = csr_matrix((constant * values[factor], column, ends), shape=(used.size, used.size))
        for _ in range(steps):
            mass = matrix @ mass
        mass /= mass.sum()
        weight = mass[seen_from] * chain.seen_weight * values[chain.seen_parameter]
        seen = np.bincount(chain.seen_entry, weights=weight, minlength=table.size).reshape(table.shape)
        seen_busy = np.bincount(
            chain.seen_entry, weights=weight * chain.seen_busy, minlength=table.size
        ).reshape(table.shape)
        # Each allocation has one first trial.
        allocations = seen[:, law.rejected == 0].sum()
        row = seen.sum(axis=2) / allocations
        new = np.divide(seen, allocations * row[:, :, None], out=table.copy(), where=row[:, :, None] > 0)
        change = float((np.abs(new - table) * row[:, :, None]).max())
        table, begins = new, law.beginning(row)
        if change < TOLERANCE:
            repeats = law.repeats(table, begins, row)
            other = packets.other_packet
            adjacent = (1 - other) * repeats[0] + other * (
                repeats[1] if len(repeats) > 1 else 1 / trials.banks
            )
            return law.busy_heads(seen_busy / allocations), float(adjacent)
    raise RuntimeError(
        f"the free list's table did not settle in {MOST_ROUNDS} rounds of {steps} steps: it still "
        f"changes by {change:.2g} an allocation; use fewer trials or busy accesses"
    )
