"""Exact mean makespan of few exponential tasks on queues with stealing: a Markov chain to its end."""

from itertools import product
from math import prod

from qmodels import WorkQueues
from qmodels.systems.programs.work_queues import Bag

State = tuple[tuple[int, int, bool], ...]
"""Of each queue: tasks waiting, cores busy beside its shepherd, and whether the shepherd is."""


def exact_makespan(spec: WorkQueues) -> float:
    r"""Return the mean makespan of a bag of exponential tasks, exactly [cycles].

    The state says what waits at each queue and who is busy; b busy cores end a task at rate
    :math:`b/c` for a mean time c, and the next state follows from the spec's rules:

    .. math:: E[T_x] = \frac{c}{b} + \sum_y p_{xy} E[T_y].

    The tasks left only become fewer, so that every state is solved once.
    """
    costs = spec.costs
    assert isinstance(spec.tasks, Bag) and costs.compute_scv == 1
    assert not (costs.transfer_cycles or costs.queue_cycles or costs.local_cycles)
    assert not (spec.stealing.cycles or spec.stealing.item_cycles) or spec.stealing.thieves == "none"
    chain = _Chain(spec)
    waiting = [0] * spec.groups
    for queue in spec.queue_of:
        waiting[queue] += 1
    empty = [[count, 0, False] for count in waiting]
    start: dict[State, float] = {}
    chain.settle(empty, 1.0, start)
    unit = costs.block_cycles + costs.task_cycles
    return unit * sum(p * chain.mean(state) for state, p in start.items())


class _Chain:
    """The states of one spec and the mean time from each to the end, in mean task times."""

    def __init__(self, spec: WorkQueues) -> None:
        self.spec, self.each, self.groups = spec, spec.group_cores, spec.groups
        self.known: dict[State, float] = {}

    def mean(self, first: State) -> float:
        """Return the mean time from a state to the end."""
        todo = [first]
        after: dict[State, dict[State, float]] = {}
        while todo:  # a stack instead of recursion, which would be as deep as there are tasks
            state = todo[-1]
            if state in self.known:
                todo.pop()
                continue
            if state not in after:
                after[state] = self.successors(state)
            unknown = [y for y in after[state] if y not in self.known]
            if unknown:
                todo += unknown
                continue
            busy = sum(others + shepherd for _, others, shepherd in state)
            ahead = sum(p * self.known[y] for y, p in after.pop(state).items())
            self.known[state] = (1.0 / busy if busy else 0.0) + ahead
            todo.pop()
        return self.known[first]

    def successors(self, state: State) -> dict[State, float]:
        """Return the states after the next end of a task, with their probabilities."""
        busy = sum(others + shepherd for _, others, shepherd in state)
        found: dict[State, float] = {}
        for group, (_, others, shepherd) in enumerate(state):
            if others:
                now = [list(one) for one in state]
                now[group][1] -= 1
                self.settle(now, others / busy, found)
            if shepherd:
                now = [list(one) for one in state]
                now[group][2] = False
                self.settle(now, 1.0 / busy, found)
        return found

    def settle(self, now: list[list[int]], probability: float, found: dict[State, float]) -> None:
        """Let idle cores take tasks, their own first, then thieves; add what comes of it."""
        for queue in now:
            self._take_own(queue)
        # All of them look round before the first has his loot.
        thieves = [(thief, victims) for thief in self._idle(now) if (victims := self._victims(now, thief))]
        if not thieves:
            state = tuple((w, b, bool(shepherd)) for w, b, shepherd in now)
            found[state] = found.get(state, 0.0) + probability
            return
        for choice in product(*(victims for _, victims in thieves)):
            then = [list(one) for one in now]
            for (thief, _), victim in zip(thieves, choice, strict=True):
                self._steal(then, thief, victim)
            share = probability / prod(len(victims) for _, victims in thieves)
            self.settle(then, share, found)

    def _idle(self, now: list[list[int]]) -> list[int]:
        """Return the queue of each idle core that may steal."""
        how = self.spec.stealing.thieves
        thieves = []
        for group, (_, others, shepherd) in enumerate(now):
            more = self.each - 1 - others if how == "every" else 0
            thieves += [group] * (0 if how == "none" else (not shepherd) + more)
        return thieves

    def _steal(self, now: list[list[int]], thief: int, victim: int) -> None:
        s = self.spec.stealing
        excess = now[victim][0] - s.protected
        if excess <= 0:
            return
        loot = min(s.most, max(1, int(s.share * excess)))
        now[victim][0] -= loot
        now[thief][0] += loot - 1
        if now[thief][2]:
            now[thief][1] += 1
        else:
            now[thief][2] = True
        self._take_own(now[thief])

    def _take_own(self, queue: list[int]) -> None:
        if queue[0] and not queue[2]:
            queue[0], queue[2] = queue[0] - 1, True
        more = min(queue[0], self.each - 1 - queue[1])
        queue[0], queue[1] = queue[0] - more, queue[1] + more

    def _victims(self, now: list[list[int]], thief: int) -> list[int]:
        """Return the queue to steal from, or all of those that are equally likely."""
        spec, s = self.spec, self.spec.stealing
        turn = [(thief + step) % self.groups for step in range(1, self.groups)]
        good = [group for group in turn if now[group][0] > s.protected]
        if not good or s.victims == "random":
            return good
        if s.victims == "longest":
            return [max(good, key=lambda group: now[group][0])]
        row = spec.machine.numa_factors[thief * spec.machine.clusters // self.groups]
        return [min(good, key=lambda group: row[spec.queue_memory[group]])]
