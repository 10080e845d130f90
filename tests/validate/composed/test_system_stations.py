"""Systems of stations against exact theory, and against the simulation of queueing networks."""

import numpy as np
import pytest

from qmodels import Flow, JobClass, QueueingNetwork, Station, System, single_station, solve
from qmodels.laws import Deterministic, Erlang, Exponential, Gamma, HyperExponential
from qmodels.steps import Branch, Fork, Hold, Repeat, Visit
from qmodels.systems.stations.parts import LEAVE, ForkJoin
from qmodels.traffic import OnOff, Poisson, Recorded, Trace
from validate import simulate

ONE = Exponential(mean=1.0)


def open_flow(*program, rate=0.7, **fields):
    return Flow(arrivals=Poisson(), rate=rate, program=program, **fields)


def covers(estimate, value, *, within):
    assert float(value) in estimate, f"{float(value)} not in {estimate}"
    assert estimate.half_width <= within * abs(float(value)), f"{estimate} is too wide"


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(
    ("station", "rate"),
    [
        (Station(service=ONE), 0.7),
        (Station(service=Erlang(mean=1.0, phases=3)), 0.7),
        (Station(service=ONE, servers=3), 2.1),
        (Station(service=Gamma(mean=1.0, scv=3.0), discipline="sharing"), 0.7),
        (Station(service=Gamma(mean=1.0, scv=3.0), discipline="lifo-preemptive"), 0.7),
        (Station(service=ONE, setup=Exponential(mean=2.0)), 0.6),
        (Station(service=ONE, vacation=Deterministic(mean=1.0)), 0.6),
        (Station(service=ONE, servers=float("inf")), 3.0),
    ],
    ids=["M/M/1", "M/E/1", "M/M/3", "PS", "LIFO", "set-up", "vacation", "delay"],
)
def test_a_station_alone_is_the_queue_it_is(simulated, station, rate):
    result = simulated(System(parts={"s": station}, flows=open_flow(Visit("s"), rate=rate)), passages=60_000)
    exact = solve(single_station(
        arrivals=Exponential(mean=1 / rate),
        service=station.service,
        **{f: getattr(station, f) for f in ("servers", "discipline", "setup", "vacation")},
    ))  # fmt: skip
    covers(result.latency, exact["mean_response_time"], within=0.04)
    covers(result["visit_latency[s]"], exact["mean_response_time"], within=0.04)
    covers(result.numbers["s"], exact["mean_number_in_system"], within=0.05)
    assert float(exact["utilization"]) in result.utilization["s"]


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("discipline", ["lifo", "priority", "fifo"])
def test_a_station_alone_is_simulated_as_a_network_of_one(simulated, discipline):
    station = Station(service=HyperExponential.balanced(mean=1.0, scv=4.0), discipline=discipline)
    result = simulated(System(parts={"s": station}, flows=open_flow(Visit("s"), rate=0.6)), passages=60_000)
    alone = simulate(
        single_station(arrivals=Exponential(mean=1 / 0.6), service=station.service, discipline=discipline),
        replications=20, confidence=0.999, passages=60_000, seed=2,
    )  # fmt: skip
    own, other = result.latency, alone["mean_response_time"]
    assert own.low <= other.high and other.low <= own.high
    assert own.half_width <= 0.06 * own.best and other.half_width <= 0.06 * other.best


def test_an_open_network_of_product_form_is_jacksons(simulated):
    parts = {"cpu": Station(service=Exponential(mean=0.5)), "disk": Station(service=ONE, servers=2)}
    program = (Visit("cpu"), Branch(((Visit("disk"), Visit("cpu")), ()), (0.6, 0.4)))
    result = simulated(System(parts=parts, flows=open_flow(*program, rate=0.9)))
    network = QueueingNetwork(
        stations=[
            Station(name="cpu", service=Exponential(mean=0.5)),
            Station(name="disk", service=ONE, servers=2),
        ],
        classes=[JobClass(arrivals=Exponential(mean=1 / 0.9))],
        routing={"cpu": {"disk": 0.375, LEAVE: 0.625}, "disk": "cpu"},
    )
    exact = solve(network)
    covers(result["visit_latency[cpu]"], exact["mean_response_time[cpu]"], within=0.04)
    covers(result["visit_latency[disk]"], exact["mean_response_time[disk]"], within=0.04)
    passage = 1.6 * exact["mean_response_time[cpu]"] + 0.6 * exact["mean_response_time[disk]"]
    covers(result.latency, passage, within=0.04)
    assert result.latency.best == pytest.approx(sum(p.best for p in result.latency_parts.values()))


