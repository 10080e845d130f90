"""A study in memory and on disk."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from cases.study import files as study_files
from cases.study.files import SUMMARY, load_study, save_study
from cases.study.packet_processor import CHOICES, default_processor
from cases.study.run import STORE, explore_case
from cases.study.words.findings import full_text, part_sections
from cases.study.words.screen import study_text
from cases.tables import heading
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.metrics import METRICS
from qmodels.systems.traffic.trace import Trace
from qmodels.systems.traffic.workload import Workload

NAMES = PacketProcessor.metric_names.both
FILES = {
    "designs-large-packets.csv",
    "designs-small-packets.csv",
    "simulated.csv",
    "errors.csv",
    "study.txt",
    "report.html",
    "front.png",
    "front.svg",
    "errors.png",
    "errors.svg",
    "traffic.png",
    "traffic.svg",
    SUMMARY,
    STORE,
}


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_directory_has_these_files_and_no_others(small_study):
    _, out = small_study
    assert {path.name for path in out.iterdir()} == FILES


def test_every_design_is_in_the_table_with_units(small_study):
    study, out = small_study
    rows = read_csv(out / "designs-large-packets.csv")
    table = study.parts[0].analysis.exploration.table
    assert len(rows) == len(table["design"]) == 80
    for name in NAMES:
        assert [float(row[heading(name)]) for row in rows] == table[name].tolist()
    assert sum(row["knee"] == "True" for row in rows) == 1
    assert sum(row["simulated"] == "True" for row in rows) == len(study.parts[0].check.rows)


def test_simulated_table_is_tidy(small_study):
    study, out = small_study
    rows = read_csv(out / "simulated.csv")
    assert len(rows) == len(NAMES) * sum(len(part.check.rows) for part in study.parts)
    for row in rows:
        assert float(row["low"]) <= float(row["simulated"]) <= float(row["high"])
        assert row["unit"] == METRICS[row["metric"]].unit


def test_each_workload_gets_points_and_the_other_the_design_of_the_main(small_study):
    study, _ = small_study
    main, other = study.parts
    assert len(main.decision.simulated) == 4 and main.decision.chosen in main.decision.simulated
    assert main.check.rows.tolist() == sorted(main.decision.simulated)
    chosen = main.decision.table["design"][main.decision.chosen]
    assert other.decision.table["design"][other.decision.simulated[0]] == chosen


def test_a_trace_is_simulated_whole_however_few_packets_are_asked_for(small_study):
    (part,) = (part for part in small_study[0].parts if part.name == "small-packets")
    trace = part.analysis.exploration.space.base.workload.arrivals.trace
    assert small_study[0].runs.packets < len(trace)
    packets = {one.effort["packets per replication"] for one in part.decision.results.values()}
    assert packets == {2 * len(trace)}  # a rotation before the one that is measured
    assert f"{2 * len(trace)} packets per replication in whole rotations of the trace" in " ".join(
        full_text(small_study[0]).split()
    )


def test_corrected_numbers_have_intervals_around_them(small_study):
    for part in small_study[0].parts:
        decision = part.decision
        assert set(decision.model.objectives) - {"cost"} <= set(decision.corrected)
        for name in decision.corrected:
            low, best, high = (decision.table[f"{name}{end}"] for end in ("_low", "", "_high"))
            assert ((low <= best) & (best <= high)).all(), name


def test_summary_is_plain_json(small_study):
    study, out = small_study
    text = (out / SUMMARY).read_text(encoding="utf-8")
    saved = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert [workload["name"] for workload in saved["workloads"]] == ["large-packets", "small-packets"]
    front = saved["workloads"][0]["front"]
    assert len(front) == len(study.parts[0].analysis.exploration.front)
    assert all(design["stable"] for design in front)
    assert set(saved["workloads"][0]["errors"]["all"]) == set(NAMES)
    assert set(saved["files"]) == FILES - {STORE}


def test_the_file_has_the_screens_first_then_the_rest(small_study):
    study, out = small_study
    text, everything = study_text(study, str(out)), (out / "study.txt").read_text(encoding="utf-8")
    assert everything.startswith(text)
    titles = [section.title for part in study.parts for section in part_sections(part)]
    assert {
        "Pareto front",
        "How far to trust it",
        "Simulated check: analytic value | simulated value",
    } <= set(titles)
    assert all(f"{title}, " in everything and title not in text for title in titles)


def test_goals_are_taken_as_conditions(small_specs):
    main = {"large-packets": small_specs["large-packets"]}
    goals = {"minimize": "cost", "subject_to": ["packet_latency_p99 < 2us"]}
    model = explore_case(main, goals=goals, budget_seconds=0).parts[0].decision.model
    table = model.table
    assert (model.minimize, model.maximize) == (("cost",), ())
    good = table["stable"] & (table["packet_latency_p99"] < 2000) & (table["overflow_probability"] <= 1e-3)
    assert (model.feasible == good).all() and 0 < good.sum() < len(good)
    assert table["cost"][model.knee] == table["cost"][good].min()
    with pytest.raises(ValueError, match="minimize must name a metric or field .*; did you mean 'cost'"):
        explore_case(main, goals={"minimize": "cots"}, budget_seconds=0)


def test_chosen_fields_alone_vary():
    choices = {"dram.channels": [2, 4], "banks": [4, 8]}
    study = explore_case({"mine": default_processor()}, choices=choices, budget_seconds=0)
    space = study.parts[0].decision.model.space
    assert space.size == 4 and space.choices["channels"] == (2, 4)
    assert "Best   channels " in study_text(study, "study")


def test_loaded_study_gives_the_designs_back(small_study, small_specs):
    study, out = small_study
    parts = load_study(out)
    assert [part.name for part in parts] == list(small_specs)
    for saved, part in zip(parts, study.parts, strict=True):
        assert saved.runs == study.runs
        assert saved.space.spec(17) == part.analysis.exploration.space.spec(17)
        assert list(saved.space.choices) == list(CHOICES)


def test_failing_half_way_leaves_the_old_study(small_study, tmp_path, monkeypatch):
    study, _ = small_study
    save_study(study, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(study):
        raise OSError("disk full")

    monkeypatch.setattr("cases.study.page.page.page", fail)
    with pytest.raises(OSError, match="disk full"):
        save_study(study, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_saving_twice_gives_the_same_pictures_and_tables(small_study, tmp_path):
    study, out = small_study
    save_study(study, tmp_path)
    for name in FILES - {STORE, "report.html", "study.txt"}:  # these say how long searches took
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name


def test_files_that_a_new_study_does_not_have_are_removed(small_specs, small_study, tmp_path):
    study, _ = small_study
    save_study(study, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    main = {"large-packets": small_specs["large-packets"]}
    save_study(explore_case(main, budget_seconds=0), tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert "notes.txt" in left
    assert not left & {"designs-small-packets.csv", "simulated.csv", "errors.csv", "errors.png"}
    assert "designs-large-packets.csv" in left


def test_a_study_in_which_nothing_keeps_up(overloaded_study, tmp_path):
    text = " ".join(study_text(overloaded_study, "study").split())
    assert "Best none: no design is feasible" in text
    assert re.search(r"Near design \d+ .*does not keep up; [a-z ]+ \d+ %", text)
    save_study(overloaded_study, tmp_path)
    saved = json.loads((tmp_path / SUMMARY).read_text(encoding="utf-8"))["workloads"][0]
    assert (saved["knee"], saved["front"]) == (None, [])
    assert saved["saturated"] == saved["designs"]
    rows = read_csv(tmp_path / "designs-large-packets.csv")
    assert {row["packet_latency [ns]"] for row in rows} == {"inf"}


def test_store_is_required_to_simulate(small_specs):
    with pytest.raises(
        ValueError, match="store must be the path of a file when designs are simulated, got None"
    ):
        explore_case(small_specs)


def test_points_must_not_be_negative(small_specs):
    with pytest.raises(ValueError, match="points must be a whole number >= 0, got -1"):
        explore_case(small_specs, points=-1)


def test_trace_that_is_in_no_file_is_refused_before_any_work(monkeypatch):
    trace = Trace(times_ns=[0, 10, 20], bytes=[64, 64, 64], source="by hand")
    spec = replace_fields(default_processor("large-packets"), {"workload": Workload.from_trace(trace)})
    monkeypatch.setattr("cases.study.run.analyse", lambda *a, **k: pytest.fail("too late"))
    with pytest.raises(ValueError, match="the trace is from 'by hand', which is not a file"):
        explore_case({"mine": spec}, budget_seconds=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "holds no study: study.json cannot be read: No such file"),
        ("{", "study.json: damaged: not valid JSON"),
        ("[]", "study.json: not a study of format 2"),
        ('{"format": 1}', "study.json: not a study of format 2"),
        ('{"format": 2}', "study.json: damaged: incomplete"),
        ('{"format": 2, "simulation": {}, "workloads": [{}]}', "study.json: damaged: incomplete"),
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
    spec = study_files.from_toml(toml, type(small_specs["large-packets"]))
    specs = {"mine": replace_fields(spec, {"channels": 2})}
    save_study(explore_case(specs, given=["channels"], budget_seconds=0), tmp_path / "out")
    assert np.array_equal(
        load_study(tmp_path / "out")[0].space.base.workload.arrivals.trace.bytes, [64, 1500, 64]
    )
    path.write_text("time,bytes\n0.0,64\n1e-6,1500\n3e-6,128\n")
    with pytest.raises(ValueError, match="the trace of workload 'mine' has changed since the study was made"):
        load_study(tmp_path / "out")
