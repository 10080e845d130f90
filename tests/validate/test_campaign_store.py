"""Campaigns that are stopped, killed, repeated and shared: nothing finished is run again."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_array_equal

from qmodels.systems.spec import kind
from qmodels.systems.spec.store import ResultStore
from validate import CampaignInterrupted, simulate
from validate.campaigns import experiment as campaign_store
from validate.campaigns.experiment import decode, encode, keys_of
from validate.packet_processor import Job, Run, run_replication

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[2]


@pytest.fixture
def toy(monkeypatch, tmp_path):
    """Return the toy simulator's module; every run it begins is a line of ``log``."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    import toy_simulator

    monkeypatch.setattr(kind, "entry_points", kind.entry_points)
    toy_simulator.register()
    yield toy_simulator
    monkeypatch.undo()
    toy_simulator.forget()
    sys.modules.pop("toy_simulator")


def begun(folder):
    """Return the runs that were begun since the last call."""
    log = folder / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines


def stored(store):
    """Return the keys of the runs that are committed; none while the store is being made."""
    try:
        with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return {key for (key,) in connection.execute("SELECT key FROM records")}
    except sqlite3.OperationalError:
        return set()


def test_what_is_stored_is_not_run_again(toy, tmp_path):
    store = tmp_path / "store"
    specs = [toy.Toy(mean=mean) for mean in (1.0, 2.0)]
    first = simulate(specs, replications=3, store=store)
    assert len(begun(tmp_path)) == first.simulated == 6
    again = simulate(specs, replications=3, store=store)
    assert begun(tmp_path) == [] and (again.simulated, again.restored) == (0, 6)
    for one, other in zip(first, again, strict=True):
        assert one.metrics == other.metrics and other.seconds == 0.0
        assert_array_equal(one.values, other.values)
    # More points, more replications, or precision: only what is new.
    simulate([*specs, toy.Toy(mean=3.0)], replications=4, store=store)
    assert sorted(begun(tmp_path)) == ["1 3", "2 3", "3 0", "3 1", "3 2", "3 3"]
    precise = simulate(specs[0], replications=2, precision=1e-9, max_replications=12, store=store)
    assert sorted(begun(tmp_path)) == [f"1 {k}" for k in (10, 11, 4, 5, 6, 7, 8, 9)]
    assert precise.replications == 12
    assert simulate(specs[0], precision=1e-9, max_replications=12, store=store).replications == 12
    assert begun(tmp_path) == []


def test_anything_else_is_another_run(toy, tmp_path, monkeypatch):
    options = {"store": tmp_path / "store", "replications": 2}
    simulate(toy.Toy(), **options)
    assert len(begun(tmp_path)) == 2
    for spec, change in ((toy.Toy(), {"seed": 1}), (toy.Toy(), {"size": 6}), (toy.Toy(spread=2.0), {})):
        simulate(spec, **options, **change)
        assert len(begun(tmp_path)) == 2
    simulate(toy.Toy(), confidence=0.99, **options)
    assert begun(tmp_path) == []  # an interval is made from the runs
    monkeypatch.setattr(campaign_store, "simulators", lambda: "an edited simulator")
    simulate(toy.Toy(), **options)
    assert len(begun(tmp_path)) == 2


def test_the_state_of_the_simulators_is_that_of_their_sources(monkeypatch):
    fresh = campaign_store.simulators.__wrapped__
    state = fresh()
    assert state == fresh() == campaign_store.simulators()
    original = Path.read_bytes

    def edited(path):
        return original(path) + (b"#" if path.parts[-2:] == ("composed", "machine.py") else b"")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", edited)
        assert fresh() != state
    monkeypatch.setattr(campaign_store, "version", lambda name: "9.9.9")
    assert fresh() != state


def test_a_failure_keeps_what_was_finished(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)
    specs = [toy.Toy(mean=1.0), toy.Toy(mean=-1.0)]
    with pytest.raises(RuntimeError, match="lost the simulator"):
        simulate(specs, replications=4, store=tmp_path / "store")
    assert len(begun(tmp_path)) == 8
    with pytest.raises(RuntimeError, match="lost the simulator"):
        simulate(specs, replications=4, store=tmp_path / "store")
    assert begun(tmp_path) == ["-1 3"]


