"""The message-passing case: published numbers, the kept reproduction, and parts of it made anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cases.published.cell import mean_and_largest, select
from cases.published.ocmpi.calibrate import (
    CHOSEN,
    PLACES,
    changed,
    choose,
    errors_of,
    find_tries,
    found_effects,
    left_out_cells,
)
from cases.published.ocmpi.paper import PAPER
from cases.published.ocmpi.specs import (
    BARE,
    CALIBRATED_ON,
    CYCLES,
    CYCLES_PER_WORD,
    FIRST_ROW,
    GATHER_WORDS,
    LINK_WIDTH,
    ROUTER,
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


def effects_of(committed):
    """Return the effects of the case."""
    return [cell for cell in committed.cells if cell.group == "effects"]


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
    cells = effects_of(committed)
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


@pytest.fixture(scope="module")
def every(committed):
    """Return the effects of all choices."""
    return found_effects(committed.tables["tries"])


def test_other_packets_do_not_fit(every):
    """Three or five flits miss some effect by more than ten points, whatever else is chosen."""
    largest = {choice: max(map(abs, errors_of(found))) for choice, found in every.items()}
    assert min(size for choice, size in largest.items() if choice[0] != 4) > 10
    assert min(largest.values()) < 3


def test_what_was_chosen_in_view_is_what_comes_nearest(committed, every):
    flits = BARE.packet_flits(1, LINK_WIDTH)
    best = choose(every)
    assert best == (flits, ROUTER.buffer_flits, GATHER_WORDS, CYCLES_PER_WORD)
    assert every[best] == pytest.approx([cell.simulated for cell in effects_of(committed)])


def test_each_effect_is_predicted_by_the_others(committed, every):
    """An effect that is left out has no say: whatever it were, its prediction stays."""
    cells = select(committed.cells, section="left out")
    assert [cell.published for cell in cells] == [cell.published for cell in effects_of(committed)]
    for k, cell in enumerate(cells):
        best = choose(every, without=k)
        assert tuple(cell[name] for name in CHOSEN) == best
        assert cell.simulated == every[best][k]
        others = {choice: [*found[:k], 1e3, *found[k + 1 :]] for choice, found in every.items()}
        assert choose(others, without=k) == best
    assert mean_and_largest(cells, "simulated")[0] < 2
    # The packets are known without any one effect, the words of Fig. 9 only by the first row.
    assert {cell["flits"] for cell in cells} == {4} and len({cell["gather_words"] for cell in cells}) > 1


def test_a_reproduction_of_today_computes_what_is_kept(committed):
    today = PAPER.today()
    for one, other in zip(today.cells, committed.cells, strict=True):
        assert (one.place, one.group) == (other.place, other.group)
        assert (one.model, one.simulated) == pytest.approx((other.model, other.simulated), rel=1e-6)


def test_a_reproduction_of_today_looks_nothing_up_but_the_tries(committed):
    wrong = replace(committed, cells=(), tables={"tries": committed.tables["tries"]})
    assert PAPER.renew(wrong).cells == PAPER.today().cells


def _are_kept(committed, rows):
    known = {tuple(row[name] for name in ("section", *CHOSEN)): row for row in committed.tables["tries"]}
    for row in rows:
        kept = known[tuple(row[name] for name in ("section", *CHOSEN))]
        for place in PLACES:
            assert (row[place] is None) == (kept[place] is None)
            assert row[place] is None or row[place] == pytest.approx(kept[place], abs=1e-6)


def test_some_kept_tries_are_those_of_today(committed, monkeypatch):
    for name, values in {"PACKETS": (3,), "BUFFERS": (16,), "WORDS": (4,), "CYCLES": (0,)}.items():
        monkeypatch.setattr(f"cases.published.ocmpi.calibrate.{name}", values)
    rows = find_tries()
    assert len(rows) == 3
    _are_kept(committed, rows)


@pytest.mark.slow
def test_all_kept_tries_are_those_of_today(committed):
    rows = find_tries()
    assert len(rows) == len(committed.tables["tries"])
    _are_kept(committed, rows)
    assert left_out_cells(rows) == select(committed.cells, section="left out")


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
        "ocmpi-tries.csv",
        "ocmpi-cycles.png",
        "ocmpi-service.png",
    ]
    text = (tmp_path / "ocmpi.txt").read_text()
    for name in CYCLES:
        assert name in text
    for assumption in PAPER.notes["Not in the paper, assumed"]:
        assert assumption in text
    assert len(committed.columns()["name"]) == len(committed.to_pandas()) == 25
    assert len(committed.to_dict()["processes"]) == 48
    for name in ("cells.csv", "processes.csv", "tries.csv"):
        assert (data_folder("ocmpi") / name).read_text() == (tmp_path / f"ocmpi-{name}").read_text()
