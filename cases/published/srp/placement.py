"""Tasks, blocks and channels of the 16-SRP chip placed by an integer program, and simulated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from cases.published.srp.blurring import execution_time
from cases.published.srp.dma_placement import DmaPlacement, place_dma
from cases.published.srp.dma_problem import DmaProblem
from cases.published.srp.specs import Costs, blurring
from cases.tables import text_table
from qmodels.systems.memory.numa import NumaMachine

WORK = ("blurring", "fetching", "renumbered")
"""Non-optimal blurring, the same without any computing, and blurring on cores numbered in no order."""
RENUMBERED = (14, 3, 8, 5, 0, 11, 6, 13, 9, 2, 15, 4, 7, 12, 1, 10)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """One placement of one work."""

    # work, placement: what is placed, and how it was found.
    work: str
    placement: str
    # What the integer program minimises, see `cases.published.srp.dma_problem.DmaProblem` [million cycles].
    objective: float
    bound: float | None  # no placement has a lower objective; None if nothing was proven [million cycles]
    proven: bool  # whether no placement has a lower one
    # model, simulated: execution time [million cycles].
    model: float
    simulated: float
    seconds: float  # time to find it


def machine_of_work(costs: Costs, work: str) -> NumaMachine:
    """Return the paper's best placement of a work: data clustered, channels for pairs of cores."""
    machine = blurring(costs, "non-optimal", "clustered")
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
        access_cycles=[[chip.access_cycles(core, m) for m in range(chip.memories)] for core in cores],
        controller_cycles=chip.controller_cycles,
        channels=machine.dma.channels,
        switch_cycles=float(steps.mean()) * len(machine.transfers) * machine.dma.switch_cycles,
        most_tasks=1,
    )


def placed_machine(machine: NumaMachine, placement: DmaPlacement) -> NumaMachine:
    """Return a machine with its tasks, blocks and channels placed; a core goes round its tasks."""
    cores = range(machine.chip.cores)
    steps = [0] * machine.chip.cores
    memories: list[tuple[int, ...]] = [() for _ in cores]
    for task, (core, memory) in enumerate(zip(placement.cores, placement.memories, strict=True)):
        steps[core] += machine.steps_of(task)
        memories[core] += (memory,)
    work = replace(
        machine.work,
        core_steps=tuple(steps),
        placement="per-core",
        memories=tuple(mine or (0,) for mine in memories),
    )
    dma = replace(machine.dma, assignment="custom", core_channels=placement.channels)
    return replace(machine, work=work, dma=dma)


def find_placements(costs: Costs) -> dict[tuple[str, str], tuple[NumaMachine, DmaPlacement | None]]:
    """Return the placements of both works: by program, by the greedy method, the paper's, and bad ones."""
    found: dict[tuple[str, str], tuple[NumaMachine, DmaPlacement | None]] = {}
    for work in WORK:
        best = machine_of_work(costs, work)
        problem = problem_of(best)
        for method in ("milp", "greedy"):
            placement = place_dma(problem, method=method, time_limit=60.0)
            found[work, method] = placed_machine(best, placement), placement
        enumerated = replace(best, dma=replace(best.dma, assignment="enumerated"))
        found[work, "the paper's best"] = best, None
        found[work, "enumerated channels"] = enumerated, None
        found[work, "one memory"] = replace(best, work=replace(best.work, placement="one")), None
    return found


def placed_rows(
    found: Mapping[tuple[str, str], tuple[NumaMachine, DmaPlacement | None]],
    simulated: Mapping[NumaMachine, float],
) -> tuple[Placed, ...]:
    """Return all placements with their costs and times."""
    return tuple(
        Placed(
            work=work,
            placement=name,
            objective=(_cost(machine) if placed is None else placed.cost) / 1e6,
            bound=None if placed is None or placed.bound is None else placed.bound / 1e6,
            proven=placed is not None and placed.proven,
            model=execution_time(machine),
            simulated=simulated[machine] / 1e6,
            seconds=0.0 if placed is None else placed.seconds,
        )
        for (work, name), (machine, placed) in found.items()
    )


def _cost(machine: NumaMachine) -> float:
    """Return the cost of a placement that was not searched for: a task on each core, its first memory."""
    cores = np.arange(machine.chip.cores)
    places = np.array([machine.memories_of(core)[0] for core in cores.tolist()])
    channels = np.array(machine.dma.channels_of(machine.chip.cores))
    return problem_of(machine).cost(cores, places, channels)


def placement_text(rows: Iterable[Placed]) -> str:
    """Return the placements as a table."""
    lines = [
        [
            row.work,
            row.placement,
            f"{row.objective:.2f}",
            "-" if row.bound is None else f"{row.bound:.2f}",
            "yes" if row.proven else "-",
            f"{row.model:.2f}",
            f"{row.simulated:.2f}",
            f"{row.seconds:.2f}",
        ]
        for row in rows
    ]
    headings = ["work", "placement", "objective", "bound", "proven", "model", "simulated", "seconds"]
    return "Placement of 16 tasks, 16 blocks and 8 channels [million cycles]\n" + text_table(headings, lines)
