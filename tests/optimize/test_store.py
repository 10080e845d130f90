from __future__ import annotations

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
from optimize.spaces.chunk_store import ChunkStore


@dataclass(frozen=True)
class Chip:
    width: Any = 16
    trials: Any = 1
    load: float = 0.5
    trace: Any = None


def space(**changes: Any) -> Space:
    return Space(Chip(**changes), width=[4, 8, 16], trials=[1, 2])


class Model:
    """Counts what it evaluates."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def __call__(self, chip: Chip) -> dict[str, Any]:
        self.seen.extend(np.broadcast(chip.width, chip.trials))
        latency = np.where(np.equal(chip.width, 4), np.inf, 64 / np.asarray(chip.width) + chip.trials / 3)
        return {
            "latency": latency,
            "stable": np.isfinite(latency),
            "bottleneck": "link",
            "cost": 0.1 * chip.width,
        }


GOALS: dict[str, Any] = {"minimize": ["latency", "cost"]}


def assert_same(a, b):
    assert list(a.table) == list(b.table)
    for name in a.table:
        assert a.table[name].dtype == b.table[name].dtype
        assert_array_equal(a.table[name], b.table[name])
    assert_array_equal(a.front, b.front)


@pytest.mark.parametrize("vectorized", [False, True])
def test_what_is_stored_is_not_evaluated_again(tmp_path, vectorized):
    store = {"store": tmp_path / "study.db", "identity": "model 1"}
    model = Model()
    first = explore(space(), model, vectorized=vectorized, **store, **GOALS)
    assert (first.evaluations, first.restored, len(model.seen)) == (6, 0, 6)
    again = explore(space(), model, vectorized=not vectorized, **store, **GOALS)
    assert (again.evaluations, again.restored, len(model.seen)) == (0, 6, 6)
    assert_same(again, first)
    assert_same(explore(space(), Model(), **GOALS), first)


def test_an_extension_evaluates_only_what_is_new(tmp_path):
    store = {"store": tmp_path / "study.db", "identity": "model 1"}
    explore(space(), Model(), designs=[0, 3], **store, **GOALS)
    model = Model()
    larger = Space(Chip(), width=[2, 4, 8, 16], trials=[1, 2])
    result = explore(larger, model, **store, **GOALS)
    assert (result.evaluations, result.restored) == (6, 2)
    assert set(model.seen) == {(2, 1), (2, 2), (4, 2), (8, 1), (16, 1), (16, 2)}
    assert_same(result, explore(larger, Model(), **GOALS))
    # Another order and dotted or short names make no difference to what a design is.
    reordered = explore(Space(Chip(), trials=[2, 1], width=[16, 2]), model, **store, **GOALS)
    assert reordered.restored == 4


def test_searches_and_executors_use_the_store(tmp_path):
    store = {"store": tmp_path / "study.db", "identity": "model 1"}
    model = Model()
    search = explore(space(), model, method="greedy", **store, **GOALS)
    again = explore(space(), model, method="greedy", **store, **GOALS)
    assert (again.evaluations, again.restored) == (0, search.evaluations)
    assert_same(again, search)
    with ThreadPoolExecutor(2) as executor:
        explore(space(), model, executor=executor, **store, **GOALS)
    assert len(model.seen) == len(set(model.seen)) == 6


@pytest.mark.parametrize(
    ("base", "identity"),
    [
        ({}, "model 2"),
        ({"load": 0.6}, "model 1"),
        ({"trace": np.array([1.0, 2.0])}, "model 1"),
        ({"trace": (1, 2)}, "model 1"),
    ],
)
def test_another_model_or_base_spec_is_another_design(tmp_path, base, identity):
    path = tmp_path / "study.db"
    explore(space(), Model(), store=path, identity="model 1", **GOALS)
    assert explore(space(**base), Model(), store=path, identity=identity, **GOALS).evaluations == 6
    assert explore(space(**base), Model(), store=path, identity=identity, **GOALS).evaluations == 0
    assert explore(space(), Model(), store=path, identity="model 1", **GOALS).evaluations == 0


def test_the_base_values_of_varied_fields_do_not_matter(tmp_path):
    path = tmp_path / "study.db"
    explore(space(), Model(), store=path, identity="m", **GOALS)
    assert explore(space(width=8), Model(), store=path, identity="m", **GOALS).evaluations == 0


def test_a_failure_keeps_what_was_finished(tmp_path):
    def broken(chip):
        if chip.width == 16:
            raise OSError("lost the simulator")
        return {"latency": 64 / chip.width, "cost": chip.width}

    store = {"store": tmp_path / "study.db", "identity": "m"}
    with pytest.raises(OSError, match="lost the simulator"):
        explore(space(), broken, **store, **GOALS)
    result = explore(space(), lambda c: {"latency": 64 / c.width, "cost": c.width}, **store, **GOALS)
    assert (result.evaluations, result.restored) == (2, 4)


SCRIPT = """
import os, sys, time
from dataclasses import dataclass
from optimize import Space
from optimize import explore

