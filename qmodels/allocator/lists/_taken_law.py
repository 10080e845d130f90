"""From the law of the next bank to that of the bank an allocation takes."""

from __future__ import annotations

import numpy as np

from qmodels.allocator.lists._list_chain import Entries, ListChain
from qmodels.allocator.lists._trial_states import TrialStates
from qmodels.allocator.lists._windows import distinct
from qmodels.checks import FloatArray


class TakenLaw:
    """The trials of one allocation from given banks at the head.

    Parameters
    ----------
    chain : ListChain
        Its views, trial states and places index the tables, (views, states, places) each.
    changed : TrialStates, optional
        How an allocation goes, if not as the chain's do: the same states with other chances.
    """

    def __init__(self, chain: ListChain, changed: TrialStates | None = None) -> None:
        self._trials, self._states = chain.trials, changed or chain.states
        self._shape = (len(chain.views), len(chain.states), chain.trials.places)
        self.rejected = np.array([rejected for rejected, _, _ in chain.states.states])
        self._sizes = np.array([len(distinct(window + other)) for window, other in chain.views])
        self._windows = [(view, window) for (window, other), view in chain.views.items() if not other]
        self._met = np.array([bool(other) for _, other in chain.views])
        views, states = self._shape[:2]
        onward, taken = Entries(), Entries()
        for (window, other), view in list(chain.views.items()):
            own, known = distinct(window), distinct(window + other)
            fresh = len(known)
            for state in self._states.possible(window, other):
                for place in range(self._shape[2]):
                    if place > fresh and place < self._shape[2] - 1 or place == fresh < self._shape[2] - 1:
                        continue
                    bank = known[place] if place < fresh else fresh
                    at = np.array([(view * states + state) * self._shape[2] + place])
                    for chance, after, met in self._states.outcomes(window, other, state, bank):
                        if after >= 0:
                            to = chain.view(window, met) * states + after
                            onward.add(at, np.array([to]), chance, 0)
                        else:
                            first = chain.view(window, ())
                            where = own.index(bank) if bank in own else self._shape[2] - 1
                            taken.add(at, np.array([first * self._shape[2] + where]), chance, 0)
        self._onward = onward.columns() if onward.source else None
        self._taken = taken.columns()

    def independent(self) -> tuple[FloatArray, FloatArray]:
        """Return the table of an independent list, and that allocations begin without memory."""
        banks, places = self._trials.banks, self._shape[2]
        known = np.arange(places) < self._sizes[:, None]
        table = np.broadcast_to((known / banks)[:, None, :], self._shape).copy()
        table[:, :, -1] = (1.0 - self._sizes / banks)[:, None]
        begins = np.zeros(self._shape[:2])
        begins[~self._met, 0] = 1.0
        return table, begins

    def beginning(self, row: FloatArray) -> FloatArray:
        """Return the law of the state in which allocations begin, by view, from how often each is met."""
        start = row * (self.rejected == 0)
        total = start.sum(axis=1, keepdims=True)
        first = np.zeros_like(start)
        first[~self._met, 0] = 1.0
        return np.asarray(np.divide(start, total, out=first, where=total > 0))

    def taken(self, table: FloatArray, begins: FloatArray) -> FloatArray:
        """Return the law of the bank taken in the end, (views, places).

        Parameters
        ----------
        table : ndarray
            Law of the next bank.
        begins : ndarray, shape (views, states)
            Law of the state in which an allocation begins.
        """
        reach: FloatArray = begins.ravel()
        total = reach
        if self._onward is not None:
            at, to, chance, _ = self._onward
            step = table.ravel()[at] * chance
            for _ in range(self._trials.trials - 1):
                found = reach[at // self._shape[2]] * step
                reach = np.bincount(to, weights=found, minlength=total.size).astype(float)
                total = total + reach
        at, to, chance, _ = self._taken
        weights = total[at // self._shape[2]] * table.ravel()[at] * chance
        law = np.bincount(to, weights=weights, minlength=self._shape[0] * self._shape[2])
        return np.asarray(law.reshape(self._shape[0], -1))

    def busy_heads(self, seen_busy: FloatArray) -> FloatArray:
        """Return the probability that the first 0, 1, ... blocks examined are all on busy banks."""
        by_state = seen_busy.sum(axis=(0, 2))
        counts = np.bincount(self.rejected, weights=by_state, minlength=self._trials.trials)
        return np.concatenate(([1.0], counts))

    def repeats(self, table: FloatArray, begins: FloatArray, row: FloatArray) -> FloatArray:
        """Return the probability that a block is on the bank of the 1st, 2nd, ... allocation before it."""
        share = (row * (self.rejected == 0)).sum(axis=1)
        taken = self.taken(table, begins)
        repeats = np.zeros(self._trials.busy)
        for view, window in self._windows:
            for back, bank in enumerate(window):
                repeats[back] += share[view] * taken[view, distinct(window).index(bank)]
        return repeats
