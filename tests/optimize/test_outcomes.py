"""What every outcome of an integer program says, whichever program it was."""

from __future__ import annotations

import time

import numpy as np
import pytest

from optimize.programs.assignment import assign
from optimize.programs.congestion import choose_congested
from optimize.programs.front import exact_front
from optimize.programs.milp import choose
from optimize.programs.outcome import gap_of
from optimize.programs.piecewise import Curve
from optimize.programs.placement import place

GROUPS = {"a": {"x": [1.0, 2.0], "y": [5.0, 3.0]}, "b": {"x": [0.0, 4.0], "y": [2.0, 1.0]}}
CURVE = Curve(lambda load: load / (10 - load), 0.0, 9.0)

PROGRAMS = {
    "choose": lambda dear: choose(GROUPS, minimize="x", subject_to={"y": (None, 3.5 if dear else 6.0)}),
    "exact_front": lambda dear: exact_front(
        GROUPS, minimize=["x", "y"], subject_to={"y": (None, 3.5 if dear else 6.0)}
    ),
    "choose_congested": lambda dear: choose_congested(
        GROUPS, curves={"x": CURVE}, subject_to={"y": (None, 3.5 if dear else 6.0)}
    ),
    "assign": lambda dear: assign(np.ones((2, 2)), np.full((2, 2), 8.0 if dear else 1.0), Curve(
        lambda load: load / (8 - load), 0.0, 7.0
    )),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dear", [False, True])
def test_outcomes_say_how_they_ended_and_how_long_it_took(name: str, dear: bool) -> None:
    start = time.perf_counter()
    found = PROGRAMS[name](dear)
    assert 0.0 < found.seconds <= time.perf_counter() - start
    assert found.proven and found.status == ("infeasible" if dear else "optimal")
    assert bool(found.message) == dear and found.solver
    assert found.gap is None if dear else found.gap == pytest.approx(0.0, abs=1e-6)


def test_a_placement_says_so_too() -> None:
    start = time.perf_counter()
    found = place(np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[0.0, 3.0], [3.0, 0.0]]))
    assert 0.0 < found.seconds <= time.perf_counter() - start and found.proven and found.gap == 0.0
    assert found.cost == 9.0


def test_a_gap_needs_both_ends() -> None:
    assert gap_of(None, None) is None and gap_of(None, 1.0) is None and gap_of(1.0, None) is None
    assert gap_of(0.0, -1.0) == 1.0 and gap_of(0.0, 0.0) == 0.0 and gap_of(-2.0, -3.0) == 0.5
