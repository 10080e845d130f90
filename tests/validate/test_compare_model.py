from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from qmodels.systems.packet_processor import PacketProcessor
from validate import compare, simulate


@pytest.fixture(scope="module")
def reference():
    return simulate(PacketProcessor(), packets=1000, replications=2, window=32)


def test_rows_state_the_error(reference):
    def model(spec):
        return SimpleNamespace(metrics={"packet_latency": 300.0, "overflow_probability": 0.0, "cost": np.inf})

    comparison = compare(PacketProcessor(), solve=model, reference=reference)
    row, truth = comparison["packet_latency"], reference.packet_latency
    assert row.error == 300.0 - truth.best
    assert row.relative_error == pytest.approx(300.0 / truth.best - 1)
    assert row.inside == (truth.low <= 300.0 <= truth.high) and row.unit == "ns"
    assert (
        comparison["overflow_probability"].relative_error == 0 and comparison["overflow_probability"].inside
    )
    assert comparison["cost"].relative_error == np.inf and not comparison["cost"].inside
    assert set(comparison.to_dict()) == {"packet_latency", "overflow_probability", "cost"}
    assert "* the model lies outside the interval" in comparison.table() == repr(comparison)


def test_a_model_that_is_the_simulation_has_no_error(reference):
    def model(spec):
        return SimpleNamespace(metrics={name: e.best for name, e in reference.metrics.items()})

    comparison = compare(PacketProcessor(), solve=model, reference=reference)
    assert all(row.error == 0 and row.inside for row in comparison.rows.values())
    assert "outside" not in comparison.table()


def test_simulates_and_solves_on_its_own():
    comparison = compare(PacketProcessor(), packets=1000, replications=2, saturation=False)
    assert comparison.reference.replications == 2
    assert comparison["cost"].error == pytest.approx(0)


def test_options_need_a_simulation(reference):
    with pytest.raises(ValueError, match=r"simulate options must be left out .* got \['packets'\]"):
        compare(PacketProcessor(), reference=reference, packets=1000)
