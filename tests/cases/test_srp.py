"""The 16-SRP case: published numbers as printed, fits and predictions, kept numbers against fresh ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.published.cases import published_case
from cases.published.cell import only, select
from cases.published.measurement import error
from cases.published.rows import published
from cases.published.srp.accuracy import MEASUREMENT, sweep
from cases.published.srp.benchmarks import benchmark_specs
from cases.published.srp.blurring import calibrate, table_cells, table_specs
from cases.published.srp.dma_placement import place_dma
from cases.published.srp.paper import PAPER, fitted_costs
from cases.published.srp.placement import machine_of_work, placed_machine, problem_of
from cases.published.srp.specs import ALGORITHMS, PLACEMENTS, READ_ROWS, blurring
from qmodels import solve
from qmodels.memory.numa.error_map import ERRORS
from validate import simulate


@pytest.fixture(scope="module")
def committed():
    """Return the committed numbers."""
    return PAPER.kept()


def test_published_numbers_agree_with_each_other():
    """Speed-ups of the text follow from Table 6.1, up to the words near, around and slightly."""
    table, said = published("srp")["table61"], published("srp")["speedups"]
    for placement in ("clustered", "all"):
        for algorithm in ALGORITHMS:
            ratio = table["one"][algorithm] / table[placement][algorithm]
            assert ratio == pytest.approx(said[placement][algorithm], rel=0.06)
    # The result is a quarter of all transfers of one version, and half of those of the other.
    assert [1 / (READ_ROWS[algorithm] + 1) for algorithm in ALGORITHMS] == [0.25, 0.5]


def test_predictions_are_within_ten_percent(committed):
    """Fitted to either row, of model and simulation: the figures that were not used."""
    cells = select(committed.cells, table="table61")
    predicted = [cell for cell in cells if not cell.fitted]
    assert len(predicted) == 6
    for cell in predicted:
        assert abs(cell.error(cell.model)) < 10
        assert abs(cell.error(cell.simulated)) < 10
    for cell in cells:
        if cell.fitted:
            assert abs(cell.error(cell.model)) < 0.1
    for fitted in ALGORITHMS:
        for algorithm in ALGORITHMS:
            mine = select(cells, fitted_on=fitted, row=algorithm)
            assert [c["column"] for c in sorted(mine, key=lambda c: c.simulated)] == [
                "clustered",
                "all",
                "one",
            ]
            assert only(mine, column="clustered")["regime"] == "compute"
            assert only(mine, column="one")["regime"] == "transfer"


def test_both_rows_give_the_same_costs(committed):
    """A check that no fit was made for: the two calibrations agree within 8 %."""
    one, other = (fitted_costs(committed)[row] for row in ALGORITHMS)
    for name in ("controller_cycles", "compute_per_byte", "switch_cycles"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=0.08)


def test_statements_of_the_text(committed):
    """Factors, no congestion on the network, congestion at a memory, four times by channels."""
    claims = {claim.text: claim for claim in committed.claims}

    def both(start):
        found = next(claim for text, claim in claims.items() if text.startswith(start))
        return found.model, found.simulated

    assert both("least NUMA factor") == pytest.approx((1.1, 1.1), rel=0.001)
    assert both("largest NUMA factor") == pytest.approx((1.5, 1.5), rel=0.001)
    for start in ("four cores at their", "four cores, mem", "four cores, opp"):
        assert both(start) == pytest.approx((1.0, 1.0), abs=0.001)
    assert min(both("four cores at one memory")) > 3
    for start in ("sixteen cores, memories swapped", "sixteen cores, opposite"):
        assert both(start) == pytest.approx((1.0, 1.0), abs=0.01)
    assert min(both("sixteen cores at nearest")) > 3
    assert both("paired channels, clustered") == pytest.approx((4.0, 4.0), rel=0.01)
    # The two modes in which cores that share a channel are at one memory are the fast ones; the second
    # is said to be similar to the first, and is 3.3 for us.
    # What is lacking is what the channels' turning takes, which Table 6.1 sets.
    assert max(both("enumerated channels, memories in turn")) < 3.5
    assert both("the same, if channels turned in no time") == pytest.approx((4.0, 4.0), rel=0.01)
    alternating = (*both("paired channels, memories in turn"), *both("enumerated channels, clustered"))
    assert min(both("enumerated channels, memories in turn")) > max(alternating)


def test_the_program_finds_the_papers_best_placement_or_a_better_one(committed):
    """Within 2e-6 of the bound, and simulated to be as fast; enumerated channels and one memory are slower.

    Where cores are numbered in no order, pairs of neighbours in number turn their channel, and the
    program finds better than that and than greedy.
    """
    renumbered = {row.placement: row for row in committed.tables["placements"] if row.work == "renumbered"}
    assert renumbered["milp"].bound >= renumbered["milp"].objective * (1 - 2e-6)
    assert renumbered["milp"].objective < renumbered["greedy"].objective
    assert renumbered["milp"].simulated < 0.9 * renumbered["the paper's best"].simulated
    for work in ("blurring", "fetching"):
        rows = {row.placement: row for row in committed.tables["placements"] if row.work == work}
        assert rows["milp"].bound >= rows["milp"].objective * (1 - 2e-6)
        assert rows["milp"].seconds < 10
        assert rows["milp"].objective <= rows["the paper's best"].objective * (1 + 1e-9)
        assert rows["milp"].simulated <= rows["the paper's best"].simulated * 1.001
        assert rows["milp"].simulated < rows["enumerated channels"].simulated < rows["one memory"].simulated


def test_a_placement_becomes_a_machine(committed):
    """Every task is somewhere, and its accesses are those of the problem."""
    machine = machine_of_work(fitted_costs(committed)["non-optimal"], "blurring")
    placement = place_dma(problem_of(machine), method="greedy")
    placed = placed_machine(machine, placement)
    assert sum(placed.work.core_steps) == 16 * machine.work.steps
    expected = np.bincount(placement.memories, minlength=4) * machine.work.steps * sum(machine.transfers)
    assert placed.accesses_of_memories().tolist() == expected.tolist()


def test_kept_numbers_are_what_a_fresh_run_gives(committed):
    """A part of the table, solved and simulated again, and the fit of a row."""
    costs = {"non-optimal": fitted_costs(committed)["non-optimal"]}
    specs = table_specs(costs)
    fresh = [specs["non-optimal", "optimal", placement] for placement in PLACEMENTS]
    results = simulate(fresh, replications=2, progress=lambda done, known: None)
    cells = {(c["fitted_on"], c["row"], c["column"]): c for c in select(committed.cells, table="table61")}
    for placement, spec, result in zip(PLACEMENTS, fresh, results, strict=True):
        cell = cells["non-optimal", "optimal", placement]
        assert float(result.execution_time) / 1e6 == pytest.approx(cell.simulated, rel=1e-9)
        assert float(solve(spec).execution_time) / 1e6 == pytest.approx(cell.model, rel=1e-6)
    simulated = {spec: 1e6 * cells[key].simulated for key, spec in specs.items()}
    again = {(c["fitted_on"], c["row"], c["column"]): c for c in table_cells(costs, simulated)}
    assert all(c.model == pytest.approx(cells[key].model, rel=1e-6) for key, c in again.items())


def test_a_fit_finds_costs_again():
    """Of a table made with known costs, by a formula that only orders as the model does."""
    target = published("srp")["table61"]

    def formula(machine):
        scale = {"one": 1.0, "clustered": 0.25, "all": 0.25}[machine.work.placement]
        moved = scale * machine.chip.controller_cycles
        return moved + machine.work.compute_cycles / 1e4 * (scale < 1) + machine.dma.switch_cycles / 1e4

    costs = calibrate("optimal", formula)
    for placement in PLACEMENTS:
        fitted = costs if placement == "all" else replace(costs, switch_cycles=0.0)
        if placement != "one":
            assert formula(blurring(fitted, "optimal", placement)) == pytest.approx(
                target[placement]["optimal"], rel=1e-4
            )
    assert costs.controller_cycles == pytest.approx(target["one"]["optimal"], rel=1e-4)


def test_the_error_map_is_that_of_the_sweep():
    """A few machines of it, simulated shorter: 8 % in the mean, and the map says the same or less."""
    machines = list(sweep(steps=24))
    rows = MEASUREMENT.measure(machines[::68])
    assert len(rows) == 12
    assert np.mean([abs(error(row)) for row in rows]) < 8
    assert {row["region"] for row in MEASUREMENT.lines(rows)} <= set(ERRORS.regions)
    assert sum(row["designs"] for row in ERRORS.rows) == len(machines)
    assert sum(row["designs"] * row["mean"] for row in ERRORS.rows) / len(machines) < 8


def test_benchmarks_use_the_cores_they_say(committed):
    """640 fetches of 16 kB of each core that takes part: the paper's 10 MB."""
    specs = benchmark_specs(fitted_costs(committed)["non-optimal"])
    for name, cores in (("alone", 1), ("four nearest", 4), ("sixteen opposite", 16)):
        assert specs[name].accesses_of_memories().sum() == cores * 640 * 256


def test_files_and_protocol(committed, tmp_path):
    """The case is known by its name; what is written reads back."""
    assert published_case("srp").kept().cells == committed.cells
    paths = committed.write(tmp_path)
    assert all(path.is_file() for path in paths)
    for path in committed.save(tmp_path / "out"):
        assert path.stat().st_size > 100
    columns = committed.columns()
    assert len({len(column) for column in columns.values()}) == 1
    assert set(columns["table"]) == {"table61", "table62"}
    assert set(committed.to_dict()) >= {"costs", "cells", "claims", "placements", "benchmarks"}
    assert len(committed.to_pandas()) == len(columns["table"])
    text = committed.table()
    for part in ("Table 6.1", "Table 6.2", "predicted", "proven", "we assume"):
        assert part in text
