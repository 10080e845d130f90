"""Large explorations: chunks in the store, killed runs, workers, files."""

import csv
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import optimize
from optimize import Space, explore
from optimize.spaces.evaluation import ChunkStore
from optimize.spaces.numbering import Found
from qmodels.systems.spec.store import ResultStore


@dataclass(frozen=True)
class Chip:
    width: Any = 16
    trials: Any = 1
    policy: str = "open"
    load: float = 0.5
    trace: Any = None


def space(**options: Any) -> Space:
    return Space(Chip(), width=[4, 8, 16, 32], trials=range(1, 6), policy=["open", "closed"], **options)


class Model:
    """Counts what it evaluates."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def __call__(self, chip: Chip) -> dict[str, Any]:
        self.seen.extend((int(w), int(t), chip.policy) for w, t in np.broadcast(chip.width, chip.trials))
        latency = np.where(np.equal(chip.width, 4), np.inf, 64 / np.asarray(chip.width) + chip.trials / 3)
        return {
            "latency": latency,
            "stable": np.isfinite(latency),
            "bottleneck": np.where(chip.trials > np.asarray(chip.width) / 8, "trials", "link"),
            "cost": 0.1 * chip.width * (1 if chip.policy == "open" else 1.25),
        }


GOALS: dict[str, Any] = {"minimize": ["latency", "cost"]}


def assert_same(a, b):
    assert list(a.table) == list(b.table)
    for name in a.table:
        assert a.table[name].dtype == b.table[name].dtype
        assert_array_equal(a.table[name], b.table[name])
    assert_array_equal(a.front, b.front)


MODES: list[dict[str, Any]] = [
    {"vectorized": "grid"},
    {"vectorized": "grid", "chunk": 10},
    {"vectorized": True, "chunk": 9},
    {"vectorized": False},
]


@pytest.mark.parametrize(("first", "second"), [*zip(MODES, MODES[1:], strict=False), (MODES[3], MODES[0])])
def test_what_is_stored_is_found_in_whatever_chunks(tmp_path, first, second):
    store = {"store": tmp_path / "study.db", "identity": "m"}
    model = Model()
    part = [3, 4, 5, 6, 7, 8, 9, 14, 15, 16, 20, 39]
    explore(space(), model, designs=part, **first, **store, **GOALS)
    whole = explore(space(), model, **second, **store, **GOALS)
    assert (whole.evaluations, whole.restored) == (28, 12)
    again = explore(space(), model, **first, **store, **GOALS)
    assert (again.evaluations, again.restored) == (0, 40)
    assert len(model.seen) == len(set(model.seen)) == 40
    assert_same(whole, explore(space(), Model(), **GOALS))
    assert_same(again, whole)


def test_chunks_belong_to_a_model_and_a_base_spec_and_are_found_in_another_order(tmp_path):
    path = tmp_path / "study.db"
    call: dict[str, Any] = {"vectorized": "grid", "store": path, **GOALS}
    explore(space(), Model(), identity="m", **call)
    assert explore(space(), Model(), identity="other", **call).restored == 0
    for other in ({"load": 0.6}, {"trace": np.array([1.0, 2.0])}, {"trace": (1, 2)}):
        for restored in (0, 40):
            again = explore(Space(Chip(**other), space().choices), Model(), identity="m", **call)
            assert again.restored == restored
    varied = Space(Chip(width=8, trials=3), space().choices)  # whose values in the base spec do not matter
    assert explore(varied, Model(), identity="m", **call).restored == 40
    reordered = Space(Chip(), policy=["closed", "open"], trials=[9, 5, 2], width=[32, 4])
    result = explore(reordered, Model(), identity="m", **call)
    assert (result.restored, result.evaluations) == (8, 4)
    assert_same(result, explore(reordered, Model(), **GOALS))


def test_searches_and_executors_use_the_store(tmp_path):
    store, model = {"store": tmp_path / "study.db", "identity": "m"}, Model()
    search = explore(space(), model, method="greedy", **store, **GOALS)
    again = explore(space(), model, method="greedy", **store, **GOALS)
    assert (again.evaluations, again.restored) == (0, search.evaluations)
    assert_same(again, search)
    with ThreadPoolExecutor(2) as executor:
        explore(space(), model, executor=executor, **store, **GOALS)
    assert len(model.seen) == len(set(model.seen)) == 40


def test_a_failure_keeps_what_was_finished(tmp_path):
    def broken(chip):
        if chip.width == 16:
            raise OSError("lost the simulator")
        return Model()(chip)

    store = {"store": tmp_path / "study.db", "identity": "m"}
    with pytest.raises(OSError, match="lost the simulator"):
        explore(space(), broken, **store, **GOALS)
    result = explore(space(), Model(), **store, **GOALS)
    assert (result.evaluations, result.restored) == (20, 20)


def test_what_is_no_store_and_what_has_no_key_is_refused(tmp_path):
    path, foreign = tmp_path / "study.db", "latency,cost\n1,2\n"
    path.write_text(foreign)
    with pytest.raises(ValueError, match="is not a store of finished results; it is left as it is"):
        explore(space(), Model(), store=path, identity="m", **GOALS)
    assert path.read_text() == foreign
    for grid, kind in ((Space(Chip(trace=object()), width=[4]), "object"), (Space(Chip(), trace=[len]), "")):
        with pytest.raises(
            ValueError, match=f"trace cannot be part of a store's key: a .*{kind} has no stable"
        ):
            explore(grid, Model(), store=tmp_path / "b.db", identity="m", **GOALS)


def test_a_record_per_chunk(tmp_path):
    with ResultStore(tmp_path / "a.db") as file:
        store = ChunkStore(file, space(), "m")
        designs = np.arange(40)
        assert store.restore(designs) == []
        for word, part in (("a", designs[:30]), ("b", designs[20:38]), ("c", designs[:2])):
            columns = {"x": 1.0 * part, "word": np.array([word] * part.size), "ok": part > 3}
            store.put(Found(part, columns, {39: "KeyError: 'x'"} if word == "b" else {}))
    with ResultStore(tmp_path / "a.db") as file:
        store = ChunkStore(file, space(), "m")
        blocks = store.restore(np.array([39, 5, 25, 0, 38]))
        assert sorted(np.concatenate([block.designs for block in blocks])) == [0, 5, 25]
        assert [block.errors for block in blocks if block.errors] == [{39: "KeyError: 'x'"}]
        for _, columns, _ in (block for block in blocks if block.designs.size):
            assert columns["ok"].dtype == bool and columns["word"].dtype.kind == "U"
    content = (tmp_path / "a.db").read_bytes()
    assert content.count(b'{"marks"') >= 2


def test_a_damaged_chunk_is_refused(tmp_path):
    path = tmp_path / "study.db"
    explore(space(), Model(), vectorized="grid", store=path, identity="m", **GOALS)
    content = path.read_bytes()
    place = content.index(b'"marks": ["<u8", "') + 30
    path.write_bytes(
        content[:place] + (b"A" if content[place : place + 1] != b"A" else b"B") + content[place + 1 :]
    )
    before = path.read_bytes()
    assert before != content
    with pytest.raises(ValueError, match="is damaged; it is left as it is"):
        explore(space(), Model(), vectorized="grid", store=path, identity="m", **GOALS)
    assert path.read_bytes() == before


SCRIPT = """
import sys, time
from dataclasses import dataclass
import numpy as np
from optimize import Space
from optimize import explore

