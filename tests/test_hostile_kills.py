"""Work that is killed at random moments, on a full disk, where nothing may be written, by Ctrl-C."""

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")

WORK = """
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
import qmodels as qm
from cases.cli.main import main
from qmodels.systems.spec.store import _plain
from qmodels.systems.spec.whole import whole
from validate import RunSet, calibrate, simulate
from validate.dram.experiment import DramExperiment
what, out = sys.argv[1], Path(sys.argv[2])
out.mkdir(exist_ok=True)
spec = qm.dram("DDR4-3200")
(out.parent / "begun").touch()
if what == "exploration":
    (out.parent / "spec.toml").write_text('kind = "dram"\\npreset = "DDR4-3200"\\n')
    words = ["--vary", "channels=1,2,4,8", "--vary", "arrival_rate=0.01,0.02,0.05", "--vary", "ranks=1,2"]
    goals = ["--minimize", "read_latency", "--maximize", "saturation_rate", "--budget", "0"]
    main(["explore", str(out.parent / "spec.toml"), "--out", str(out), *words, *goals])
rates = [0.005 * k for k in range(1, 9)]
specs = [replace(spec, traffic=replace(spec.traffic, arrival_rate=rate)) for rate in rates]
found = simulate(specs, accesses=2000, replications=4, store=out / "runs.sqlite")
if what == "campaign":
    found.to_csv(out / "table.csv")
else:
    latency = [one["read_latency"].best for one in found]
    runs = RunSet.from_columns(settings={"rate": rates}, metrics={"latency": latency})
    fit = calibrate(lambda rate, base, slope: {"latency": base + slope * rate}, runs,
                    {"base": (0, 500), "slope": (0, 1e5)})
    with whole(out / "table.csv") as part:
        part.write_text(repr({name: one.best for name, one in fit.parameters.items()}))
"""
"""What is killed: an exploration on the command line, a campaign, a calibration on a campaign's runs."""

TABLES = {"exploration": "designs-spec.csv", "campaign": "table.csv", "calibration": "table.csv"}


def started(*words: object, limit: int | None = None, meek: bool = False) -> subprocess.Popen[str]:
    """Start a process; with the most bytes that a file of it may have, which is its full disk.

    A meek one may not write where its user may not, even if that is root.
    """
    import ctypes
    import resource

    libc = ctypes.CDLL(None)

    def begin() -> None:
        if limit:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if meek and os.geteuid() == 0:
            libc.prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE

    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=begin if limit or meek else None,
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return exit code and standard error."""
    _, error = process.communicate(timeout=120)
    return process.returncode, error


def records(out: Path) -> list[tuple[str, str]]:
    """Return the keys and records of all stores, which must be sound."""
    rows = []
    for store in sorted(out.glob("*.sqlite")):
        with closing(sqlite3.connect(store)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            if connection.execute("SELECT name FROM sqlite_master WHERE name = 'records'").fetchone() is None:
                continue  # killed while it was made: it holds nothing yet
            rows += connection.execute("SELECT key, record FROM records ORDER BY key").fetchall()
    return rows


def killed(what: str, folder: Path, kills: int, rng: random.Random) -> None:
    """Kill the work so often, at moments from its first to its last, and compare what is left at the end."""
    whole, out = folder / "whole" / "out", folder / "killed" / "out"
    for one in (whole, out):
        one.parent.mkdir()
    process = started("-c", WORK, what, whole)
    while not (whole.parent / "begun").exists():
        time.sleep(0.001)
    begun = time.monotonic()
    assert finished(process) == (0, "")
    lasts = time.monotonic() - begun
    for _ in range(kills):
        process = started("-c", WORK, what, out)
        while not (out.parent / "begun").exists() and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, lasts))
        known = records(out) if process.poll() is not None else []
        process.send_signal(signal.SIGKILL)
        code, error = finished(process)
        assert code in (0, -signal.SIGKILL) and error == ""
        (out.parent / "begun").unlink(missing_ok=True)
        kept = records(out)
        assert set(known) <= set(kept)
        if code == 0 or rng.random() < 0.1:
            shutil.rmtree(out)  # begin anew
    assert finished(started("-c", WORK, what, out)) == (0, "")
    assert (out / TABLES[what]).read_bytes() == (whole / TABLES[what]).read_bytes()
    assert {path.name for path in out.iterdir() if path.suffix != ".sqlite"} == {
        path.name for path in whole.iterdir() if path.suffix != ".sqlite"
    }
    if what != "exploration":  # whose chunks differ with where it was stopped
        assert records(out) == records(whole)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """All kernels of the work, for moments are drawn from the time that it takes with them."""
    assert finished(started("-c", WORK, "campaign", tmp_path_factory.mktemp("kernels") / "out")) == (0, "")


@POSIX
@pytest.mark.slow
@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("what", TABLES)
def test_work_that_is_killed_loses_nothing(what, tmp_path):
    """In CI campaigns, and explorations of a space, are killed each in their own test."""
    killed(what, tmp_path, 34, random.Random(f"{what} often"))


EXPLORE = ("-m", "qmodels", "explore", "--vary", "channels=1,2", "--minimize", "read_latency")


def exploring(out: Path, **limits: Any) -> tuple[int, str]:
    """Explore a small memory into a directory."""
    spec = out.parent / "dram.toml"
    spec.write_text('kind = "dram"\npreset = "DDR4-3200"\n')
    budget = ("--maximize", "saturation_rate", "--budget", "0")
    return finished(started(*EXPLORE[:3], spec, *EXPLORE[3:], *budget, "--out", out, **limits))


@POSIX
def test_pieces_of_a_killed_save_are_taken_over(tmp_path):
    out = tmp_path / "study"
    (out / ".writing").mkdir(parents=True)
    (out / ".writing" / "designs-dram.csv").write_text("half")
    (out / ".report.html.part").write_text("half")
    assert exploring(out) == (0, "")
    assert not (out / ".writing").exists() and (out / "designs-dram.csv").read_text() != "half"


@pytest.mark.in_ci(1)
@POSIX
@pytest.mark.parametrize("size", [100, 20_000])
def test_a_full_disk_is_named_in_a_line(tmp_path, size):
    code, error = exploring(tmp_path / "study", limit=size)
    assert code == 2 and error.count("\n") == 1 and str(tmp_path / "study") in error
    assert exploring(tmp_path / "study") == (0, "")


@POSIX
@pytest.mark.skipif(
    sys.platform != "linux" and hasattr(os, "geteuid") and os.geteuid() == 0, reason="root writes everywhere"
)
def test_a_directory_that_may_not_be_written_is_named_in_a_line(tmp_path):
    out = tmp_path / "study"
    out.mkdir(mode=0o500)
    code, error = exploring(out, meek=True)
    assert code == 2 and error.count("\n") == 1 and str(out) in error
    assert not any(out.iterdir())
    out.chmod(0o700)
    assert exploring(out) == (0, "")
    kept = {file.name: file.read_bytes() for file in out.iterdir()}
    for file in (out, *out.iterdir()):  # a study that is there, and may be read only
        file.chmod(0o500 if file.is_dir() else 0o400)
    code, error = exploring(out, meek=True)
    assert code == 2 and error.count("\n") == 1 and str(out) in error, error
    assert {file.name: file.read_bytes() for file in out.iterdir()} == kept


STORING = """
import sys
import qmodels as qm
from validate import simulate
try:
    simulate(qm.dram("DDR4-3200"), accesses=2000, replications=2, store=sys.argv[1])
