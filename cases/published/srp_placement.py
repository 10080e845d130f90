"""Memories and DMA channels of the cores of the 16-SRP chip: the best by an integer program, and greedy."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cases.published.computing import solved
from optimize.programs.linear import Model
from optimize.search.pareto import FloatArray
from qmodels.systems.memory.numa_system import NumaMachine

WORK = ("blurring", "fetching", "renumbered")
"""Non-optimal blurring, the same without any computing, and blurring on cores numbered in no order."""
RENUMBERED = (14, 3, 8, 5, 0, 11, 6, 13, 9, 2, 15, 4, 7, 12, 1, 10)
RESOLUTION = 1e-6
"""By how much, relative, a placement must be better to be looked for."""
Choice = tuple[tuple[int, ...], tuple[int, ...]]
"""Memory of each core's blocks, and channel of each core."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DmaProblem:
    r"""Cores that fetch blocks from a memory each, through channels that several share.

    The cost of a placement is the time of the most loaded resource, by which the whole work cannot end
    sooner, and for the way the mean time of a core's commands:

    .. math:: \max(T_{computing}, T_{commands}, T_{channels}, T_{memories}) + \tfrac{1}{K} \sum_k c_{km}
    """

    computing: float  # time of a core to compute all of its blocks [cycles]
    commands: FloatArray  # time of a core's commands at each memory, alone (cores x memories) [cycles]
    busy: float  # time that a core's blocks keep their memory busy [cycles]
    channels: int  # DMA channels; each core uses one
    switch_cycles: float  # loss of a channel for each core, if it serves more than one memory [cycles]

    def cost(self, memories: tuple[int, ...], channels: tuple[int, ...]) -> float:
        """Return the cost of a placement; a core with memory -1 has none yet. [cycles]."""
        placed = [(k, m, c) for k, (m, c) in enumerate(zip(memories, channels, strict=True)) if m >= 0]
        moving, held = [self.commands[k, m] for k, m, _ in placed], [0.0] * self.channels
        for channel in set(channels):
            mine = [(k, m) for k, m, c in placed if c == channel]
            turns = len({m for _, m in mine}) > 1
            held[channel] = sum(self.commands[k, m] + turns * self.switch_cycles for k, m in mine)
        busiest = max(Counter(m for _, m, _ in placed).values()) * self.busy
        return float(max(self.computing, busiest, *moving, *held) + sum(moving) / len(self.commands))

    def greedy(self) -> Choice:
        """Return a placement, made core by core, that no core elsewhere or exchange of two improves."""
        cores, memories = map(range, self.commands.shape)
        channels = tuple(core * self.channels // len(cores) for core in cores)
        placed = (-1,) * len(cores)
        for _ in cores:
            options = [(*placed[:k], m, *placed[k + 1 :]) for k in cores if placed[k] < 0 for m in memories]
            placed = min(options, key=lambda one: self.cost(one, channels))
        best = (placed, channels)
        while True:
            better = min(self._neighbours(best), key=lambda one: self.cost(*one))
            if not self.cost(*better) < self.cost(*best) * (1 - 1e-12):
                return best
            best = better

    def _neighbours(self, choice: Choice) -> Iterator[Choice]:
        for what, count in enumerate((self.commands.shape[1], self.channels)):
            mine = choice[what]
            moves = [{k: value} for k in range(len(mine)) for value in range(count)]
            moves += [{i: mine[j], j: mine[i]} for i, j in itertools.combinations(range(len(mine)), 2)]
            for move in moves:
                values = tuple(move.get(k, value) for k, value in enumerate(mine))
                yield (values, choice[1]) if what == 0 else (choice[0], values)

    def exact(self, time_limit: float = 60.0) -> tuple[Choice, float]:
        r"""Return the best placement, and a bound of every placement's cost.

        Binary :math:`x_{km}` (core k at memory m), :math:`z_{kc}` (uses channel c), :math:`f_{cm}` (c serves
        m) and :math:`p_c` (c serves several), and the times :math:`y_{kcm} \le z_{kc}, f_{cm}` with
        :math:`\sum_c y_{kcm} = c_{km} x_{km}`; in units of the greedy cost, above which all is cut
        off. Channels are used in the order of their first core.
        """
        best = self.greedy()
        scale, model = self.cost(*best), Model()
        cores, memories, channels = (
            range(len(self.commands)),
            range(self.commands.shape[1]),
            range(self.channels),
        )
        time_of, turning = self.commands / scale, self.switch_cycles / scale
        longest = model.continuous(self.computing / scale, None, cost=1.0)
        at = {(k, m): model.binary(time_of[k, m] / len(cores)) for k in cores for m in memories}
        use = {(k, c): model.binary() for k in cores for c in channels if c <= k}
        serves = {(c, m): model.binary() for c in channels for m in memories}
        several = [model.binary() for _ in channels]
        flow = {(k, c, m): model.continuous(0.0, 1.0) for k, c in use for m in memories}
        for k in cores:
            mine = [c for c in channels if c <= k]
            model.equal({at[k, m]: 1.0 for m in memories}, 1.0)
            model.equal({use[k, c]: 1.0 for c in mine}, 1.0)
            model.at_most({**{at[k, m]: time_of[k, m] for m in memories}, longest: -1.0}, 0.0)
            for m in memories:
                model.equal({at[k, m]: -time_of[k, m], **{flow[k, c, m]: 1.0 for c in mine}}, 0.0)
            for c in mine:
                model.at_most({**{flow[k, c, m]: 1.0 for m in memories}, use[k, c]: -1.0}, 0.0)
                for m in memories:
                    model.at_most({flow[k, c, m]: 1.0, serves[c, m]: -1.0}, 0.0)
        for m in memories:
            model.at_most({**{at[k, m]: self.busy / scale for k in cores}, longest: -1.0}, 0.0)
        for c in channels:
            users = [k for k in cores if c <= k]
            held = {flow[k, c, m]: 1.0 for k in users for m in memories}
            model.at_most({**held, longest: -1.0}, 0.0)
            model.at_most({**{serves[c, m]: 1.0 for m in memories}, several[c]: 1.0 - len(memories)}, 1.0)
            room = len(cores) * turning
            lost = {**{use[k, c]: turning for k in users}, several[c]: room, longest: -1.0}
            model.at_most({**held, **lost}, room)
            for k in users if c else ():
                model.at_most({use[k, c]: 1.0, **{use[i, c - 1]: -1.0 for i in range(c - 1, k)}}, 0.0)
        way = {one: time_of[place] / len(cores) for place, one in at.items()}
        model.at_most({longest: 1.0, **way}, 1.0 - RESOLUTION)
        outcome = model.solve(time_limit)
        if outcome.values:
            value = outcome.values
            found = (
                tuple(max(memories, key=lambda m: value[at[k, m]]) for k in cores),
                tuple(max(range(min(k + 1, self.channels)), key=lambda c: value[use[k, c]]) for k in cores),
            )
            best = found if self.cost(*found) < scale * (1 - RESOLUTION) else best
        proven = self.cost(*best) * (1 - RESOLUTION)
        return best, proven if outcome.status in ("optimal", "infeasible") else max(
            0.0, min(outcome.bound * scale, proven)
        )


def problem_of(machine: NumaMachine) -> DmaProblem:
    """Return the placement of the blocks and channels of a machine whose cores work alike."""
    chip, steps = machine.chip, machine.steps_of(0)
    accesses = steps * sum(machine.transfers)
    each = [[chip.access_cycles(k, m) for m in range(chip.memories)] for k in range(chip.cores)]
    return DmaProblem(
        computing=float(steps * machine.own_cycles),
        commands=accesses * np.array(each, dtype=float),
        busy=float(accesses * chip.controller_cycles),
        channels=machine.dma.channels,
        switch_cycles=float(steps * len(machine.transfers) * machine.dma.switch_cycles),
    )


def placed_machine(machine: NumaMachine, choice: Choice) -> NumaMachine:
    """Return a machine with the blocks and channels of its cores placed."""
    work = replace(machine.work, placement="per-core", memories=tuple((one,) for one in choice[0]))
    return replace(machine, work=work, dma=replace(machine.dma, assignment="custom", core_channels=choice[1]))


def placements(blurring: NumaMachine, simulate: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return the placements of each work: by program, by the greedy method, the paper's, and bad ones.

    A row has what the integer program minimises and the bound [million cycles], whether no placement has a
    lower one, execution times by model and simulation [million cycles], and the seconds to find it.
    """
    changed = {
        "fetching": replace(blurring, work=replace(blurring.work, compute_cycles=0.0)),
        "renumbered": replace(blurring, chip=replace(blurring.chip, core_nodes=RENUMBERED)),
    }
    found = []
    for work in WORK:
        best = changed.get(work, blurring)
        problem, machines = problem_of(best), dict[str, tuple[NumaMachine, float | None, float]]()
        for method in ("milp", "greedy"):
            start = time.perf_counter()
            choice, bound = problem.exact() if method == "milp" else (problem.greedy(), None)
            machines[method] = placed_machine(best, choice), bound, time.perf_counter() - start
        machines["the paper's best"] = best, None, 0.0
        machines["enumerated channels"] = (
            replace(best, dma=replace(best.dma, assignment="enumerated")),
            None,
            0.0,
        )
        machines["one memory"] = replace(best, work=replace(best.work, placement="one")), None, 0.0
        results = simulate([machine for machine, _, _ in machines.values()], replications=2)
        for (name, (machine, bound, seconds)), result in zip(machines.items(), results, strict=True):
            cores = range(machine.chip.cores)
            memories = tuple(machine.memories_of(core)[0] for core in cores)
            cost = problem.cost(memories, tuple(machine.dma.channels_of(len(cores))))
            row: dict[str, Any] = {"work": work, "placement": name, "objective": cost / 1e6}
            row |= {"bound": None if bound is None else bound / 1e6, "proven": False}
            row["model"] = float(solved(machine).execution_time) / 1e6
            found.append(row | {"simulated": float(result.execution_time) / 1e6, "seconds": seconds})
    return found
