"""The STNoC case: published numbers as printed, what is kept, and a small fresh run beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.published.cases import published_case
from cases.published.cell import mean_and_largest, select
from cases.published.rows import published
from cases.published.stnoc.calibration import (
    fit_power,
    places,
    power,
    published_rates,
    said,
    throughput,
)
from cases.published.stnoc.claims import contradictions
from cases.published.stnoc.explore import (
    CHANNELS,
    STEPS,
    dominated,
    explore_designs,
    front_points,
    greedy_rows,
    knee,
)
from cases.published.stnoc.paper import PAPER
from cases.published.stnoc.specs import CALIBRATED, WIDTHS, closed_noc, flits, open_noc
from cases.published.stnoc.tables import READINGS, on_grid
from qmodels import solve
from validate import simulate


@pytest.fixture(scope="module")
def found():
    """Return the kept reproduction."""
    return PAPER.kept()


def test_published_numbers_agree_with_each_other():
    two, three, text = (published("stnoc")[name] for name in ("table2", "table3", "text"))
    assert 100 * (two["width8"][3] / two["width8"][0] - 1) == pytest.approx(text["gain8"], abs=0.01)
    assert 100 * (two["width32"][3] / two["width32"][0] - 1) == pytest.approx(text["gain32"], abs=0.01)
    for width, overhead in zip(WIDTHS, (10.63, 4.47, 3.51), strict=True):
        powers = three[f"width{width}"]
        assert 100 * (powers[3] / powers[0] - 1) == pytest.approx(overhead, abs=0.01)
    assert (said("table2", (16, 4)), said("table3", (8, 8))) == (18850.63, 1.321)


def test_set_ups_are_those_of_the_paper():
    assert [flits(width) for width in WIDTHS] == [17, 9, 5]
    for nodes, engines in ((32, 23), (16, 7)):
        noc = closed_noc(channels=4, link_width=16, nodes=nodes)
        assert len(noc.traffic.initiators) == engines
        assert noc.router.buffer_flits == 9
        assert noc.find_deadlock() is None
    for channels in CHANNELS:
        assert len(open_noc(channels=channels).traffic.targets) == channels
        assert open_noc(channels=channels).find_deadlock() is None


def test_table_one_is_exact_on_its_grid(found):
    for reading, which in (("in turn", ["simulated"]), ("random channel", ["simulated", "model"])):
        cells = select(found.cells, table="table1", reading=reading)
        for which_one in which:
            assert [on_grid(getattr(c, which_one), 0.01) for c in cells] == [0.03, 0.05, 0.07]


def test_the_model_is_exact_on_the_grid_where_channels_are_drawn():
    rates = [
        float(solve(open_noc(channels=channels, **READINGS["random channel"])).saturation_rate)
        for channels in CHANNELS
    ]
    assert [on_grid(rate, 0.01) for rate in rates] == [0.03, 0.05, 0.07]


def test_table_two_is_within_five_percent_and_two_on_average(found):
    for which in ("model", "simulated"):
        mean, largest = mean_and_largest(select(found.cells, table="table2"), which)
        assert mean < 2 and largest < 5


def test_table_three_is_within_two_percent(found):
    rates = published_rates()
    fit = fit_power(places(), rates)
    assert np.abs(fit.residual).max() < 0.02
    assert [100 * (power(fit, p, rates[p]) / said("table3", p) - 1) for p in places()] == pytest.approx(
        100 * fit.residual
    )
    for which in ("model", "simulated"):
        assert mean_and_largest(select(found.cells, table="table3"), which)[1] < 2


@pytest.mark.parametrize("name", ["think_cycles", "service_cycles", "write_fraction"])
def test_the_calibration_is_where_the_errors_are_least(name):
    def squares(loop):
        return sum((throughput(loop, place) / said("table2", place) - 1) ** 2 for place in places())

    best = squares(CALIBRATED)
    for factor in (0.98, 1.02):
        assert squares(replace(CALIBRATED, **{name: factor * getattr(CALIBRATED, name)})) > best


def test_kept_model_numbers_are_those_of_the_model(found):
    for cell in found.cells:
        if cell["table"] in ("table2", "nodes16") and cell["channels"] in (1, 4):
            nodes = 32 if cell["table"] == "table2" else 16
            assert cell.model == pytest.approx(
                throughput(CALIBRATED, (cell["width"], cell["channels"]), nodes=nodes), rel=1e-3
            )


def test_kept_simulations_beside_a_fresh_one(found):
    kept_ones = [
        c for c in select(found.cells, table="table2") if c["channels"] in (1, 8) and c["width"] != 16
    ]
    nocs = [closed_noc(channels=c["channels"], link_width=c["width"]) for c in kept_ones]
    fresh = simulate(nocs, packets=20_000, replications=3, seed=7, confidence=0.999).results
    for cell, result in zip(kept_ones, fresh, strict=True):
        estimate = result.metrics["bandwidth"]
        assert 1000 * estimate.low <= cell.high and cell.low <= 1000 * estimate.high
        assert 1000 * estimate.best == pytest.approx(cell.simulated, rel=0.02)


def test_knee_of_one_design(found):
    row = next(r for r in found.tables["grid"] if (r["step"], r["channels"], r["link_width"]) == (1, 2, 16))
    low, high = knee(open_noc(channels=2), cycles=20_000, replications=2)
    assert low <= row["high"] * 1.05 and high >= row["low"] * 0.95


def test_greedy_beside_all_designs(found):
    every, greedy = explore_designs(found.tables["grid"])
    assert len(every.table["design"]) == len(STEPS) * len(CHANNELS) * len(WIDTHS)
    assert len(greedy.table["design"]) < 20
    assert set(front_points(greedy)) <= set(front_points(every))
    assert 0 < dominated(greedy) <= dominated(every)
    assert tuple(greedy_rows(greedy)) == found.tables["greedy"]


def test_left_out_columns_are_predicted(found):
    for table, most in (("table2", 6.0), ("table3", 5.0)):
        mine = select(found.cells, table=f"{table}_left_out")
        assert len(mine) == 12
        assert mean_and_largest(mine, "model")[1] < most


def test_contradictions_follow_from_the_numbers():
    lines = contradictions()
    assert "1.08 flits/cycle" in lines[0]
    assert all(value > published("stnoc")["text"]["peak"] for value in (10710.95, 15119.96, 15960.79))
    assert 7529 == int(1000 * 128 / 17) and "7529" in lines[-1]


def test_everything_is_shown_and_saved(found, tmp_path):
    text = found.table()
    for part in (
        "Table I:",
        "Table II:",
        "Table III:",
        "16 nodes",
        "Contradictions",
        "left out",
        "Claims",
        "greedy",
    ):
        assert part in text
    names = [path.name for path in found.save(tmp_path)]
    assert names == [
        "stnoc.txt",
        "stnoc-cells.csv",
        "stnoc-grid.csv",
        "stnoc-greedy.csv",
        "stnoc-tables.png",
        "stnoc-steps.png",
    ]
    assert found.to_dict()["notes"]["Contradictions"] == contradictions()
    assert len(found.to_pandas()) == len(found.cells)
    assert published_case("stnoc").kept().columns() == found.columns()
