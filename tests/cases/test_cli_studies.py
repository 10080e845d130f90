"""The command line on studies and published cases: files, resumption, a clean end whatever happens."""

import csv
import io
import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from cases.published import CASES, paper
from cases.published.paper import published_case
from cases.study.study import DIGITS

BRIEF = ["--packets", "1000", "--replications", "2", "--budget", "2s"]

FEW = [
    "--set",
    "channels=[2, 4]",
    "--set",
    "link_width=16",
    "--set",
    "slices=[0, 4]",
    "--set",
    "interleaving_step=[1, 8]",
    "--set",
    "segments=65536",
]


def process(*arguments, **options):
    """Start the command as a user does."""
    command = [sys.executable, "-m", "qmodels", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def test_explore_and_show(run, tmp_path):
    code, out, err = run("explore", *FEW, *BRIEF, "--out", "mine", "--plot", "again.pdf")
    assert (code, err) == (0, "")
    for words in (
        "small-packets, large-packets",
        "Best ",
        "for all of them",
        "Front ",
        "qmodels show mine",
        "±",
    ):
        assert words in out
    everything = (tmp_path / "mine" / "study.txt").read_text()
    for words in ("Pareto front", "How far to trust it"):
        assert words in everything and words not in out
    for path in (tmp_path / "mine").iterdir():
        assert path.stat().st_size > 0
    assert (tmp_path / "again.pdf").exists()

    study = json.loads((tmp_path / "mine" / "study.json").read_text())
    main_part = study["workloads"][0]
    assert main_part["space"]["channels"] == [2, 4]
    assert main_part["space"]["link_width"] == [16]
    assert main_part["designs"] == 2 * 5 * 2 * 2
    design = main_part["screen"]["best"]["design"]
    assert design in main_part["simulated"]

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
    text = run("show", "mine", "--design", design, "--workload", "large-packets", "--full")[1]
    assert text.startswith(f"workload large-packets, design {design}, ")
    loads = [
        float(line.split()[-2].rstrip("%"))
        for line in text[text.index("Resources") :].splitlines()[2:-1]
        if "%" in line
    ]
    assert loads


def test_explore_json_and_csv(run, toml, tmp_path):
    code, out, _ = run("explore", toml, *FEW, "--budget", "0", "--json")
    study = json.loads(out)
    assert code == 0
    assert study["workloads"][0]["simulated"] == []
    assert not (tmp_path / "study" / "simulated.sqlite").exists()
    rows = list(csv.DictReader(io.StringIO(run("explore", toml, *FEW, "--budget", "0", "--csv")[1])))
    assert [int(row["design"]) for row in rows] == [
        design["design"] for design in study["workloads"][0]["front"]
    ]


def test_explore_one_spec(run, toml, tmp_path):
    run("explore", toml, *FEW, "--budget", "0", "--subject-to", "cost <= 20 mm2", "--out", "one")
    study = json.loads((tmp_path / "one" / "study.json").read_text())
    assert [part["name"] for part in study["workloads"]] == ["router"]
    assert study["objectives"]["subject_to"] == {"overflow_probability": [None, 1e-3], "cost": [None, 20]}
    assert all(design["cost"] <= 20 for design in study["workloads"][0]["front"])


def test_overloaded_exploration_is_an_answer(run, toml):
    code, out, err = run("explore", toml, *FEW, *BRIEF, "--set", "load_factor=50", "--out", "full")
    assert (code, err) == (0, "")
    assert "Best   none: no design is feasible" in out and "does not keep up" in out


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
        assert {name: "" if value is None else str(value) for name, value in cell.items()} == row
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
    """A case that notes how it is asked; the real one on a trace is tested in test_published.py."""

    def __init__(self):
        self.asked = []

    def reproduce(self, trace, *, store):
        self.asked.append((trace, store))
        return published_case("dqm").kept()


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
    case.today = published_case("dqm").kept
    monkeypatch.setattr(paper, "paper_of", lambda name: case if name == "srp" else published_case(name))
    code, out, err = run("reproduce", "srp", *arguments)
    assert (code, err) == (0, "") and "Table 1" in out
    assert case.asked == asked
    assert f"case must be one of {', '.join(CASES)}, got 'x'" in run("reproduce", "x")[2]


@pytest.mark.usefixtures("interruptible")
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
    command = f"{sys.executable} -m qmodels solve | head -n 1"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("packet processor, analytic")
    assert ended.stderr == ""


@pytest.mark.skipif(shutil.which("script") is None, reason="no terminal to pretend")
def test_on_a_terminal_there_is_a_progress_bar(toml, tmp_path):
    words = [*map(repr, FEW), *BRIEF]
    explore = f"{sys.executable} -m qmodels explore {toml} {' '.join(words)}"
    ended = subprocess.run(
        ["script", "-qec", f"{explore} --out {tmp_path / 'out'}", "/dev/null"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0
    assert "simulation" in ended.stdout


def runs_in(store):
    """Return how many finished runs a store has; 0 while it is being made."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT COUNT(*) FROM records").fetchone()[0]
    except sqlite3.Error:
        return 0


@pytest.mark.usefixtures("interruptible")
def test_interrupted_exploration_ends_cleanly_with_what_is_done(toml, tmp_path):
    out = tmp_path / "out"
    brief = ("--packets", "2000", "--replications", "4", "--budget", "10min")
    running = process("explore", toml, *FEW, *brief, "--out", out)
    store = out / "simulated.sqlite"
    deadline = time.monotonic() + 60
    # A design has 4 open and 4 closed runs; runs are started in the order of the designs.
    while runs_in(store) < 12 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    text, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert "Preliminary: the simulations were interrupted" in text
    assert store.exists()
    study = json.loads((out / "study.json").read_text())
    assert study["interrupted"] is True
    assert study["workloads"][0]["simulated"]
