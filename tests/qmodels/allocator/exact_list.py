"""Small free lists exactly: the chain of their whole contents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from qmodels import checks
from qmodels.allocator.trial_states import Window, canonical
from qmodels.markov import DTMC

MOST_STATES = 200_000
"""States above which a list is too long."""

State = tuple[Window, Window]
"""Banks of the list from head to tail, and of the last blocks taken, the latest first."""


def exact_free_list(
    *, banks: int, blocks_per_bank: int, in_use: int, alloc_trial_count: int, busy_accesses: int = 1
) -> float:
    r"""Probability that a block is taken on a busy bank, from the chain of the list's contents.

    One block at random of those in use returns to the tail, then one is taken by trials from the
    head: `free_list` with single blocks, without its approximations and for a list of any length.

    Parameters
    ----------
    banks, blocks_per_bank : int
        Banks, and blocks on each. [blocks]
    in_use : int
        Blocks in use after each allocation, at least 1; one or more blocks are free. [blocks]
    alloc_trial_count : int
        Most blocks examined, at least 1 and at most those in the list at an allocation.
    busy_accesses : int
        Later allocations during which a bank stays busy, at least 1.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If an argument is out of range or the chain has more than `MOST_STATES` states.

    Notes
    -----
    A state is the order of banks in the list and the banks of the last blocks taken, up to a
    renaming of banks. Exact; the states grow like the number of orders of the list.

    Examples
    --------
    In a list of 6 of 9 blocks the repeated bank is rarer than 1/3: one of its blocks is in use.

    >>> small = {"banks": 3, "blocks_per_bank": 3, "in_use": 3}
    >>> round(exact_free_list(**small, alloc_trial_count=1), 6)
    0.25
    >>> round(exact_free_list(**small, alloc_trial_count=2), 4)
    0.0696
    """
    for name, value in (
        ("banks", banks),
        ("blocks_per_bank", blocks_per_bank),
        ("in_use", in_use),
        ("alloc_trial_count", alloc_trial_count),
        ("busy_accesses", busy_accesses),
    ):
        checks.count(name, value)
    total = banks * blocks_per_bank
    if in_use >= total:
        raise ValueError(f"in_use must be below the {total} blocks, got {in_use}")
    if alloc_trial_count > total - in_use + 1:
        raise ValueError(
            f"alloc_trial_count must be at most the {total - in_use + 1} blocks of the list, "
            f"got {alloc_trial_count}"
        )

    def outcomes(state: State) -> Iterator[tuple[State, float, bool]]:
        """Give the next state, its probability, and whether the block taken was on a busy bank."""
        listed, window = state
        for bank in range(banks):
            free = blocks_per_bank - listed.count(bank)
            if not free:
                continue
            order = [*listed, bank]
            for _ in range(alloc_trial_count - 1):
                if order[0] not in window:
                    break
                order.append(order.pop(0))
            taken, *rest = order
            names = canonical((*rest, taken, *window[: busy_accesses - 1]))
            yield (names[: len(rest)], names[len(rest) :]), free / in_use, taken in window

    # Any order will do: the steady state does not depend on it.
    blocks = [block % banks for block in range(total)]
    names = canonical((*blocks[in_use:], *blocks[in_use - 1 :: -1][:busy_accesses]))
    free = total - in_use
    chain = DTMC.from_transitions(
        initial_state=(names[:free], names[free:]),
        transitions=lambda state: [(to, chance) for to, chance, _ in outcomes(state)],
        max_states=MOST_STATES,
    )
    conflict = [sum(chance for _, chance, busy in outcomes(state) if busy) for state in chain.states]
    return float(chain.stationary(initial=chain.states[0]).probabilities @ np.array(conflict))
