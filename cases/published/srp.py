"""The 16-core SRP chip (a thesis of Seoul National University): forms of images for seeded region growing.

The images are not published, and those of the case were chosen with Table 6.2 in view. So what the table is
worth is told by other forms, and by other rules of size, as well. The placement of tasks stands in
`cases.published.srp`.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cases.published.computing import solved
from cases.published.numbers import Cell, published, select
from optimize.programs.linear import Model
from optimize.search.pareto import FloatArray
from qmodels.systems.memory.numa_system import NumaMachine
from qmodels.systems.programs.work_queues import grow

WORK = ("blurring", "fetching", "renumbered")
"""Non-optimal blurring, the same without any computing, and blurring on cores numbered in no order."""
RENUMBERED = (14, 3, 8, 5, 0, 11, 6, 13, 9, 2, 15, 4, 7, 12, 1, 10)
RESOLUTION = 1e-6  # by how much, relative, a placement must be better to be looked for
Choice = tuple[tuple[int, ...], tuple[int, ...]]  # memory of each core's blocks, and channel of each core


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

        Binary :math:`y_{kcm}` (core k at memory m through channel c), :math:`f_{cm} \ge y_{kcm}` (c serves m)
        and :math:`p_c` (c serves several); in units of the greedy cost, above which all is cut off. Channels
        are used in the order of their first core.
        """
        best = self.greedy()
        scale, model = self.cost(*best), Model()
        cores, memories = map(range, self.commands.shape)
        channels, room = range(self.channels), len(cores) * self.switch_cycles / scale
        time_of, turning = self.commands / scale, self.switch_cycles / scale
        longest = model.continuous(self.computing / scale, None, cost=1.0)
        at = {
            (k, c, m): model.binary(time_of[k, m] / len(cores))
            for k in cores for c in channels if c <= k for m in memories
        }  # fmt: skip
        serves = {(c, m): model.binary() for c in channels for m in memories}
        several = [model.binary() for _ in channels]
        for k in cores:
            mine = {place: y for place, y in at.items() if place[0] == k}
            model.equal(dict.fromkeys(mine.values(), 1.0), 1.0)
            model.at_most({**{y: time_of[k, m] for (_, _, m), y in mine.items()}, longest: -1.0}, 0.0)
            for (_, c, m), y in mine.items():
                model.at_most({y: 1.0, serves[c, m]: -1.0}, 0.0)
        for m in memories:
            busy = {y: self.busy / scale for place, y in at.items() if place[2] == m}
            model.at_most({**busy, longest: -1.0}, 0.0)
        for c in channels:
            users = {place: y for place, y in at.items() if place[1] == c}
            held = {y: time_of[k, m] for (k, _, m), y in users.items()}
            model.at_most({**held, longest: -1.0}, 0.0)
            model.at_most({**{serves[c, m]: 1.0 for m in memories}, several[c]: 1.0 - len(memories)}, 1.0)
            lost = {y: time + turning for y, time in held.items()}
            model.at_most({**lost, several[c]: room, longest: -1.0}, room)
            for k in range(c, len(cores)) if c else ():
                before = {at[i, c - 1, m]: -1.0 for i in range(c - 1, k) for m in memories}
                model.at_most({**{at[k, c, m]: 1.0 for m in memories}, **before}, 0.0)
        way = {y: time_of[k, m] / len(cores) for (k, _, m), y in at.items()}
        model.at_most({longest: 1.0, **way}, 1.0 - RESOLUTION)
        outcome = model.solve(time_limit)
        if outcome.values:
            chosen = sorted(place for place, y in at.items() if outcome.values[y] > 0.5)
            found = tuple(m for _, _, m in chosen), tuple(c for _, c, _ in chosen)
            best = found if self.cost(*found) < scale * (1 - RESOLUTION) else best
        proven = self.cost(*best) * (1 - RESOLUTION)
        done = outcome.status in ("optimal", "infeasible")
        return best, proven if done else max(0.0, min(outcome.bound * scale, proven))


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
        others = {
            "enumerated channels": replace(best, dma=replace(best.dma, assignment="enumerated")),
            "one memory": replace(best, work=replace(best.work, placement="one")),
        }
        machines |= {name: (machine, None, 0.0) for name, machine in others.items()}
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


IMAGES = ("A", "B", "C")
VERSIONS: dict[str, str] = published("srp")["shown"]
FORM_REPLICATIONS, COUNT = 60, 12  # of another form of an image; so many forms of A and of B
SIZED = {"row": "first row", "blocks": "blocks of C"}
GROUPS = {"row": "table62_forms", "blocks": "table62_blocks"}
"""What the numbers of other forms are, by the rule of size; the first row fits the one rule's sizes."""