@dataclass(frozen=True)
class Chip:
    width: int = 1
    trials: int = 1

def model(chip):
    with open(sys.argv[2], "a") as log:
        log.write(f"{chip.width} {chip.trials}\\n")
    time.sleep(float(sys.argv[3]))
    return {"latency": 64 / chip.width + chip.trials / 3, "cost": 0.1 * chip.width * chip.trials}

result = explore(Space(Chip(), width=range(1, 11), trials=range(1, 11)), model,
                 minimize=["latency", "cost"], store=sys.argv[1], identity="m")
print(result.evaluations, result.restored, result.front.tolist(), result.table["latency"].sum())
"""


def run(store: Path, log: Path, delay: float) -> subprocess.Popen[str]:
    root = Path(optimize.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(store), str(log), str(delay)],
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("kill_after", [1, 30])
def test_an_exploration_that_was_killed_resumes(tmp_path, kill_after):
    store, log = tmp_path / "study.db", tmp_path / "log"
    process = run(store, log, 0.01)
    deadline = time.monotonic() + 60
    while not (log.exists() and len(log.read_text().splitlines()) > kill_after):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL

    begun = log.read_text().splitlines()
    log.unlink()
    out, err = run(store, log, 0).communicate()
    resumed = log.read_text().splitlines()
    reference = run(tmp_path / "other.db", tmp_path / "other", 0).communicate()[0]
    assert err == ""
    evaluations, restored, *answer = out.split(maxsplit=2)
    assert answer == reference.split(maxsplit=2)[2:]
    assert int(evaluations) == len(resumed) and int(evaluations) + int(restored) == 100
    # Every design was evaluated, and none twice but the one that was under way when it died.
    assert set(begun) | set(resumed) == {f"{w} {t}" for w in range(1, 11) for t in range(1, 11)}
    assert set(begun) & set(resumed) <= {begun[-1]}
    assert kill_after <= int(restored) < 100


def spoiled(path: Path) -> None:
    explore(space(), Model(), store=path, identity="m", **GOALS)
    content = path.read_bytes()
    assert content.count(b'"latency": ["<f8"') == 6
    path.write_bytes(content.replace(b'"latency": ["<f8"', b'"latency": ["<f4"'))


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.write_text("latency,cost\n1,2\n"), "is not a store of finished results"),
        (spoiled, "is damaged"),
    ],
)
def test_an_exploration_refuses_a_foreign_or_damaged_store(tmp_path, spoil, reason):
    path = tmp_path / "study.db"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"{reason}; it is left as it is"):
        explore(space(), Model(), store=path, identity="m", **GOALS)
    assert path.read_bytes() == before


def test_a_spec_without_stable_text_is_refused_by_name(tmp_path):
    with pytest.raises(
        ValueError, match="trace cannot be part of a store's key: a object has no stable text"
    ):
        ChunkStore(tmp_path / "a.db", space(trace=object()), "m")
    with pytest.raises(
        ValueError, match="trace cannot be part of a store's key: a function has no stable text"
    ):
        explore(Space(Chip(), trace=[None, space]), Model(), store=tmp_path / "b.db", identity="m", **GOALS)
