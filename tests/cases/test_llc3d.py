"""The LLC-slice case: the text's numbers, and a small reproduction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.published.cases import published_case
from cases.published.cell import only, select
from cases.published.llc3d.errors import MEASUREMENT, designs
from cases.published.llc3d.paper import PAPER
from cases.published.llc3d.specs import BASE, NAMES, READING, places, readings, realistic
from cases.published.llc3d.tables import FIGURES, REALISTIC
from cases.published.rows import data_folder, published
from qmodels import solve
from qmodels.llc.processor_errors import VARIED
from qmodels.systems.cache.llc_processor import LlcProcessor
from validate import simulate


@pytest.fixture(scope="module")
def committed():
    return PAPER.kept()


@pytest.fixture(scope="module")
def small():
    return PAPER.reproduce(requests=1000, replications=2, realistic_requests=0)


def test_published_numbers_agree_with_each_other():
    """The ratios of the abstract follow from the converted numbers of the text."""
    said, ratios = published("llc3d")["converted"], published("llc3d")["headline"]
    waiting, gbps = said["waiting_latency"], said["data_rate"]
    offered = LlcProcessor().gbps(LlcProcessor().arrival_rate)
    blocked = {name: 1 - value / offered for name, value in gbps.items()}
    for other in ("shared", "none"):
        assert 100 * (1 - waiting["slices"] / waiting[other]) == pytest.approx(
            ratios["waiting_saved"][other], abs=1
        )
        assert 100 * (gbps["slices"] / gbps[other] - 1) == pytest.approx(
            ratios["throughput_gained"][other], abs=1
        )
        assert 100 * (1 - blocked["slices"] / blocked[other]) == pytest.approx(
            ratios["blocking_saved"][other], abs=1
        )


def test_points():
    every = list(places())
    axes = published("llc3d")["axes"]
    assert len(every) == 3 * len(axes["entries_per_line"]) + 15 + 35 + 21
    assert len({spec for _, spec in every}) < len(every)
    assert {place["figures"] for place, _ in every} == set(FIGURES)
    assert [spec.slice_lines[-1] for spec in (realistic("slices"), realistic("shared"))] == [16384, 458752]
    assert sum(map(len, readings().values())) == 16


def test_bars(committed):
    """Simulated within 1.5 % of the text, the model within 1 % of the simulation, for all three."""
    seen = 0
    for cell in committed.cells:
        if cell["figures"] == "13-15" and cell.published is not None:
            seen += 1
            if cell["metric"] == "blocking_probability":
                assert cell.simulated == pytest.approx(cell.published, abs=0.0025)
                assert cell.model == pytest.approx(cell.simulated, abs=0.0015)
            else:
                assert cell.simulated == pytest.approx(cell.published, rel=0.016)
                assert cell.model == pytest.approx(cell.simulated, rel=0.01)
                assert (cell.high - cell.low) / 2 < 0.015 * cell.simulated
    assert seen == 9


def test_kept_curves(committed):
    """The model over all figures: measured 0.37 points of blocking at most, 2.8 % of waiting."""
    for cell in committed.cells:
        if cell["figures"] in FIGURES and cell["metric"] == "blocking_probability":
            assert cell.model == pytest.approx(cell.simulated, abs=0.004), cell
        if cell["figures"] in FIGURES and cell["metric"] == "waiting_latency":
            assert cell.model == pytest.approx(cell.simulated, rel=0.03), cell


def test_other_readings_are_further_from_the_text(committed):
    """Of the slices' waiting time."""
    error = {
        cell["figures"]: abs(cell.simulated / cell.published - 1)
        for cell in select(committed.cells, variable=READING, curve=NAMES["slices"], metric="waiting_latency")
    }
    best = error.pop(BASE)
    assert len(error) == 4 and best < 0.01 and min(error.values()) > 0.04


def test_realistic_capacities(committed):
    cells = select(committed.cells, variable=REALISTIC)
    assert len(cells) == 18
    for cell in cells:
        if cell["metric"] in ("waiting_latency", "data_rate"):
            assert cell.model == pytest.approx(cell.simulated, rel=0.032)  # 3.1 % with slices, else 0.4 %
            assert cell.high - cell.low < 0.02 * cell.simulated
    assert max(row["seconds"] for row in committed.tables["seconds"]) < 60


