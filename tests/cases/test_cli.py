"""The command line: answers in every format, errors in one line, a clean end whatever happens."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cases.cli.main import app, main
from cases.published.cases import CASES
from cases.published.dqm.reproduction import kept
from cases.study.analysis import DIGITS
from cases.study.packet_processor import default_processor
from qmodels import solve
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.metrics import METRICS, is_relative

NAMES = PacketProcessor.metric_names.both
COMMANDS = ["explore", "solve", "simulate", "compare", "show", "reproduce"]
BRIEF = ["--packets", "1000", "--replications", "2"]
FEW = [
    "--set",
    "channels=[2, 4]",
    "--set",
    "link_width=16",
    "--set",
    "slices=[0, 4]",
    "--set",
    "interleaving_step=[1, 8]",
]


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in an empty directory and return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return ended.value.code, captured.out, captured.err

    return call


@pytest.fixture
def toml(tmp_path):
    """A spec in a file."""
    path = tmp_path / "router.toml"
    path.write_text('[workload]\noffered_gbps = 30\nsizes = "imix"\n[dram]\nchannels = 2\n')
    return path


@pytest.fixture
def trace(tmp_path):
    """A short trace in a file."""
    path = tmp_path / "capture.csv"
    rows = [f"{k * 1e-7:.9f},{64 if k % 3 else 1500}" for k in range(1200)]
    path.write_text("time,bytes\n" + "\n".join(rows) + "\n")
    return path


def process(*arguments, **options):
    """Start the command as a user does."""
    command = [sys.executable, "-m", "cases.cli.main", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_no_arguments_show_the_help(run, arguments):
    code, out, err = run(*arguments)
    assert code == 0
    assert all(command in out for command in COMMANDS)
    assert err == ""


def test_solve_prints_every_metric_with_its_unit(run):
    code, out, err = run("solve")
    assert (code, err) == (0, "")
    for name in NAMES:
        line = next(line for line in out.splitlines() if line.strip().startswith(name.replace("_", " ")))
        assert METRICS[name].unit == "1" or f" {METRICS[name].unit}" in line
    assert "Analytic answer, stable: " in out
    assert "Where the time goes" in out


LOADS = {0.4: True, 2.3: False}
"""Load factors of the default case: about 17 % and 96 % of the busiest resource, validated or not."""


@pytest.mark.parametrize("load", LOADS)
def test_solve_states_the_error_that_applies_in_every_format(run, load):
    """The numbers are those of the answer, and change with the load."""
    result = solve(replace_fields(default_processor(), {"load_factor": load}))
    assert bool(result.validated) is LOADS[load]
    errors = {name: error.mean for name, error in result.error.items()}
    words = ("solve", "--set", f"load_factor={load}")
    text = run(*words)[1]
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(run(*words, "--csv")[1]))}
    answer = json.loads(run(*words, "--json")[1])
    assert answer["analytic"]["measured_error"] == pytest.approx(errors)
    assert answer["analytic"]["validated"] is LOADS[load]
    assert set(answer["error_units"]) == set(errors)
    for name in NAMES:
        line = next(
            line for line in text.splitlines() if line.strip().startswith(name.replace("_", " ") + " ")
        )
        assert rows[name]["validated"] == str(LOADS[load])
        if name not in errors:
            assert rows[name]["error"] == rows[name]["error_unit"] == ""
            continue
        unit = "%" if is_relative(name) else "points"
        assert (rows[name]["error_unit"], answer["error_units"][name]) == (unit, unit)
        assert float(rows[name]["error"]) == pytest.approx(errors[name])
        bias = result.error[name].bias
        assert line.endswith(f"{errors[name]:.1f} {unit} ({bias:+.1f})")
    assert ("not validated" in text) is not LOADS[load]


def test_a_sweep_states_the_error_of_every_point(run):
    words = ("solve", "--set", "load_factor=[0.4, 2.3, 9]")
    result = solve(replace_fields(default_processor(), {"load_factor": np.array([0.4, 2.3, 9])}))
    rows = list(csv.DictReader(io.StringIO(run(*words, "--csv")[1])))
    answer = json.loads(run(*words, "--json")[1])
    for name, error in result.error.items():
        errors = np.nan_to_num(error.mean, nan=np.inf)
        unit = "%" if is_relative(name) else "points"
        assert [float(row[f"error: {name} [{unit}]"]) for row in rows] == pytest.approx(errors)
        assert answer["analytic"][f"error: {name}"][:2] == pytest.approx(errors[:2])
        assert answer["units"][f"error: {name}"] == unit
    assert [row["validated"] for row in rows] == ["True", "False", "False"]
    lines = run(*words)[1].splitlines()[2:5]
    for k, line in enumerate(lines[:2]):
        assert f" ± {result.error['packet_latency'].mean[k]:.1f} %" in line
    assert (
        "inf " in lines[2]
        and "±" not in lines[2]
        and [line.split()[-1] for line in lines] == ["yes", "no", "no"]
    )


def test_two_swept_fields_are_solved_in_all_combinations(run):
    words = ("solve", "--set", "channels=[1, 2, 4]", "--set", "load_factor=[0.5, 1.0]")
    code, out, err = run(*words, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, err) == (0, "")
    assert sorted((int(row["channels"]), float(row["load_factor"])) for row in rows) == [
        (channels, load) for channels in (1, 2, 4) for load in (0.5, 1.0)
    ]
    for row in rows:
        one = {"channels": int(row["channels"]), "load_factor": float(row["load_factor"])}
        alone = solve(replace_fields(default_processor(), one))
        assert float(row["saturation_data_rate [Gb/s]"]) == pytest.approx(alone.saturation_data_rate, 1e-4)
    # Of one length they are not paired: the answer does not depend on how many values there are.
    equal = run("solve", "--set", "channels=[1, 2]", "--set", "load_factor=[0.5, 1.0]", "--csv")[1]
    assert len(list(csv.DictReader(io.StringIO(equal)))) == 4
    both = run("solve", "--set", "noc.clock_ghz=[1, 2]", "--set", "llc.clock_ghz=[1, 2]", "--csv")[1]
    assert both.startswith("noc.clock_ghz,llc.clock_ghz,packet_latency [ns],")


def test_solve_json(run):
    code, out, _ = run("solve", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(answer["analytic"]["metrics"]) == set(answer["units"]) == set(NAMES)
    assert answer["analytic"]["stable"] is True
    parts = answer["analytic"]["latency_parts"]
    assert sum(parts.values()) == pytest.approx(answer["analytic"]["metrics"]["packet_latency"])


def test_solve_csv(run):
    _, out, _ = run("solve", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["metric"] for row in rows] == list(NAMES)
    assert [row["unit"] for row in rows] == [METRICS[name].unit for name in NAMES]


def test_two_swept_fields_that_a_spec_compares_are_solved_in_all_combinations(run):
    words = ("solve", "--set", "dram.refresh_interval_cycles=[6240, 3120]", "--csv")
    code, out, _ = run(*words, "--set", "dram.refresh_cycles=[100, 200, 300]")
    assert code == 0 and len(out.splitlines()) == 7
    code, _, error = run(*words, "--set", "dram.refresh_cycles=[100, 200, 2000]")
    assert code == 2 and "dram.refresh_interval_cycles must be at least twice" in error


def test_overload_is_an_answer(run):
    code, out, err = run("solve", "--set", "load_factor=4")
    assert (code, err) == (0, "")
    assert "saturated: " in out.splitlines()[0]
    assert int(out.splitlines()[0].rstrip(" %").split()[-1]) > 100
    assert "inf" in out
    answer = json.loads(run("solve", "--set", "load_factor=4", "--json")[1])["analytic"]
    assert answer["stable"] is False
    assert answer["metrics"]["packet_latency"] is None
    assert answer["traffic_intensity"][answer["bottleneck"]] > 1 >= max(answer["utilization"].values())


def test_settings_take_a_leaf_or_a_path(run):
    leaf = run("solve", "--json", "--set", "link_width=32")[1]
    assert leaf == run("solve", "--json", "--set", "noc.link_width=32")[1]
    assert leaf != run("solve", "--json")[1]


def test_a_sweep_is_a_table(run):
    code, out, _ = run("solve", "--csv", "--set", "load_factor=[0.5, 1.0, 9]", "--plot", "sweep.png")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [float(row["load_factor"]) for row in rows] == [0.5, 1.0, 9.0]
    assert [row["stable"] for row in rows] == ["True", "True", "False"]
    assert rows[2]["packet_latency [ns]"] == "inf"
    text = run("solve", "--set", "load_factor=[0.5, 1.0, 9]")[1]
    assert [line.split()[0] for line in text.splitlines()[2:5]] == ["0.5", "1", "9"]
    answer = json.loads(run("solve", "--json", "--set", "load_factor=[0.5, 9]")[1])["analytic"]
    assert answer["packet_latency"][1] is None
    assert answer["stable"] == [True, False]


def test_spec_file_and_trace_are_used(run, toml, trace):
    plain = json.loads(run("solve", toml, "--json")[1])["analytic"]["metrics"]
    assert plain["data_rate"] == pytest.approx(30)
    recorded = json.loads(run("solve", toml, "--trace", trace, "--json")[1])["analytic"]["metrics"]
    assert recorded["data_rate"] == pytest.approx(30)
    assert recorded["packet_latency"] != plain["packet_latency"]


def test_simulate(run, toml):
    code, out, _ = run("simulate", toml, *BRIEF, "--json")
    answer = json.loads(out)["simulated"]
    assert code == 0
    assert (answer["effort"]["packets per replication"], answer["replications"], answer["stable"]) == (
        1000,
        2,
        True,
    )
    for estimate in answer["metrics"].values():
        assert estimate["low"] <= estimate["best"] <= estimate["high"]
    assert (
        run("simulate", toml, *BRIEF, "--workers", "1", "--csv")[1]
        == run("simulate", toml, *BRIEF, "--csv")[1]
    )
    text = run("simulate", toml, *BRIEF)[1]
    assert "Simulated, stable" in text
    assert "95% intervals" in text


def test_compare(run, toml):
    code, out, _ = run("compare", toml, *BRIEF, "--json", "--plot", "parts.svg")
    answer = json.loads(out)
    assert code == 0
    row = answer["comparison"]["packet_latency"]
    assert row["error"] == pytest.approx(row["model"] - row["reference"]["best"])
    assert row["model"] == answer["analytic"]["metrics"]["packet_latency"]
    rows = list(csv.DictReader(io.StringIO(run("compare", toml, *BRIEF, "--csv")[1])))
    assert float(rows[0]["simulated"]) == row["reference"]["best"]
    text = run("compare", toml, *BRIEF)[1]
    for words in ("analytic", "simulated", "interval", "Resources by load", "Where the time goes"):
        assert words in text


def test_simulated_trace(run, trace):
    code, out, err = run("simulate", "--trace", trace, *BRIEF, "--csv")
    assert (code, err) == (0, "")
    assert out.startswith("metric,unit,simulated,low,high\n")


def test_explore_and_show(run, tmp_path):
    code, out, err = run(
        "explore", *FEW, *BRIEF, "--simulate-points", "2", "--out", "mine", "--plot", "again.pdf"
    )
    assert (code, err) == (0, "")
    for words in (
        "Pareto front (analytic)",
        "Greedy search",
        "integer programming",
        "Error of the model",
        "Files",
        "±",
    ):
        assert words in out
    for line in out[out.index("Files") :].splitlines()[1:]:
        assert (tmp_path / line.strip()).stat().st_size > 0
    assert (tmp_path / "again.pdf").exists()

    study = json.loads((tmp_path / "mine" / "study.json").read_text())
    main_part = study["workloads"][0]
    assert main_part["space"]["channels"] == [2, 4]
    assert main_part["space"]["link_width"] == [16]
    assert main_part["designs"] == 2 * 5 * 2 * 2
    design = main_part["simulated"][0]

    code, out, _ = run("show", "mine", "--design", design, "--json")
    shown = json.loads(out)
    assert code == 0
    assert (shown["workload"], shown["design"]) == ("small-packets", design)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "mine" / "simulated.csv").read_text())))
    for row in rows:
        if row["workload"] == "small-packets" and int(row["design"]) == design:
            assert shown["comparison"][row["metric"]]["reference"]["best"] == float(row["simulated"])
            assert shown["comparison"][row["metric"]]["model"] == pytest.approx(
                float(row["analytic"]), rel=10.0 ** (1 - DIGITS)
            )
    text = run("show", "mine", "--design", design, "--workload", "large-packets")[1]
    assert text.startswith(f"workload large-packets, design {design}, ")
    loads = [
        float(line.split()[-2].rstrip("%"))
        for line in text[text.index("Resources") :].splitlines()[2:-1]
        if "%" in line
    ]
    assert loads


def test_explore_json_and_csv(run, tmp_path):
    code, out, _ = run("explore", *FEW, "--no-simulate", "--json")
    study = json.loads(out)
    assert code == 0
    assert study["workloads"][0]["simulated"] is None
    assert not (tmp_path / "study" / "simulated.sqlite").exists()
    rows = list(csv.DictReader(io.StringIO(run("explore", *FEW, "--no-simulate", "--csv")[1])))
    assert [int(row["design"]) for row in rows] == [
        design["design"] for design in study["workloads"][0]["front"]
    ]
    assert all(row["front"] == "True" for row in rows)


def test_explore_one_spec(run, toml, tmp_path):
    run("explore", toml, *FEW, "--no-simulate", "--budget", "20", "--out", "one")
    study = json.loads((tmp_path / "one" / "study.json").read_text())
    assert [part["name"] for part in study["workloads"]] == ["router"]
    assert study["workloads"][0]["budget"]["cost_limit"] == 20


def test_overloaded_exploration_is_an_answer(run):
    code, out, err = run("explore", *FEW, "--set", "load_factor=50", "--out", "full")
    assert (code, err) == (0, "")
    assert "No design is feasible" in out
    assert "saturated: " in out


def test_reproduce_from_what_is_kept(run, tmp_path):
    """The text has every table, the CSV and the JSON every number of them."""
    code, out, err = run("reproduce", "dqm")
    assert (code, err) == (0, "")
    for words in ("published | model | simulated", "Table 1", "Table 4", "Greedy", "Claims", "One change"):
        assert words in out
    rows = list(csv.DictReader(io.StringIO(run("reproduce", "dqm", "--csv")[1])))
    cells = json.loads(run("reproduce", "dqm", "--json")[1])["cells"]
    assert len(rows) == len(cells) == 130
    for row, cell in zip(rows, cells, strict=True):
        assert {name: str(value) for name, value in cell.items()} == row
    assert list(tmp_path.iterdir()) == []


def test_reproduce_writes_its_files(run, tmp_path):
    code, out, _ = run("reproduce", "dqm", "--out", "mine")
    text, files = out.split("\n\nFiles\n")
    paths = [tmp_path / line.strip() for line in files.splitlines()]
    assert code == 0
    assert sorted(paths) == sorted((tmp_path / "mine").iterdir())
    assert {path.suffix for path in paths} == {".txt", ".toml", ".csv", ".png"}
    assert (tmp_path / "mine" / "dqm.txt").read_text() == text + "\n"
    code, _, err = run("reproduce", "dqm", "--out", "mine/dqm.txt")
    assert (code, err) == (2, "qmodels: error: --out must be a directory, got the file 'mine/dqm.txt'\n")


class MadeUp:
    """A case that notes how it is asked; the real one on a trace is tested in test_dqm.py."""

    def __init__(self):
        self.asked = []

    def reproduce(self, trace, *, store):
        self.asked.append((trace, store))
        return kept()


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], []),
        (["--simulate"], [(None, None)]),
        (["--trace", "a.pcap"], [(Path("a.pcap"), None)]),
        (["--simulate", "--out", "mine"], [(None, Path("mine/simulated.sqlite"))]),
    ],
)
def test_another_case_is_one_line_and_is_computed_when_asked(run, monkeypatch, arguments, asked):
    case = MadeUp()
    case.kept = kept
    monkeypatch.setitem(sys.modules, "made_up", case)
    monkeypatch.setitem(CASES, "made-up", "made_up")
    code, out, err = run("reproduce", "made-up", *arguments)
    assert (code, err) == (0, "") and "Table 1" in out
    assert case.asked == asked
    assert f"case must be one of {', '.join(CASES)}, got 'x'" in run("reproduce", "x")[2]


def test_interrupted_reproduction_keeps_what_is_done(tmp_path):
    store = tmp_path / "out" / "simulated.sqlite"
    running = process("reproduce", "dqm", "--simulate", "--out", store.parent)
    deadline = time.monotonic() + 60
    while runs_in(store) < 2 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    text, errors = running.communicate(timeout=60)
    assert (running.returncode, text) == (130, ""), errors
    said = r"qmodels: error: interrupted: \d+ of \d+ points are finished; the same call resumes\n"
    assert re.fullmatch(said, errors), errors
    assert [path.name for path in store.parent.iterdir()] == [store.name]
    assert runs_in(store) >= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "--set", "link_width=0"], "noc.link_width must be a whole number >= 1, got 0"),
        (["solve", "--set", "load_factor=-1"], "workload.load_factor must be finite and > 0, got -1"),
        (["solve", "--set", "load_factor=nan"], "workload.load_factor must be finite and > 0, got nan"),
        (["solve", "--set", "channels=17"], "dram.channels must be a whole number from 1 to 16, got 17"),
        (["solve", "--set", "initiators=8", "--set", "channels=9"], "dram.channels must leave a node"),
        (["solve", "--set", "interleaving_step=0"], "dram.interleaving_step must be a whole number >= 1"),
        (["solve", "--set", "chanels=4"], "has no field 'chanels'; did you mean 'dram.channels' or "),
        (["solve", "--set", "trials=3"], "did you mean 'cost.trial' or 'free_list.alloc_trial_count'?"),
        (["solve", "--set", "clock_ghz=1"], "field 'clock_ghz' is ambiguous: it may be "),
        (["solve", "--set", "channels"], "--set must be field=value, got 'channels'"),
        (["solve", "--set", "=4"], "--set must be field=value, got '=4'"),
        (["solve", "--set", "channels=many"], "dram.channels must be a number or a list of numbers"),
        (["solve", "missing.toml"], "missing.toml: cannot be read: No such file or directory"),
        (["solve", "--trace", "missing.pcap"], "missing.pcap: cannot be read: No such file or directory"),
        (["solve", "--json", "--csv"], "--json and --csv exclude each other"),
        (["solve", "--plot", "answer.gif"], "plot must be a file that ends in .png, .svg, .pdf, got"),
        (["solve", "--plot", "no/where.png"], "no/.where.png.part: No such file or directory"),
        (
            ["solve", "--set", "channels=[1,2]", "--set", "banks=[4,8]", "--plot", "a.png"],
            "--plot needs one design or one swept field, got dram.channels, dram.banks",
        ),
        (["simulate", "--packets", "10"], "packets must be a whole number >= 1000, got 10"),
        (["simulate", "--set", "channels=[1, 2]"], "dram.channels must be one number to be simulated"),
        (["simulate", "--replications", "1"], "replications must be a whole number >= 2, got 1"),
        (["simulate", "--packets", "many"], "Invalid value for '--packets'"),
        (["explore", "--workers", "0"], "workers must be a whole number >= 1, got 0"),
        (["explore", "--packets", "10"], "packets must be a whole number >= 1000, got 10"),
        (["explore", "--simulate-points", "-1"], "points must be a whole number >= 0, got -1"),
        (["explore", "--set", "link_width=0"], "noc.link_width must be a whole number >= 1, got 0"),
        (["explore", "--set", "load_factor=[1, 2]"], "load_factor must be one number in an exploration"),
        (["explore", "--budget", "nan"], "budget must be finite and >= 0, got nan"),
        (["reproduce", "stnoc2"], f"case must be one of {', '.join(CASES)}, got 'stnoc2'"),
        (["reproduce", "dmq"], ", got 'dmq'; did you mean 'dqm'?"),
        (["reproduce"], "Missing argument"),
        (["reproduce", "dqm", "--json", "--csv"], "--json and --csv exclude each other"),
        (["reproduce", "dqm", "--trace", "missing.pcap", "--out", "new"], "missing.pcap: cannot be read: "),
        (["show", ".", "--design", "1"], "holds no study: study.json cannot be read: No such file"),
        (["show", "."], "Missing option '--design'"),
        (["solve", "--bogus"], "No such option: --bogus"),
        (["slove"], "No such command 'slove'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_no_file(run, tmp_path, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("qmodels: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[dram]\nchanels = 4\n", "unknown key dram.chanels; did you mean 'channels'?"),
        ("[dram]\nchannels = '4'\n", "dram.channels must be a number or a list of numbers, got '4'"),
        ("[dram\n", "router.toml: not valid TOML: "),
        ("[workload]\nsizes = 'mix'\n", "workload.sizes.law must be one of"),
    ],
)
def test_bad_spec_files(run, tmp_path, content, message):
    (tmp_path / "router.toml").write_text(content)
    code, out, err = run("explore", "router.toml")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["router.toml"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (
            b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(12) + b"\x01\x00\x00\x00" + bytes(20),
            "1 packets read: cut off",
        ),
        (
            b"time,bytes\n0.0,64\nnow,64\n",
            "line 3",
        ),
    ],
)
def test_bad_traces(run, tmp_path, content, message):
    (tmp_path / "capture").write_bytes(content)
    code, out, err = run("explore", "--trace", "capture")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "capture: " in err
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["capture"]


def test_study_directory_with_other_files_is_left_alone(run, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "draft.tex").write_text("text")
    code, _, err = run("explore", "--out", "thesis")
    assert code == 2
    assert "--out must be a new or empty directory or a study, got 'thesis' with other files" in err
    code, _, err = run("explore", "--out", "thesis/draft.tex")
    assert "--out must be a directory, got the file 'thesis/draft.tex'" in err
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["draft.tex"]


def test_design_and_workload_must_exist(run, small_study):
    _, out = small_study
    assert "design must be a number from 0 to 79, got 80" in run("show", out, "--design", "80")[2]
    code, _, err = run("show", out, "--design", "1", "--workload", "mine")
    assert (code, err) == (
        2,
        "qmodels: error: --workload must be one of large-packets, small-packets, got 'mine'\n",
    )


def test_in_a_pipe_there_is_no_progress_and_a_reader_may_leave(tmp_path):
    command = f"{sys.executable} -m cases.cli.main solve | head -n 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("Analytic answer, ")
    assert ended.stderr == ""


@pytest.mark.skipif(shutil.which("script") is None, reason="no terminal to pretend")
def test_on_a_terminal_there_is_a_progress_bar(tmp_path):
    words = [*map(repr, FEW), *BRIEF, "--simulate-points", "2"]
    explore = f"{sys.executable} -m cases.cli.main explore {' '.join(words)}"
    ended = subprocess.run(
        ["script", "-qec", f"{explore} --out {tmp_path / 'out'}", "/dev/null"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0
    assert "designs simulated" in ended.stdout


def runs_in(store):
    """Return how many finished runs a store has; 0 while it is being made."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT COUNT(*) FROM records").fetchone()[0]
    except sqlite3.Error:
        return 0


