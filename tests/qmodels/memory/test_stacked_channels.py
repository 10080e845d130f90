from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.memory.interleaving_load import interleaving_load
from qmodels.memory.stacked_channels import stacked_channels
from qmodels.queues.markovian.mmck import mmck
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved

few = settings(max_examples=25, deadline=None, derandomize=True)
rates = st.floats(0.05, 20)


@few
@given(rates, rates, st.integers(1, 5), st.integers(1, 15))
def test_equal_rates_are_m_m_c_k(arrival, rate, channels, capacity):
    found = stacked_channels(
        arrival_rate=arrival, single_rate=rate, interleaved_rate=rate, channels=channels, capacity=capacity
    )
    servers = min(2 * channels, capacity)
    known = mmck(arrival_rate=arrival, service_rate=rate, servers=servers, capacity=capacity)
    assert_allclose(found.blocking_probability, known.blocking_probability, rtol=1e-8)
    assert_allclose(found.mean_response_time, known.mean_response_time, rtol=1e-8)
    assert_allclose(found.mean_waiting_time, known.mean_waiting_time, rtol=1e-6, atol=1e-12)


@few
@given(rates, rates, rates, st.integers(1, 4), st.integers(1, 12))
def test_laws(arrival, one, two, channels, capacity):
    load = {"arrival_rate": arrival, "single_rate": one, "channels": channels, "capacity": capacity}
    found = stacked_channels(interleaved_rate=two, **load)
    assert_allclose(found.throughput, arrival * (1 - found.blocking_probability), rtol=1e-8)
    assert_allclose(found.mean_number_in_system, found.throughput * found.mean_response_time)
    faster = stacked_channels(interleaved_rate=two * 1.5, **load)
    assert faster.throughput >= found.throughput * (1 - 1e-9)
    if capacity <= channels:
        assert found.interleaved_share == 0


def test_two_banks_by_hand():
    # One channel, two requests at most: rates 1 up, 3 from one, 2 * 2 from two.
    found = stacked_channels(arrival_rate=1.0, single_rate=3.0, interleaved_rate=2.0, capacity=2)
    weights = np.array([1.0, 1 / 3, 1 / 3 / 4])
    law = weights / weights.sum()
    assert_allclose(found.blocking_probability, law[2])
    assert_allclose(found.interleaved_share, 2 * law[2] / (law[1] + 2 * law[2]))


def test_messages():
    good = {"arrival_rate": 1.0, "single_rate": 1.0, "interleaved_rate": 1.0, "capacity": 4}
    for name in ("arrival_rate", "single_rate", "interleaved_rate"):
        with pytest.raises(ValueError, match=f"{name} must be finite and > 0, got 0"):
            stacked_channels(**(good | {name: 0}))
    with pytest.raises(ValueError, match="capacity must be a whole number >= 1, got 0"):
        stacked_channels(**(good | {"capacity": 0}))
    with pytest.raises(ValueError, match="channels must give at most 200000 states, got 1000"):
        stacked_channels(**(good | {"channels": 1000}))


@few
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 6))
def test_interleaving_load_is_what_the_map_gives(blocks, step, channels):
    load = interleaving_load(blocks=blocks, step=step, channels=channels)
    geometry, plan = DramGeometry(channels=channels), Interleaved(step=step)
    starts = np.arange(step * channels)
    place = plan.locate(starts[:, None] + np.arange(blocks), geometry)
    counts = np.array([np.bincount(row, minlength=channels) for row in place.channel])
    assert_allclose(load.channels_touched, (counts > 0).sum(axis=1).mean())
    assert_allclose(load.burstiness, (counts**2).mean() / counts.mean())
    assert_allclose(load.imbalance, counts.max(axis=1).mean() * channels / blocks)
    assert_allclose(load.batch, counts[counts > 0].mean())


def test_one_channel_makes_the_step_nothing():
    load = interleaving_load(blocks=24, step=[1, 5, 24, 100], channels=1)
    assert_allclose(load.burstiness, 24.0)
    assert_allclose(load.imbalance, 1.0)
    with pytest.raises(ValueError, match="step must be a whole number >= 1, got 0"):
        interleaving_load(blocks=24, step=0, channels=4)
