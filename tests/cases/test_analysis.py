"""One workload explored analytically: the searches against the exhaustive exploration."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study.analysis import DIGITS, analyse, choose_within
from cases.study.goals import goals_of
from cases.study.packet_processor import GREEDY_ORDER, default_space, solved_columns
from cases.study.searches import search_rows, search_section
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


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_best_within_a_budget(analysis, share):
    table = analysis.exploration.table
    usable = analysis.exploration.feasible
    limit = float(np.quantile(table["cost"][usable], share))
    budget = choose_within(analysis.exploration, limit)
    affordable = usable & (table["cost"] <= limit)
    assert affordable[budget.row]
    assert table["packet_latency"][budget.row] == budget.latency == table["packet_latency"][affordable].min()


def test_no_design_within_the_budget(analysis):
    budget = choose_within(analysis.exploration, 0.5)
    assert budget.row is None and budget.latency == np.inf


def test_searches_are_laid_beside_each_other(analysis):
    rows = {row["method"].split(" (")[0]: row for row in search_rows(analysis)}
    assert list(rows) == ["exhaustive", "greedy", "coordinate"]
    table, limit = analysis.exploration.table, analysis.budget.limit
    usable = analysis.exploration.feasible & (table["cost"] <= limit)
    assert rows["exhaustive"]["best"] == table["packet_latency"][usable].min()
    for method in ("greedy", "coordinate"):
        row = rows[method]
        assert row["best"] in table["packet_latency"][usable]
        assert row["missed"] == pytest.approx(row["best"] / rows["exhaustive"]["best"] - 1)
        assert row["evaluations"] <= rows["exhaustive"]["evaluations"]
    section = search_section(analysis, "title", ["line"])
    assert [row[0] for row in section.rows] == [row["method"] for row in search_rows(analysis)]


def test_greedy_looks_at_few_designs_in_the_order_of_the_papers(analysis):
    greedy = analysis.greedy
    assert len(greedy.table["design"]) < len(analysis.exploration.table["design"])
    fields = [step.field for step in analysis.greedy_path if step.field]
    assert list(dict.fromkeys(fields)) == list(GREEDY_ORDER)
    assert analysis.against.exact_points == len(analysis.exploration.front)
    assert 0 < analysis.against.hypervolume_ratio <= 1


def test_greedy_recalls_what_the_model_says(analysis):
    exact = analysis.exploration.table
    rows = np.searchsorted(exact["design"], analysis.greedy.table["design"])
    for name in analysis.exploration.objectives:
        assert np.array_equal(analysis.greedy.table[name], exact[name][rows])


def test_nothing_keeps_up(small_specs):
    overloaded = replace_fields(small_specs["large-packets"], {"load_factor": 100})
    analysis = analyse("large", default_space(overloaded), goals_of(overloaded))
    assert analysis.exploration.knee is None
    assert analysis.greedy is analysis.budget is analysis.against is None
    assert analysis.greedy_path == ()
