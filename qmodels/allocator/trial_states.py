"""One allocation: which heads are rejected, and the banks that are remembered, up to a renaming."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

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


Window = tuple[int, ...]
Draw = tuple[Window, float]
"""Banks drawn at random and the probability of the draw."""


def canonical(banks: Iterable[Hashable]) -> Window:
    """Return the banks renamed 0, 1, ... in the order of their first appearance.

    All banks are alike, so that only equality between places matters.
    """
    names: dict[Hashable, int] = {}
    return tuple(names.setdefault(bank, len(names)) for bank in banks)


def distinct(window: Window) -> Window:
    """Return the banks of a window, each once, in the order of their first appearance."""
    return tuple(dict.fromkeys(window))


def draw_any(known: int, count: int, banks: int) -> list[Draw]:
    """Return all draws of independent banks; banks 0 to ``known`` - 1 have names, others get new ones."""
    draws: list[tuple[Window, float, int]] = [((), 1.0, known)]
    for _ in range(count):
        longer = []
        for drawn, chance, named in draws:
            longer += [((*drawn, bank), chance / banks, named) for bank in range(named)]
            if banks > named:
                longer.append(((*drawn, named), chance * (banks - named) / banks, named + 1))
        draws = longer
    return [(drawn, chance) for drawn, chance, _ in draws]


def draw_others(known: int, excluded: Window, banks: int) -> list[tuple[int, float]]:
    """Return all draws of one bank that is not among those excluded (which are distinct)."""
    left = banks - len(excluded)
    if left <= 0:
        return []
    draws = [(bank, 1.0 / left) for bank in range(known) if bank not in excluded]
    if banks > known:
        draws.append((known, (banks - known) / left))
    return draws


def draw_window(known: int, length: int, banks: int, start: Window = ()) -> list[Draw]:
    """Return all draws of a window, after its given start, of banks that differ as far as there are banks."""
    draws: list[tuple[Window, float, int]] = [(start, 1.0, known)]
    for _ in range(length - len(start)):
        longer = []
        for drawn, chance, named in draws:
            others = draw_others(named, distinct(drawn), banks) or [(drawn[0], 1.0)]
            longer += [((*drawn, bank), chance * part, max(named, bank + 1)) for bank, part in others]
        draws = longer
    return [(drawn, chance) for drawn, chance, _ in draws]


OWN, HIDDEN, MET = range(3)
"""The busy banks: those of allocations alone, one of another access not met yet, or one that was met."""

FORGOTTEN = -1
REMEMBERED = 2
"""Rejected blocks of the allocation under way whose banks are told apart, the last ones."""

State = tuple[int, int, Window]
"""Rejections so far, the busy banks' kind, and the places of the last banks rejected.

Between allocations (no rejections so far) the places are empty if the allocation before rejected
nothing, else they hold the place of its last rejected bank in the window, or `FORGOTTEN`. One
begins with a known bank of another access right after the read that returned a packet.
"""

Outcome = tuple[float, int, Window]
"""Chance, number of the state after a rejection or -1 if the block is taken, and the other bank met."""


@dataclass(frozen=True, kw_only=True)
class TrialRules:
    """Course of an allocation."""

    # banks, trials: banks; most blocks examined.
    banks: int
    trials: int
    busy: int  # accesses for which a bank stays busy
    # Probability that an access to a random bank came between the allocation before and this one.
    other_access: float

    @property
    def places(self) -> int:
        """Banks that can be told apart: those of the window, the other access's, and any other."""
        return self.busy + 2


