"""Tasks of the 16-SRP chip to cores, their blocks to memories and cores to DMA channels: exact and greedy."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any

import numpy as np

from optimize.programs.grid import RESOLUTION, grid_step
from optimize.programs.linear import Model, Outcome
from optimize.search.pareto import FloatArray, IntArray
from qmodels.systems.memory.numa import NumaMachine

METHODS = ("milp", "greedy")
WORK = ("blurring", "fetching", "renumbered")
"""Non-optimal blurring, the same without any computing, and blurring on cores numbered in no order."""
RENUMBERED = (14, 3, 8, 5, 0, 11, 6, 13, 9, 2, 15, 4, 7, 12, 1, 10)
Choice = tuple[IntArray, IntArray, IntArray]
"""Core of each task, memory of its block, channel of each core."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DmaProblem:
    r"""Tasks that fetch a block each, cores that compute them, memories and channels that are shared.

    The cost of a placement is the time of the most loaded resource, by which the whole work cannot
    end sooner, and for the way the mean time of a core's commands:

    .. math:: \max(T_{cores}, T_{commands}, T_{channels}, T_{memories}) + \tfrac{1}{cores} \sum_t a_t u_{km}

    with the sums of computing and of commands :math:`a_t u_{km}` per core, of commands and turning
    per channel, and of :math:`a_t s` per memory.
    """

    computing: FloatArray  # time of a core to compute each task [cycles]
    accesses: FloatArray  # memory accesses of its block
    access_cycles: FloatArray  # time of an access of a core to a memory that meets no other [cycles]
    controller_cycles: float  # time of an access that keeps the memory itself busy [cycles]
    channels: int  # DMA channels; each core uses one
    # Loss of a channel for each task whose block it moves, if it serves more than one memory: all its
    # commands turn it then [cycles].
    switch_cycles: float = 0.0
    # Most tasks of a core: 1 keeps a core for each, where the cost would leave the far cores idle.
    most_tasks: int | None = None

    def __post_init__(self) -> None:
        for name in ("computing", "accesses", "access_cycles"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))
        if self.computing.shape != self.accesses.shape:
            raise ValueError(f"accesses must be one a task ({self.tasks}), got {self.accesses.size}")
        if self.most_tasks is not None and self.most_tasks * self.cores < self.tasks:
            wanted = f"{self.tasks} tasks on {self.cores} cores"
            raise ValueError(f"most_tasks must leave room for {wanted}, got {self.most_tasks!r}")

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.computing)

    @property
    def cores(self) -> int:
        """Number of cores."""
        return len(self.access_cycles)

    @property
    def memories(self) -> int:
        """Number of memories."""
        return self.access_cycles.shape[1]

    def moving(self) -> FloatArray:
        """Return the time of each task's commands at each core and memory, alone. [cycles]."""
        return self.accesses[:, None, None] * self.access_cycles[None]

    def cost(self, cores: IntArray, memories: IntArray, channels: IntArray) -> float:
        """Return the cost of a placement, infinite where a core has more tasks than it may. [cycles]."""
        if self.most_tasks is not None and np.bincount(cores).max() > self.most_tasks:
            return float("inf")
        busy, way = self.loads(cores, memories, channels)
        return float(max(one.max() for one in busy.values()) + way)

    def loads(
        self, cores: IntArray, memories: IntArray, channels: IntArray
    ) -> tuple[dict[str, FloatArray], float]:
        """Return the loads by kind of resource, and the mean time of a core's commands. [cycles]."""
        moving = self.accesses * self.access_cycles[cores, memories]
        of_task = channels[cores]
        serves = np.zeros((self.channels, self.memories), dtype=bool)
        serves[of_task, memories] = True
        turning = np.where(serves.sum(axis=1) > 1, self.switch_cycles, 0.0)

        def total(places: IntArray, weights: FloatArray, count: int) -> FloatArray:
            return np.asarray(np.bincount(places, weights=weights, minlength=count), dtype=float)

        return {
            "computing": total(cores, self.computing, self.cores),
            "commands": total(cores, moving, self.cores),
            "channels": total(of_task, moving + turning[of_task], self.channels),
            "memories": total(memories, self.accesses * self.controller_cycles, self.memories),
        }, float(moving.sum() / self.cores)