def published_time(version: str, image: str) -> float:
    """Return an execution time of Table 6.2 in million cycles."""
    return float(published("srp")["table62"][version][IMAGES.index(image)])


def makespan(spec: Any, replications: int = 200) -> float:
    """Return the simulated mean makespan in million cycles."""
    from validate import simulate

    found = simulate(spec, replications=replications, progress=lambda done, total: None)
    return float(found.metrics["execution_time"].best) / 1e6


def sized(measure: Callable[[Any], float], body: Callable[[float], Any], wanted: float, steps: int) -> Any:
    """Return the tasks of a body of that radius at which a measure, which grows as its cube, is as wanted."""
    radius = 8.4
    for _ in range(steps):
        radius *= float(wanted / measure(body(radius))) ** (1 / 3)
    return body(radius)


def run_forms(growing_spec: Callable[..., Any], image_body: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Simulate the four versions on each form, sized by either rule. [million cycles].

    The place of a cell holds the image and the form of its lump, how it is ``sized`` (``"row"``: as large
    as to meet the figure of the first row; ``"blocks"``: as many blocks as image C, so that only figures of
    image C are used), the version, and the tasks: superblocks of the region.
    """
    measures: dict[str, Callable[[Any], float]] = {
        "row": lambda tasks: makespan(growing_spec("one waterfall", tasks), FORM_REPLICATIONS),
        "blocks": lambda tasks: float(grow(tasks).blocks.sum()),
    }
    blocks = measures["blocks"](image_body("C"))
    for image, form, rule in itertools.product(("A", "B"), range(COUNT), SIZED):
        wanted, steps = (published_time("one waterfall", image), 4) if rule == "row" else (blocks, 8)
        tasks = sized(measures[rule], partial(image_body, image, form=form), wanted, steps)
        place = {"image": image, "form": form, "sized": rule, "tasks": int(grow(tasks).blocks.size)}
        for version in VERSIONS:
            time = makespan(growing_spec(version, tasks), FORM_REPLICATIONS)
            where = {**place, "version": version}
            yield Cell(place=where, published=published_time(version, image), simulated=time).row()


def form_cells(rows: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return the forms that were found, with the groups of those that nothing was fitted to."""
    cells = map(Cell.of_row, rows)
    return [replace(cell, group="" if fitted_form(cell) else GROUPS[cell["sized"]]) for cell in cells]


def fitted_form(cell: Cell) -> bool:
    """Return whether the size of a form was fitted to the figure."""
    return cell["sized"] == "row" and cell["version"] == next(iter(VERSIONS))


def orderings(cells: Sequence[Cell], name: str) -> int:
    """Return the number of pairs within a row or a column in the published order.

    ``name``: ``"published"``, ``"model"`` or ``"simulated"``.
    """
    return sum(
        (getattr(a, name) < getattr(b, name)) == (a.published < b.published)  # type: ignore[operator]
        for a, b in itertools.combinations(cells, 2)
        if a["row"] == b["row"] or a["column"] == b["column"]
    )


def pairs(rows: Iterable[Mapping[str, Any]], rule: str, table: Sequence[Cell]) -> list[int]:
    """Return the simulated pairs in the published order for each choice of forms of A and B.

    Image C and the published figures are those of `table`, Table 6.2 as it was found.
    """
    forms = select(map(Cell.of_row, rows), sized=rule)
    times = {(cell["image"], cell["form"], cell["version"]): cell.simulated for cell in forms}
    found = []
    for chosen in itertools.product(range(COUNT), repeat=2):
        form = dict(zip("AB", chosen, strict=True))
        places = [(cell["column"], form.get(cell["column"]), cell["row"]) for cell in table]
        cells = [replace(cell, simulated=times.get(place, cell.simulated))
                 for cell, place in zip(table, places, strict=True)]  # fmt: skip
        found.append(orderings(cells, "simulated"))
    return found


def form_rows(forms: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Yield the errors of all forms of an image, by the rule of size and the version."""
    for rule, image, version in itertools.product(SIZED, ("A", "B"), VERSIONS):
        mine = select(forms, sized=rule, image=image, version=version)
        errors = [cell.error(cell.simulated or 0.0) for cell in mine]
        fitted = "fitted" if fitted_form(mine[0]) else ""
        yield {"rule": rule, "image": image, "version": version, "errors": errors, "fitted": fitted}
