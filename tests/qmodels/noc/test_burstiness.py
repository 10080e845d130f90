"""Sources that send in bursts: what they add to the waits for channels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.noc import Bernoulli, Noc, mesh, permutation, ring, uniform
from qmodels.noc.solve_noc import solve_noc
from qmodels.noc.waits import burst_factor
from qmodels.queues.general.mmpp_g1 import mmpp_g1_waits
from qmodels.traffic import OnOff

BURSTS = st.builds(OnOff, on_packets=st.floats(1, 100), peak_to_mean=st.floats(1.05, 10))


def network(process, *, targets=None, **fields):
    """A ring whose nodes send to one other each."""
    targets = targets or [(node + 3) % 8 for node in range(8)]
    traffic = permutation(targets)
    return Noc(topology=ring(8), traffic=traffic, flits_per_packet=4, process=process, **fields)


def factors(process, loads, **fields):
    turns = solve_noc(network(process, injection_rate=0.01, **fields)).waits.turns
    return turns, burst_factor(turns, np.asarray(loads))


@given(bursts=BURSTS, load=st.floats(0.05, 0.95))
def test_one_source_adds_what_its_bursts_do_alone(bursts, load):
    """One node sends, so that every channel of its path has all of its packets: the exact MMPP/D/1."""
    turns, found = factors(bursts, [load / 4], targets=[3, 1, 2, 0, 4, 5, 6, 7])
    rate, ends = load / 4, bursts.peak_to_mean * load / 4 / bursts.on_packets
    _, wait = mmpp_g1_waits(
        others=np.zeros(1), rate=np.array([rate]), peak=bursts.peak_to_mean, ends=ends,
        mean=np.full(1, 4.0), square=np.full(1, 16.0),
    )  # fmt: skip
    path = turns.table.channel_names.index("0->1")
    assert found[0, path] == pytest.approx(float(wait[0]) / (load * 2 / (1 - load)), rel=1e-6)


@given(bursts=BURSTS, loads=st.lists(st.floats(1e-3, 0.99), min_size=2, max_size=4))
def test_bursts_never_shorten_waits_and_longer_ones_add_more(bursts, loads):
    at = np.sort(loads) / 12
    _, found = factors(bursts, at)
    _, longer = factors(OnOff(on_packets=2 * bursts.on_packets, peak_to_mean=bursts.peak_to_mean), at)
    assert np.all(found >= 1)
    assert np.all(longer >= found * (1 - 1e-9))


@given(peak=st.floats(1.1, 8), share=st.floats(0.1, 0.9))
def test_bursts_that_do_not_fill_a_channel_add_a_bounded_amount_however_long(peak, share):
    """In a burst the source is Poisson at its peak: no burst waits longer than that queue does."""
    load = share / peak
    turns, found = factors(
        OnOff(on_packets=1e7, peak_to_mean=peak), [load / 4], targets=[3, 1, 2, 0, 4, 5, 6, 7]
    )
    path = turns.table.channel_names.index("0->1")
    assert found[0, path] == pytest.approx(peak * (1 - load) / (1 - peak * load), rel=1e-2)


def test_a_source_that_is_hardly_bursty_is_poisson():
    _, found = factors(OnOff(on_packets=1, peak_to_mean=1 + 1e-9), [0.02, 0.06])
    assert_allclose(found, 1, atol=1e-6)


@pytest.mark.parametrize(
    ("topology", "traffic", "bursts", "share", "low", "high"),
    [
        (ring(8), permutation([3, 4, 5, 6, 7, 0, 1, 2]), (40, 6), 0.3, 19.1, 19.5),
        (ring(8), permutation([3, 4, 5, 6, 7, 0, 1, 2]), (10, 3), 0.3, 18.4, 18.5),
        (mesh(4, 4), uniform(nodes=16), (40, 6), 0.3, 57.0, 61.8),
        (mesh(4, 4), uniform(nodes=16), (40, 6), 0.5, 135.0, 149.1),
        (mesh(4, 4), uniform(nodes=16), (10, 3), 0.3, 20.3, 20.5),
        (mesh(4, 4), uniform(nodes=16), (10, 3), 0.7, 48.7, 52.2),
    ],
)
def test_latency_behind_bursts_is_near_the_simulated_one(topology, traffic, bursts, share, low, high):
    """``simulate(noc, packets=20_000, seed=3)``: the ends of its interval; the model within 2 % of these."""
    process = OnOff(on_packets=bursts[0], peak_to_mean=bursts[1])
    noc = Noc(topology=topology, traffic=traffic, flits_per_packet=4, process=process, injection_rate=1e-3)
    rate = share * float(solve_noc(noc).saturation_rate)
    latency = float(solve_noc(noc.replace(injection_rate=rate)).packet_latency)
    assert 0.98 * low < latency < 1.02 * high


@pytest.mark.parametrize("packets", [1.0, 1e3, 1e6, 1e9])
@pytest.mark.parametrize("peak", [1 + 1e-12, 2.0, 100.0, 1e6])
def test_extreme_bursts_leave_waits_between_those_of_random_packets_and_of_a_whole_burst(packets, peak):
    """At a rate of 1e-12 the source queue's formula lost all digits: minus 1.8e13 cycles."""
    noc = network(OnOff(on_packets=packets, peak_to_mean=peak), injection_rate=np.array([1e-12, 1e-3, 0.02]))
    latency, least = solve_noc(noc).packet_latency, solve_noc(network(Bernoulli())).zero_load_latency
    assert np.all(latency >= 0.99 * least)
    if peak * 0.02 * 4 < 1:
        assert np.all(latency < 10 * least)