@dataclass(frozen=True, kw_only=True, eq=False)
class DmaPlacement:
    """The outcome of `place_dma`; the program tells costs apart that differ by 1e-6 or lie on a grid."""

    status: str  # "optimal"; "resolved": nothing better by more than the resolution; "feasible"
    choice: Choice  # Where everything is
    cost: float  # See `DmaProblem`. [cycles]
    bound: float | None  # No placement costs less; None if nothing was proven. [cycles]


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
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    best = _greedy(problem)
    if method == "greedy":
        return DmaPlacement(status="feasible", choice=best, cost=problem.cost(*best), bound=None)
    program = _Program(problem, best)
    found, outcome = program.solve(time_limit)
    if found is not None and problem.cost(*found) < problem.cost(*best):
        best = found
    cost = problem.cost(*best)
    # Infeasible: nothing is below the greedy cost.
    if outcome.status not in ("optimal", "infeasible"):
        status, bound = "feasible", min(max(outcome.bound * program.scale, 0.0), cost)
    elif _on_grid(problem, program.scale):
        status, bound = "optimal", cost
    else:
        status, bound = "resolved", cost - RESOLUTION * program.scale
    return DmaPlacement(status=status, choice=best, cost=cost, bound=bound)


def _greedy(problem: DmaProblem) -> Choice:
    """Return a placement that no move of a task, a block or a core to another channel improves."""
    computing, accesses = problem.computing, problem.accesses
    order = np.argsort(-(computing + accesses * problem.controller_cycles), kind="stable")
    channels = np.arange(problem.cores) * problem.channels // problem.cores
    cores = memories = np.zeros(0, dtype=np.int64)
    for k in range(len(order)):
        part = replace(problem, computing=computing[order[: k + 1]], accesses=accesses[order[: k + 1]])
        options = [
            (np.append(cores, core), np.append(memories, memory))
            for core, memory in itertools.product(range(problem.cores), range(problem.memories))
        ]
        cores, memories = min(options, key=lambda option: part.cost(option[0], option[1], channels))
    back = np.argsort(order, kind="stable")
    best: Choice = (cores[back], memories[back], channels)
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

    def changed(what: int, places: list[int], values: Any) -> None:
        arrays = [one.copy() for one in choice]
        arrays[what][places] = values
        found.append((arrays[0], arrays[1], arrays[2]))

    for what, count in enumerate((problem.cores, problem.memories, problem.channels)):
        mine = choice[what]
        for k, value in itertools.product(range(len(mine)), range(count)):
            if value != mine[k]:
                changed(what, [k], value)
        for i, j in itertools.combinations(range(len(mine)), 2):
            if mine[i] != mine[j]:
                changed(what, [i, j], mine[[j, i]])
    return found


def _on_grid(problem: DmaProblem, scale: float) -> bool:
    """Return whether all costs, in units of the scale, are multiples of a step that is not too fine."""
    parts = (
        problem.moving() / problem.cores,
        problem.computing,
        problem.accesses * problem.controller_cycles,
        [problem.switch_cycles, scale],
    )
    costs = np.unique(np.concatenate([np.ravel(part) for part in parts]))
    return grid_step(costs / costs[-1], costs / costs[-1]) is not None


