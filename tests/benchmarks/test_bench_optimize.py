"""Speed of the explorer itself: the models here cost next to nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from optimize import Space, choose, epsilon_thin, explore, hypervolume, nondominated


@dataclass(frozen=True)
class Chip:
    step: Any = 1
    channels: Any = 1
    trials: Any = 1
    width: Any = 8
    slices: Any = 1


def model(chip):
    rate = chip.channels * chip.width / (1 + 0.1 * chip.step)
    return {
        "latency": 1000 / rate + chip.trials,
        "energy": chip.width * 0.3 + chip.slices + chip.step,
        "cost": 3 * chip.channels + chip.width / 4 + 2 * chip.slices,
        "throughput": rate * chip.trials,
    }


SPACE = Space(
    Chip(),
    step=[1, 2, 4, 8, 16, 32],
    channels=[1, 2, 4, 8],
    trials=range(1, 6),
    width=[8, 16, 32],
    slices=[1, 2, 4, 8, 16, 32, 64, 128],
)
GOALS: dict[str, Any] = {"minimize": ["latency", "energy", "cost"], "maximize": "throughput"}


@pytest.mark.parametrize("vectorized", [True, False])
def test_exhaustive_2880_designs(benchmark, vectorized):
    result = benchmark(explore, SPACE, model, vectorized=vectorized, **GOALS)
    assert result.evaluations == 2880


@pytest.mark.parametrize("vectorized", [True, False])
def test_exhaustive_2880_designs_with_a_store(benchmark, tmp_path, vectorized):
    paths = (tmp_path / f"{k}.db" for k in range(10**6))
    result = benchmark(
        lambda: explore(SPACE, model, vectorized=vectorized, store=next(paths), identity="m", **GOALS)
    )
    assert result.evaluations == 2880


def test_resume_2880_designs(benchmark, tmp_path):
    store = {"store": tmp_path / "study.db", "identity": "m"}
    explore(SPACE, model, vectorized=True, **store, **GOALS)
    result = benchmark(explore, SPACE, model, vectorized=True, **store, **GOALS)
    assert result.restored == 2880


def test_greedy(benchmark):
    result = benchmark(explore, SPACE, model, method="greedy", vectorized=True, **GOALS)
    assert result.evaluations < 2880


@pytest.mark.parametrize("objectives", [3, 5])
def test_filter_a_million_points(benchmark, objectives):
    points = np.random.default_rng(1).random((10**6, objectives))
    assert benchmark.pedantic(nondominated, (points,), rounds=1).any()


def sphere(points, objectives):
    values = np.abs(np.random.default_rng(2).normal(size=(points, objectives)))
    return 1 - values / np.linalg.norm(values, axis=1)[:, None]


def test_volume_of_a_thousand_points_in_four_objectives(benchmark):
    assert benchmark(hypervolume, sphere(1000, 4), reference=np.ones(4)) > 0


def test_thin_a_thousand_points(benchmark):
    assert len(benchmark(epsilon_thin, sphere(1000, 4) + 1, 0.05)) < 1000


def test_choose_one_of_2880_designs(benchmark):
    table = explore(SPACE, model, vectorized=True, **GOALS).table
    choice = benchmark(choose, {"design": table}, minimize="latency", subject_to={"cost": (None, 40)})
    assert choice.proven


def test_choose_from_20_groups_of_50(benchmark):
    random = np.random.default_rng(3)
    groups = {f"g{g}": {"cost": random.random(50), "gain": random.random(50)} for g in range(20)}
    choice = benchmark.pedantic(
        choose, (groups,), {"maximize": "gain", "subject_to": {"cost": (None, 5)}}, rounds=1
    )
    assert choice.proven