def test_interrupted_exploration_ends_cleanly_with_what_is_done(tmp_path):
    out = tmp_path / "out"
    running = process("explore", *FEW, "--simulate-points", "40", "--replications", "4", "--out", out)
    store = out / "simulated.sqlite"
    deadline = time.monotonic() + 60
    # A design has 4 open and 4 closed runs; runs are started in the order of the designs.
    while runs_in(store) < 12 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    text, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert "(interrupted)" in text
    assert store.exists()
    study = json.loads((out / "study.json").read_text())
    assert study["interrupted"] is True
    assert study["workloads"][0]["simulated"]


@pytest.mark.parametrize("name", ["optimize", "validate"])
def test_a_foreign_module_of_our_name_is_named(tmp_path, name):
    (tmp_path / f"{name}.py").write_text("")
    here = os.getcwd()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), here])}
    told = f"the module {name!r} that Python finds, {tmp_path / name}.py, is not the package"
    ended = subprocess.run(
        [sys.executable, "-c", "import cases"], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1].startswith(f"ImportError: {told}")
    ended = subprocess.run(
        [sys.executable, "-m", "cases.cli.main", "solve"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith(f"qmodels: error: {told}")


@pytest.fixture
def installed(tmp_path):
    """The packages as an installation has them: all our files in one directory."""
    for name in ("cases", "qmodels", "optimize", "validate"):
        (tmp_path / name).mkdir()
        for path in Path(name).glob("*.py" if name == "cases" else "__init__.py"):
            shutil.copy(path, tmp_path / name / path.name)
    return tmp_path


FOREIGN = "from configobj.validate import *\nfrom configobj.validate import __all__\n"
"""What configobj 5.0.9 writes into ``validate/__init__.py``."""


def broken(installed, change, *words):
    """Run Python in an installation whose ``validate/__init__.py`` was changed."""
    change(installed / "validate" / "__init__.py")
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=environment, cwd=installed
    )


@pytest.mark.parametrize("command", ["--help", *COMMANDS])
def test_every_command_names_the_file_that_another_distribution_has_overwritten(installed, command):
    ended = broken(installed, lambda file: file.write_text(FOREIGN), "-m", "cases.cli.main", command)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    file = installed / "validate" / "__init__.py"
    assert ended.stderr.startswith(f"qmodels: error: another distribution has overwritten {file}, ")


def test_python_code_gets_an_import_error(installed):
    ended = broken(installed, lambda file: file.write_text(FOREIGN), "-c", "import cases")
    file = installed / "validate" / "__init__.py"
    assert ended.stderr.splitlines()[-1].startswith(
        f"ImportError: another distribution has overwritten {file}, "
    )
    ended = broken(installed, lambda file: file.unlink(), "-S", "-c", "import cases")
    assert ended.stderr.splitlines()[-1].startswith(f"ImportError: {file} of qmodels is missing, ")


def test_an_installation_in_order_is_left_alone(installed):
    ended = broken(installed, lambda file: None, "-c", "import cases")
    assert (ended.returncode, ended.stderr) == (0, "")
