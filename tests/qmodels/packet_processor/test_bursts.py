"""What bursts of on-off arrivals add to the waits of a packet processor, and where it waits for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import Workload, traffic
from qmodels.packet_processor.trials.density import Density, density, held, near

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


@given(gbps=st.floats(5.0, 90.0), hold=st.sampled_from([0.0, 100.0, 10_000.0, 1e7]))
def test_bursts_of_hardly_more_than_the_mean_rate_add_nothing(gbps, hold):
    base = qm.PacketProcessor()
    poisson = qm.solve(replace(base, workload=replace(base.workload, offered_gbps=gbps, hold_ns=hold)))
    assert_allclose(bursty(1.0, 1.0001, gbps, hold_ns=hold).packet_latency, poisson.packet_latency, rtol=1e-3)


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


def dense(found: Density, time: np.ndarray, cut: float | None = None) -> np.ndarray:
    """Return K at times, or m at holds of pairs on different runs."""
    law = found.tables[0]
    return np.array([near(t, law) if cut is None else held(t, cut, law)[cut == np.inf] for t in time])


def test_poisson_packets_are_as_dense_everywhere() -> None:
    found = density(Workload())
    time = np.array([0.01, 1.0, 100.0])
    assert dense(found, time) == pytest.approx(1.0)
    # Runs that end after every tenth packet: those on the packet's own run, 1 / (1 + c h), do not count.
    assert dense(found, time, 0.1) == pytest.approx(1.0 - 1.0 / (1.0 + 0.1 * time), abs=2e-3)


def test_bursts_are_as_dense_as_their_pairs() -> None:
    """A realisation read as a trace has the density of the law; a hold meets the integral of its pairs."""
    arrivals = traffic.OnOff(on_packets=10, peak_to_mean=3)
    times = np.cumsum(arrivals.gaps(np.random.default_rng(3), 300_000)) * 50.0
    trace = traffic.Trace(times_ns=times - times[0], bytes=np.full(times.size, 64), source="test")
    law, counted = density(Workload(arrivals=arrivals), (4,)), density(Workload.from_trace(trace))
    time = np.array([0.3, 2.0, 10.0, 100.0])
    assert dense(counted, time) == pytest.approx(dense(law, time), rel=0.03)
    # g(u) = 1 + 2 exp(-0.45 u)
    assert dense(law, time, np.inf) == pytest.approx(1.0 + 2.0 / (1.0 + 0.45 * time), rel=0.01)


def test_a_sweep_of_bursts_has_the_density_of_each() -> None:
    peaks = np.array([2.0, 5.0])
    both = density(Workload(arrivals=traffic.OnOff(on_packets=8, peak_to_mean=peaks)), (2,))
    one = [density(Workload(arrivals=traffic.OnOff(on_packets=8, peak_to_mean=p))) for p in peaks]
    assert both.law.tolist() == [0, 1]
    for table, alone in zip(both.tables, one, strict=True):
        np.testing.assert_array_equal(table, alone.tables[0])
