"""Parts from outside: a closed form with a simulation, and a measured curve, in every verb and in files."""

import csv
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import qmodels as qm
from optimize import Space, explore
from qmodels.parts import Offered
from tests.test_third_party import command, run
from validate import simulate

FOLDER = Path(__file__).parent / "parts"
FILES = sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name):
    """Return a module of the folder, which no package holds."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


SleepingAccelerator = load("sleeping_accelerator").SleepingAccelerator
MeasuredMemory = load("measured_memory").MeasuredMemory
CURVE = MeasuredMemory(gbytes=(0.0, 5.0, 10.0, 15.0), ns=(60.0, 70.0, 90.0, 150.0))
PARSER = qm.Station(service=qm.laws.Exponential(mean=5.0), servers=2)


def system(part, rate):
    """Return a flow that visits a parser and then a part."""
    flow = qm.Flow(arrivals=qm.traffic.Poisson(), rate=rate, program="visit parser\nvisit part")
    return qm.System(parts={"parser": PARSER, "part": part}, flows=flow)


@pytest.mark.parametrize("name", FILES)
def test_a_part_is_at_most_sixty_lines(name):
    assert len((FOLDER / f"{name}.py").read_text().splitlines()) <= 60


@pytest.mark.parametrize("rate", [0.001, 0.02, 0.035])
def test_the_closed_form_is_that_of_a_station_with_set_up(rate):
    # An M/D/1 with set-up is also a station of ours, whose closed form shares nothing with the part's.
    job, setup = (qm.laws.Deterministic(mean=mean) for mean in (20.0, 50.0))
    station = qm.single_station(arrivals=qm.laws.Exponential(mean=1 / rate), service=job, setup=setup)
    alone = Offered(rate=np.array([rate]), arrival_scv=np.ones(1), flows=("jobs",))
    exact = qm.solve(station)["system_response_time"]
    assert SleepingAccelerator().served(alone).response[0] == pytest.approx(exact, rel=1e-9)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("part", "rate"),
    [(SleepingAccelerator(), 0.02), (SleepingAccelerator(), 0.035), (CURVE, 0.08), (CURVE, 0.2)],
)
def test_the_model_is_that_of_the_simulation(part, rate):
    answer = qm.solve(system(part, rate))
    found = simulate(system(part, rate), replications=20, passages=20_000, confidence=0.999)
    for name in ("visit_latency[part]", "latency"):
        assert (found[name].high - found[name].low) / found[name].best < 0.03
        assert answer[name] == pytest.approx(found[name].best, rel=0.015)
    assert answer.stable and found.stable


def test_what_a_part_cannot_carry_is_an_overload():
    for part, rate in ((SleepingAccelerator(), 0.06), (CURVE, 0.25)):
        answer = qm.solve(system(part, rate))
        assert not answer.stable and np.isinf(answer.latency) and answer.bottleneck == "part"
        factor = qm.solve(system(part, rate / 2)).saturation_factor
        assert factor * rate / 2 * (20.0 if part is not CURVE else 64 / 15) == pytest.approx(1.0, rel=1e-3)


def test_explore_varies_their_fields_and_the_parts_themselves():
    base = system(SleepingAccelerator(), 0.02)
    setups = explore(Space(base, {"part.setup_ns": [10.0, 50.0, 200.0]}), qm.solve, minimize=["latency"])
    assert setups.spec(setups.front[0]).parts["part"].setup_ns == 10.0
    parts = explore(Space(base, part=[SleepingAccelerator(), CURVE]), qm.solve, minimize=["latency"])
    assert len(parts.table["latency"]) == 2 and parts.front.size == 1


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that has both as an installer leaves them."""
    site = tmp_path_factory.mktemp("site")
    for name in FILES:
        (site / f"{name}.py").write_text((FOLDER / f"{name}.py").read_text())
    info = site / "parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[qmodels.parts]\n"
        "sleeping-accelerator = sleeping_accelerator:SleepingAccelerator\n"
        "measured-memory = measured_memory:MeasuredMemory\n"
    )
    return site


TEXT = """
kind = "system"

[parts.engine]
kind = "sleeping-accelerator"
setup_ns = 30.0

[parts.memory]
gbytes = [0.0, 5.0, 10.0]
ns = [60, 70, 90]

[[flows]]
arrivals = "poisson"
rate = 0.02
program = "visit engine; visit memory"
"""

READ = """
from pathlib import Path
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
system = spec_from_toml(Path("system.toml"))
assert spec_from_toml(to_toml(system, kind=True)) == system
print("read")
"""

ASK = """
from qmodels.parts import part_types
try:
    part_types()
except ValueError as error:
    print(error)
"""


def test_files_and_the_command_line_know_installed_parts(installed, tmp_path):
    (tmp_path / "system.toml").write_text(TEXT)
    with command(installed, tmp_path) as qmodels:
        solved = json.loads(qmodels("solve", "system.toml", "--set", "engine.job_ns=10", "--json"))
        # 10 ns of work, its wait, 30 ns of set-up or what is left of it, and the latency at 1.28 GB/s.
        wait, more = 0.02 * 100 / (2 * 0.8), (30 + 0.02 * 900 / 2) / (1 + 0.02 * 30)
        assert solved["analytic"]["metrics"]["latency"] == pytest.approx(10 + wait + more + 62.56)
        described = qmodels("describe", "system", "setup_ns")
        assert "parts.*.setup_ns" in described and "Time to wake up" in described
        assert "measured-memory" in qmodels("schema", "system")
        vary = ("--vary", "engine.setup_ns=10,30", "--minimize", "latency", "--budget", "0", "--out", "study")
        qmodels("explore", "system.toml", *vary)
    with (tmp_path / "study" / "designs-system.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["latency [ns]"]) for row in rows] == sorted(float(row["latency [ns]"]) for row in rows)
    assert run(installed, tmp_path, "-c", READ) == "read\n"


def test_a_wrong_entry_point_is_refused(installed, tmp_path):
    info = tmp_path / "wrong-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    for line, message in (
        ("dram = sleeping_accelerator:SleepingAccelerator", "the part 'dram' is taken"),
        ("engine = sleeping_accelerator:Engine", "must give a dataclass that is a ServingPart"),
    ):
        (info / "entry_points.txt").write_text(f"[qmodels.parts]\n{line}\n")
        (tmp_path / "sleeping_accelerator.py").write_text((FOLDER / "sleeping_accelerator.py").read_text())
        assert message in run(tmp_path, tmp_path, "-c", ASK)
