"""Waits of bursts and batches against exact chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import Station
from qmodels.composed.parts.bursty import added_by_bursts, bursts_of, two_moments, wait_of_batches
from qmodels.composed.parts.station import station_copy
from qmodels.composed.streams import Queue, Stream
from qmodels.laws import MAP, Deterministic, Erlang, Exponential, scaled
from qmodels.markov import map_ph_1
from qmodels.queues import mmc
from qmodels.queues.general.mmpp_g1 import mmpp_g1_waits
from qmodels.traffic import OnOff


def visits(rate, batch=(0.0, 1.0), **more):
    return Stream(
        flow="jobs", step=None, rate=rate, batch=np.array(batch), scv=1.0, write=False, bytes=0,
        sources=np.zeros(0), **more,
    )  # fmt: skip


def added(load, *, scv, peak, size, servers=1):
    """What bursts add at servers that nobody else comes to."""
    rate = load * servers
    stream = visits(rate, peak=peak, ends=peak * rate / size)
    return added_by_bursts((stream,), np.array([rate]), Queue(rate, rate, 1.0, scv, servers, 0.0))["jobs"]


@pytest.mark.parametrize("load", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("phases", [1, 4])
@pytest.mark.parametrize("peak", [1.3, 2.5, 8.0])
def test_bursts_at_one_server_are_those_of_the_exact_chain(load, phases, peak):
    gaps = bursts_of(3.5, peak)
    exact = map_ph_1(arrivals=scaled(gaps, 1 / load), service=Erlang(mean=1.0, phases=phases))
    more = added(load, scv=1 / phases, peak=peak, size=1.25 / (1 - 1 / peak) ** 2)
    assert_allclose(two_moments(load, 1.0, 1 / phases, 1, 1.0) + more.own, exact.mean_waiting_time, rtol=1e-8)


@pytest.mark.parametrize("load", [1e-9, 1e-4, 0.3])
def test_bursts_of_next_to_nothing_add_next_to_nothing(load):
    for servers in (1, 3):
        none, few = (added(load, scv=1.0, peak=3.0, size=size, servers=servers) for size in (1e-9, 1e-3))
        assert 0 <= none.own <= few.own + 1e-12 and few.own < 1e-2


def test_bursts_have_the_scv_and_the_peak_they_are_made_of():
    source = OnOff(on_packets=4.0, peak_to_mean=2.5)
    gaps = bursts_of(float(source.scv), 2.5)
    assert_allclose(gaps.scv, source.scv)
    assert_allclose(sum(p / m for p, m in zip(gaps.probabilities, gaps.means, strict=True)), 2.5)


@pytest.mark.parametrize("servers", [1, 3])
@pytest.mark.parametrize("load", [0.05, 0.5, 0.95])
def test_batches_of_one_are_single_jobs(servers, load):
    exact = mmc(arrival_rate=load * servers, service_rate=1.0, servers=servers)
    found = wait_of_batches(rate=load * servers, mean=1.0, servers=servers, batch=np.array([0.0, 1.0]))
    assert_allclose(found, exact.mean_waiting_time, rtol=1e-7)


def test_batches_of_random_size_at_one_server_are_in_closed_form():
    batch, load = np.array([0.0, 0.5, 0.2, 0.0, 0.3]), 0.7
    numbers = np.arange(batch.size)
    together = batch @ numbers**2 / (batch @ numbers)
    found = wait_of_batches(rate=load, mean=1.0, servers=1, batch=batch)
    assert_allclose(
        found, (load * (1 + together) / 2 + (together - 1) / 2 - load * (together - 1) / 2) / (1 - load)
    )


@pytest.mark.parametrize("jobs", [2, 3, 5])
def test_equal_jobs_that_share_an_idle_server_end_together(jobs):
    batch = np.eye(jobs + 1)[jobs]
    station = Station(service=Deterministic(mean=2.0), discipline="sharing")
    (response,) = station_copy(station, (visits(1e-9, batch),)).responses
    assert_allclose([response.mean, response.last_mean], 2.0 * jobs, rtol=1e-6)
    random = Station(service=Exponential(mean=2.0), discipline="sharing")
    (response,) = station_copy(random, (visits(1e-9, batch),)).responses
    assert_allclose([response.mean, response.last_mean], [(jobs + 1.0), 2.0 * jobs], rtol=1e-6)


@pytest.mark.parametrize(("jobs", "last"), [(2, 2.0), (3, 4.0), (7, 8.0)])
def test_constant_jobs_of_a_batch_take_idle_servers_in_turns(jobs, last):
    station = Station(service=Deterministic(mean=2.0), servers=2)
    (response,) = station_copy(station, (visits(1e-9, np.eye(jobs + 1)[jobs]),)).responses
    assert_allclose(response.last_mean, last, rtol=1e-6)
    assert_allclose(response.mean, np.mean([2.0 * (k // 2 + 1) for k in range(jobs)]), rtol=1e-6)


@given(
    load=st.floats(0.01, 0.95),
    share=st.floats(0.01, 0.99),
    peak=st.floats(1.1, 20.0),
    size=st.floats(1.0, 200.0),
    scv=st.sampled_from([0.0, 0.5, 2.0]),
)
def test_bursts_among_others(load, share, peak, size, scv):
    """Alone they are the interrupted process, and the more others there are the nearer to Poisson."""

    def waits(share):
        rate = load * share
        return [
            float(wait[0])
            for wait in mmpp_g1_waits(
                others=np.array([load - rate]), rate=np.array([rate]), peak=peak, ends=peak * rate / size,
                mean=np.ones(1), square=np.array([1 + scv]),
            )
        ]  # fmt: skip

    others, bursty = waits(share)
    poisson = load * (1 + scv) / (2 * (1 - load))
    assert poisson * (1 - 1e-6) <= others <= bursty * (1 + 1e-6)
    assert_allclose(waits(1e-6)[0], poisson, rtol=0.01)


@pytest.mark.parametrize("load", [0.3, 0.9])
@pytest.mark.parametrize("phases", [1, 4])
def test_bursts_among_others_are_those_of_the_exact_chain(load, phases):
    rate, others, ends, begins = 0.7 * load, 0.3 * load, 0.2 * load, 0.1 * load
    on = others + 3.0 * rate
    arrivals = MAP.mmpp(generator=[[-ends, ends], [begins, -begins]], rates=[on, others])
    exact = map_ph_1(arrivals=arrivals, service=Erlang(mean=1.0, phases=phases))
    waits = mmpp_g1_waits(
        others=np.array([others]), rate=np.array([rate]), peak=3.0, ends=ends, mean=np.ones(1),
        square=np.array([1 + 1 / phases]),
    )  # fmt: skip
    assert_allclose((others * waits[0] + rate * waits[1])[0] / load, exact.mean_waiting_time, rtol=1e-8)
