"""The exact method over the joint case, one objective within ranges or two, against all its designs.

In CI over every second choice of each field, by night over all 2,700 designs.
"""

import numpy as np
import pytest

import qmodels as qm
from cases.study.goals import default_processor, default_space, solved_columns
from optimize import Space, explore

LATENCY, P99, CONFLICTS = "packet_latency", "packet_latency_p99", "write_conflict_probability"
MOST = 25  # designs solved where every metric has bounds
QUESTIONS = [
    ("minimize", LATENCY, {"cost": (None, 22.0)}, MOST),
    ("minimize", LATENCY, {"cost": (None, 18.0)}, MOST),
    ("minimize", LATENCY, {"cost": (None, 30.0), "overflow_probability": (None, 1e-3)}, MOST),
    ("minimize", LATENCY, {"cost": (None, 5.0)}, 0),
    ("minimize", LATENCY, {CONFLICTS: (None, 0.02)}, MOST),
    ("minimize", "cost", {LATENCY: (None, 400.0)}, MOST),
    ("minimize", "cost", {P99: (None, 800.0)}, 1500),  # nothing bounds the quantile
    ("minimize", P99, {"cost": (None, 20.0)}, 800),
    ("minimize", CONFLICTS, {"cost": (None, 18.0)}, 600),
    ("minimize", "energy_per_packet", {"saturation_data_rate": (120.0, None), "cost": (None, 30.0)}, MOST),
    ("minimize", "interleaving_step", {LATENCY: (None, 380.0), "cost": (None, 25.0)}, MOST),
    ("maximize", "data_rate", {"cost": (None, 20.0)}, MOST),
    # Thirty designs have a bound of the rate above the best one by less than its slack of 1e-5.
    ("maximize", "saturation_data_rate", {"cost": (None, 25.0), "energy_per_packet": (None, 500.0)}, 30),
]


@pytest.fixture(scope="module", params=[2, pytest.param(1, marks=pytest.mark.slow)], ids=["part", "all"])
def exploration(request):
    space = default_space(default_processor())
    space = Space(space.base, {name: choices[:: request.param] for name, choices in space.choices.items()})
    return explore(space, solved_columns, minimize="packet_latency", vectorized="grid")


def proven(exploration, most, **goals):
    bounds = qm.bounds(exploration.space.base)
    found = explore(exploration.space, solved_columns, vectorized=True, method="milp", bounds=bounds, **goals)
    assert found.proof.proven and found.gap == 0.0 and found.evaluations <= most
    return found


@pytest.mark.parametrize(("sense", "objective", "limits", "most"), QUESTIONS)
def test_equals_looking_at_all_default_designs(exploration, sense, objective, limits, most):
    table, sign = exploration.table, 1.0 if sense == "minimize" else -1.0
    good = table["stable"] & np.isfinite(table[objective])
    for metric, (low, high) in limits.items():
        good &= (table[metric] >= (-np.inf if low is None else low)) & (
            table[metric] <= (np.inf if high is None else high)
        )
    found = proven(exploration, most, subject_to=limits, **{sense: objective})
    assert bool(len(found.front)) == good.any()
    if good.any():
        best = sign * (sign * table[objective][good]).min()
        assert found.table[objective][found.front[0]] == pytest.approx(best, rel=1e-12)


def test_a_front_of_two_objectives_takes_less_than_a_tenth_of_the_designs(exploration):
    goals, size = {"minimize": ["energy_per_packet", LATENCY]}, exploration.space.size
    found = proven(exploration, size // 10 if size == 2700 else size // 5, **goals)
    every = explore(exploration.space, solved_columns, vectorized=True, **goals)
    fronts = [np.unique(one.values[one.front], axis=0) for one in (every, found)]
    np.testing.assert_allclose(*fronts, rtol=1e-9)
    assert len(fronts[0]) > size // 90
