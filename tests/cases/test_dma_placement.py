"""Tasks, blocks and channels of the 16-SRP chip: the program against trying all, and greedy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cases.published.paper import published_case
from cases.published.srp import blurring, costs
from cases.published.srp_placement import DmaProblem, machine_of_work, place_dma, placed_machine, problem_of


def small(seed):
    """Return a random problem of three tasks, three cores, two memories and two channels."""
    rng = np.random.default_rng(seed)
    return DmaProblem(
        computing=rng.integers(0, 3000, 3),
        accesses=rng.integers(10, 60, 3),
        access_cycles=rng.integers(36, 70, (3, 2)),
        controller_cycles=35.0,
        channels=2,
        switch_cycles=float(rng.integers(0, 2000)),
        most_tasks=None if seed % 2 else 1,
    )


def least_cost(problem):
    """Return the least cost of all placements; channels in the order of their first core."""
    uses = [
        np.array(one)
        for one in itertools.product(range(problem.channels), repeat=problem.cores)
        if all(channel <= max(one[:k], default=-1) + 1 for k, channel in enumerate(one))
    ]
    places = itertools.product(range(problem.cores * problem.memories), repeat=problem.tasks)
    return min(
        problem.cost(*np.divmod(np.array(one), problem.memories), channels)
        for one in places
        for channels in uses
    )


@pytest.mark.parametrize("seed", range(4))
def test_program_finds_what_trying_all_finds(seed):
    """The same cost, which greedy never beats; the bound is that cost."""
    problem = small(seed)
    program, greedy = (place_dma(problem, method=m) for m in ("milp", "greedy"))
    least = least_cost(problem)
    assert program.status == "optimal"
    assert program.cost == pytest.approx(least, rel=1e-9) == program.bound
    assert greedy.cost >= least * (1 - 1e-12) and greedy.bound is None
    assert all(problem.cost(*one.choice) == one.cost for one in (program, greedy))


def test_out_of_time_there_is_a_bound():
    """Unequal tasks take long: the placement is that of greedy at worst, the bound below it."""
    rng = np.random.default_rng(0)
    machine = machine_of_work(blurring(costs(), "non-optimal", "clustered"), "renumbered")
    problem = DmaProblem(
        computing=rng.integers(5, 13, 16) * 1e6,
        accesses=[65_536.0] * 16,
        access_cycles=problem_of(machine).access_cycles,
        controller_cycles=35.0,
        channels=8,
        switch_cycles=3.7e6,
    )
    placement = place_dma(problem, time_limit=0.2)
    assert placement.status == "feasible"
    assert 0 <= placement.bound <= placement.cost <= place_dma(problem, method="greedy").cost


def test_the_program_finds_the_papers_best_placement_or_a_better_one():
    """Within 2e-6 of the bound, and simulated to be as fast; where cores are in no order it beats greedy."""
    rows = {(row["work"], row["placement"]): row for row in published_case("srp").kept().tables["placements"]}
    for work in ("blurring", "fetching", "renumbered"):
        found, best = rows[work, "milp"], rows[work, "the paper's best"]
        assert found["bound"] >= found["objective"] * (1 - 2e-6)
        assert found["objective"] <= best["objective"] * (1 + 1e-9)
        assert found["simulated"] <= best["simulated"] * 1.001
    assert rows["renumbered", "milp"]["objective"] < rows["renumbered", "greedy"]["objective"]


def test_a_placement_becomes_a_machine():
    """Every task is somewhere, and its accesses are those of the problem."""
    machine = machine_of_work(blurring(costs(), "non-optimal", "clustered"), "blurring")
    choice = place_dma(problem_of(machine), method="greedy").choice
    placed = placed_machine(machine, choice)
    assert sum(placed.work.core_steps) == 16 * machine.work.steps
    expected = np.bincount(choice[1], minlength=4) * machine.work.steps * sum(machine.transfers)
    assert placed.accesses_of_memories().tolist() == expected.tolist()


def test_messages():
    with pytest.raises(ValueError, match="method must be one of milp, greedy, got 'all'"):
        place_dma(small(0), method="all")
    good = {"computing": [1.0, 1.0], "access_cycles": [[1.0]], "controller_cycles": 1.0, "channels": 1}
    with pytest.raises(ValueError, match=r"accesses must be one a task \(2\), got 1"):
        DmaProblem(**good, accesses=[1.0])
    with pytest.raises(ValueError, match="most_tasks must leave room for 2 tasks on 1 cores, got 0"):
        DmaProblem(**good, accesses=[1.0, 1.0], most_tasks=0)
