"""The search with bounds that a model derives, against exhaustive exploration; its gap at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qmodels as qm
from cases.study.packet_processor import SUBJECT_TO, default_processor, default_space
from optimize import Space, explore, hypervolume
from optimize.spaces.evaluation import significant


@dataclass(frozen=True)
class Inner:
    width: Any = 1


@dataclass(frozen=True)
class Chip:
    step: Any = 0
    channels: Any = 1
    buffers: Any = 1
    policy: str = "open"
    link: Inner = field(default_factory=Inner)


def model(chip: Chip) -> dict[str, Any]:
    """Any way with the step; more channels and width are faster and cost more; buffers only lose less."""
    load = 4.0 / (chip.channels * (1.0 + (chip.policy == "open")))
    stable = load < 1
    wait = (3.0 + np.sin(2.0 * chip.step)) / np.where(stable, 1.0 - load, 1.0)
    return {
        "latency": np.where(stable, wait + 24.0 / chip.link.width, np.inf)[()],
        "cost": 2.0 * chip.channels + chip.link.width + 0.1 * chip.buffers,
        "loss": np.exp(-chip.buffers / 3.0) * load + 0 * chip.link.width,
        "stable": stable & (chip.link.width > 0),
    }


def ends(low: Chip, high: Chip, factor: float = 0.9) -> dict[str, Any]:
    """Bounds that are right but not tight: the corners' values, less a tenth."""
    best, worst = model(high), model(low)
    shape = np.broadcast_shapes(*(np.shape(value) for value in best.values()))
    none = np.zeros(shape)
    return {
        "latency": (factor * best["latency"] + none, none + np.inf),
        "cost": (worst["cost"] + none, best["cost"] + none),
        "loss": (best["loss"] + none, none + np.inf),
        "stable": (none, best["stable"] + none),
    }


def bounds(**changes: Any) -> Any:
    known: dict[str, Any] = {
        "derived": ("latency", "cost", "loss"),
        "spans": ("channels", "buffers", "link.width"),
        "early": (),
        "idle": {"latency": ("buffers",)},
        "stages": (lambda low, high: ends(low, high, 0.5), ends),
        "assumes": "stable designs",
    }
    return SimpleNamespace(**known | changes)


CHOICES: dict[str, Any] = {
    "step": range(6),
    "channels": [8, 1, 2, 3, 4, 6],
    "buffers": [1, 2, 4, 8, 16, 32],
    "policy": ["open", "closed"],
    "link.width": [8, 16, 4, 32],
}
GOALS: dict[str, Any] = {"minimize": ["latency", "cost"], "vectorized": True}


def points(result: Any, digits: int | None = None) -> Any:
    """Return the distinct points of a front as they are compared."""
    values = result.values[result.front]
    return np.unique(values if digits is None else significant(values, digits), axis=0)


def space(**options: Any) -> Space:
    return Space(Chip(), CHOICES, **options)


@given(
    limit=st.sampled_from([None, 0.5, 0.05, 1e-6]),
    width=st.sampled_from([None, 8, 2]),
    digits=st.sampled_from([None, 2, 3]),
    seed=st.integers(0, 100),
)
@settings(max_examples=8, deadline=None)
def test_the_points_are_those_of_all_designs(limit: Any, width: Any, digits: Any, seed: int) -> None:
    limits = {} if limit is None else {"loss": (None, limit)}
    limits |= {} if width is None else {"link.width": (None, width)}
    options: dict[str, Any] = {"subject_to": limits, "digits": digits, **GOALS}
    exact = explore(space(), model, **options)
    found = explore(space(), model, method="branch_and_bound", bounds=bounds(), seed=seed, **options)
    np.testing.assert_array_equal(points(found, digits), points(exact, digits))
    assert found.proof is not None and found.proof.proven and found.proof.gap == 0.0
    assert found.proof.unseen == space().size - found.evaluations
    if limit is None and width is None:
        assert found.evaluations < 0.35 * space().size


def test_constraints_and_conditions_hold() -> None:
    def narrow(point: Any) -> bool:
        return point["link.width"] <= 4 * point["channels"]

    options: dict[str, Any] = {"constraints": [narrow], "conditions": {"step": {"policy": ["open"]}}}
    exact = explore(space(**options), model, **GOALS)
    found = explore(space(**options), model, method="branch_and_bound", bounds=bounds(), **GOALS)
    np.testing.assert_array_equal(points(found), points(exact))


