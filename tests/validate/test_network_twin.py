"""The kernel against a simulator in plain Python, visit by visit, and against itself uncompiled."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, single_station, tandem
from qmodels.laws import Deterministic, Empirical, Erlang, Exponential, Geometric
from qmodels.systems.stations.parts import ForkJoin
from validate import simulate
from validate.network.replication import OUTCOMES, NetworkJob, run_replication, visit_records

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("network_twin", Path(__file__).parent / "network_twin.py")
assert _SPEC is not None and _SPEC.loader is not None
twin = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(twin)


def exponential(mean):
    return Exponential(mean=mean)


MIXED = QueueingNetwork(
    stations=[
        Station(name="in", service={"a": exponential(0.4), "b": Erlang(mean=0.5, phases=2)}, servers=2),
        Station(name="core", service=exponential(0.5), discipline="priority", capacity=6),
        Station(name="out", service=Deterministic(mean=0.3)),
    ],
    classes=[
        JobClass(name="a", arrivals=exponential(1.0), batch=Empirical(values=[1, 3]), priority=1),
        JobClass(name="b", arrivals=Erlang(mean=1.5, phases=3), entry={"in": 0.5, "core": 0.5}),
    ],
    routing={
        "in": {"core": 0.8},
        ("core", "a"): {("out", "b"): 0.5, "out": 0.25},
        ("core", "b"): "out",
        "out": {"in": 0.1},
    },
)


@pytest.mark.parametrize(
    "spec",
    [
        single_station(arrivals=exponential(1.1), service=exponential(1.0)),
        single_station(
            arrivals=exponential(0.4), service=exponential(1.0), servers=3, patience=exponential(2.0)
        ),
        single_station(arrivals=Geometric(mean=3), service=Geometric(mean=2), capacity=4, clocked=True),
        MIXED,
    ],
    ids=["M/M/1", "M/M/3+M", "Geo/Geo/1/4", "network"],
)
def test_visit_by_visit(spec):
    expected = twin.visits(spec, 2000, seed=4)
    (found,) = visit_records(spec, passages=2000, seed=4)
    assert len(found) == len(expected)
    for row, (job, k, node, arrived, started, left, outcome) in zip(found, expected, strict=True):
        assert (row["job"], row["job_class"], row["node"], OUTCOMES[int(row["outcome"])]) == (
            job,
            k,
            node,
            outcome,
        )
        # To the last bit: the same additions in the same order.
        assert (row["arrived"], row["left"]) == (arrived, left)
        assert isnan(row["started"]) if started is None else row["started"] == started


EVERYTHING = {
    "fork": QueueingNetwork(
        stations=[Station(name=n, service=exponential(1.0)) for n in "ab"],
        forks=[ForkJoin(name="f", branches=["a", ("b", "a")])],
        classes=JobClass(arrivals=exponential(4.0), entry="f"),
    ),
    "blocking": tandem(
        arrivals=exponential(1.0),
        services=[exponential(0.9)] * 3,
        capacity=[4, 2, 2],
        when_full="after-service",
    ),
    "before": tandem(
        arrivals=exponential(1.0),
        services=[exponential(0.9)] * 3,
        capacity=[4, 2, 2],
        when_full="before-service",
    ),
    "sharing": single_station(arrivals=exponential(1.3), service=exponential(1.0), discipline="sharing"),
    "preemptive": QueueingNetwork(
        stations=Station(name="s", service=exponential(1.0), discipline="priority-preemptive", servers=2),
        classes=[JobClass(name=n, arrivals=exponential(1.4), priority=p) for p, n in enumerate("ab")],
    ),
}
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from test_network_twin import EVERYTHING, everything_that_is_counted
with np.errstate(over="ignore"):
    for spec in EVERYTHING.values():
        print(everything_that_is_counted(spec))
"""


def everything_that_is_counted(spec):
    run = run_replication(NetworkJob(spec=spec, seed=3, replication=0, passages=400))
    arrays = (run.visits, run.passages, run.blocked, run.bins, run.counts, run.numbers)
    return f"{run.events} " + b"".join(array.tobytes() for array in arrays).hex()


def test_compiled_and_plain_python_agree_to_the_last_bit():
    plain = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(folder=str(Path(__file__).parent))],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert plain.splitlines() == [everything_that_is_counted(spec) for spec in EVERYTHING.values()]


def test_records_come_in_blocks_of_the_same_rows():
    whole = np.concatenate(list(visit_records(MIXED, passages=3000, seed=1)))
    blocks = list(visit_records(MIXED, passages=3000, seed=1, rows=500))
    assert len(blocks) > 5
    assert np.concatenate(blocks).tobytes() == whole.tobytes()


def test_records_and_estimates_tell_of_the_same_run():
    spec = single_station(arrivals=exponential(1.25), service=exponential(1.0))
    result = simulate(spec, passages=20_000, replications=2, seed=9)
    waits = []
    for replication in (0, 1):
        rows = np.concatenate(list(visit_records(spec, passages=25_000, seed=9, replication=replication)))
        waits.append((rows["started"] - rows["arrived"])[5000:])
    assert np.mean(waits) == pytest.approx(result["mean_waiting_time"].best, rel=1e-9)
