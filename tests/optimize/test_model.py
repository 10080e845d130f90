"""What a model is asked for points around a spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize import sensitivity
from optimize.analysis.model import Model


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