@dataclass(frozen=True)
class Chip:
    a: object = 1
    b: object = 1
    c: object = 1

def model(chip):
    a, b, c = np.broadcast_arrays(chip.a, chip.b, chip.c)
    time.sleep(float(sys.argv[3]))
    with open(sys.argv[2], "a") as log:
        log.write(" ".join(map(str, (a * 10000 + b * 100 + c).ravel().tolist())) + "\\n")
    return {"latency": 64 / (a * b) + c / 3, "cost": 0.1 * a * b * c}

result = explore(Space(Chip(), a=range(1, 21), b=range(1, 21), c=range(1, 21)), model, vectorized="grid",
                 chunk=100, minimize=["latency", "cost"], store=sys.argv[1], identity="m")
print(result.evaluations, result.restored, result.front.tolist(), result.table["latency"].sum())
"""


def run(store: Path, log: Path, delay: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(store), str(log), str(delay)],
        env={**os.environ, "PYTHONPATH": str(Path(optimize.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_an_exploration_killed_at_random_moments_evaluates_nothing_twice(tmp_path):
    store, log = tmp_path / "study.db", tmp_path / "log"
    log.touch()
    rng = np.random.default_rng(11)
    kills = 0
    for _ in range(4):
        process = run(store, log, 0.005)
        begun = len(log.read_text().splitlines())
        while process.poll() is None and len(log.read_text().splitlines()) < begun + 3:
            time.sleep(0.002)
        time.sleep(rng.uniform(0.0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 2
    out, err = run(store, log, 0).communicate()
    assert err == ""
    reference = run(tmp_path / "other.db", tmp_path / "other", 0).communicate()[0]
    evaluations, restored, *answer = out.split(maxsplit=2)
    assert answer == reference.split(maxsplit=2)[2:]
    assert int(evaluations) + int(restored) == 8000 and int(restored) > 0
    chunks = [line for line in log.read_text().splitlines() if line.count(" ") == 99]
    designs = [int(mark) for line in chunks for mark in line.split()]
    assert set(designs) == {
        a * 10000 + b * 100 + c for a in range(1, 21) for b in range(1, 21) for c in range(1, 21)
    }
    # At most the one chunk that was under way when a run died is evaluated again.
    assert len(designs) - 8000 <= 100 * kills


def chip_model(chip):
    return Model()(chip)


def test_workers_make_no_difference():
    serial = explore(space(), chip_model, **GOALS)
    for workers in (1, 4):
        with ThreadPoolExecutor(workers) as executor:
            for mode in MODES:
                assert_same(explore(space(), chip_model, executor=executor, **mode, **GOALS), serial)


def test_a_dask_cluster_gives_the_same_answer():
    distributed = pytest.importorskip("distributed")
    serial = explore(space(), chip_model, **GOALS)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        for mode in MODES:
            assert_same(explore(space(), chip_model, executor=executor, **mode, **GOALS), serial)
        kept = {"keep": "front", **MODES[1], **GOALS}
        assert_same(
            explore(space(), chip_model, executor=executor, **kept), explore(space(), chip_model, **kept)
        )


def test_the_table_in_a_file(tmp_path):
    result = explore(space(), Model(), **GOALS)
    with result.save(tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [*result.table, "feasible", "front"] and len(rows) == 40
    assert [float(row["latency"]) for row in rows] == result.table["latency"].tolist()
    assert [row["bottleneck"] for row in rows] == result.table["bottleneck"].tolist()
    assert [k for k, row in enumerate(rows) if row["front"] == "True"] == result.front.tolist()
    with pytest.raises(ValueError, match=r"path must end in .csv or .parquet, got '.*a.xlsx'"):
        result.save(tmp_path / "a.xlsx")


def test_the_table_in_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    result = explore(space(), Model(), **GOALS)
    table = parquet.read_table(result.save(tmp_path / "a.parquet"))
    assert table.column_names == [*result.table, "feasible", "front"]
    for name, column in result.table.items():
        assert table[name].to_pylist() == column.tolist()


def test_parquet_without_pyarrow_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = explore(space(), Model(), **GOALS)
    with pytest.raises(ModuleNotFoundError, match="needs pyarrow; .csv does not"):
        result.save(tmp_path / "a.parquet")


def test_a_million_designs_take_nothing_per_design_in_python():
    """Measured in calls, not in seconds: of the model, of constraints, of the spec."""
    made = []

    @dataclass(frozen=True)
    class Wide:
        a: Any = 1
        b: Any = 1
        c: Any = 1

        def __post_init__(self) -> None:
            made.append(1)

    asked = []

    def allowed(point):
        asked.append(1)
        return point["a"] + point["b"] < 150

    calls = []

    def model(wide):
        calls.append(1)
        return {"x": wide.a * wide.b + 0 * wide.c, "y": wide.c - wide.a}

    wide = Space(Wide(), a=range(100), b=range(100), c=range(100), constraints=[allowed])
    made.clear()
    result = explore(wide, model, minimize=["x", "y"], subject_to={"y": (500, None)}, vectorized=True)
    assert result.evaluations == wide.count() == 100 * (100**2 - sum(range(1, 50)))
    assert len(asked) <= 10**4 + 101 and len(calls) < 100 and len(made) < 100
    assert str(result.excluded[1]).startswith("y >= 500 excludes ") and result.excluded[1].miss == 401
