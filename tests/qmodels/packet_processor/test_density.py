"""How dense packets lie around a packet, against pairs counted in realisations; what it does to conflicts."""

from __future__ import annotations

import numpy as np
import pytest

from qmodels import Workload, traffic
from qmodels.packet_processor.trials.density import Density, density, held, near


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
