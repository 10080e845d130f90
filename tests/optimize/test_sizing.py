from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import size


@dataclass(frozen=True)
class Memory:
    channels: Any = 4
    rate: Any = 0.25


def model(memory):
    load = 2.0 / (memory.channels * memory.rate)
    with np.errstate(divide="ignore"):
        return {
            "wait": np.where(load < 1, load / np.abs(1 - np.minimum(load, 0.999999)), np.inf),
            "cost": 3.0 * memory.channels,
            "word": "x",
        }


@given(
    high=st.integers(1, 300),
    low=st.integers(1, 20),
    limit=st.floats(0.01, 20),
    which=st.sampled_from(["smallest", "largest"]),
    vectorized=st.booleans(),
)
def test_whole_numbers_equal_the_answer_of_looking_at_all(high, low, limit, which, vectorized):
    low, high = min(low, high), max(low, high)
    metric = "wait" if which == "smallest" else "cost"
    bound = limit if which == "smallest" else 30 * limit
    met = [n for n in range(low, high + 1) if model(Memory(n))[metric] <= bound]
    answer = size(
        Memory(),
        model,
        "channels",
        subject_to={metric: (None, bound)},
        within=(low, high),
        which=which,
        vectorized=vectorized,
    )
    # Of nine values and a bisection nobody knows what is between them.
    assert answer.monotone is (True if answer.evaluations == high - low + 1 else None)
    assert answer.monotone or high - low + 1 > 9
    if not met:
        assert (answer.status, answer.value) == ("unreachable", None)
        assert answer.metrics[metric] == min(float(model(Memory(n))[metric]) for n in range(low, high + 1))
        assert answer.spec == Memory(answer.best) and "is not met from" in answer.message
        return
    value = min(met) if which == "smallest" else max(met)
    assert (answer.status, answer.value, answer.best, answer.message) == ("met", value, value, "")
    assert answer.spec == Memory(value) and answer.metrics == {metric: float(model(Memory(value))[metric])}
    assert type(answer.value) is int
    if value not in (low, high):
        assert abs(answer.misses - value) == 1
    assert answer.evaluations <= (65 if vectorized else 9 + 9)


@given(limit=st.floats(0.05, 50), vectorized=st.booleans())
def test_a_real_field_is_bisected_to_the_tolerance(limit, vectorized):
    exact = 2.0 / (4 * limit / (1 + limit))  # wait = load / (1 - load) = limit
    answer = size(
        Memory(),
        model,
        "rate",
        subject_to={"wait": (None, limit)},
        within=(0.01, 20.0),
        tolerance=1e-9,
        vectorized=vectorized,
    )
    assert answer.status == "met" and answer.monotone is None
    assert 0 <= answer.value - exact <= 2e-8
    assert 0 <= answer.value - answer.misses <= 2e-8
    assert answer.metrics["wait"] <= limit and answer.evaluations < 60


def test_several_targets_hold_together():
    targets = {"wait": (None, 1.5), "cost": (None, 60)}
    small = size(Memory(), model, "channels", subject_to=targets, within=(1, 64))
    large = size(Memory(), model, "channels", subject_to=targets, within=(1, 64), which="largest")
    assert (small.value, large.value) == (14, 20)
    assert (small.misses, large.misses) == (13, 21)


def test_a_narrow_window_inside_the_range_is_found():
    answer = size(Memory(), model, "channels", subject_to={"cost": (711.5, 713.5)}, within=(1, 4096))
    assert (answer.status, answer.best, answer.monotone) == ("unreachable", 238, None)
    assert answer.message.startswith("cost <= 713.5 is not met from 1 to 4096: the best is 714 at")
    answer = size(Memory(), model, "channels", subject_to={"cost": (711, 714)}, within=(1, 4096))
    assert (answer.value, answer.metrics) == (237, {"cost": 711.0})


def test_a_narrow_window_of_a_real_field_is_found():
    """A millionth wide, where the wait falls from infinity to almost nothing."""
    window = (1.5, 1.500001)
    answer = size(Memory(), model, "rate", subject_to={"wait": window}, within=(0.01, 20.0), tolerance=1e-9)
    assert answer.status == "met"
    assert window[0] <= answer.metrics["wait"] <= window[1]
    assert answer.value == pytest.approx(0.5 / 0.6, rel=1e-6)


def test_unreachable_says_the_best_value_and_by_how_much():
    answer = size(Memory(), model, "channels", subject_to={"wait": (None, 0.1)}, within=(1, 64))
    assert (answer.status, answer.value, answer.best) == ("unreachable", None, 64)
    assert answer.message == (
        "wait <= 0.1 is not met from 1 to 64: the best is 0.142857 at channels=64, off by 0.04286"
    )
    assert answer.metrics == {"wait": pytest.approx(1 / 7)} and answer.misses is None


def test_a_target_that_nothing_finite_meets():
    answer = size(Memory(), model, "channels", subject_to={"cost": (None, -np.inf)}, within=(1, 64))
    assert answer.status == "unreachable"
    assert answer.message == "cost <= -inf is not met from 1 to 64: the best is 3 at channels=1, off by inf"


def test_a_metric_that_turns_is_reported():
    def bumpy(memory):
        return {"wait": (memory.channels - 30.0) ** 2}

    answer = size(Memory(), bumpy, "channels", subject_to={"wait": (None, 400)}, within=(1, 64))
    assert answer.status == "met" and answer.value == 10 and answer.monotone is False
    assert answer.message.startswith("wait is not monotone: it turns near channels=")
    every = size(
        Memory(), bumpy, "channels", subject_to={"wait": (None, 400)}, within=(1, 64), vectorized=True
    )
    assert every.message == "wait is not monotone: it turns near channels=30"