except ValueError as error:
    sys.exit(str(error))
"""


@POSIX
def test_a_store_that_may_not_be_written_is_named_in_a_line(tmp_path):
    store = tmp_path / "kept" / "runs.sqlite"
    store.parent.mkdir(mode=0o500)
    code, error = finished(started("-c", STORING, store, meek=True))
    assert code == 1 and error.startswith(f"store {str(store)!r} cannot be opened"), error
    store.parent.chmod(0o700)
    assert finished(started("-c", STORING, store)) == (0, "")
    for file in (store, store.parent):
        file.chmod(0o500 if file.is_dir() else 0o400)
    code, error = finished(started("-c", STORING, store, meek=True))
    # What is all there is read; or it is said which file may not be written.
    assert error.count("\n") == code and (code == 0 or str(store) in error), error


COMMANDS = (
    ("solve",), ("simulate", "--packets", "5000000"), ("compare", "--packets", "5000000"), ("explore",),
    ("show", "x", "--design", "1"), ("describe",), ("init", "noc"), ("schema", "dram"), ("conclusions",),
    ("size", "channels", "--until", "packet_latency < 2us"), ("reproduce", "ocmpi"), ("trace", "x"),
)  # fmt: skip


@pytest.mark.in_ci(2)
@POSIX
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_the_first_second_prints_no_traceback(words, tmp_path):
    extra = ("--out", tmp_path / "study") if words[0] == "explore" else ()
    # Of a loaded machine the interpreter comes to us late; what is before is not ours to tell.
    begin = time.monotonic()
    finished(started("-c", "import qmodels"))
    bare = time.monotonic() - begin
    process = started("-m", "qmodels", *words, *extra)
    time.sleep(max(2.0 * bare, random.Random(words[0]).uniform(0.3, 1.0)))
    process.send_signal(signal.SIGINT)
    code, error = finished(process)
    assert code in (0, 2, 130, -signal.SIGINT) and error.count("\n") <= 1 and "Traceback" not in error
    if "interrupted" in error:
        assert (code, error) == (130, "qmodels: error: interrupted\n")
