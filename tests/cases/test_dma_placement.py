"""Tasks, blocks and channels: the program against trying all, greedy, and on the size of the 16-SRP chip."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cases.published.srp.dma_placement import place_dma
from cases.published.srp.dma_problem import DmaProblem


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


def chip(order):
    """Return access times of 16 cores around four memories, in some order of the cores."""
    rows, columns = np.divmod(np.asarray(order), 4)
    places = ((1, 0), (1, 3), (2, 0), (2, 3))
    return np.array(
        [
            [35.0 + 5 * (1 + abs(r - a) + abs(c - b)) for a, b in places]
            for r, c in zip(rows, columns, strict=True)
        ]
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
    assert program.proven
    assert program.cost == pytest.approx(least, rel=1e-9)
    assert program.bound == pytest.approx(least, rel=1e-9)
    assert program.gap == 0
    assert greedy.cost >= least * (1 - 1e-12)
    assert (greedy.bound, greedy.gap, greedy.proven) == (None, None, False)
    for one in (program, greedy):
        arrays = (np.array(part) for part in (one.cores, one.memories, one.channels))
        assert problem.cost(*arrays) == one.cost


def test_paper_size_is_proven_where_greedy_fails():
    """16 tasks, cores in no order, 8 channels, 4 memories: every core near, channels by memory."""
    order = np.random.default_rng(3).permutation(16)
    problem = DmaProblem(
        computing=[12.5e6] * 16,
        accesses=[65_536.0] * 16,
        access_cycles=chip(order),
        controller_cycles=35.0,
        channels=8,
        switch_cycles=3.7e6,
        most_tasks=1,
    )
    greedy, program = (place_dma(problem, method=method, time_limit=60.0) for method in ("greedy", "milp"))
    assert program.proven
    assert program.cost < greedy.cost
    nearest = chip(order).argmin(axis=1)
    assert [program.memories[task] for task in range(16)] == nearest[list(program.cores)].tolist()
    served = {(program.channels[core], nearest[core]) for core in range(16)}
    assert len(served) == len({channel for channel, _ in served})
    assert program.cost == pytest.approx(12.5e6 + 65_536 * chip(order).min(axis=1).mean(), rel=1e-9)


def test_out_of_time_there_is_a_bound():
    """Unequal tasks take long: the placement is that of greedy at worst, the bound below it."""
    rng = np.random.default_rng(0)
    problem = DmaProblem(
        computing=rng.integers(5, 13, 16) * 1e6,
        accesses=[65_536.0] * 16,
        access_cycles=chip(rng.permutation(16)),
        controller_cycles=35.0,
        channels=8,
        switch_cycles=3.7e6,
    )
    greedy = place_dma(problem, method="greedy")
    placement = place_dma(problem, time_limit=0.2)
    assert placement.status == "feasible"
    assert placement.cost <= greedy.cost
    assert 0 <= placement.bound <= placement.cost
    assert 0 < placement.gap <= 1


def test_one_memory_makes_channels_free():
    """Nothing turns and every block is as far: only the loads of channels count."""
    problem = DmaProblem(
        computing=[0.0] * 4,
        accesses=[10.0] * 4,
        access_cycles=[[40.0]] * 4,
        controller_cycles=1.0,
        channels=2,
        switch_cycles=1e6,
    )
    placement = place_dma(problem)
    assert placement.cost == pytest.approx(800 + 400)
    assert sorted(placement.loads["channels"].tolist()) == [800.0, 800.0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"computing": []}, "computing must have 1 axes and no empty one, got (0,)"),
        ({"accesses": [[1.0]]}, "accesses must have 1 axes and no empty one, got (1, 1)"),
        ({"accesses": [-1.0, 1.0]}, "accesses must be finite and >= 0, got -1.0 to 1.0"),
        ({"accesses": [1.0]}, "accesses must have one entry per task (2), got 1"),
        ({"controller_cycles": -1.0}, "controller_cycles must be finite and >= 0, got -1.0"),
        ({"switch_cycles": np.inf}, "switch_cycles must be finite and >= 0, got inf"),
        ({"channels": 0}, "channels must be a whole number >= 1, got 0"),
        ({"most_tasks": 0}, "most_tasks must leave room for 2 tasks on 2 cores, got 0"),
    ],
)
def test_messages(changes, message):
    """One line with argument, rule and value."""
    good = {
        "computing": [1.0, 1.0],
        "accesses": [1.0, 1.0],
        "access_cycles": [[1.0], [1.0]],
        "controller_cycles": 1.0,
        "channels": 1,
    }
    with pytest.raises(ValueError) as error:
        DmaProblem(**{**good, **changes})
    assert str(error.value) == message


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method must be one of milp, greedy, got 'all'"):
        place_dma(small(0), method="all")