class _Program:
    """The integer program, see the notes of `place_dma`, in units of the cost of a placement to beat."""

    def __init__(self, problem: DmaProblem, start: Choice) -> None:
        kinds: dict[tuple[float, float], list[int]] = {}
        for task, kind in enumerate(zip(problem.computing.tolist(), problem.accesses.tolist(), strict=True)):
            kinds.setdefault(kind, []).append(task)
        self.problem, self.groups = problem, list(kinds.values())
        self.scale = scale = problem.cost(*start) or 1.0
        first = [group[0] for group in self.groups]
        moving = problem.moving()[first] / scale
        self.model = model = Model()
        longest = model.continuous(0.0, None, cost=1.0)
        cores, memories, channels = range(problem.cores), range(problem.memories), range(problem.channels)

        # The tasks of every group at every core and memory, in binary digits, and the way they make.
        objective = {longest: 1.0}
        self.count: dict[tuple[int, int, int], dict[int, float]] = {}
        for g, group in enumerate(self.groups):
            for k, m in itertools.product(cores, memories):
                way, digits = moving[g, k, m] / problem.cores, range(ceil(log2(len(group) + 1)))
                self.count[g, k, m] = {model.binary(2**d * way): float(2**d) for d in digits}
                objective |= {x: n * way for x, n in self.count[g, k, m].items()}
            every = {x: n for (i, _, _), places in self.count.items() if i == g for x, n in places.items()}
            model.equal(every, float(len(group)))

        def total(weight: FloatArray, core: int | None = None, memory: int | None = None) -> dict[int, float]:
            """Return the sum of a weight (groups, cores, memories) over the tasks of a core or a memory."""
            shape = np.broadcast_to(weight, moving.shape)
            return {
                x: float(shape[g, i, j] * n)
                for (g, i, j), digits in self.count.items()
                if core in (None, i) and memory in (None, j)
                for x, n in digits.items()
            }

        def at_most_longest(terms: dict[int, float]) -> None:
            model.at_most({**terms, longest: -1.0}, 0.0)

        work = problem.computing[first][:, None, None] / scale
        busy = problem.accesses[first][:, None, None] * problem.controller_cycles / scale
        for k in cores:
            at_most_longest(total(work, core=k))
            at_most_longest(total(moving, core=k))
        for m in memories:
            at_most_longest(total(busy, memory=m))
        self.use = use = {(k, c): model.binary() for k in cores for c in channels if c <= k}
        serves = {(c, m): model.binary() for c in channels for m in memories}
        several = [model.binary() for _ in channels]
        flow = {(k, c, m): model.continuous(0.0, 1.0) for k, c in use for m in memories}
        tasks = {key: model.continuous(0.0, float(problem.tasks)) for key in use}
        for k in cores:
            # What a core fetches moves through the channel that it uses.
            mine = [c for c in channels if (k, c) in use]
            model.equal({use[k, c]: 1.0 for c in mine}, 1.0)
            for m in memories:
                there = {x: -n for x, n in total(moving, k, m).items()}
                model.equal({**there, **{flow[k, c, m]: 1.0 for c in mine}}, 0.0)
            everything = total(np.ones(1), core=k)
            if problem.most_tasks is not None:
                model.at_most(everything, float(problem.most_tasks))
            model.equal({**{x: -n for x, n in everything.items()}, **{tasks[k, c]: 1.0 for c in mine}}, 0.0)
            for c in mine:
                # A core's commands take no longer than the greedy placement in all.
                model.at_most({**{flow[k, c, m]: 1.0 for m in memories}, use[k, c]: -1.0}, 0.0)
                model.at_most({tasks[k, c]: 1.0, use[k, c]: -float(problem.tasks)}, 0.0)
                for m in memories:
                    model.at_most({flow[k, c, m]: 1.0, serves[c, m]: -1.0}, 0.0)
        for c in channels:
            # The load of a channel, with its turning; channels come in the order of their first core.
            users = [k for k in cores if (k, c) in use]
            held = {flow[k, c, m]: 1.0 for k in users for m in memories}
            at_most_longest(held)
            model.at_most({**{serves[c, m]: 1.0 for m in memories}, several[c]: -(len(memories) - 1.0)}, 1.0)
            if problem.switch_cycles:
                loss, room = problem.switch_cycles / scale, problem.tasks * problem.switch_cycles / scale
                turning = {tasks[k, c]: loss for k in users}
                model.at_most({**held, **turning, several[c]: room, longest: -1.0}, room)
            for k in users if c else ():
                earlier = {use[i, c - 1]: -1.0 for i in cores if i < k and (i, c - 1) in use}
                model.at_most({use[k, c]: 1.0, **earlier}, 0.0)
        model.at_most(objective, 1.0)

    def solve(self, time_limit: float | None) -> tuple[Choice | None, Outcome]:
        """Return the best placement, if there is one, and the outcome."""
        outcome = self.model.solve(time_limit)
        values = outcome.values
        if not values:
            return None, outcome
        cores, memories = (np.zeros(self.problem.tasks, dtype=np.int64) for _ in range(2))
        waiting = [list(group) for group in self.groups]
        for (g, k, m), places in self.count.items():
            for _ in range(round(sum(n * values[x] for x, n in places.items()))):
                task = waiting[g].pop()
                cores[task], memories[task] = k, m
        used = [{c: values[x] for (i, c), x in self.use.items() if i == k} for k in range(self.problem.cores)]
        return (cores, memories, np.array([max(one, key=lambda c: one[c]) for one in used])), outcome


