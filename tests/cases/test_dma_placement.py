"""Memories and channels of the cores of the 16-SRP chip: the program against trying all, and greedy."""

import itertools

import numpy as np
import pytest

from cases.published.paper import published_case
from cases.published.srp import RESOLUTION, DmaProblem, placed_machine, problem_of

MACHINE = published_case("srp").names["blurring_file"]()


@pytest.mark.parametrize("seed", range(4))
def test_program_finds_what_trying_all_finds(seed):
    """Nothing costs less by more than the resolution; greedy never beats it."""
    rng = np.random.default_rng(seed)
    problem = DmaProblem(
        computing=float(rng.integers(0, 3000)),
        commands=rng.integers(400, 4000, (4, 2)).astype(float),
        busy=float(rng.integers(300, 2000)),
        channels=2,
        switch_cycles=float(rng.integers(0, 2000)),
    )
    choice, bound = problem.exact()
    every = itertools.product(itertools.product(range(2), repeat=4), repeat=2)
    least = min(problem.cost(*one) for one in every)
    assert problem.cost(*choice) == pytest.approx(least, rel=2 * RESOLUTION)
    assert bound <= least <= problem.cost(*problem.greedy()) * (1 + 1e-12)


def test_out_of_time_there_is_a_bound():
    problem = problem_of(MACHINE)
    choice, bound = problem.exact(time_limit=0.01)
    assert 0 <= bound <= problem.cost(*choice) <= problem.cost(*problem.greedy())


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
    """Every core has its memory, whose accesses are those of the problem."""
    machine = MACHINE
    choice = problem_of(machine).greedy()
    expected = np.bincount(choice[0], minlength=4) * machine.work.steps * sum(machine.transfers)
    assert placed_machine(machine, choice).accesses_of_memories().tolist() == expected.tolist()
