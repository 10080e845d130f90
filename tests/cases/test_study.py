"""A study in memory and on disk."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest

from cases.study import files as study_files
from cases.study.advice import moved_star
from cases.study.check import Runs
from cases.study.files import SUMMARY, load_study, save_study
from cases.study.findings import part_sections, study_text
from cases.study.packet_processor import CHOICES, default_processor
from cases.study.run import STORE, explore_case
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
    "greedy.csv",
    "simulated.csv",
    "errors.csv",
    "report.html",
    "front.png",
    "front.svg",
    "errors.png",
    "errors.svg",
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


def test_main_workload_gets_points_and_the_other_both_knees(small_study):
    study, _ = small_study
    main, other = study.parts
    assert list(main.check.rows) == list(main.analysis.chosen)
    knees = {
        int(part.analysis.exploration.table["design"][part.analysis.exploration.knee]) for part in study.parts
    }
    assert set(other.check.simulated.table["design"].tolist()) == knees


def test_summary_is_plain_json(small_study):
    study, out = small_study
    text = (out / SUMMARY).read_text(encoding="utf-8")
    saved = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert [workload["name"] for workload in saved["workloads"]] == ["large-packets", "small-packets"]
    front = saved["workloads"][0]["front"]
    assert len(front) == len(study.parts[0].analysis.exploration.front)
    assert all(design["stable"] for design in front)
    assert saved["workloads"][0]["budget"]["agrees"]
    assert set(saved["workloads"][0]["errors"]["all"]) == set(NAMES)
    assert set(saved["files"]) == FILES - {STORE}


def test_text_names_units_and_marks_the_simulated(small_study):
    study, _ = small_study
    text = study_text(study)
    titles = [section.title for part in study.parts[:1] for section in part_sections(part)]
    assert all(title in text for title in titles)
    for words in (
        "latency ns",
        "saturates Gb/s",
        "energy nJ",
        "cost mm2",
        "hypervolume ratio",
        "equals the best",
        "±",
    ):
        assert words in text
    for title in ("Pareto front (analytic)", "Greedy search (analytic)", "Simulated check"):
        assert title in text
    assert moved_star(study).title in text


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
    for name in FILES - {STORE, "report.html"}:
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes(), name


def test_files_that_a_new_study_does_not_have_are_removed(small_specs, small_study, tmp_path):
    study, _ = small_study
    save_study(study, tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    main = {"large-packets": small_specs["large-packets"]}
    save_study(explore_case(main, simulate=False), tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert "notes.txt" in left
    assert not left & {"designs-small-packets.csv", "simulated.csv", "errors.csv", "errors.png"}
    assert "designs-large-packets.csv" in left


def test_a_study_in_which_nothing_keeps_up(small_specs, tmp_path):
    overloaded = {name: replace_fields(spec, {"load_factor": 100}) for name, spec in small_specs.items()}
    study = explore_case(overloaded, runs=Runs(), store=tmp_path / STORE)
    text = study_text(study)
    assert "No design is feasible" in text
    assert re.search(r"saturated: [a-z ]+ at \d+ %", text)
    save_study(study, tmp_path)
    saved = json.loads((tmp_path / SUMMARY).read_text(encoding="utf-8"))["workloads"][0]
    assert (saved["knee"], saved["front"], saved["budget"]) == (None, [], None)
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
        explore_case(small_specs, points=-1, simulate=False)


def test_trace_that_is_in_no_file_is_refused_before_any_work(monkeypatch):
    trace = Trace(times_ns=[0, 10, 20], bytes=[64, 64, 64], source="by hand")
    spec = replace_fields(default_processor("large-packets"), {"workload": Workload.from_trace(trace)})
    monkeypatch.setattr("cases.study.run.analyse", lambda *a, **k: pytest.fail("too late"))
    with pytest.raises(ValueError, match="the trace is from 'by hand', which is not a file"):
        explore_case({"mine": spec}, simulate=False)


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
    save_study(explore_case(specs, given=["channels"], simulate=False), tmp_path / "out")
    assert np.array_equal(
        load_study(tmp_path / "out")[0].space.base.workload.arrivals.trace.bytes, [64, 1500, 64]
    )
    path.write_text("time,bytes\n0.0,64\n1e-6,1500\n3e-6,128\n")
    with pytest.raises(ValueError, match="the trace of workload 'mine' has changed since the study was made"):
        load_study(tmp_path / "out")
