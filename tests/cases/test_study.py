"""A study of any kind in memory and on disk: tables, simulations, and what survives an interruption."""

import csv
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from cases.study import PACKETS
from cases.study import files as study_files
from cases.study.details import part_sections, trace_section, trace_summary, trust
from cases.study.files import SUMMARY, load_study, save_study, whole_text
from cases.study.goals import (
    CHOICES,
    DATA,
    default_processor,
    default_space,
    goals_of,
    solved_columns,
    space_of,
)
from cases.study.screen import Screen, study_text
from cases.study.study import DIGITS, SIMULATED, SOLVED, Runs, decided, explore_case, model_verdict, solved
from cases.tables import heading
from optimize import replace_fields
from optimize.decisions.decision import TIED
from qmodels import Noc, PacketProcessor, Workload
from qmodels.systems.spec.estimate import exactly
from qmodels.systems.spec.metrics import METRICS, is_relative
from qmodels.systems.spec.text.toml import from_toml
from qmodels.traffic import Trace
from validate.packet_processor import LATENCIES

NAMES = PacketProcessor.metric_names.both
DESIGNS = {"designs-large-packets.csv", "designs-small-packets.csv"}
FILES = DESIGNS | {"simulated.csv", "study.txt", "report.html", "front.png", "front.svg", SUMMARY}
RUNS = Runs(packets=1000, replications=2, seed=5)
OF_A_DESIGN = 2 * RUNS.replications
"""Open and closed runs."""


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def model(small_specs):
    spec = small_specs["large-packets"]
    return solved(default_space(spec), goals_of(spec))


def test_front_and_feasible_designs_are_what_pairwise_comparison_gives(model):
    costs = np.where(model.maximized, -model.values, model.values)
    usable = costs[model.feasible]

    def dominated(point):
        return ((usable <= point).all(axis=1) & (usable < point).any(axis=1)).any()

    rows = np.flatnonzero(model.feasible)
    expected = [row for row in rows if np.isfinite(costs[row]).all() and not dominated(costs[row])]
    assert model.front.tolist() == expected and 0 < len(expected) < len(costs)
    assert not model.table["stable"].all() and model.table["stable"][model.front].all()
    assert np.isinf(model.table["packet_latency"][~model.table["stable"]]).all()


def test_rows_are_what_the_model_says_of_single_designs(model):
    for row in (0, 7, 41):
        single = solved_columns(model.spec(row))
        for name in ("packet_latency", "saturation_data_rate", "energy_per_packet", "bottleneck_load"):
            assert model.table[name][row] == pytest.approx(single[name], rel=10.0 ** (1 - DIGITS))
        assert model.table["bottleneck"][row] == single["bottleneck"]


def test_the_directory_has_these_files_and_every_number(small_study):
    study, out = small_study
    assert {path.name for path in out.iterdir()} == FILES | {SOLVED, SIMULATED}
    part = study.parts[0]
    rows = read_csv(out / "designs-large-packets.csv")
    assert len(rows) == len(part.model.table["design"]) == 80
    for name in NAMES:
        assert [float(row[heading(name)]) for row in rows] == part.model.table[name].tolist()
    starred = [int(row["design"]) for row in rows if row["starred"] == "True"]
    assert starred == [part.design(part.decision.chosen)]
    assert sum(row["simulated"] == "True" for row in rows) == len(part.decision.simulated) == 4
    tidy = read_csv(out / "simulated.csv")
    assert len(tidy) == len(NAMES) * sum(len(part.decision.results) for part in study.parts)
    for row in tidy:
        low, best, high, ours = (float(row[one]) for one in ("low", "simulated", "high", "analytic"))
        assert low <= best <= high and row["unit"] == METRICS[row["metric"]].unit
        scale = best if is_relative(row["metric"]) else 1.0
        assert float(row["error"]) == pytest.approx((ours - best) / scale if best or scale == 1 else 0.0)


def test_the_other_workload_gets_the_design_of_the_main_and_intervals_hold_the_best(small_study):
    main, other = small_study[0].parts
    assert main.decision.chosen in main.decision.simulated
    assert other.design(other.decision.simulated[0]) == main.design(main.decision.chosen)
    for part in (main, other):
        decision = part.decision
        assert set(decision.model.objectives) - {"cost"} <= set(decision.corrected)
        for name in decision.corrected:
            low, best, high = (decision.table[f"{name}{end}"] for end in ("_low", "", "_high"))
            assert ((low <= best) & (best <= high)).all(), name


