"""What a model may return, and how it becomes columns."""

import enum
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from optimize import sensitivity
from optimize.spaces.evaluation import Model, metric_columns


@dataclass(frozen=True)
class Estimate:
    low: object
    best: object
    high: object


@dataclass(frozen=True)
class Result:
    throughput: object
    model: str = "M/M/1"
    stable: bool = True
    per_link: object = (0.1, 0.2, 0.3)
    detail: object = None

    @property
    def interval(self):
        return 1 / self.throughput

    def table(self):
        raise AssertionError("methods are not metrics")


def as_lists(columns):
    return {name: column.tolist() for name, column in columns.items()}


def test_a_mapping_of_numbers_words_and_arrays():
    columns = metric_columns(
        {"a": 1, "b": np.float32(2.5), "c": [3, 4], "d": "dram", "e": np.array(["x", "yy"])}, 2
    )
    assert as_lists(columns) == {
        "a": [1, 1],
        "b": [2.5, 2.5],
        "c": [3, 4],
        "d": ["dram"] * 2,
        "e": ["x", "yy"],
    }
    assert [column.dtype.kind for column in columns.values()] == ["f", "f", "f", "U", "U"]
    assert as_lists(metric_columns({"stable": np.True_})) == {"stable": [True]}
    assert as_lists(metric_columns({"latency": np.inf})) == {"latency": [np.inf]}


def test_estimates_become_three_columns():
    columns = metric_columns({"latency": Estimate(1, 2, 4), "n": 3})
    assert as_lists(columns) == {"latency": [2], "latency_low": [1], "latency_high": [4], "n": [3]}
    arrays = metric_columns({"latency": Estimate([1, 2], [2, 3], [3, 4])}, 2)
    assert as_lists(arrays) == {"latency": [2, 3], "latency_low": [1, 2], "latency_high": [3, 4]}
    assert as_lists(metric_columns({"latency": SimpleNamespace(best=7)})) == {"latency": [7]}


def test_attributes_that_are_metrics_count_and_others_do_not():
    columns = metric_columns(Result(throughput=0.5))
    assert as_lists(columns) == {"interval": [2], "model": ["M/M/1"], "stable": [True], "throughput": [0.5]}
    arrays = metric_columns(Result(throughput=np.array([0.5, 0.25])), 2)
    assert as_lists(arrays)["interval"] == [2, 4]
    assert as_lists(metric_columns(SimpleNamespace(x=1, best=2, y=None))) == {"x": [1], "best": [2]}


def test_one_design_has_no_arrays():
    assert as_lists(metric_columns(SimpleNamespace(x=1, per_link=np.array([0.5])))) == {"x": [1]}
    assert as_lists(metric_columns(SimpleNamespace(x=1, y=np.array([0.5])), 1)) == {"x": [1], "y": [0.5]}
    with pytest.raises(
        ValueError, match=r"metric 'x' must be a number, word or estimate, got array\(\[1\]\)"
    ):
        metric_columns({"x": np.array([1])})


def test_metrics_of_an_object_come_first():
    result = SimpleNamespace(metrics={"latency": 3}, bottleneck="link", parts={"link": 1}, latency=5)
    columns = as_lists(metric_columns(result))
    assert columns == {"latency": [3], "bottleneck": ["link"]} and list(columns)[0] == "latency"
    with pytest.raises(ValueError, match="metric 'latency' must be a number, word or estimate"):
        metric_columns(SimpleNamespace(metrics={"latency": None}, bottleneck="link"))


def test_the_columns_are_not_the_arrays_of_the_model_by_accident():
    shared = np.array([1.0, 2.0])
    columns = metric_columns({"a": shared, "b": shared}, 2)
    assert_array_equal(columns["a"], shared)


