"""Speed of the explorer itself: the models here cost next to nothing."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from optimize import (
    Space,
    choose,
    epsilon_thin,
    exact_front,
    explore,
    hypervolume,
    nondominated,
)


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


def large_space(**options: Any) -> Space:
    return Space(
        Chip(),
        step=[1, 2, 4, 8, 16, 32],
        channels=range(1, 13),
        trials=range(1, 31),
        width=range(4, 104, 4),
        slices=range(1, 21),
        **options,
    )


LARGE_BOUNDS: dict[str, Any] = {
    "latency": {
        **dict.fromkeys(["step", "trials"], "increasing"),
        **dict.fromkeys(["channels", "width"], "decreasing"),
        "slices": "constant",
    },
    "energy": {
        **dict.fromkeys(["step", "width", "slices"], "increasing"),
        **dict.fromkeys(["channels", "trials"], "constant"),
    },
    "cost": {
        **dict.fromkeys(["channels", "width", "slices"], "increasing"),
        **dict.fromkeys(["step", "trials"], "constant"),
    },
    "throughput": {
        **dict.fromkeys(["channels", "width", "trials"], "increasing"),
        "step": "decreasing",
        "slices": "constant",
    },
}


@pytest.mark.parametrize("vectorized", [True, "grid"])
def test_exhaustive_a_million_designs(benchmark, vectorized):
    result = benchmark.pedantic(
        explore, (large_space(), model), {"vectorized": vectorized, **GOALS}, rounds=1
    )
    assert result.evaluations == 1_080_000


def test_the_front_of_ten_million_designs(benchmark):
    fields = ("step", "channels", "trials", "width", "slices")
    space = Space(Chip(), {name: range(1, 26) for name in fields})
    options = {"keep": "front", "vectorized": "grid", **GOALS}
    result = benchmark.pedantic(explore, (space, model), options, rounds=1)
    assert result.evaluations == space.size == 25**5


def test_the_exact_method_over_a_million_designs(benchmark):
    options = {"method": "milp", "bounds": LARGE_BOUNDS, "vectorized": True, **GOALS}
    result = benchmark.pedantic(explore, (large_space(), model), options, rounds=1)
    assert result.proof.proven and result.evaluations < 54_000


def test_constraints_and_conditions_on_a_million_designs(benchmark):
    space = large_space(
        constraints=[lambda p: p["channels"] * p["width"] <= 512],
        conditions={"trials": {"step": [2, 4, 8]}},
    )
    assert benchmark(space.designs).size == space.count()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """What the first of the next two leaves to the second."""
    folder = tmp_path_factory.mktemp("store")
    return {"store": folder / "study.db", "identity": "m", "vectorized": "grid"}


def test_a_million_designs_in_a_store(benchmark, store):
    store["store"].unlink(missing_ok=True)
    result = benchmark.pedantic(explore, (large_space(), model), {**store, **GOALS}, rounds=1)
    assert result.evaluations == 1_080_000


def test_resume_a_million_designs(benchmark, store):
    if not store["store"].exists():
        explore(large_space(), model, **store, **GOALS)
    result = benchmark.pedantic(explore, (large_space(), model), {**store, **GOALS}, rounds=1)
    assert result.restored == 1_080_000


def convex_groups():
    random = np.random.default_rng(3)
    groups = {}
    for g in range(20):
        cost = np.cumsum(random.integers(1, 10, 50))
        groups[f"g{g}"] = {"cost": cost, "loss": np.rint(4000 * np.exp(-cost / random.uniform(30, 120)))}
    return groups


def test_the_front_of_sums_of_20_groups_of_50(benchmark):
    assert len(benchmark(exact_front, convex_groups(), minimize=["cost", "loss"]).values) > 1000
