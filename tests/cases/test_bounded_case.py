"""Branch and bound over the joint case, one objective within ranges, against all its designs."""

from __future__ import annotations

import numpy as np
import pytest

import qmodels as qm
from cases.study.analysis import Recall
from cases.study.packet_processor import default_processor, default_space, solved_columns
from optimize import explore

QUESTIONS = [
    ("minimize", "packet_latency", {"cost": (None, 30.0), "overflow_probability": (None, 1e-3)}, 100),
    ("minimize", "cost", {"packet_latency_p99": (None, 800.0)}, 1500),  # nothing bounds the quantile
    ("maximize", "saturation_data_rate", {"cost": (None, 25.0), "energy_per_packet": (None, 500.0)}, 100),
    ("minimize", "packet_latency", {"cost": (None, 5.0)}, 100),
]


@pytest.fixture(scope="module")
def exploration():
    space = default_space(default_processor())
    return explore(space, solved_columns, minimize="packet_latency", vectorized="grid")


@pytest.mark.parametrize(("sense", "objective", "limits", "most"), QUESTIONS)
def test_equals_looking_at_all_default_designs(exploration, sense, objective, limits, most):
    table, sign = exploration.table, 1.0 if sense == "minimize" else -1.0
    good = table["stable"] & np.isfinite(table[objective])
    for metric, (_, high) in limits.items():
        good &= table[metric] <= high
    found = explore(
        exploration.space,
        Recall(exploration),
        subject_to=limits,
        vectorized=True,
        method="branch_and_bound",
        bounds=qm.bounds(exploration.space.base),
        **{sense: objective},
    )
    assert found.proof.proven and found.evaluations < most
    assert bool(len(found.front)) == good.any()
    if good.any():
        assert found.table[objective][found.front[0]] == sign * (sign * table[objective][good]).min()
