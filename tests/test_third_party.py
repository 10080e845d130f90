"""A device from outside: a package with a closed form and a simulator of its own, through all verbs."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PACKAGE = '''
"""A toll booth: cars queue in front of one collector."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.kind import Kind
from qmodels.systems.spec.metrics import Metric, MetricNames
from validate.campaigns.experiment import Experiment, Job
from validate.estimates.intervals import mean_interval


@dataclass(frozen=True, kw_only=True)
class TollBooth:
    """Poisson cars and exponential payments.

    Parameters
    ----------
    cars_per_minute : float
        Cars that come. [1/min]
    minutes : float
        Mean time of a payment. [min]
    """

    cars_per_minute: float = 2.0
    minutes: float = 0.25

    metric_names: ClassVar[MetricNames] = MetricNames(("car_delay", "utilization"))

    def __post_init__(self):
        if not self.minutes > 0:
            raise ValueError(f"minutes must be > 0, got {self.minutes!r}")


def solve_booth(spec):
    load = spec.cars_per_minute * spec.minutes
    delay = spec.minutes / (1 - load) if load < 1 else float("inf")
    return Answer(
        model="M/M/1",
        spec=spec,
        metrics={"car_delay": delay, "utilization": min(load, 1.0)},
        utilization={"collector": min(load, 1.0)},
        traffic_intensity={"collector": load},
        bottleneck="collector",
        stable=load < 1,
    )


@dataclass(frozen=True, kw_only=True)
class BoothJob(Job):
    cars: int


def run_replication(job):
    """Lindley's recursion."""
    rng = np.random.default_rng([job.seed, job.replication])
    gaps = rng.exponential(1 / job.spec.cars_per_minute, job.cars)
    pays = rng.exponential(job.spec.minutes, job.cars)
    wait, total = 0.0, 0.0
    for gap, pay in zip(gaps, pays):
        wait = max(0.0, wait - gap)
        total += wait + pay
        wait += pay
    return BoothRun(delay=total / job.cars, busy=float(pays.sum() / gaps.sum()))


@dataclass(frozen=True, kw_only=True)
class BoothRun:
    delay: float
    busy: float


@dataclass(frozen=True, kw_only=True)
class BoothExperiment(Experiment):
    cars: int = 20_000

    job_type = BoothJob
    run_type = BoothRun
    precise = ("car_delay",)
    run_replication = staticmethod(run_replication)

    def summarize(self, runs, *, replications, seconds):
        values = {"car_delay": [run.delay for _, run in runs], "utilization": [run.busy for _, run in runs]}
        metrics = {name: mean_interval(one, confidence=self.confidence) for name, one in values.items()}
        return Answer.of_runs(
            spec=self.spec,
            metrics=metrics,
            utilization={"collector": metrics["utilization"]},
            bottleneck="collector",
            effort={"cars": self.cars},
            seed=self.seed,
            replications=replications,
            seconds=seconds,
        )


KIND = Kind(
    name="toll-booth",
    spec=lambda: TollBooth,
    starter=TollBooth,
    model=lambda: solve_booth,
    simulator=lambda: BoothExperiment,
    metrics={"car_delay": Metric("min", "from coming to leaving")},
)
'''

USE = """
import qmodels as qm
from optimize import Space, explore
from toll import TollBooth
from validate import compare, simulate
from qmodels.systems.spec.kind import kind_named, kinds
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.spec.describe import describe, init
from qmodels.systems.spec.describe import json_schema

booth = TollBooth()
assert "toll-booth" in kinds() and kind_named("toll-booth").spec() is TollBooth
answer = qm.solve(booth)
assert answer.car_delay == 0.5 and answer.units["car_delay"] == "min" and "collector" in repr(answer)
found = simulate(booth, replications=8, cars=20_000, store="store.sqlite")
again = simulate(booth, replications=8, cars=20_000, store="store.sqlite")
assert again.seconds == 0 and again.metrics == found.metrics
rows = compare(booth, reference=found).rows
assert rows["car_delay"].unit == "min" and abs(rows["car_delay"].relative_error) < 0.1
assert spec_from_toml(to_toml(booth, kind=True)) == booth == spec_from_toml(init("toll-booth"))
assert all(row.meaning for row in describe("toll-booth")) and json_schema("toll-booth")
front = explore(Space(booth, minutes=[0.1, 0.2, 0.3]), qm.solve, minimize=["car_delay"])
path = answer.save("answer.json")
assert qm.load(path).car_delay == 0.5
print("all verbs")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that has the package as an installer leaves it."""
    site = tmp_path_factory.mktemp("site")
    (site / "toll.py").write_text(PACKAGE)
    info = site / "toll-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toll\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[qmodels.kinds]\ntoll-booth = toll:KIND\n")
    return site


def run(installed, folder, *words):
    path = os.pathsep.join([str(installed), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_device_from_outside_goes_through_all_verbs(installed, tmp_path):
    assert run(installed, tmp_path, "-c", USE) == "all verbs\n"


COMMANDS = """
import contextlib, io, json, sys
from cases.cli.main import main
for line in sys.stdin:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main(json.loads(line))
    print(json.dumps(out.getvalue()), flush=True)
"""


@contextlib.contextmanager
def command(installed, folder):
    """The command, in one process that knows what is installed."""
    path = os.pathsep.join([str(installed), str(ROOT)])
    with subprocess.Popen(
        [sys.executable, "-c", COMMANDS],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:

        def qmodels(*words):
            process.stdin.write(json.dumps(words) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield qmodels


def test_and_through_the_command_line(installed, tmp_path):
    with command(installed, tmp_path) as qmodels:
        (tmp_path / "booth.toml").write_text(qmodels("init", "toll-booth"))
        assert "car_delay" in qmodels("solve", "booth.toml")
        assert json.loads(qmodels("solve", "booth.toml", "--set", "minutes=0.4", "--json"))
        assert "car delay" in qmodels("compare", "booth.toml", "--replications", "2")
        assert "minutes" in qmodels("describe", "toll-booth")
        vary = ("--vary", "minutes=0.1,0.2", "--minimize", "car_delay", "--out", "study")
        assert "0.1" in qmodels("explore", "booth.toml", *vary)