def test_a_trace_is_simulated_whole_however_few_packets_are_asked_for(small_study):
    study = small_study[0]
    (part,) = (part for part in study.parts if part.name == "small-packets")
    trace = part.model.space.base.workload.arrivals.trace
    assert study.runs.packets < len(trace)
    packets = {one.effort["packets per replication"] for one in part.decision.results.values()}
    assert packets == {2 * len(trace)}  # a rotation before the one that is measured
    said = f"{2 * len(trace)} packets per replication in whole rotations of the trace"
    assert said in " ".join(whole_text(study, "study").split())


def test_summary_is_plain_json_and_the_text_has_the_screens_first(small_study):
    study, out = small_study
    saved = json.loads((out / SUMMARY).read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert [workload["name"] for workload in saved["workloads"]] == ["large-packets", "small-packets"]
    front = saved["workloads"][0]["front"]
    assert [one["design"] for one in front] == [
        study.parts[0].design(k) for k in study.parts[0].decision.front
    ]
    assert all(design["stable"] for design in front) and set(saved["files"]) == FILES
    text, everything = study_text(study, str(out)), (out / "study.txt").read_text(encoding="utf-8")
    assert everything.startswith(text)
    titles = [section.title for part in study.parts for section in part_sections(part)]
    assert {"Pareto front", "How far to trust it"} <= set(titles)
    assert all(f"{title}, " in everything and title not in text for title in titles)


def test_goals_are_conditions_and_chosen_fields_alone_vary(small_specs):
    main = {"large-packets": small_specs["large-packets"]}
    goals = {"minimize": "cost", "subject_to": ["packet_latency_p99 < 2us"]}
    model = explore_case(main, goals=goals, budget_seconds=0).parts[0].model
    table = model.table
    good = table["stable"] & (table["packet_latency_p99"] < 2000) & (table["overflow_probability"] <= 1e-3)
    assert (model.feasible == good).all() and 0 < good.sum() < len(good)
    assert table["cost"][model.knee] == table["cost"][good].min()
    with pytest.raises(ValueError, match="minimize must name a metric or field .*; did you mean 'cost'"):
        explore_case(main, goals={"minimize": "cots"}, budget_seconds=0)
    choices = {"dram.channels": [2, 4], "banks": [4, 8]}
    study = explore_case({"mine": default_processor()}, choices=choices, budget_seconds=0)
    space = study.parts[0].model.space
    assert space.size == 4 and space.choices["channels"] == (2, 4)
    assert "Best   channels " in study_text(study, "study")


def test_a_loaded_study_gives_the_designs_back(small_study, small_specs):
    study, out = small_study
    parts = load_study(out)
    assert [part.name for part in parts] == list(small_specs)
    for saved, part in zip(parts, study.parts, strict=True):
        assert saved.runs == replace(study.runs, workers=None)
        assert saved.space.spec(17) == part.model.space.spec(17)
        assert list(saved.space.choices) == list(CHOICES)


def test_saving_twice_gives_the_same_files_and_failing_leaves_the_old(small_study, tmp_path, monkeypatch):
    study, out = small_study
    save_study(study, tmp_path)
    for name in FILES - {"study.txt", "report.html", SUMMARY}:  # these name the directory and the times
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(study):
        raise OSError("disk full")

    monkeypatch.setattr("cases.study.files.page", fail)
    with pytest.raises(OSError, match="disk full"):
        save_study(study, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_files_that_a_new_study_does_not_have_are_removed(small_specs, small_study, tmp_path):
    save_study(small_study[0], tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    main = {"large-packets": small_specs["large-packets"]}
    save_study(explore_case(main, budget_seconds=0), tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert "notes.txt" in left and "designs-large-packets.csv" in left
    assert not left & {"designs-small-packets.csv", "simulated.csv"}


def test_a_study_in_which_nothing_keeps_up_names_the_nearest_design(overloaded_study, tmp_path):
    text = " ".join(study_text(overloaded_study, "study").split())
    assert "Best none: no design is feasible" in text
    assert re.search(r"Near design \d+ .* Misses does not keep up: [a-z ]+ \d+ %", text)
    save_study(overloaded_study, tmp_path)
    saved = json.loads((tmp_path / SUMMARY).read_text(encoding="utf-8"))["workloads"][0]
    assert (saved["knee"], saved["front"]) == (None, [])
    assert f"design {saved['screen']['nearest']['design']} " in text
    rows = read_csv(tmp_path / "designs-large-packets.csv")
    assert {row["packet_latency [ns]"] for row in rows} == {"inf"}


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_is_told_the_choice_of_the_model_before_it_is_simulated(
    small_specs, tmp_path, monkeypatch, capsys, terminal
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    name, spec = "large-packets", small_specs["large-packets"]
    (part,) = explore_case({name: spec}, points=1, budget_seconds=None, runs=RUNS, out=tmp_path).parts
    verdict = model_verdict(part.model)
    assert f"design {part.design(part.model.knee)} " in verdict and "latency p99" in verdict
    assert (f"{name}: {verdict}; simulations" in capsys.readouterr().err) is terminal
    lead = part.decision.rivals_lead
    assert (lead > TIED) == bool(len(part.decision.rivals))
    assert len(part.decision.rivals) == 0 or f"by up to {100 * lead:.2g} % of" in " ".join(
        Screen(part=part).text().split()
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "out must be a directory when designs are simulated, got None"),
        ({"points": -1}, "points must be a whole number >= 0, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(small_specs, options, message):
    with pytest.raises(ValueError, match=message):
        explore_case(small_specs, **options)


def test_trace_that_is_in_no_file_is_refused_before_any_work(monkeypatch):
    trace = Trace(times_ns=[0, 10, 20], bytes=[64, 64, 64], source="by hand")
    spec = replace_fields(default_processor("large-packets"), {"workload": Workload.from_trace(trace)})
    monkeypatch.setattr("cases.study.study.explore", lambda *a, **k: pytest.fail("too late"))
    with pytest.raises(ValueError, match="the trace is from 'by hand', which is not a file"):
        explore_case({"mine": spec}, budget_seconds=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no study: study.json cannot be read: No such file"),
        ("{", "study.json: damaged: not valid JSON"),
        ("[]", "study.json: not a study of format 3"),
        ('{"format": 1}', "study.json: not a study of format 3"),
        ('{"format": 3}', "study.json: damaged: incomplete"),
        ('{"format": 3, "simulation": {}, "workloads": [{}]}', "study.json: damaged: incomplete"),
    ],
)
def test_what_is_no_study_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / SUMMARY).write_text(content)
    with pytest.raises(ValueError, match=message):
        load_study(tmp_path)


def test_trace_that_changed_is_noticed(small_specs, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("time,bytes\n0.0,64\n1e-6,1500\n3e-6,64\n")
    toml = f"[workload.arrivals]\nkind = 'recorded'\ntrace = '{path}'\n"
    spec = study_files.spec_from_toml(toml)
    specs = {"mine": replace_fields(spec, {"channels": 2})}
    save_study(explore_case(specs, given=["channels"], budget_seconds=0), tmp_path / "out")
    base = load_study(tmp_path / "out")[0].space.base
    assert np.array_equal(base.workload.arrivals.trace.bytes, [64, 1500, 64])
    path.write_text("time,bytes\n0.0,64\n1e-6,1500\n3e-6,128\n")
    with pytest.raises(ValueError, match="the trace of workload 'mine' has changed since the study was made"):
        load_study(tmp_path / "out")


class Interrupted(Runs):
    """Runs that the user stops once so many are finished."""

    def simulate(self, specs, *, progress=None, **options):
        def stop(done, total):
            if done >= OF_A_DESIGN + 1:
                raise KeyboardInterrupt

        return super().simulate(specs, progress=stop, **options)


def test_an_interrupted_study_keeps_what_is_done_and_resumes(model, tmp_path, monkeypatch):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)
    options = {"budget_seconds": None, "points": 4}
    stopping = Interrupted(packets=1000, replications=2, seed=5)
    partial, _ = decided(model, stopping, out=tmp_path / "a", **options)
    whole, _ = decided(model, RUNS, out=tmp_path / "a", **options)
    # The first batch is one design; of the second one is finished when the user stops.
    assert partial.interrupted and not whole.interrupted
    assert partial.simulated.tolist() == whole.simulated[:2].tolist() and len(whole.simulated) == 4
    assert partial.chosen in partial.simulated and whole.chosen in whole.simulated
    fresh, _ = decided(model, replace(RUNS, workers=1), out=tmp_path / "b", **options)
    for name, column in whole.table.items():
        assert np.array_equal(fresh.table[name], column), name


def test_the_length_given_is_that_of_any_kind(monkeypatch):
    seen = []
    monkeypatch.setattr("validate.simulate", lambda specs, **options: seen.append(options.get("packets")))
    for runs in (Runs(), Runs(packets=2000)):
        runs.simulate([PacketProcessor()])
        runs.simulate(Noc())
    assert seen == [PACKETS, None, 2000, 2000]


def test_other_runs_are_not_taken_from_the_store(small_specs, tmp_path):
    spec = default_space(small_specs["large-packets"]).spec(0)

    def found(**changes):
        seen = []
        runs = replace(RUNS, **changes)
        runs.simulate(spec, store=tmp_path / "store", progress=lambda done, total: seen.append(done))
        return seen[0]

    assert [found(), found(workers=7), found(packets=1001), found(seed=6), found(replications=3)] == [
        0, OF_A_DESIGN, 0, 0, OF_A_DESIGN,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"packets": 999}, "packets must be a whole number >= 1000, got 999"),
        ({"replications": 1}, "replications must be a whole number >= 2, got 1"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"workers": 0}, "workers must be a whole number >= 1, got 0"),
    ],
)
def test_runs_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Runs(**arguments)


