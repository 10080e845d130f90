"""The chain of a reader of the free list beside the writer who left it behind, and its fixed point."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from qmodels.allocator.trial_states import (
    TrialRules,
    TrialStates,
    Window,
    canonical,
    distinct,
    draw_any,
    draw_others,
    draw_window,
    trial_states,
)
from qmodels.checks import FloatArray, IntArray

ALWAYS = -1
"""In place of a parameter's number: the transition has no further factor."""

BETWEEN, WITHIN = range(2)
"""Laws of the bank taken: next to another packet's block, or right after a block of the same packet."""

View = tuple[Window, Window]
"""A window, and the busy bank of another access if it was met."""


@dataclass(frozen=True, kw_only=True)
class PacketRules:
    """Storage of packets."""

    # Probability that a packet ends with its k-th block if it has that many; the last one, of at least two,
    # holds for all further blocks.
    endings: tuple[float, ...]
    mean_size: float  # mean blocks of a packet
    other_packet: float  # probability that a block of another packet is allocated between two of a packet
    # Probability that the last block of a packet was read, and the packet returned, right before the next
    # allocation.
    read_last: float
    # Probability that an access to a random bank came between two blocks of a packet that no other packet's
    # block lies between; one that does comes with its own `TrialRules.other_access`.
    access_within: float