@pytest.mark.parametrize(("high", "all_seen"), [(65, True), (66, False)])
def test_up_to_65_whole_numbers_are_all_looked_at(high, all_seen):
    answer = size(
        Memory(), model, "channels", subject_to={"wait": (None, 1.5)}, within=(1, high), vectorized=True
    )
    assert (answer.value, answer.monotone) == (14, True if all_seen else None)
    assert answer.evaluations == 65 if all_seen else answer.evaluations < 20


def test_the_best_of_what_misses_has_the_least_sum_of_relative_misses():
    """Cheap enough are 10 channels, fast enough 24: each channel between misses one of the two."""
    targets = {"wait": (None, 0.5), "cost": (None, 30.0)}
    answer = size(Memory(), model, "channels", subject_to=targets, within=(1, 64), vectorized=True)
    seen = {n: model(Memory(n)) for n in range(1, 65)}
    missed = {
        n: sum(max(float(one[name]) - high, 0.0) / high for name, (_, high) in targets.items())
        for n, one in seen.items()
    }
    assert answer.best == min(missed, key=missed.get) and 10 < answer.best < 24
    assert answer.message.count("is not met from 1 to 64") == 2


def test_a_turn_between_the_values_looked_at_is_not_denied():
    def dips(memory):  # below 1 at 4 channels alone, which nine values of 1 to 65 do not meet
        return {"wait": np.where(np.asarray(memory.channels) == 4, 0.5, 70.0 - memory.channels)}

    answer = size(Memory(), dips, "channels", subject_to={"wait": (None, 20)}, within=(1, 65))
    assert (answer.value, answer.monotone) == (50, None)
    every = size(Memory(), dips, "channels", subject_to={"wait": (None, 20)}, within=(1, 64), vectorized=True)
    assert (every.value, every.monotone) == (4, False)


def test_the_end_of_the_range_may_be_the_answer():
    answer = size(Memory(), model, "channels", subject_to={"cost": (None, 1e9)}, within=(3, 9))
    assert (answer.value, answer.misses) == (3, None)
    one = size(Memory(), model, "rate", subject_to={"wait": (None, 1e9)}, within=(0.75, 0.75))
    assert (one.value, one.evaluations) == (0.75, 1)


@dataclass(frozen=True)
class Board:
    """A memory that takes 3 to 21 channels."""

    channels: Any = 4
    rate: Any = 0.25

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.channels) > 21) or np.any(np.asarray(self.channels) < 3):
            raise ValueError(f"channels must be from 3 to 21, got {np.max(self.channels)}")


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("high", [40, 64, 1000])
def test_the_range_ends_where_the_spec_does(vectorized, high):
    def look(targets, which="smallest", within=(1, high)):
        return size(Board(), model, "channels", subject_to=targets, within=within, which=which,
                    vectorized=vectorized)  # fmt: skip

    inside = look({"wait": (None, 1.5)})
    assert (inside.value, inside.misses, inside.message) == (14, 13, "")
    missed = look({"wait": (None, 0.2)})
    assert (missed.status, missed.best, missed.value) == ("unreachable", 21, None)
    assert missed.message.startswith(
        "wait <= 0.2 is not met from 3 to 21: the best is 0.615385 at channels=21"
    )
    assert "the spec takes channels only to 21: channels must be from 3 to 21, got 22" in missed.message
    most = look({"cost": (None, 1e9)}, "largest")
    assert (most.value, most.misses) == (21, None)
    assert most.message == "the spec takes channels only to 21: channels must be from 3 to 21, got 22"
    least = look({"cost": (None, 1e9)})
    assert (least.value, least.message) == (
        3,
        "the spec takes channels only to 3: channels must be from 3 to 21, got 2",
    )
    with pytest.raises(ValueError, match="within must hold values of channels that the spec takes, got 30"):
        look({"cost": (None, 1e9)}, within=(30, high))


def test_the_end_of_a_real_range_is_found_to_the_tolerance():
    answer = size(Board(), model, "channels", subject_to={"wait": (None, 0.1)}, within=(1.0, 50.0))
    assert answer.status == "unreachable" and 21 - 1e-4 < answer.best <= 21
    # Nine values and, around the best, each time seven more in a quarter of the width, down to a millionth.
    assert answer.evaluations <= 9 + 7 * 11


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"subject_to": {}}, "subject_to must have at least one target, got none"),
        ({"subject_to": {"wait": (None, None)}}, "subject_to must have at least one target, got none"),
        ({"subject_to": {"wiat": (None, 1)}}, "no metric 'wiat'; did you mean 'wait'"),
        ({"subject_to": {"word": (None, 1)}}, "metric 'word' must be a number, got x"),
        ({"which": "best"}, "which must be one of smallest, largest, got 'best'"),
        ({"within": (5, 1)}, r"within must be a pair \(low, high\) of finite numbers, .*, got \(5, 1\)"),
        ({"within": 7}, r"within must be a pair \(low, high\) of finite numbers, low <= high, got 7"),
        ({"within": (0, np.inf)}, r"within must be a pair \(low, high\) of finite numbers"),
        ({"tolerance": 0}, "tolerance must be between 0 and 1, got 0"),
        ({"field": "chanels"}, "no field 'chanels'; did you mean 'channels'"),
        ({"evaluate": lambda memory: {"wait": np.nan}}, "evaluate returned NaN for 'wait' at channels=1"),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    arguments = {"subject_to": {"wait": (None, 1.0)}, "within": (1, 64), **changes}
    evaluate, field = arguments.pop("evaluate", model), arguments.pop("field", "channels")
    with pytest.raises(ValueError, match=message):
        size(Memory(), evaluate, field, **arguments)