def test_a_closed_network_of_product_form_is_that_of_mva(simulated):
    parts = {
        "cpu": Station(service=ONE),
        "disk": Station(service=Exponential(mean=1.5), discipline="sharing"),
    }
    flow = Flow(population=6, think=Exponential(mean=4.0), program=(Visit("cpu"), Visit("disk")))
    result = simulated(System(parts=parts, flows=flow))
    network = QueueingNetwork(
        stations=[
            Station(name="think", service=Exponential(mean=4.0), servers=float("inf")),
            Station(name="cpu", service=ONE),
            Station(name="disk", service=Exponential(mean=1.5), discipline="sharing"),
        ],
        classes=[JobClass(population=6, reference="think")],
        routing={"think": "cpu", "cpu": "disk", "disk": "think"},
    )
    exact = solve(network)
    covers(result.flow_throughput, exact["system_throughput"], within=0.01)
    covers(result.latency, exact["system_response_time"], within=0.02)
    covers(result["visit_latency[disk]"], exact["mean_response_time[disk]"], within=0.02)
    assert result.stable


def test_a_fork_of_two_is_that_of_flatto_and_hahn(simulated):
    parts = {"a": Station(service=ONE), "b": Station(service=ONE)}
    result = simulated(System(parts=parts, flows=open_flow(Fork((Visit("a"), Visit("b"))), rate=0.5)))
    network = QueueingNetwork(
        stations=[Station(name="a", service=ONE), Station(name="b", service=ONE)],
        forks=[ForkJoin(name="fork", branches=["a", "b"])],
        classes=[JobClass(arrivals=Exponential(mean=2.0), entry="fork")],
    )
    covers(result.latency, solve(network)["system_response_time"], within=0.03)
    assert set(result.latency_parts) == {"a", "b", "fork"}
    assert result.latency_parts["a"].best == 0


@pytest.mark.parametrize("arrivals", [OnOff(on_packets=5, peak_to_mean=3), Gamma(mean=7.0, scv=0.3)])
def test_arrivals_have_their_law_and_the_rate_that_is_given(simulated, arrivals):
    flow = Flow(arrivals=arrivals, rate=0.6, program=(Visit("s"),))
    result = simulated(System(parts={"s": Station(service=ONE)}, flows=flow))
    probability, *rates = getattr(arrivals, "phases", (0, 1, 1))
    gaps = (
        HyperExponential(probabilities=(probability, 1 - probability), means=[1 / 0.6 / r for r in rates])
        if isinstance(arrivals, OnOff)
        else Gamma(mean=1 / 0.6, scv=0.3)
    )
    exact = solve(single_station(arrivals=gaps, service=ONE))
    covers(result.latency, exact["mean_response_time"], within=0.06)
    covers(result.flow_throughput, 0.6, within=0.02)


def test_a_recorded_trace_is_played_with_its_sizes(simulated):
    trace = Trace(times_ns=[0.0, 10.0, 40.0], bytes=[64, 128, 64], source="by hand")
    flow = Flow(arrivals=Recorded(trace=trace), program=(Repeat(Hold(Deterministic(mean=2.0)), "segments"),))
    system = System(parts={"s": Station(service=ONE)}, flows=(flow, open_flow(Visit("s"), name="other")))
    result = simulated(system, replications=3)
    assert result["latency[jobs]"].best == pytest.approx(2.0 * 4 / 3, rel=1e-3)
    assert result["flow_throughput[jobs]"].best == pytest.approx(3 / 60, rel=0.03)


def test_a_job_that_finds_a_station_full_is_lost(simulated):
    station = Station(service=ONE, servers=2, capacity=3)
    result = simulated(System(parts={"s": station}, flows=open_flow(Visit("s"), rate=2.5)))
    exact = solve(single_station(arrivals=Exponential(mean=0.4), service=ONE, servers=2, capacity=3))
    covers(result.blocking_probability, exact["blocking_probability"], within=0.03)
    covers(result.latency, exact["mean_response_time"], within=0.02)


def test_more_than_a_station_can_carry_is_overload(simulated):
    system = System(parts={"s": Station(service=ONE)}, flows=open_flow(Visit("s"), rate=1.2))
    result = simulated(system, replications=4)
    assert not result.stable and result.overloaded == ("jobs",)
    assert np.isinf(result.latency.best) and np.isinf(result.latency_parts["s"].best)
    assert result.utilization["s"].best == pytest.approx(1.0, abs=0.01)
    assert result.flow_throughput.best == pytest.approx(1.0, rel=0.02)


def test_a_station_that_blocks_others_is_refused(simulated):
    station = Station(service=ONE, capacity=3, when_full="after-service")
    system = System(parts={"s": station}, flows=open_flow(Visit("s")))
    with pytest.raises(ValueError, match="parts.s.when_full must be 'loss' in a system, got 'after-service'"):
        simulated(system)