@dataclass(kw_only=True, eq=False)
class Entries:
    """Groups of entries, all of a group with the same constant and parameter."""

    source: list[IntArray] = field(default_factory=list)
    target: list[IntArray] = field(default_factory=list)
    weight: array[float] = field(default_factory=lambda: array("d"))
    parameter: array[int] = field(default_factory=lambda: array("q"))

    def add(self, source: IntArray, target: IntArray, weight: float, parameter: int) -> None:
        """Add a group."""
        self.source.append(source)
        self.target.append(target)
        self.weight.append(weight)
        self.parameter.append(parameter)

    def columns(self) -> tuple[IntArray, IntArray, FloatArray, IntArray]:
        """Return all groups one after another."""
        sizes = [len(part) for part in self.source]
        return (
            np.concatenate(self.source),
            np.concatenate(self.target),
            np.repeat(np.asarray(self.weight), sizes),
            np.repeat(np.asarray(self.parameter, dtype=np.int64), sizes),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """Transitions from a bank at the head, for all trial states that are possible."""

    entry: IntArray  # the table's entries that tell this bank's probability
    busy: FloatArray  # probability that the bank is found busy
    # Chance, view afterwards, the states (by position) for which it holds, the states they lead to.
    outcomes: list[tuple[float, View, IntArray, IntArray]]


class ListChain:
    """Transitions of the joint chain of a reader and an earlier writer of the list.

    The reader allocates; the banks his trials find at the head were left there by the writer: in
    turn, those of the blocks rejected while a packet was stored and those of a whole packet
    returned, stored at some other time. Both follow one law of the next bank, a table of
    parameters by view, trial state and place; the reader's trials show that law anew.

    A state has the banks of both views up to a renaming, the reader's trial state, and what the
    writer is at: storing a packet of which only rejected blocks are read, or about to return one
    (both with his own trial state), returning it (with the age of the block before), passing over
    another packet's block in it, or having done so, or starting on a history of his own.
    """

    def __init__(self, trials: TrialRules, packets: PacketRules) -> None:
        self.trials, self.packets = trials, packets
        self.states = trial_states(trials)
        self.views: dict[View, int] = {}
        self._joint: dict[tuple[View, View], int] = {}
        self._todo: list[tuple[View, View]] = []
        count, ages = len(self.states), len(packets.endings)
        self._returning, self._age = count, 2 * count
        self._passing, self._passed = 2 * count + ages, 2 * count + 2 * ages
        self._afresh = 2 * count + 3 * ages
        self._go_on = self._passing if packets.other_packet > 0 else self._age
        self._writers = self._afresh + 2
        self._block = count * self._writers
        self._trial = lru_cache(maxsize=None)(self._find_trial)
        self._name = lru_cache(maxsize=None)(self._find_name)
        self._steps, self._seen = Entries(), Entries()
        self._seen_busy: list[FloatArray] = []
        first = canonical(k % trials.banks for k in range(trials.busy))
        self._name((first, ()), (first, ()))
        while self._todo:
            self._leave(*self._todo.pop())
        self.source, self.target, self.weight, self.parameter = self._steps.columns()
        self.seen_from, self.seen_entry, self.seen_weight, self.seen_parameter = self._seen.columns()
        self.seen_busy = np.concatenate(self._seen_busy)

    def view(self, window: Window, other: Window) -> int:
        """Return the number of a view up to a renaming of banks."""
        renamed = canonical(window + other)
        size = self.trials.busy
        return self.views.setdefault((renamed[:size], renamed[size:]), len(self.views))

    def _entry(self, view: int, state: int | IntArray, place: int) -> int | IntArray:
        return (view * len(self.states) + state) * self.trials.places + place

    def _find_name(self, reader: View, writer: View) -> int:
        size = self.trials.busy
        cuts = (size, len(reader[1]), size, len(writer[1]))
        names = canonical(reader[0] + reader[1] + writer[0] + writer[1])
        parts, start = [], 0
        for cut in cuts:
            parts.append(names[start : start + cut])
            start += cut
        key = ((parts[0], parts[1]), (parts[2], parts[3]))
        if key not in self._joint:
            self._joint[key] = len(self._joint)
            self._todo.append(key)
        return self._joint[key]

    def _leave(self, reader: View, writer: View) -> None:
        """Enter all transitions that leave the states with these views."""
        trials, endings = self.trials, self.packets.endings
        self._reader, self._writer = reader, writer
        self._known = max(*reader[0], *reader[1], *writer[0], *writer[1]) + 1
        self._readers = np.array(self._reading(reader)) * self._writers
        self._from = self._joint[reader, writer] * self._block + self._readers
        for state in self.states.possible(*writer):
            self._try(state)
            if self.states.states[state][0] == 0 and state != self.states.told:
                self._return_first(state)
        if writer[0] == reader[0] and (not writer[1] or self.states.told is not None):
            start, told = (self._afresh + 1, self.states.told) if writer[1] else (self._afresh, 0)
            for drawn, chance in draw_window(self._known, trials.busy, trials.banks):
                self._silent(start, (drawn, writer[1]), told or 0, chance, ALWAYS)
        if writer[1]:
            return
        for age in range(1, len(endings)):
            self._return_next(age, self._age, WITHIN)
            if self.packets.other_packet > 0:
                self._pass_over(age)
                self._return_next(age, self._passed, BETWEEN)

    def _banks(self, own: Window, place_parameter: list[int]) -> list[tuple[int, float, int]]:
        """Return the banks by place: bank, its probability given its parameter, parameter."""
        others = draw_others(self._known, own, self.trials.banks)
        return [(bank, 1.0, place_parameter[place]) for place, bank in enumerate(own)] + [
            (bank, chance, place_parameter[-1]) for bank, chance in others
        ]

    def _taken_banks(self, law: int) -> list[tuple[int, float, int]]:
        # Counted down from ALWAYS, as the number of views is not known until the chain is built.
        view, places = self.view(*self._writer), self.trials.places
        own = distinct(self._writer[0])
        return self._banks(own, [ALWAYS - 1 - 2 * (view * places + place) - law for place in range(places)])

    def _try(self, state: int) -> None:
        """Let the writer, of whom only rejected blocks are read, examine a block."""
        window, other = self._writer
        ends = 1.0 / self.packets.mean_size
        # Whatever was read last, the list's first block is what it is.
        met = () if state == self.states.told else other
        view, row = self.view(window, met), 0 if state == self.states.told else state
        table = [int(self._entry(view, row, place)) for place in range(self.trials.places)]
        for bank, chance, parameter in self._banks(distinct(window + met), table):
            for part, after, now in self.states.outcomes(window, other, state, bank):
                if after >= 0:
                    self._read(state, bank, (window, now), after, chance * part, parameter)
                    continue
                taking = self.states.taking(window, other, state, bank)
                taken = ((bank, *window[:-1]), ())
                self._silent(state, taken, self._returning + taking, chance * part * ends, parameter)
                if ends < 1:
                    self._silent(state, taken, taking, chance * part * (1 - ends), parameter)

    def _return_first(self, state: int) -> None:
        """Let the first block of a returned packet be read; after a single one the writer goes on."""
        ends, at, size = self.packets.endings[0], self._returning + state, self.trials.busy
        for (bank,), chance in draw_any(self._known, 1, self.trials.banks):
            if ends > 0:
                for told, part in self._after_return():
                    writer, to = (
                        ((self._writer[0], (bank,)), self.states.told or 0) if told else (self._writer, state)
                    )
                    self._read(at, bank, writer, to, chance * ends * part, ALWAYS)
            if ends < 1:
                known = max(self._known, bank + 1)
                for window, part in draw_window(known, size, self.trials.banks, (bank,)):
                    weight = chance * (1 - ends) * part
                    self._read(at, bank, (window, ()), self._go_on + 1, weight, ALWAYS)

    def _return_next(self, age: int, at: int, law: int) -> None:
        """Let a further block of a returned packet be read."""
        ends = self.packets.endings[age]
        older = min(age + 1, len(self.packets.endings) - 1)
        for bank, chance, parameter in self._taken_banks(law):
            if ends > 0:
                for told, part in self._after_return():
                    to = self._afresh + told
                    self._read(at + age, bank, self._writer, to, chance * ends * part, parameter)
            if ends < 1:
                window = ((bank, *self._writer[0][:-1]), ())
                weight = chance * (1 - ends)
                self._read(at + age, bank, window, self._go_on + older, weight, parameter)

    def _after_return(self) -> list[tuple[bool, float]]:
        """Return whether the first allocation after a return follows its last read, and the chances."""
        told = self.packets.read_last if self.states.told is not None else 0.0
        return [(now, part) for now, part in ((True, told), (False, 1.0 - told)) if part > 0]

    def _pass_over(self, age: int) -> None:
        """Let another packet's block be taken before this packet's next one, or none."""
        other, at = self.packets.other_packet, self._passing + age
        if other < 1:
            self._silent(at, self._writer, self._age + age, 1 - other, ALWAYS)
        for bank, chance, parameter in self._taken_banks(BETWEEN):
            passed = ((bank, *self._writer[0][:-1]), ())
            self._silent(at, passed, self._passed + age, chance * other, parameter)

    def _silent(self, at: int, writer: View, to: int, chance: float, parameter: int) -> None:
        """Enter a step of the writer that leaves nothing to read."""
        target = self._name(self._reader, writer) * self._block + self._readers + to
        self._steps.add(self._from + at, target, chance, parameter)

    def _read(self, at: int, bank: int, writer: View, to: int, chance: float, parameter: int) -> None:
        """Enter the step of the reader that finds this bank at the head."""
        trial = self._trial(self._reader, bank)
        here = self._from + at
        self._seen.add(here, trial.entry, chance, parameter)
        self._seen_busy.append(trial.busy)
        for part, view, members, targets in trial.outcomes:
            if to >= self._afresh:  # his window is of no account
                writer = (view[0], (bank,) if to > self._afresh else ())
            target = self._name(view, writer) * self._block + targets + to
            self._steps.add(here[members], target, chance * part, parameter)

    def _reading(self, reader: View) -> list[int]:
        """Return the reader's states; other accesses are random to him until he meets them."""
        return [state for state in self.states.possible(*reader) if state != self.states.told]

    def _find_trial(self, reader: View, bank: int) -> Trial:
        """Return the transitions from a bank at the head in all trial states the reader can be in."""
        window, other = reader
        known = distinct(window + other)
        place = known.index(bank) if bank in known else self.trials.places - 1
        possible = self._reading(reader)
        groups: dict[tuple[float, View], tuple[list[int], list[int]]] = {}
        for k, state in enumerate(possible):
            for part, after, met in self.states.outcomes(window, other, state, bank):
                view: View = (window, met)
                if after < 0:
                    after = self.states.taking(window, other, state, bank)
                    view = ((bank, *window[:-1]), ())
                members, targets = groups.setdefault((part, view), ([], []))
                members.append(k)
                targets.append(after)
        return Trial(
            entry=np.asarray(self._entry(self.view(window, other), np.array(possible), place)),
            busy=np.array([self.states.busy_chance(window, other, state, bank) for state in possible]),
            outcomes=[
                (part, view, np.array(members), np.array(targets) * self._writers)
                for (part, view), (members, targets) in groups.items()
            ],
        )


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

    In turn: n steps of the joint chain under the table, and a new table from what the
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
