"""What bursts of on-off arrivals add to the waits of a packet processor, and where it waits for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm

STORE, LOOKUP = "write: pointer memory wait", "lookup"


def bursty(on_packets, peak_to_mean, offered_gbps, **workload):
    base = qm.PacketProcessor()
    arrivals = qm.traffic.OnOff(on_packets=on_packets, peak_to_mean=peak_to_mean)
    load = replace(base.workload, arrivals=arrivals, offered_gbps=offered_gbps, **workload)
    return qm.solve(replace(base, workload=load))


# Four replications of 60,000 packets, seed 3: packet latency, its half-width, wait of a store, lookup.
@pytest.mark.parametrize(
    ("on_packets", "peak", "gbps", "latency", "half", "store", "lookup"),
    [
        (50, 7, 40.0, 1360, 216, 479, 68),
        (50, 7, 60.0, 3069, 644, 1136, 94),
        (150, 3, 50.0, 2058, 350, 635, 81),
    ],
)
def test_bursts_are_waited_for_once_and_first_where_packets_come_first(
    on_packets, peak, gbps, latency, half, store, lookup
):
    answer = bursty(on_packets, peak, gbps)
    assert abs(answer.packet_latency - latency) < half
    # The pointer memory comes first and holds most of a burst; lookups pass it by.
    assert_allclose(answer.latency_parts[STORE], store, rtol=0.4)
    assert_allclose(answer.latency_parts[LOOKUP], lookup, rtol=0.4)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(gbps=st.floats(5.0, 90.0), hold=st.sampled_from([0.0, 100.0, 10_000.0, 1e7]))
def test_bursts_of_hardly_more_than_the_mean_rate_add_nothing(gbps, hold):
    base = qm.PacketProcessor()
    poisson = qm.solve(replace(base, workload=replace(base.workload, offered_gbps=gbps, hold_ns=hold)))
    assert_allclose(bursty(1.0, 1.0001, gbps, hold_ns=hold).packet_latency, poisson.packet_latency, rtol=1e-3)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(gbps=st.floats(5.0, 80.0), peak=st.floats(1.2, 10.0), hold=st.sampled_from([0.0, 1000.0, 10_000.0]))
def test_longer_bursts_are_waited_for_longer(gbps, peak, hold):
    found = bursty(np.array([2.0, 10.0, 50.0, 200.0]), peak, gbps, hold_ns=hold)
    assert np.all(np.diff(found.packet_latency) > 0) and np.all(np.diff(found.packet_latency_p99) > 0)
    for part in found.latency_parts.values():
        assert np.all(np.isfinite(part)) and np.all(part >= 0)


def test_packets_that_look_nothing_up_hit_nothing():
    base = qm.PacketProcessor()
    none = replace(base, workload=replace(base.workload, lookups_per_packet=0))
    assert qm.solve(none).llc_hit_ratio == 0.0 < qm.solve(base).llc_hit_ratio