class Saturating(Runs):
    """Runs in which designs of a single trial do not keep up, whatever the model says."""

    def simulate(self, specs, **options):
        endless = exactly(np.inf, confidence=0.9)
        metrics = dict.fromkeys(LATENCIES, endless)
        return [
            replace(one, stable=False, metrics={**one.metrics, **metrics})
            if one.spec.free_list.alloc_trial_count == 1
            else one
            for one in super().simulate(specs, **options)
        ]


def test_designs_that_saturate_in_their_simulation_are_not_starred(model, tmp_path):
    runs = Saturating(packets=1000, replications=2)
    decision, _ = decided(model, runs, out=tmp_path, budget_seconds=None, points=4)
    full = {row for row, one in decision.results.items() if one.stable is False}
    assert full and set(decision.contradicted.tolist()) == {row for row in full if model.feasible[row]}
    assert decision.chosen in decision.results and decision.chosen not in full
    (said,) = (line for line in trust(decision).lines if line.startswith("feasible by only one of"))
    named = set(said.partition(": ")[2].split(", "))
    assert {str(model.table["design"][row]) for row in decision.contradicted} <= named


def test_the_trace_is_described_and_the_description_follows_it(tmp_path):
    rng = np.random.default_rng(4)
    times = np.cumsum(rng.exponential(100e-9, size=2000))
    late = np.concatenate([[0.0], 1.5 * times[-1] + times[1:]])
    texts = []
    for k, found_times in enumerate((late, times - times[0])):
        path = tmp_path / f"{k}.csv"
        rows = [f"{time:.12f},{64 + 500 * (k % 3)}" for k, time in enumerate(found_times)]
        path.write_text("time,bytes\n" + "\n".join(rows) + "\n")
        recorded = {"kind": "recorded", "trace": str(path)}
        overrides = {"workload.arrivals": recorded, "workload.sizes": "imix"}
        spec = from_toml(DATA / "small-packets.toml", PacketProcessor, overrides=overrides)
        found, section = spec.workload.arrivals.trace.statistics, trace_section(spec.workload)
        texts.append(section.text())
        assert " ".join(f"{share:.2f}" for share in found.byte_share) in texts[-1]
        assert [row[1] for row in section.rows] == found.packet_dispersion.tolist()
        assert trace_summary(spec.workload)["peak_to_mean"] == found.peak_to_mean
    assert "0.00 0.00 0.00" in texts[0] and "0.00 0.00 0.00" not in texts[1]
    assert trace_section(replace(spec.workload, arrivals=type(PacketProcessor().workload.arrivals)())) is None


def test_a_space_names_fields_as_they_were_given():
    assert list(space_of(Noc(), {"link_width": [8, 16], "router.buffer_flits": [4, 8]}).choices) == [
        "link_width", "router.buffer_flits",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="--vary must name a field and its choices"):
        space_of(Noc())
