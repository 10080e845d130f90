"""Tasks to cores, their blocks to memories and cores to DMA channels: exact and greedy."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np

from cases.published.srp.dma_problem import DmaProblem
from optimize import checks
from optimize.programs.grid import RESOLUTION, grid_step
from optimize.programs.linear import Model, Outcome, solver_name
from optimize.programs.milp import seconds_of
from optimize.programs.outcome import ProgramOutcome, gap_of
from optimize.search.pareto import FloatArray, IntArray

METHODS = ("milp", "greedy")


@dataclass(frozen=True, kw_only=True, eq=False)
class DmaPlacement(ProgramOutcome):
    """The outcome of `place_dma`; the program tells costs apart that differ by 1e-6 or lie on a grid."""

    # cores, memories: Core of each task, and memory of its block
    cores: tuple[int, ...]
    memories: tuple[int, ...]
    channels: tuple[int, ...]  # Channel of each core
    cost: float  # See `DmaProblem`. [cycles]
    bound: float | None  # No placement costs less; None if nothing was proven. [cycles]
    loads: dict[str, FloatArray]  # Load of every core (computing, commands), channel and memory. [cycles]
    method: str  # How it was found


def place_dma(problem: DmaProblem, *, method: str = "milp", time_limit: float | None = None) -> DmaPlacement:
    r"""Place tasks on cores, blocks on memories and cores on channels at the least cost.

    ``problem``: what is to be placed, and what it costs; ``method``: "milp", an integer program; or
    "greedy", construction and the best single changes, which proves nothing; ``time_limit``: seconds for the
    integer program. Returns the placement with its real cost; where the time is over, the better of what the
    program and the greedy method found.

    Tasks that are alike are counted: :math:`n_{gkm}` tasks of group g on core k with blocks at memory m,
    in binary digits, so that no two placements differ only by exchanging them. Channels are used in the
    order of their first core. Binary :math:`z_{kc}` (core k uses channel c), :math:`f_{cm}` (c serves m)
    and :math:`p_c` (c serves several); flows of time :math:`y_{kcm}` and of tasks :math:`q_{kc}` with

    .. math:: \sum_c y_{kcm} = \sum_g a_g u_{km} n_{gkm}, \quad y_{kcm} \le B z_{kc}, B f_{cm}, \quad
       \sum_m f_{cm} \le 1 + (M - 1) p_c,

    make :math:`\sum_{km} y_{kcm} + w (\sum_k q_{kc} - N (1 - p_c)) \le T` the load of a channel that
    loses w for each task when it turns. Every cost above that of the greedy placement is cut off.
    """
    start = time.perf_counter()
    checks.choice("method", method, METHODS)
    deadline = seconds_of(time_limit)
    if method == "greedy":
        best, status, bound = _greedy(problem), "feasible", None
    else:
        best, status, bound = _proven(problem, deadline)
    cost = problem.cost(*best)
    return DmaPlacement(
        status=status,
        cores=tuple(best[0].tolist()),
        memories=tuple(best[1].tolist()),
        channels=tuple(best[2].tolist()),
        cost=cost,
        bound=bound,
        gap=gap_of(cost, bound),
        loads=problem.loads(*best)[0],
        method=method,
        solver=solver_name() if method == "milp" else f"optimize, {method}",
        seconds=time.perf_counter() - start,
    )


Choice = tuple[IntArray, IntArray, IntArray]


def _proven(problem: DmaProblem, time_limit: float) -> tuple[Choice, str, float]:
    """Return the better of what the program and the greedy method find, its status and a lower bound."""
    best = _greedy(problem)
    program = _Program(problem, best)
    found, outcome = program.solve(time_limit)
    if found is not None and problem.cost(*found) < problem.cost(*best):
        best = found
    cost = problem.cost(*best)
    # Infeasible: nothing is below the greedy cost.
    if outcome.status not in ("optimal", "infeasible"):
        return best, "feasible", min(max(outcome.bound * program.scale, 0.0), cost)
    if _on_grid(problem, program.scale):
        return best, "optimal", cost
    return best, "resolved", cost - RESOLUTION * program.scale


def _greedy(problem: DmaProblem) -> Choice:
    """Return a placement that no move of a task, a block or a core to another channel improves."""
    computing, accesses = np.asarray(problem.computing), np.asarray(problem.accesses)
    order = np.argsort(-(computing + accesses * problem.controller_cycles), kind="stable")
    channels = np.arange(problem.cores) * problem.channels // problem.cores
    cores = np.zeros(0, dtype=np.int64)
    memories = np.zeros(0, dtype=np.int64)
    for k in range(len(order)):
        part = replace(problem, computing=computing[order[: k + 1]], accesses=accesses[order[: k + 1]])
        options = [
            (np.append(cores, core), np.append(memories, memory))
            for core in range(problem.cores)
            for memory in range(problem.memories)
        ]
        cores, memories = min(options, key=lambda option: part.cost(option[0], option[1], channels))
    placed = np.empty_like(cores), np.empty_like(memories)
    placed[0][order], placed[1][order] = cores, memories
    best: Choice = (*placed, channels)
    least = problem.cost(*best)
    while True:
        better = min(_neighbours(problem, best), key=lambda choice: problem.cost(*choice))
        cost = problem.cost(*better)
        if not cost < least * (1 - 1e-12):
            return best
        best, least = better, cost


def _neighbours(problem: DmaProblem, choice: Choice) -> list[Choice]:
    """Return all placements with one task, block or core elsewhere, or two tasks or cores exchanged."""
    found = [choice]
    for what, count in enumerate((problem.cores, problem.memories, problem.channels)):
        for k in range(len(choice[what])):
            for value in range(count):
                if value != choice[what][k]:
                    changed = [one.copy() for one in choice]
                    changed[what][k] = value
                    found.append((changed[0], changed[1], changed[2]))
        for i, j in itertools.combinations(range(len(choice[what])), 2):
            if choice[what][i] != choice[what][j]:
                changed = [one.copy() for one in choice]
                changed[what][[i, j]] = changed[what][[j, i]]
                found.append((changed[0], changed[1], changed[2]))
    return found


def _on_grid(problem: DmaProblem, scale: float) -> bool:
    """Return whether all costs, in units of the scale, are multiples of a step that is not too fine."""
    parts = (
        problem.moving() / problem.cores,
        problem.computing,
        np.asarray(problem.accesses) * problem.controller_cycles,
        [problem.switch_cycles, scale],
    )
    costs = np.unique(np.concatenate([np.ravel(part) for part in parts]))
    return grid_step(costs / costs[-1], costs / costs[-1]) is not None


def _groups(problem: DmaProblem) -> list[list[int]]:
    """Return the tasks in groups of equal ones."""
    kinds: dict[tuple[float, float], list[int]] = {}
    computing, accesses = np.asarray(problem.computing), np.asarray(problem.accesses)
    for task in range(problem.tasks):
        kinds.setdefault((float(computing[task]), float(accesses[task])), []).append(task)
    return list(kinds.values())


class _Program:
    """The integer program, see the notes of `place_dma`, in units of the cost of a placement to beat."""

    def __init__(self, problem: DmaProblem, start: Choice) -> None:
        self.problem, self.groups = problem, _groups(problem)
        self.cores, self.memories = range(problem.cores), range(problem.memories)
        self.channels = range(problem.channels)
        self.scale = scale = problem.cost(*start) or 1.0
        first = [group[0] for group in self.groups]
        self.moving = problem.moving()[first] / scale
        self.one = np.ones_like(self.moving)
        self.model = model = Model()
        self.longest = model.continuous(0.0, None, cost=1.0)
        self.objective = {self.longest: 1.0}
        self.count: dict[tuple[int, int, int], dict[int, float]] = {}
        self._count_tasks()
        self._limit_cores_and_memories(first)
        self.use = {(k, c): model.binary() for k in self.cores for c in self.channels if c <= k}
        self.serves = {(c, m): model.binary() for c in self.channels for m in self.memories}
        self.several = [model.binary() for _ in self.channels]
        self.flow = {(k, c, m): model.continuous(0.0, 1.0) for k, c in self.use for m in self.memories}
        self.tasks = {(k, c): model.continuous(0.0, float(problem.tasks)) for k, c in self.use}
        for k in self.cores:
            self._share_flows(k)
        for c in self.channels:
            self._limit_channel(c)
        model.at_most(self.objective, 1.0)

    def total(self, weight: FloatArray, k: int | None, m: int | None) -> dict[int, float]:
        """Return the sum of a weight (groups, cores, memories) over the tasks of a core or a memory."""
        return {
            x: float(weight[g, i, j] * n)
            for (g, i, j), digits in self.count.items()
            if k in (None, i) and m in (None, j)
            for x, n in digits.items()
        }

    def _count_tasks(self) -> None:
        """Add the tasks of every group at every core and memory, in binary digits, and the way they make."""
        for g, group in enumerate(self.groups):
            digits = range(ceil(log2(len(group) + 1)))
            for k in self.cores:
                for m in self.memories:
                    way = self.moving[g, k, m] / self.problem.cores
                    self.count[g, k, m] = {self.model.binary(2**d * way): float(2**d) for d in digits}
                    self.objective |= {x: number * way for x, number in self.count[g, k, m].items()}
            every = {x: n for (i, _, _), places in self.count.items() if i == g for x, n in places.items()}
            self.model.equal(every, float(len(group)))

    def _limit_cores_and_memories(self, first: list[int]) -> None:
        """Bound the computing and the commands of each core, and the accesses of each memory."""
        computing, accesses = np.asarray(self.problem.computing), np.asarray(self.problem.accesses)
        work = computing[first][:, None, None] * self.one / self.scale
        busy = accesses[first][:, None, None] * self.problem.controller_cycles * self.one / self.scale
        for k in self.cores:
            self.model.at_most({**self.total(work, k, None), self.longest: -1.0}, 0.0)
            self.model.at_most({**self.total(self.moving, k, None), self.longest: -1.0}, 0.0)
        for m in self.memories:
            self.model.at_most({**self.total(busy, None, m), self.longest: -1.0}, 0.0)

    def _share_flows(self, k: int) -> None:
        """Move what a core fetches through the channel that it uses."""
        problem, model, flow = self.problem, self.model, self.flow
        mine = [c for c in self.channels if (k, c) in self.use]
        model.equal({self.use[k, c]: 1.0 for c in mine}, 1.0)
        for m in self.memories:
            there = {x: -n for x, n in self.total(self.moving, k, m).items()}
            model.equal({**there, **{flow[k, c, m]: 1.0 for c in mine}}, 0.0)
        everything = self.total(self.one, k, None)
        if problem.most_tasks is not None:
            model.at_most(everything, float(problem.most_tasks))
        model.equal({**{x: -n for x, n in everything.items()}, **{self.tasks[k, c]: 1.0 for c in mine}}, 0.0)
        for c in mine:
            # A core's commands take no longer than the greedy placement in all.
            model.at_most({**{flow[k, c, m]: 1.0 for m in self.memories}, self.use[k, c]: -1.0}, 0.0)
            model.at_most({self.tasks[k, c]: 1.0, self.use[k, c]: -float(problem.tasks)}, 0.0)
            for m in self.memories:
                model.at_most({flow[k, c, m]: 1.0, self.serves[c, m]: -1.0}, 0.0)

    def _limit_channel(self, c: int) -> None:
        """Bound the load of a channel, with its turning; channels come in the order of their first core."""
        problem, model, longest, several = self.problem, self.model, self.longest, self.several[c]
        users = [k for k in self.cores if (k, c) in self.use]
        held = {self.flow[k, c, m]: 1.0 for k in users for m in self.memories}
        model.at_most({**held, longest: -1.0}, 0.0)
        served = {self.serves[c, m]: 1.0 for m in self.memories}
        model.at_most({**served, several: -(len(self.memories) - 1.0)}, 1.0)
        if problem.switch_cycles:
            loss = {self.tasks[k, c]: problem.switch_cycles / self.scale for k in users}
            room = problem.tasks * problem.switch_cycles / self.scale
            model.at_most({**held, **loss, several: room, longest: -1.0}, room)
        for k in users:
            if c:
                earlier = {self.use[i, c - 1]: -1.0 for i in self.cores if i < k and (i, c - 1) in self.use}
                model.at_most({self.use[k, c]: 1.0, **earlier}, 0.0)

    def solve(self, time_limit: float) -> tuple[Choice | None, Outcome]:
        """Return the best placement, if there is one, and the outcome."""
        outcome = self.model.solve(None if time_limit == np.inf else time_limit)
        if not outcome.values:
            return None, outcome
        cores, memories = (np.zeros(self.problem.tasks, dtype=np.int64) for _ in range(2))
        waiting = [list(group) for group in self.groups]
        for (g, k, m), places in self.count.items():
            for _ in range(round(sum(n * outcome.values[x] for x, n in places.items()))):
                task = waiting[g].pop()
                cores[task], memories[task] = k, m
        uses = [
            max(
                (c for c in self.channels if (k, c) in self.use), key=lambda c: outcome.values[self.use[k, c]]
            )
            for k in self.cores
        ]
        return (cores, memories, np.array(uses)), outcome