def test_claims(committed):
    said = {claim.text: claim for claim in committed.claims}
    yes_or_no = [claim for claim in said.values() if claim.published is True]
    wrong = {claim.text for claim in yes_or_no if not (claim.simulated and claim.model)}
    # By the text 16 slices are better than none; ours wait some 2 % longer.
    assert len(yes_or_no) == 12 and wrong == {"16 slices wait less than no LLC"}
    for text, points in (("waiting time saved", 2), ("throughput gained", 3), ("blocking saved", 5)):
        for claim in said.values():
            if claim.text.startswith(f"{text} against"):
                assert claim.simulated == pytest.approx(claim.published, abs=points)
    # With 2 lines in a slice 16 slices are worse than none, with 3 better, with 2.25 on average alike.
    fewer = [said[f"16 slices wait longer than no LLC, {name}, %"] for name in readings()]
    assert [claim.holds for claim in fewer] == [False, False, None, True, True]
    # The slices beyond half of them gain more than the abstract's own gains.
    beyond = [claim for text, claim in said.items() if "from 16 to 28 slices" in text]
    assert [claim.holds for claim in beyond] == [True, False, False, False, False, True]
    for claim in (*fewer, *beyond):
        assert claim.model == pytest.approx(claim.simulated, abs=1.2), claim.text
    crossing = said["entries beyond which no LLC is better"]
    assert 20_000 < crossing.simulated < 60_000
    assert crossing.model == pytest.approx(crossing.simulated, rel=0.1)
    threshold = said["skip rule: LLC miss ratio beyond which to skip it"].model
    assert said["LLC miss ratio there"].simulated == pytest.approx(threshold, abs=0.01)


def test_kept_numbers_are_those_of_today(committed):
    """A fresh run of one point overlaps with its kept interval; the model gives what is kept."""
    spec = LlcProcessor(architecture="none")
    fresh = simulate(spec, requests=20_000, replications=6, seed=7).waiting_latency
    cell = only(committed.cells, figures="13-15", curve="no LLC", x=32, metric="waiting_latency")
    assert fresh.low <= cell.high and cell.low <= fresh.high
    assert solve(spec).waiting_latency == pytest.approx(cell.model, rel=1e-3)


def test_a_small_reproduction(small, tmp_path):
    text = small.table()
    for figures in FIGURES:
        assert f"Figures {figures}" in text
    assert "Readings of the text" in text and "Claims" in text and "Assumptions" in text
    assert "Realistic" not in text
    plain = small.to_dict()
    assert len(plain["cells"]) == len(small.cells) == len(small.to_pandas())
    assert [path.name for path in small.write(tmp_path)] == ["run.toml", "cells.csv"]
    again = PAPER.read(tmp_path)
    assert (again.run, again.cells, again.claims) == (small.run, small.cells, small.claims)


def test_files(committed, tmp_path):
    paths = committed.save(tmp_path / "out")
    assert [path.suffix for path in paths] == [".txt", ".toml", ".csv", ".csv", *[".png"] * 5]
    assert all(path.stat().st_size > 0 for path in paths)
    assert (tmp_path / "out" / "llc3d-cells.csv").read_text() == (
        data_folder("llc3d") / "cells.csv"
    ).read_text()


def test_error_map():
    every = designs()
    assert len(every) == 188
    what, _ = next(MEASUREMENT.points())
    spec = replace(every[0], load=0.2)
    (row,) = MEASUREMENT.measure([({**what, "load": 0.2}, spec)], requests=1000, replications=2)
    assert set(VARIED) <= set(row) == set(MEASUREMENT.kept()[0]) and row["load"] == 0.2
    run = simulate(spec, requests=1000, replications=2)
    assert row["waiting_simulated"] == run.waiting_latency.best * spec.clock_ghz


def test_case_is_known():
    assert published_case("llc3d") is PAPER
