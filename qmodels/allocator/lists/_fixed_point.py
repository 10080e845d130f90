"""The law of the next bank that reproduces itself: writer and reader of a free list alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from qmodels.allocator.lists._list_chain import ListChain, PacketRules
from qmodels.allocator.lists._taken_law import TakenLaw
from qmodels.allocator.lists._trial_states import TrialRules, trial_states
from qmodels.checks import FloatArray

TOLERANCE = 1e-9
"""Largest change of a probability per allocation, in one round, at which the iteration ends."""
MOST_ROUNDS = 1000
RARE = 1e-12
"""In place of probability 0 or its complement: the states are those of any probability between."""
STEPS = 20
"""Steps of the chain for each new table, at least; packets of more blocks need that many."""


def steady_heads(trials: TrialRules, packets: PacketRules) -> tuple[FloatArray, float]:
    """Return busy heads in turn, and the probability of a block on the bank of the one before.

    ``trials``, ``packets``: how allocations go, and how packets are stored. Returns probability that the
    first 0, 1, ... blocks examined are all on busy banks; probability that a packet's block is on the bank of
    that packet's block before it.

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
    within = between = law
    if 0 < trials.other_access != packets.access_within:
        within = _other_law(chain, packets.access_within)
        other = max(packets.other_packet, RARE)
        between = _other_law(chain, (trials.other_access - (1 - other) * packets.access_within) / other)
    table, begins = law.independent()
    mass = np.full(used.size, 1.0 / used.size)
    steps = max(STEPS, round(packets.mean_size))
    for _ in range(MOST_ROUNDS):
        # Read from its end: -1 is the factor 1, and further down are the laws of the bank taken.
        taken = np.stack((between.taken(table, begins), within.taken(table, begins)), axis=-1)
        values = np.concatenate((table.ravel(), taken.ravel()[::-1], [1.0]))
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
            other = packets.other_packet
            after_other = between.repeats(table, begins, row)[1] if trials.busy > 1 else 1 / trials.banks
            adjacent = (1 - other) * within.repeats(table, begins, row)[0] + other * after_other
            return law.busy_heads(seen_busy / allocations), float(adjacent)
    raise RuntimeError(
        f"the free list's table did not settle in {MOST_ROUNDS} rounds of {steps} steps: it still "
        f"changes by {change:.2g} an allocation; use fewer trials or busy accesses"
    )


def _other_law(chain: ListChain, other_access: float) -> TakenLaw:
    """Return the law of the bank taken with another chance of an access before."""
    chance = min(max(other_access, RARE), 1.0 - RARE)
    return TakenLaw(chain, trial_states(replace(chain.trials, other_access=chance)))