Pair = namedtuple("Pair", "latency cost")


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"latency": None}, "metric 'latency' must be a number, word or estimate, or 2 of them, got None"),
        (
            {"latency": [1, 2, 3]},
            r"metric 'latency' must be a number, word or estimate, or 2 of them, got \[1, 2, 3\]",
        ),
        ({"latency": [[1], [2, 3]]}, "metric 'latency' must be"),
        ({"latency": 1j}, "metric 'latency' must be"),
        ({"latency": Colour.RED}, "metric 'latency' must be"),
        ({"latency": Estimate(1, None, 2)}, "metric 'latency' must be"),
        ({"latency": lambda: 3}, "metric 'latency' must be"),
        ({}, "evaluate must return metrics, a mapping or an object with them, got {}"),
        (3.5, "evaluate must return metrics, a mapping or an object with them, got 3.5"),
        (None, "evaluate must return metrics"),
        (np.array([1.0, 2.0]), "evaluate must return metrics"),
        ("fast", "evaluate must return metrics"),
        (SimpleNamespace(detail=None), "evaluate must return metrics"),
    ],
)
def test_what_is_no_metric_is_refused(result, message):
    with pytest.raises(ValueError, match=message):
        metric_columns(result, 2)


def test_the_shape_of_an_answer_is_no_metric():
    """With one design in a batch it looked like an array of one, and searches of a sweep's answers failed."""
    one = SimpleNamespace(metrics={"latency": np.array([3.0])}, shape=(1,))
    assert as_lists(metric_columns(one, 1)) == {"latency": [3.0]}


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_mapping_describes_a_result_however_many_entries_it_has(count: int) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Result:
        metrics: Mapping[str, Any]
        error: Any

    class Errors(Mapping[str, float]):
        """Found when they are read, as those of a model: NumPy takes it for a sequence of its values."""

        def __getitem__(self, name: str) -> float:
            return 0.1

        def __iter__(self) -> Iterator[str]:
            return iter(map(str, range(2)))

        def __len__(self) -> int:
            return 2

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.full(2, 0.1)

    found = metric_columns(Result(metrics={"cost": np.arange(float(count))}, error=Errors()), count)
    assert set(found) == {"cost"}


@dataclass(frozen=True)
class Pump:
    speed: Any = 2.0
    width: Any = 3.0
    loss: Any = 0.0

    def __post_init__(self):
        if np.any(np.asarray(self.loss) < 0):
            raise ValueError(f"loss must be >= 0, got {self.loss!r}")


class Metrics(Mapping):
    """Those that are read are noted."""

    def __init__(self, pump, read):
        self.pump, self.read = pump, read

    def __getitem__(self, name):
        self.read.append(name)
        return {"flow": self.pump.speed * self.pump.width - self.pump.loss, "noise": self.pump.speed**2}[name]

    def __iter__(self):
        return iter(("flow", "noise"))

    def __len__(self):
        return 2


@dataclass(frozen=True)
class Answer:
    metrics: Metrics


def test_metrics_that_are_not_asked_for_are_not_read():
    read = []
    found = sensitivity(Pump(), lambda pump: Answer(Metrics(pump, read)), metrics="flow", vectorized=True)
    assert set(read) == {"flow"}
    assert [round(one.derivative, 9) for one in found] == [3.0, 2.0, -1.0]
    assert [one.kind for one in found] == ["smooth", "smooth", "edge"]


def test_fields_that_all_points_leave_as_they_are_stay_numbers():
    seen = []
    model = Model(Pump(), lambda pump: seen.append(pump) or {"flow": pump.speed}, ["flow"], vectorized=True)
    found = model({"speed": [1.0, 2.0, 4.0], "width": [3.0, 3.0, 3.0]})
    assert found[:, 0].tolist() == [1.0, 2.0, 4.0]
    (pump,) = seen
    assert pump.width == 3.0 and pump.speed.tolist() == [1.0, 2.0, 4.0]
    assert model({"speed": [2.0, 2.0]})[:, 0].tolist() == [2.0, 2.0]


def test_points_that_a_spec_refuses_are_left_out_and_the_others_are_solved_together():
    seen = []
    model = Model(Pump(), lambda pump: seen.append(pump) or {"flow": pump.loss}, ["flow"], vectorized=True)
    loss = [0.0, 1.0, -1.0, -2.0, 3.0]
    found = model({"loss": loss, "speed": [2.0] * 5}, forgiving=True)
    np.testing.assert_array_equal(found[:, 0], [0.0, 1.0, np.nan, np.nan, 3.0])
    assert len(seen) == 1 and model.evaluations == 3
