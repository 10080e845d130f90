"""Stations as parts of a system: as queueing networks of one station, and what these cannot say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Flow, JobClass, Noc, QueueingNetwork, Station, System, mesh, queues, single_station
from qmodels.composed.parts.dispatch import respond
from qmodels.composed.parts.station import station_copy
from qmodels.composed.streams import Stream
from qmodels.laws import Deterministic, Erlang, Exponential, HyperExponential
from qmodels.networks.solve import solve_network
from qmodels.noc import uniform
from qmodels.steps import Visit
from qmodels.traffic import Poisson

INF = float("inf")


def visits(rate, *, flow="jobs", scv=1.0, batch=(0.0, 1.0), sources=()):
    """Return a stream of visits."""
    return Stream(
        flow=flow, step=Visit("part"), rate=rate, batch=np.array(batch), scv=scv, write=False, bytes=0,
        sources=np.array(sources, dtype=float),
    )  # fmt: skip


def one_class(**fields):
    return single_station(arrivals=Exponential(mean=1 / 0.3), **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"service": Exponential(mean=2.0)},
        {"service": Erlang(mean=2.0, phases=3)},
        {"service": Deterministic(mean=5.0), "servers": 3},
        {"service": Exponential(mean=8.0), "servers": 4},
        {"service": Erlang(mean=2.0, phases=2), "servers": INF},
        {"service": Erlang(mean=2.0, phases=2), "discipline": "sharing"},
        {"service": Exponential(mean=2.0), "discipline": "lifo"},
        {"service": Exponential(mean=2.0), "discipline": "lifo-preemptive"},
        {"service": Exponential(mean=2.0), "capacity": 5},
        {"service": Deterministic(mean=2.0), "setup": Exponential(mean=4.0)},
        {"service": Exponential(mean=2.0), "vacation": Erlang(mean=4.0, phases=2)},
    ],
)
def test_poisson_visits_are_answered_as_by_the_network_of_the_station(fields):
    network = one_class(**fields)
    expected = solve_network(network).metrics
    answer = station_copy(network.stations[0], (visits(0.3),))
    (response,) = answer.responses
    assert_allclose(response.mean, expected["mean_response_time"], rtol=1e-9)
    assert response.lost == pytest.approx(expected.get("blocking_probability", 0.0), abs=1e-12)
    assert response.variance > 0 and not answer.doubts


def test_variances_are_exact_where_models_give_them():
    (response,) = station_copy(one_class(service=Exponential(mean=2.0)).stations[0], (visits(0.3),)).responses
    assert_allclose(response.variance, (2.0 / 0.4) ** 2)  # the response of M/M/1 is exponential
    shared = one_class(service=Exponential(mean=2.0), discipline="sharing").stations[0]
    exact = queues.mm1_ps(arrival_rate=0.3, service_rate=0.5).response_time_variance
    assert_allclose(station_copy(shared, (visits(0.3),)).responses[0].variance, exact)
    stack = one_class(service=Exponential(mean=2.0), discipline="lifo-preemptive").stations[0]
    # A busy period of M/M/1.
    busy = (1 + 0.6) * 4.0 / 0.4**3
    assert_allclose(station_copy(stack, (visits(0.3),)).responses[0].variance, busy)


def test_flows_with_services_of_their_own_wait_alike():
    station = Station(name="part", service={"short": Exponential(mean=1.0), "long": Deterministic(mean=4.0)})
    answer = station_copy(station, (visits(0.2, flow="short"), visits(0.1, flow="long")))
    network = QueueingNetwork(
        stations=[station],
        classes=[
            JobClass(name="short", arrivals=Exponential(mean=5.0)),
            JobClass(name="long", arrivals=Exponential(mean=10.0)),
        ],
    )
    expected = solve_network(network).metrics
    for response, name in zip(answer.responses, ("short", "long"), strict=True):
        assert_allclose(response.mean, expected[f"mean_response_time[{name}]"])
    assert_allclose(answer.responses[1].mean - answer.responses[0].mean, 3.0)


@pytest.mark.parametrize("servers", [1, 3])
def test_other_arrivals_wait_by_two_moments(servers):
    station = Station(name="part", service=Erlang(mean=2.0 * servers, phases=2), servers=servers)
    means = [station_copy(station, (visits(0.4, scv=scv),)).responses[0].mean for scv in (0.2, 1.0, 4.0)]
    assert means[0] < means[1] < means[2]
    rate = {"arrival_rate": 0.4, "mean_service_time": 2.0 * servers, "service_scv": 0.5, "arrival_scv": 4.0}
    model = queues.gg1_klb(**rate) if servers == 1 else queues.ggc_whitt(**rate, servers=servers)
    assert_allclose(means[2], model.mean_response_time)


def test_jobs_of_a_batch_wait_as_in_batch_arrivals():
    station = Station(name="part", service=Exponential(mean=1.0))
    (response,) = station_copy(station, (visits(0.15, batch=(0, 0, 0, 0, 1)),)).responses
    exact = queues.mxg1(
        arrival_rate=0.15, mean_service_time=1.0, service_scv=1.0, batch_mean=4.0, batch_second_moment=16.0
    )
    assert_allclose(response.mean, exact.mean_response_time, rtol=1e-9)
    assert_allclose(response.last_mean, response.mean + 1.5)


def test_overload_is_endless_and_intensity_grows_with_the_rate():
    station = Station(name="part", service=Exponential(mean=2.0))
    full = station_copy(station, (visits(0.6),))
    assert full.intensity[""] == pytest.approx(1.2) and full.responses[0].mean == INF
    finite = Station(name="part", service=Exponential(mean=2.0), capacity=4)
    answer = station_copy(finite, (visits(0.6),))
    assert answer.responses[0].mean < INF and answer.responses[0].lost > 0.2


def test_what_no_model_says_is_refused_or_doubted():
    blocking = Station(name="part", service=Exponential(mean=2.0), capacity=4, when_full="after-service")
    with pytest.raises(ValueError, match="station 'part': when_full must be 'loss' for the model, got"):
        station_copy(blocking, (visits(0.2),))
    lossy = Station(name="part", service=Exponential(mean=2.0), capacity=4)
    answer = station_copy(lossy, (visits(0.2, scv=3.0),))
    assert answer.doubts == ("arrivals at 'part' are taken to be Poisson there, one at a time",)


def system(arrivals, place=(), at=()):
    parts = {"part": Station(service=Exponential(mean=2.0))}
    if place:
        parts["noc"] = Noc(topology=mesh(2, 2), traffic=uniform(nodes=4))
    flow = Flow(arrivals=arrivals, rate=0.3, program=(Visit("part"),), at=at)
    return System(parts=parts, flows=flow, place={"part": place} if place else {})


def test_a_flow_that_begins_at_a_station_brings_its_law_of_arrivals():
    bursts = HyperExponential.balanced(mean=1 / 0.3, scv=4.0)
    spec = system(bursts)
    stream = visits(0.3, scv=4.0)
    step = spec.flows[0].program[0]
    own = Stream(**{**vars(stream), "step": step})
    exact = queues.gm1(arrival=bursts, service_rate=0.5).mean_response_time
    assert_allclose(respond("part", spec, (own,)).responses[0].mean, exact)
    assert respond("part", spec, (stream,)).responses[0].mean != pytest.approx(float(exact), rel=1e-3)


def test_copies_share_what_comes_from_elsewhere():
    spec = system(Poisson(), place=(0, 1), at=(0, 1, 2))
    even = visits(0.6, sources=[0.25, 0.25, 0.5, 0.0])
    (response,) = respond("part", spec, (even,)).responses
    assert_allclose(response.mean, 2.0 / (1 - 0.6))
    uneven = respond("part", spec, (visits(0.6, sources=[0.6, 0.2, 0.2, 0.0]),))
    low, high = 2.0 / (1 - 0.36), 2.0 / (1 - 0.84)
    assert_allclose(uneven.responses[0].mean, 0.3 * low + 0.7 * high)
    assert uneven.intensity[""] == pytest.approx(0.84)