def test_the_gap_at_any_time_covers_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("optimize.search.anytime.LEAST", 4)
    exact = explore(space(), model, **GOALS)
    whole = explore(space(), model, method="branch_and_bound", bounds=bounds(), **GOALS)
    assert len(whole.proof.left) > 6 and whole.proof.left[-1].boxes == 0
    now = iter(range(10**6))
    monkeypatch.setattr("optimize.search.anytime.time", SimpleNamespace(monotonic=lambda: next(now)))
    gaps = []
    for limit in (4, 8, 12, 16, 24, 10**5):
        some = explore(space(), model, method="branch_and_bound", bounds=bounds(), time_limit=limit, **GOALS)
        proof = some.proof
        assert proof is not None and proof.gap is not None
        gaps.append(proof.gap)
        if len(some.front):
            worst = some.values[some.feasible].max(axis=0)
            own, every = (hypervolume(points(each), reference=worst) for each in (some, exact))
            assert every - own <= (proof.gap + 1e-12) * every
        assert proof.proven == (proof.gap == 0.0)
        assert ("not finished" in str(some)) == (not proof.proven)
    assert gaps[0] > gaps[-2] > gaps[-1] == 0.0


def test_one_objective_has_the_gap_of_its_bound() -> None:
    found = explore(
        space(), model, minimize="latency", subject_to={"cost": (None, 20)}, vectorized=True,
        method="branch_and_bound", bounds=bounds(), time_limit=1e-9,
    )  # fmt: skip
    assert found.proof is not None and found.proof.gap == 1.0 and not found.evaluations
    whole = explore(
        space(), model, minimize="latency", subject_to={"cost": (None, 20)}, vectorized=True,
        method="branch_and_bound", bounds=bounds(),
    )  # fmt: skip
    exact = explore(space(), model, minimize="latency", subject_to={"cost": (None, 20)}, vectorized=True)
    np.testing.assert_array_equal(points(whole), points(exact))


def test_nothing_feasible_is_proven_without_a_design() -> None:
    found = explore(
        space(), model, method="branch_and_bound", bounds=bounds(), subject_to={"cost": (None, 1.0)}, **GOALS
    )
    assert found.proof is not None and found.proof.proven and not len(found.front) and not found.evaluations


def test_a_metric_without_bounds_is_named() -> None:
    known = bounds(derived=("cost",))
    found = explore(space(), model, method="branch_and_bound", bounds=known, **GOALS)
    np.testing.assert_array_equal(points(found), points(explore(space(), model, **GOALS)))
    assert found.proof is not None and found.proof.unbounded == ("latency",)
    assert "nothing is known of latency" in str(found)


def test_a_model_must_tell_what_is_stable() -> None:
    def silent(chip: Chip) -> dict[str, Any]:
        return {name: value for name, value in model(chip).items() if name != "stable"}

    with pytest.raises(ValueError, match="evaluate must return stable with bounds that a model derives"):
        explore(space(), silent, method="branch_and_bound", bounds=bounds(), **GOALS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"bounds": bounds(stages=(lambda low, high: ends(low, high, 1.4),))},
            "bounds must bound latency, got ",
        ),
        (
            {"bounds": bounds(), "subject_to": {"stable": (None, None)}},
            "subject_to must not limit stable with",
        ),
        ({"bounds": bounds(), "time_limit": 0}, "time_limit must be > 0 seconds, got 0"),
        (
            {"bounds": {"latency": {}, "cost": {}}, "time_limit": 3},
            "time_limit belongs to branch and",
        ),
        ({"bounds": 3}, "bounds must map metrics to what is known of them, got 3"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explore(space(), model, **{"method": "branch_and_bound", **GOALS, **arguments})


def test_packet_processors_need_a_tenth_of_the_designs() -> None:
    choices = {
        "interleaving_step": (1, 2, 16),
        "channels": (1, 2, 4, 8),
        "alloc_trial_count": (1, 2, 4),
        "link_width": (8, 16, 32),
        "slices": (0, 2, 8),
        "small_packet_segments": (0, 1),
        "segments": (4096, 16384, 65536, 262144, 1048576),
    }
    here = default_space(default_processor(), choices=choices)
    goals: dict[str, Any] = {
        "minimize": ("packet_latency", "cost"),
        "maximize": "saturation_data_rate",
        "subject_to": SUBJECT_TO,
        "digits": 3,
    }

    def solved(spec: Any) -> Any:
        answer = qm.solve(spec)
        return {**answer.metrics, "stable": answer.stable}

    exact = explore(here, solved, vectorized="grid", **goals)
    found = explore(
        here, solved, vectorized=True, method="branch_and_bound", bounds=qm.bounds(here.base), **goals
    )
    assert found.proof is not None and found.proof.proven
    assert found.evaluations < here.size / 10
    np.testing.assert_array_equal(points(found, 3), points(exact, 3))