def test_ctrl_c_keeps_what_was_finished(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)
    specs = [toy.Toy(mean=1.0), toy.Toy(mean=2.0)]

    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(CampaignInterrupted, match="^1 of 2 points are finished; the same call resumes$"):
        simulate(specs, replications=4, store=tmp_path / "store", progress=stop)
    assert len(begun(tmp_path)) == 5
    assert simulate(specs, replications=4, store=tmp_path / "store").restored == 5
    assert len(begun(tmp_path)) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_while_a_run_is_handed_over_keeps_it(toy, tmp_path):
    class Interrupted(ThreadPoolExecutor):
        def submit(self, *call):
            future = super().submit(*call)
            if call[1].replication == 2:
                wait([future])
                os.kill(os.getpid(), signal.SIGINT)
            return future

    specs = [toy.Toy(mean=1.0), toy.Toy(mean=2.0)]
    with Interrupted(1) as pool, pytest.raises(CampaignInterrupted):
        simulate(specs, replications=8, executor=pool, store=tmp_path / "store")
    assert len(begun(tmp_path)) == 3
    assert simulate(specs, replications=8, store=tmp_path / "store").restored == 3


@pytest.mark.parametrize("content", [b"latency,cost\n1,2\n", b"SQLite format 3\0" + bytes(4080)])
def test_a_foreign_store_is_refused_before_any_run(toy, tmp_path, content):
    store = tmp_path / "store"
    store.write_bytes(content)
    with pytest.raises(ValueError, match="is not a store of finished results; it is left as it is"):
        simulate(toy.Toy(), store=store)
    assert begun(tmp_path) == [] and store.read_bytes() == content


# A campaign of the toy in a process of its own: points of unlike spread, rounds until they are precise.

CAMPAIGN = """
import sys
import toy_simulator
from validate import simulate
from validate.campaigns import experiment as campaign_store
toy_simulator.register()
campaign_store.simulators = lambda: "toy"  # so that edits between the starts do not matter
specs = [toy_simulator.Toy(mean=float(k), spread=k / 20) for k in range(1, 6)]
found = simulate(specs, replications=4, precision=0.02, max_replications=16, seed=5, store=sys.argv[1])
print(found.restored, found.simulated)
print([(r.replications, r.metrics, r.values.tobytes().hex()) for r in found])
"""