def machine_of_work(machine: NumaMachine, work: str) -> NumaMachine:
    """Return a work on the paper's best placement: data clustered, channels for pairs of cores."""
    if work == "fetching":
        return replace(machine, work=replace(machine.work, compute_cycles=0.0))
    if work == "renumbered":
        return replace(machine, chip=replace(machine.chip, core_nodes=RENUMBERED))
    return machine


def problem_of(machine: NumaMachine) -> DmaProblem:
    """Return the placement of one task per core, of the blocks it works on, and of the channels."""
    chip, cores = machine.chip, range(machine.chip.cores)
    steps = np.array([machine.steps_of(core) for core in cores], dtype=float)
    return DmaProblem(
        computing=steps * machine.own_cycles,
        accesses=steps * sum(machine.transfers),
        access_cycles=np.array([[chip.access_cycles(k, m) for m in range(chip.memories)] for k in cores]),
        controller_cycles=chip.controller_cycles,
        channels=machine.dma.channels,
        switch_cycles=float(steps.mean()) * len(machine.transfers) * machine.dma.switch_cycles,
        most_tasks=1,
    )


def placed_machine(machine: NumaMachine, choice: Choice) -> NumaMachine:
    """Return a machine with its tasks, blocks and channels placed; a core goes round its tasks."""
    steps = [0] * machine.chip.cores
    memories: list[tuple[int, ...]] = [() for _ in steps]
    for task, (core, memory) in enumerate(zip(choice[0].tolist(), choice[1].tolist(), strict=True)):
        steps[core] += machine.steps_of(task)
        memories[core] += (memory,)
    work = replace(
        machine.work,
        core_steps=tuple(steps),
        placement="per-core",
        memories=tuple(mine or (0,) for mine in memories),
    )
    dma = replace(machine.dma, assignment="custom", core_channels=tuple(choice[2].tolist()))
    return replace(machine, work=work, dma=dma)


def placements(blurring: NumaMachine) -> list[tuple[NumaMachine, dict[str, Any]]]:
    """Return the placements of each work: by program, by the greedy method, the paper's, and bad ones.

    A row has what the integer program minimises and the bound [million cycles], whether no placement has a
    lower one, and the seconds to find it. Of what was not searched for, a task is on each core, its block at
    the core's first memory.
    """
    found = []
    for work in WORK:
        best = machine_of_work(blurring, work)
        problem = problem_of(best)
        for method in METHODS:
            start = time.perf_counter()
            placed = place_dma(problem, method=method, time_limit=60.0)
            row = {
                "work": work,
                "placement": method,
                "objective": placed.cost / 1e6,
                "bound": None if placed.bound is None else placed.bound / 1e6,
                "proven": placed.status == "optimal",
                "model": None,
                "simulated": None,
                "seconds": time.perf_counter() - start,
            }
            found.append((placed_machine(best, placed.choice), row))
        for name, machine in {
            "the paper's best": best,
            "enumerated channels": replace(best, dma=replace(best.dma, assignment="enumerated")),
            "one memory": replace(best, work=replace(best.work, placement="one")),
        }.items():
            cores = np.arange(machine.chip.cores)
            places = np.array([machine.memories_of(core)[0] for core in cores.tolist()])
            channels = np.array(machine.dma.channels_of(machine.chip.cores))
            cost = problem_of(machine).cost(cores, places, channels)
            plain = {"objective": cost / 1e6, "bound": None, "proven": False, "seconds": 0.0}
            found.append((machine, {**row, "placement": name, **plain}))
    return found
