"""The search for the saturation rate, and the verdicts."""

import numpy as np

from qmodels import Noc, crossbar, mesh, ring
from qmodels.noc import Router, permutation, uniform
from validate import saturation_rate
from validate.noc.verdict import overloaded_flows, verdict


def test_a_conflict_free_permutation_is_limited_by_its_sources_alone():
    spec = Noc(topology=crossbar(4), traffic=permutation([1, 2, 3, 0]), flits_per_packet=4)
    found = saturation_rate(spec, precision=0.05, replications=2, cycles=4000)
    # Random sources cannot fill a channel quite: a run of finite length takes almost 1 for stable.
    assert found.low >= 0.9 / 4
    assert found.high <= 1 / 4
    below = {verdict for rate, verdict in found.points if rate <= found.low}
    assert "stable" in below and below <= {"stable", "undecided"}


def test_a_congested_ring_carries_less_and_a_mesh_does_not():
    uniform_16 = uniform(nodes=16, self_traffic=True)
    options = {"precision": 0.05, "replications": 3, "cycles": 6000}
    on_ring = saturation_rate(Noc(topology=ring(16), traffic=uniform_16, flits_per_packet=1), **options)
    on_mesh = saturation_rate(Noc(topology=mesh(4, 4), traffic=uniform_16, flits_per_packet=1), **options)
    assert on_ring.metastable
    assert not on_mesh.metastable
    assert on_ring.congested_rate < on_ring.low < on_ring.rate < on_ring.high


def test_one_virtual_channel_and_single_flits_saturate_where_booksim_does():
    # BookSim2 with the one-stage router: 0.668 on the 4x4 mesh, uniform traffic with the own node, by
    # another criterion. Runs of 100,000 cycles pile up from between 0.675 and 0.68 on.
    spec = Noc(
        topology=mesh(4, 4),
        router=Router(virtual_channels=1),
        traffic=uniform(nodes=16, self_traffic=True),
        flits_per_packet=1,
    )
    found = saturation_rate(spec, precision=0.02)
    assert abs(found.rate / 0.668 - 1) < 0.025


def series(waiting, carried):
    """Return what 8 runs of 60 intervals would show, with a little noise."""
    rng = np.random.default_rng(3)
    return [
        np.stack([waiting + rng.integers(0, 3, 60), carried + rng.integers(-2, 3, 60)], axis=1)
        for _ in range(8)
    ]


def test_the_verdict_follows_backlog_and_deliveries():
    time, flat = np.arange(60), np.full(60, 100)
    falls = np.where(time < 8, 120, 100)
    assert verdict(series(5 + 0 * time, flat), deadlocked=False, full=False) == "stable"
    assert verdict(series(50 * time, flat), deadlocked=False, full=False) == "saturated"
    assert verdict(series(50 * time, falls), deadlocked=False, full=False) == "metastable"
    assert verdict(series(5 + 0 * time, flat), deadlocked=True, full=False) == "deadlocked"
    assert verdict(series(5 + 0 * time, flat), deadlocked=False, full=True) != "stable"
    # A packet more or less at the end of a short run is no growth.
    few = [np.stack([np.where(time > 50, 1, 0), np.full(60, 2)], axis=1)] * 2
    assert verdict(few, deadlocked=False, full=False) == "stable"
    # A fall in the deliveries of a network that keeps up means nothing.
    assert verdict(series(5 + 0 * time, falls), deadlocked=False, full=False) == "stable"


def test_a_flow_is_overloaded_if_its_lag_grows_with_time():
    lags = [np.array([[100, 10, 0], [600, 30, 0]]) + k for k in range(4)]
    assert overloaded_flows(lags, [10_000] * 4).tolist() == [True, False, False]
