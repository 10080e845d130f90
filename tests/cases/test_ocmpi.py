"""The message-passing case: published numbers, the kept reproduction, and parts of it made anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.published.ocmpi.calibrate import changed
from cases.published.ocmpi.paper import PAPER
from cases.published.ocmpi.specs import (
    CALIBRATED_ON,
    CYCLES,
    CYCLES_PER_WORD,
    FIRST_ROW,
    GATHER_WORDS,
    from_memory,
    placement,
    profile,
    program,
    software,
    streaming,
    with_software,
)
from cases.published.ocmpi.sweep import MEASUREMENT
from cases.published.ocmpi.tables import ARMS, profile_programs, service_programs
from cases.published.rows import data_folder
from qmodels import solve
from qmodels.noc.solve_program import ERRORS
from qmodels.systems.programs.collectives import barrier
from validate import simulate


@pytest.fixture(scope="module")
def committed():
    """Return the committed reproduction."""
    return PAPER.kept()


@pytest.fixture(scope="module")
def sweep():
    """Return the committed sweep."""
    return MEASUREMENT.kept()


def test_rates_in_the_paper_follow_from_its_cycles():
    """Sec. VIII.A, at 200 MHz: about 75,000 and 20,000 initialisations, less than 30,000 barriers."""
    assert 200e6 / CYCLES["initialisation, 4 cores"] == pytest.approx(75_000, rel=0.03)
    assert 200e6 / CYCLES["initialisation, 16 cores"] == pytest.approx(20_000, rel=0.04)
    assert 200e6 / CYCLES["barrier, 9 cores"] < 30_000


def test_cycles_that_were_not_used_are_predicted(committed):
    """The bar is 10 %."""
    cells = [cell for cell in committed.cells if cell["unit"] == "cycles" and not cell.fitted]
    assert len(cells) == len(CYCLES) - len(CALIBRATED_ON) == 6
    assert max(abs(cell.error(value)) for cell in cells for value in (cell.model, cell.simulated)) < 5


def test_effects_of_service_are_met_by_simulation(committed):
    """The bar is 5 percentage points."""
    cells = [cell for cell in committed.cells if cell["unit"] == "%"]
    assert len(cells) == 8
    assert max(abs(cell.error(cell.simulated)) for cell in cells) < 3


def test_the_calibration_hits_what_it_is_made_from(committed):
    for cell in committed.cells:
        if cell.fitted:
            assert abs(cell.error(cell.simulated)) < 0.5
    with pytest.raises(ValueError, match="used must name figures that identify three parameters"):
        software(("barrier, 4 cores", "barrier, 9 cores", "barrier, 16 cores"))


@pytest.mark.parametrize(
    "used",
    [
        ("ping-pong, 1 word", "ping-pong, 256 words", "initialisation, 16 cores"),
        ("barrier, 16 cores", "one way, 256 words", "initialisation, 4 cores"),
        ("one way, 1 word", "ping-pong, 256 words", "initialisation, 4 cores"),
    ],
)
def test_other_calibrations_predict_the_rest_as_well(used):
    message, word, start = software(used)
    costs, first = with_software(message, word), with_software(start, 0.0)
    for name, spec in profile(costs, first).items():
        assert solve(spec)["execution_time"] == pytest.approx(CYCLES[name], rel=0.07), name


def test_kept_cycles_are_those_of_today(committed):
    kept_cycles = {cell["name"]: cell for cell in committed.cells if cell["unit"] == "cycles"}
    for name, spec in profile_programs().items():
        assert simulate(spec, replications=2)["execution_time"].best == pytest.approx(
            kept_cycles[name].simulated, abs=1
        )
        assert solve(spec)["execution_time"] == pytest.approx(kept_cycles[name].model, abs=1)


@pytest.mark.parametrize("section", ["figure9", "figure11"])
def test_kept_finish_times_are_those_of_today(committed, section):
    rows = {one.process: one for one in committed.tables["processes"] if one.section == section}
    for on in (False, True):
        result = simulate(service_programs()[section, on], replications=2)
        for k in range(ARMS):
            before = rows[k].simulated_with if on else rows[k].simulated_without
            assert result[f"finish_time[{k}]"].best == pytest.approx(before, rel=1e-6)


def test_the_other_routing_does_not_fit():
    """With columns first, the first row is slowed by very different amounts: not 65-70 % each."""
    changes = []
    for section in (False, True):
        spec = replace(service_programs()["figure9", section], placement=tuple(range(16)))
        result = simulate(spec, replications=2)
        changes.append([result[f"finish_time[{k}]"].best for k in FIRST_ROW])
    slower = [100 * (after / before - 1) for before, after in zip(*changes, strict=True)]
    assert max(slower) - min(slower) > 20


def test_a_circuits_packets_take_the_same_time_in_figure_11():
    spec = streaming(circuit=True, words=32)
    result = simulate(spec, replications=2)
    for service, mean, most in zip(
        result.services, result.mean_packet_latency, result.max_packet_latency, strict=True
    ):
        if service.circuit:
            assert mean == most == solve(spec).circuit_latency[14, 0]


def test_the_model_is_near_over_the_sweep(sweep):
    """The bar is 8 % on average."""
    assert len(sweep) > 200
    crowded = [row for row in sweep if row["crowding"] > 1]
    assert len(crowded) > 80
    assert sum(row["mean_error"] for row in crowded) / len(crowded) < 5
    assert max(row["mean_error"] for row in sweep) < 17


def test_the_kept_sweep_is_that_of_today(sweep):
    points = list(MEASUREMENT.points())
    assert len(points) == len(sweep)
    chosen = [place for place, (what, _) in enumerate(points) if what["words"] <= 10][::17]
    measured = MEASUREMENT.measure([points[place] for place in chosen])
    for place, row in zip(chosen, measured, strict=True):
        assert row.keys() == sweep[place].keys() and row["program"] == sweep[place]["program"]
        assert row["mean_error"] == pytest.approx(sweep[place]["mean_error"], abs=0.1)
    one = measured[0]
    rows = MEASUREMENT.lines([one])
    assert [row["metric"] for row in rows] == ["finish_time", "execution_time"]
    expected = [one["mean_error"], one["execution_error"]]
    assert [row["mean"] for row in rows] == pytest.approx(expected, abs=0.005)
    stems = {name.partition("[")[0] for name in solve(points[0][1]).error}
    assert stems == {row["metric"] for row in ERRORS.rows}


def test_other_packets_do_not_fit(committed):
    """Three or five flits miss some effect by more than ten points, whatever the buffer."""
    for one in committed.tables["alternatives"]:
        assert (one["largest_error"] > 10) == (one["flits"] != 4)
    chosen = next(
        one for one in committed.tables["alternatives"] if (one["flits"], one["buffer_flits"]) == (4, 8)
    )
    assert (chosen["gather_words"], chosen["cycles_per_word"]) == (GATHER_WORDS, CYCLES_PER_WORD)
    effects = [cell.simulated for cell in committed.cells if cell["unit"] == "%"]
    assert list(chosen.values())[4:12] == pytest.approx(effects)


def test_a_changed_packet_keeps_the_time_of_a_word():
    times = []
    for flits in (3, 4, 5):
        spec = changed(streaming(circuit=False, words=64), flits, 8)
        alone = tuple(steps if k in (0, 14) else () for k, steps in enumerate(spec.processes))
        times.append(simulate(replace(spec, processes=alone), replications=2)["finish_time[14]"].best)
    assert times == pytest.approx([times[1]] * 3, rel=0.03)


def test_arms_are_numbered_by_columns():
    assert placement(4)[:5] == (0, 4, 8, 12, 1)
    assert sorted(placement(3)) == list(range(9))


def test_what_is_sent_is_read_first():
    assert from_memory((("send 1 5", "wait 1"),)) == (("compute 34", "send 1 5", "wait 1"),)
    assert len(program(barrier(processes=9), side=3).nodes) == 9


def test_a_reproduction_writes_text_tables_and_plots(committed, tmp_path):
    paths = committed.save(tmp_path)
    assert [path.name for path in paths] == [
        "ocmpi.txt",
        "ocmpi-cells.csv",
        "ocmpi-processes.csv",
        "ocmpi-alternatives.csv",
        "ocmpi-cycles.png",
        "ocmpi-service.png",
    ]
    text = (tmp_path / "ocmpi.txt").read_text()
    for name in CYCLES:
        assert name in text
    for assumption in PAPER.notes["Not in the paper, assumed"]:
        assert assumption in text
    assert len(committed.columns()["name"]) == len(committed.to_pandas()) == 17
    assert len(committed.to_dict()["processes"]) == 48
    for name in ("cells.csv", "processes.csv", "alternatives.csv"):
        assert (data_folder("ocmpi") / name).read_text() == (tmp_path / f"ocmpi-{name}").read_text()
