"""Delays that few jobs meet, and what comes behind a memory that stalls for all."""

from __future__ import annotations

import pytest

import qmodels as qm
from qmodels.composed.moments import Moments
from qmodels.composed.stalls import Stall, after_another, one_stall, quantile_of
from validate import simulate


def test_a_delay_is_evenly_spread_behind_the_rest():
    stall = Stall(0.1, 5.0)
    late = Moments(10.0 + 0.5, stall.variance)
    assert quantile_of([(1.0, late, stall)], 0.89) == pytest.approx(10.0)
    assert quantile_of([(1.0, late, stall)], 0.95) == pytest.approx(15.0, abs=10 / 8)
    gamma = quantile_of([(1.0, late, Stall())], 0.95)
    assert gamma == late.quantile(0.95)


def test_delays_keep_their_mean():
    two = Stall(0.1, 3.0), Stall(0.3, 5.0)
    for both, mean in ((after_another(two), 1.8), (one_stall((0.5, 0.5), two), 0.9)):
        assert both.probability * both.mean == pytest.approx(mean)
    assert after_another([two[0]], 3.0).probability == pytest.approx(1 - 0.9**3)
    assert after_another([Stall(), two[0]]) == two[0]


def test_what_a_refresh_held_up_comes_to_a_station_at_once():
    """Without it the time behind the memory was 37 % too low."""
    parts = {
        "dram": qm.dram("HBM2", channels=1),
        "next": qm.Station(service=qm.laws.Exponential(mean=6.2)),
    }
    flow = qm.Flow(arrivals=qm.traffic.Poisson(), rate=0.0377, program="write dram; each 3 { visit next }")
    system = qm.System(parts=parts, flows=flow)
    answer, runs = qm.solve(system), simulate(system, replications=2, passages=8000)
    times = [each["visit_latency[next]"] for each in (answer, runs)]
    assert float(times[0]) == pytest.approx(times[1].best, rel=0.15)
