"""Systems of stations alone answer as queueing networks do."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Flow, JobClass, QueueingNetwork, Station, System, single_station
from qmodels.composed import solve_system
from qmodels.laws import Deterministic, Erlang, Exponential, HyperExponential, LogNormal
from qmodels.networks import jackson, mva
from qmodels.networks.solve import solve_network
from qmodels.steps import Branch, Hold, Repeat, Visit
from qmodels.traffic import OnOff, Poisson

CPU, DISK = Station(service=Exponential(mean=0.5)), Station(service=Exponential(mean=1.4), servers=2)


def test_an_open_product_form_is_jackson():
    program = (
        Visit("cpu"),
        Branch(((Visit("disk"), Visit("cpu")), ()), (0.4, 0.6)),
        Repeat(Visit("disk"), 2),
    )
    flow = Flow(arrivals=Poisson(), rate=0.3, program=program)
    answer = solve_system(System(parts={"cpu": CPU, "disk": DISK}, flows=flow))
    visits = np.array([1.4, 2.4])
    alone = jackson(
        arrival_rate=0.3 * visits, service_rate=[2.0, 1 / 1.4], routing=np.zeros((2, 2)), servers=[1, 2]
    )
    assert_allclose(answer.latency, visits @ alone.mean_response_time, rtol=1e-9)
    assert_allclose(answer["visit_latency[disk]"], alone.mean_response_time[1], rtol=1e-9)
    assert answer.stable and "exact" in answer.model


@pytest.mark.parametrize("population", [1, 3, 20])
def test_a_closed_product_form_is_mva(population):
    program = (Visit("cpu"), Repeat((Visit("disk"), Visit("cpu")), 3), Hold(LogNormal(mean=2.0, scv=3.0)))
    flow = Flow(population=population, think=Deterministic(mean=5.0), program=program)
    answer = solve_system(System(parts={"cpu": CPU, "disk": DISK}, flows=flow))
    expected = mva(
        population=population, mean_service_time=[0.5, 1.4], visits=[4, 3], servers=[1, 2], think_time=7.0
    )
    rate = float(expected.system_throughput)
    assert_allclose(answer.flow_throughput, rate, rtol=1e-9)
    assert_allclose(answer.latency, population / rate - 5.0, rtol=1e-9)


def test_open_and_closed_flows_are_a_mixed_network():
    flows = [
        Flow(name="open", arrivals=Poisson(), rate=0.3, program=(Visit("cpu"), Visit("disk"))),
        Flow(name="closed", population=4, think=Exponential(mean=2.0), program=(Visit("disk"), Visit("cpu"))),
    ]
    answer = solve_system(System(parts={"cpu": CPU, "disk": DISK}, flows=flows))
    closed = answer["flow_throughput[closed]"] * (2.0 + answer["latency[closed]"])
    assert_allclose(closed, 4, rtol=1e-9)
    assert "BCMP" in answer.model
    weights = np.array([0.3, answer["flow_throughput[closed]"]])
    each = np.array([answer["latency[open]"], answer["latency[closed]"]])
    assert_allclose(answer.latency, weights @ each / weights.sum())
    assert_allclose(sum(answer.latency_parts.values()), answer.latency)


@pytest.mark.parametrize(
    "service", [Deterministic(mean=2.0), Erlang(mean=2.0, phases=3), LogNormal(mean=2.0, scv=2.0)]
)
@pytest.mark.parametrize("arrivals", [Exponential(mean=2.5), Erlang(mean=2.5, phases=2)])
def test_one_station_answers_as_it_does_alone(service, arrivals):
    flow = Flow(arrivals=arrivals, program=(Visit("queue"),))
    answer = solve_system(System(parts={"queue": Station(service=service)}, flows=flow))
    alone = solve_network(single_station(arrivals=arrivals, service=service))
    assert_allclose(answer.latency, alone.metrics["mean_response_time"], rtol=1e-9)


def test_bursts_at_one_station_are_those_of_their_own_law():
    bursts = OnOff(on_packets=5, peak_to_mean=3.0)
    flow = Flow(arrivals=bursts, rate=0.4, program=(Visit("queue"),))
    answer = solve_system(System(parts={"queue": Station(service=Exponential(mean=1.0))}, flows=flow))
    poisson = Flow(arrivals=Poisson(), rate=0.4, program=(Visit("queue"),))
    plain = solve_system(System(parts={"queue": Station(service=Exponential(mean=1.0))}, flows=poisson))
    assert answer.latency > 1.5 * plain.latency


def test_long_bursts_have_an_exact_mean():
    flow = Flow(arrivals=OnOff(on_packets=40, peak_to_mean=6.0), rate=0.5, program=(Visit("queue"),))
    answer = solve_system(System(parts={"queue": Station(service=Deterministic(mean=1.0))}, flows=flow))
    # Lindley's recursion over 9 million jobs waits 46.0; two moments of the gaps gave 17.3.
    assert_allclose(answer.latency, 46.29, rtol=1e-3)


@pytest.mark.parametrize("think", [None, Erlang(mean=3.0, phases=2)])
def test_one_closed_flow_that_goes_round_is_a_chain_of_phases(think):
    first, second = HyperExponential.balanced(mean=1.0, scv=9.0), Erlang(mean=1.0, phases=4)
    parts = {"a": Station(service=first), "b": Station(service=second)}
    flow = Flow(population=3, think=think, program=(Visit("a"), Visit("b")))
    answer = solve_system(System(parts=parts, flows=flow))
    stations = [Station(name="a", service=first), Station(name="b", service=second)]
    around = {"a": {"b": 1.0}, "b": {"a": 1.0}}
    if think is not None:
        stations.append(Station(name="home", service=think, servers=np.inf))
        around |= {"b": {"home": 1.0}, "home": {"a": 1.0}}
    alone = solve_network(
        QueueingNetwork(stations=stations, classes=[JobClass(population=3)], routing=around)
    )
    assert alone.kind == "exact" and "exact" in answer.model
    assert_allclose(answer.flow_throughput, alone.metrics["throughput[a]"], rtol=1e-9)
    # Of a program that comes back to a station only the visits are kept, which do not tell all.
    again = replace(flow, program=(Visit("a"), Visit("b"), Visit("a")))
    assert "approximation" in solve_system(System(parts=parts, flows=again)).model


def test_a_full_station_loses_what_it_loses_alone():
    station = Station(service=Exponential(mean=10.0), capacity=3)
    flow = Flow(arrivals=Poisson(), rate=0.08, program=(Visit("first"), Visit("second")))
    parts = {"first": station, "second": Station(service=Exponential(mean=10.0))}
    answer = solve_system(System(parts=parts, flows=flow))
    alone = solve_network(
        single_station(arrivals=Exponential(mean=12.5), service=Exponential(mean=10.0), capacity=3)
    )
    lost = alone.metrics["blocking_probability"]
    assert_allclose(answer.blocking_probability, lost, rtol=1e-6)
    assert_allclose(answer.flow_throughput, 0.08 * (1 - lost), rtol=1e-6)
    assert_allclose(answer.utilization["second"], 0.8 * (1 - lost), rtol=1e-6)
