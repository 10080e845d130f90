"""The exact program over the joint case against all its designs."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study.analysis import Recall
from cases.study.exact import FINE_CHOICES, exact_case
from cases.study.exact_sizes import FILE, exhaustive, rows_of
from cases.study.packet_processor import default_processor, default_space, solved_columns
from cases.tables import read_rows
from optimize import explore

QUESTIONS = [
    ("minimize", "packet_latency", {"cost": (None, 30.0), "overflow_probability": (None, 1e-3)}),
    ("minimize", "cost", {"packet_latency_p99": (None, 800.0)}),
    ("maximize", "saturation_data_rate", {"cost": (None, 25.0), "energy_per_packet": (None, 500.0)}),
    ("minimize", "packet_latency", {"cost": (None, 5.0)}),
]


@pytest.fixture(scope="module")
def exploration():
    space = default_space(default_processor())
    return explore(space, solved_columns, minimize="packet_latency", vectorized="grid")


@pytest.mark.parametrize(("sense", "objective", "limits"), QUESTIONS)
def test_equals_looking_at_all_default_designs(exploration, sense, objective, limits):
    table, sign = exploration.table, 1.0 if sense == "minimize" else -1.0
    good = table["stable"] & np.isfinite(table[objective])
    for metric, (_, high) in limits.items():
        good &= table[metric] <= high
    found = exact_case(
        exploration.space, evaluate=Recall(exploration), subject_to=limits, **{sense: objective}
    )
    if not good.any():
        assert found.status == "infeasible as measured" and found.design is None
        return
    best = sign * (sign * table[objective][good]).min()
    assert found.status == "optimal as measured"
    assert found.evaluations < 2700
    assert abs(found.objective - best) <= found.gap * abs(best) <= 1e-3 * abs(best)
    assert sign * found.bound <= sign * best * (1 + 1e-12 * sign)
    assert table[objective][found.design] == found.objective


def test_fine_space_cannot_be_enumerated():
    assert default_space(default_processor(), choices=FINE_CHOICES).size == 3_981_312_000


def test_kept_table_agrees_with_enumeration_where_there_is_one():
    rows = read_rows(FILE)
    assert rows
    for row in rows:
        assert row["bound"] <= row["best"]
        if np.isfinite(row["exhaustive"]):
            assert row["best"] == pytest.approx(row["exhaustive"], rel=row["gap"] + 1e-12)
    assert 2700 in {row["designs"] for row in rows}


@pytest.mark.slow
def test_million_designs():
    for row in rows_of("full"):
        assert row["best"] == pytest.approx(row["exhaustive"], rel=row["gap"] + 1e-12)
        assert row["status"] == "optimal as measured"


def test_exhaustive_reference_is_that_of_an_exploration(exploration):
    table = exploration.table
    good = table["stable"] & (table["cost"] <= 30) & (table["overflow_probability"] <= 1e-3)
    assert exhaustive(exploration.space)[0] == pytest.approx(table["packet_latency"][good].min())