def start(store, log, seconds, code=CAMPAIGN):
    path = os.pathsep.join([str(HERE), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", code, str(store)],
        env={**os.environ, "PYTHONPATH": path, "TOY_LOG": str(log), "TOY_SECONDS": str(seconds)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    """The numbers of the campaign that nobody killed, and how many runs it has."""
    folder = tmp_path_factory.mktemp("unkilled")
    out, error = start(folder / "store", folder / "log", 0).communicate()
    assert error == ""
    counts, numbers = out.splitlines()
    runs = (folder / "log").read_text().splitlines()
    assert len(runs) == len(set(runs)) == int(counts.split()[1])
    return numbers, set(runs)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.in_ci(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_killed_campaign_resumes_and_repeats_nothing(tmp_path, unkilled, seed):
    rng = np.random.default_rng(seed)
    store, log = tmp_path / "store", tmp_path / "log"
    numbers, runs = unkilled
    kills = 0
    while True:
        known = committed(store)
        process = start(store, log, 0.01)
        # The moment is so many begun runs and then a while, which is less than two runs take.
        moment, pause = int(rng.integers(6, 16)), float(rng.uniform(0, 0.015))
        deadline = time.monotonic() + 60
        while process.poll() is None and (not log.exists() or log.read_text().count("\n") < moment):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        out, error = process.communicate()
        this_time = begun(tmp_path)
        assert error == ""
        assert len(this_time) == len(set(this_time)) and known.isdisjoint(this_time)
        assert committed(store) <= known | set(this_time)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        kills += 1
    counts, answer = out.splitlines()
    assert kills >= 3
    assert answer == numbers
    assert committed(store) == runs
    assert int(counts.split()[0]) == len(known) and int(counts.split()[1]) == len(this_time)


def committed(store):
    """Return the toy's runs in a store, as the log names them."""
    keys = stored(store)
    if not keys:
        return set()
    with ResultStore(store) as opened:
        found = [record["fields"] for record in opened.get(keys).values()]
    # Points have the means 1, 2, ... with spreads that keep the runs' means apart.
    return {f"{round(run['mean']):g} {run['replication']}" for run in found}


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_process_ends_it_cleanly(tmp_path, unkilled):
    store, log = tmp_path / "store", tmp_path / "log"
    process = start(store, log, 0.02)
    deadline = time.monotonic() + 60
    while len(committed(store)) < 6:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert process.returncode != 0 and out == ""
    assert "points are finished; the same call resumes" in error.splitlines()[-1]
    known = committed(store)
    assert set(begun(tmp_path)) == known  # also what was under way
    out, error = start(store, log, 0).communicate()
    assert out.splitlines()[1] == unkilled[0] and error == ""
    assert known.isdisjoint(begun(tmp_path))


def test_two_processes_share_a_store(tmp_path, unkilled):
    processes = [start(tmp_path / "store", tmp_path / f"log{k}", 0.002) for k in range(2)]
    for process in processes:
        out, error = process.communicate()
        assert error == "" and out.splitlines()[1] == unkilled[0]
    assert committed(tmp_path / "store") == unkilled[1]


PACKETS = """
import sys
from dataclasses import replace
from qmodels.systems.packets.packet_processor import PacketProcessor
from validate import simulate
spec = PacketProcessor()
specs = [replace(spec, workload=replace(spec.workload, load_factor=load)) for load in (0.5, 0.9)]
found = simulate(specs, packets=1000, replications=6, store=sys.argv[1])
print(found.restored, found.simulated)
print([(r.metrics, r.resources, r.waiting, r.latency_parts) for r in found])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_killed_campaign_of_packet_processors_resumes(tmp_path):
    store = tmp_path / "store"
    reference = start(tmp_path / "other", tmp_path / "log", 0, PACKETS).communicate()[0].splitlines()
    assert reference[0] == "0 24"
    restored = 0
    for moment in (1, 9, 16):
        process = start(store, tmp_path / "log", 0, PACKETS)
        deadline = time.monotonic() + 60
        while len(stored(store)) < moment and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len(stored(store)) >= max(moment, restored)
        restored = len(stored(store))
    out, error = start(store, tmp_path / "log", 0, PACKETS).communicate()
    assert error == ""
    assert out.splitlines() == [f"{restored} {24 - restored}", reference[1]]


# Runs as records.

NUMBERS = st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text())
DTYPES = st.sampled_from(["f8", "i8", "u1", "?", "f4", "<U3", "c16"])
ARRAYS = DTYPES.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, min_side=0, max_side=3)))
VALUES = st.recursive(
    NUMBERS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


def assert_identical(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_identical(a, b)
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            assert_identical(value, other[key])
    else:
        assert repr(one) == repr(other)


@given(value=VALUES)
def test_a_record_loses_nothing(value):
    # This is what a store does to a record.
    assert_identical(decode(json.loads(json.dumps(encode(value))), object), value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Inner:
    values: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Outer:
    inner: Inner
    table: np.ndarray
    count: int = 3


def test_records_of_nested_and_structured_runs():
    table = np.array([(1, 0.1), (2, np.nan)], dtype=[("job", "i4"), ("time", "f8")])
    run = Outer(inner=Inner(values=np.arange(3.0)), table=table, count=np.int64(5))
    back = decode(encode(run), Outer)
    assert isinstance(back.inner, Inner) and back.count == 5 and type(back.count) is int
    assert_identical(back.inner.values, run.inner.values)
    assert_identical(back.table, table)


@pytest.mark.parametrize("value", [{1}, object(), {1: 2}, Outer])
def test_what_is_no_record(value):
    with pytest.raises(TypeError, match="a run to store must hold numbers, words and arrays, got a "):
        encode(value)


@pytest.mark.parametrize("window", [0, 64])
def test_a_run_of_the_packet_processor_loses_nothing(small, window):
    run = run_replication(Job(spec=small, seed=1, replication=0, packets=1000, window=window))
    back = decode(encode(run), Run)
    for field in fields(Run):
        value = getattr(run, field.name)
        assert_identical(getattr(back, field.name), value.item() if isinstance(value, np.generic) else value)


def test_equal_jobs_have_one_key_and_others_another(small):
    def key(job, function=run_replication):
        return keys_of(function, [job])[0]

    job = Job(spec=small, seed=1, replication=0, packets=1000)
    assert key(job) == key(replace(job, packets=np.int64(1000), spec=replace(small)))
    other = replace(small, free_list=replace(small.free_list, segments=20_001))
    changes = ({"seed": 2}, {"replication": 1}, {"packets": 1001}, {"window": 1}, {"spec": other})
    jobs = [replace(job, **change) for change in ({}, *changes)]
    assert len({*map(key, jobs), key(job, start)}) == 7
    same_spec = jobs[:5]
    assert keys_of(run_replication, same_spec) == [key(one) for one in same_spec]
    assert keys_of(run_replication, []) == []
