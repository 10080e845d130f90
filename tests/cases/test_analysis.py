"""One workload explored analytically: the front, and every row."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study.analysis import DIGITS, analyse
from cases.study.goals import goals_of
from cases.study.packet_processor import default_space, solved_columns
from qmodels.systems.spec.fields import replace_fields


@pytest.fixture(scope="module")
def analysis(small_specs):
    return analyse(
        "large", default_space(small_specs["large-packets"]), goals_of(small_specs["large-packets"])
    )


def dominated(point, others):
    return ((others <= point).all(axis=1) & (others < point).any(axis=1)).any()


def test_front_is_what_pairwise_comparison_gives(analysis):
    exploration = analysis.exploration
    costs = np.where(exploration.maximized, -exploration.values, exploration.values)
    usable = costs[exploration.feasible]
    expected = [
        row
        for row in np.flatnonzero(exploration.feasible)
        if np.isfinite(costs[row]).all() and not dominated(costs[row], usable)
    ]
    assert exploration.front.tolist() == expected
    assert 0 < len(expected) < len(costs)


def test_rows_are_what_the_model_says_of_single_designs(analysis):
    table = analysis.exploration.table
    for row in (0, 7, 41):
        single = solved_columns(analysis.exploration.spec(row))
        for name in ("packet_latency", "saturation_data_rate", "energy_per_packet", "bottleneck_load"):
            assert table[name][row] == pytest.approx(single[name], rel=10.0 ** (1 - DIGITS))
        assert table["bottleneck"][row] == single["bottleneck"]


def test_saturated_designs_are_never_on_the_front(analysis):
    table = analysis.exploration.table
    assert not table["stable"].all()
    assert table["stable"][analysis.exploration.front].all()
    assert np.isinf(table["packet_latency"][~table["stable"]]).all()


def test_nothing_keeps_up(small_specs):
    overloaded = replace_fields(small_specs["large-packets"], {"load_factor": 100})
    analysis = analyse("large", default_space(overloaded), goals_of(overloaded))
    assert analysis.exploration.knee is None