class TrialStates:
    """The states of an allocation and the outcome of each trial.

    The window holds the banks of the last allocations, the latest first; behind it stands, once it
    was met, the busy bank of another access.
    """

    def __init__(self, rules: TrialRules) -> None:
        self.rules = rules
        self.states: list[State] = [(0, OWN, ())]
        if rules.other_access > 0:
            self.states.append((0, MET, ()))
        if rules.trials > 1:
            self.states += [(0, OWN, (place,)) for place in (*range(rules.busy), FORGOTTEN)]
        kinds = (OWN, HIDDEN, MET) if rules.other_access > 0 else (OWN,)
        for rejected in range(1, rules.trials):
            for kind in kinds:
                places = product(range(rules.busy + 1), repeat=min(rejected, REMEMBERED))
                self.states += [(rejected, kind, last) for last in places]
        self.number = {state: k for k, state in enumerate(self.states)}
        self.told = self.number.get((0, MET, ()))
        self.outcomes = lru_cache(maxsize=None)(self._outcomes)
        self.possible = lru_cache(maxsize=None)(self._possible)

    def __len__(self) -> int:
        return len(self.states)

    def _busy(self, window: Window, kind: int) -> Window:
        """Return the banks kept busy by allocations, each once."""
        return distinct(window[: self.rules.busy - (kind != OWN)])

    def _possible(self, window: Window, other: Window) -> list[int]:
        """Return the states that can occur with this window and other bank met."""
        known = distinct(window + other)
        possible = []
        for number, (rejected, kind, places) in enumerate(self.states):
            busy = {known.index(bank) for bank in (*self._busy(window, kind), *other)}
            if rejected == 0:
                fits = bool(other) == (kind == MET) and all(place < len(known) for place in places)
            else:
                fits = bool(other) == (kind == MET) and busy.issuperset(places)
            if fits:
                possible.append(number)
        return possible

    def _outcomes(self, window: Window, other: Window, state: int, bank: int) -> list[Outcome]:
        """Return the outcomes of a block on this bank."""
        rejected, kind, _ = self.states[state]
        if rejected == self.rules.trials - 1:
            return [(1.0, -1, ())]
        outcomes: list[Outcome] = []
        for chance, now in self.kinds(rejected, kind):
            busy, hidden = bank in (*self._busy(window, now), *other), 1.0 / self.rules.banks
            if busy:
                outcomes.append((chance, self._rejecting(window, other, state, now, bank), other))
            elif now == HIDDEN:
                after = self._rejecting(window, (bank,), state, MET, bank)
                outcomes += [(chance * hidden, after, (bank,)), (chance * (1 - hidden), -1, ())]
            else:
                outcomes.append((chance, -1, ()))
        return outcomes

    def busy_chance(self, window: Window, other: Window, state: int, bank: int) -> float:
        """Return the probability that a block on this bank finds it busy."""
        rejected, kind, _ = self.states[state]
        return sum(
            chance
            * (1.0 if bank in (*self._busy(window, now), *other) else (now == HIDDEN) / self.rules.banks)
            for chance, now in self.kinds(rejected, kind)
        )

    def kinds(self, rejected: int, kind: int) -> list[tuple[float, int]]:
        """Return the possible busy banks at this trial, and their probabilities."""
        if rejected > 0 or kind == MET:
            return [(1.0, kind)]
        # Of several other accesses among the last ones all but one count as allocations.
        own = (1 - self.rules.other_access) ** self.rules.busy
        return [(chance, now) for chance, now in ((own, OWN), (1 - own, HIDDEN)) if chance > 0]

    def _rejecting(self, window: Window, other: Window, state: int, kind: int, bank: int) -> int:
        rejected, _, last = self.states[state]
        place = distinct(window + other).index(bank)
        return self.number[rejected + 1, kind, (place, *(last if rejected else ()))[:REMEMBERED]]

    def taking(self, window: Window, other: Window, state: int, bank: int) -> int:
        """Return the state after a block on this bank was taken."""
        rejected, _, last = self.states[state]
        if rejected == 0:
            return 0
        refused, after = distinct(window + other)[last[0]], distinct((bank, *window[:-1]))
        return self.number[0, OWN, (after.index(refused) if refused in after else FORGOTTEN,)]


@lru_cache(maxsize=64)
def trial_states(rules: TrialRules) -> TrialStates:
    """Return the states under these rules, the same for all laws of packets."""
    return TrialStates(rules)
