"""Open networks: Jackson, BCMP and QNA against balance equations, each other and their limits."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import NetworkResult, bcmp, jackson, mva, qna
from qmodels.queues import gg1_klb, mg1

LOOP = np.array([[0.0, 0.7, 0.3], [0.2, 0.0, 0.5], [0.1, 0.0, 0.0]])


def test_jackson_against_balance_equations(chain):
    # Cut off at 14 jobs, beyond which the probability is below 1e-7.
    servers, mu = [1, 2, np.inf], [2.0, 0.8, 1.5]
    routing = np.zeros((4, 4))
    routing[:3, :3] = LOOP
    routing[:3, 3] = 1 - LOOP.sum(axis=1)
    routing[3, 0] = 1.0
    number, flow = chain(
        population=[0],
        times=[[1 / m] for m in mu],
        routing=[routing.tolist()],
        think_time=[0.0],
        rate=lambda i, n: min(n, servers[i]),
        arrivals=[0.2],
        room=14,
    )
    r = jackson(arrival_rate=[0.2, 0, 0], service_rate=mu, routing=LOOP, servers=servers)
    assert_allclose(r.mean_number_in_system, number[:, 0], rtol=1e-6)
    assert_allclose(r.throughput, flow[:, 0], rtol=1e-7)
    assert r.kind == "exact"


def test_jackson_with_load_dependent_rates(chain):
    rates = [1.0, 1.5, 0.8, 2.5]
    number, _ = chain(
        population=[0],
        times=[[1.0], [0.5]],
        routing=[[[0, 0.5, 0.5], [0, 0, 1], [1, 0, 0]]],
        think_time=[0.0],
        rate=lambda i, n: rates[min(n, 4) - 1] if i == 0 else 1.0,
        arrivals=[0.6],
        room=45,
    )
    line = {"arrival_rate": [0.6, 0], "service_rate": [1, 2], "routing": [[0, 0.5], [0, 0]]}
    r = jackson(**line, rate_multiplier={0: rates})
    assert_allclose(r.mean_number_in_system, number[:, 0], rtol=1e-9)
    # Two servers are the rates 1, 2, 2, ...
    two, same = jackson(**line, servers=[2, 1]), jackson(**line, rate_multiplier={0: [1, 2]})
    assert_allclose(same.mean_response_time, two.mean_response_time, rtol=1e-13)
    over = jackson(arrival_rate=[3.0, 0], **{k: line[k] for k in ("service_rate", "routing")})
    slow = jackson(**line | {"arrival_rate": [3.0, 0]}, rate_multiplier={0: [1.0]})
    assert_allclose(slow.throughput, over.throughput)
    assert np.isinf(slow.mean_response_time[0]) and slow.utilization[0] == 1 and not slow.stable[0]
    idle = jackson(**line | {"arrival_rate": [0.0, 0]}, rate_multiplier={0: [2.0]})
    assert idle.mean_response_time[0] == 0.5 and idle.mean_number_in_system[0] == 0


@given(
    load=st.floats(0.01, 0.95),
    mu=st.lists(st.floats(0.1, 10.0), min_size=3, max_size=3),
    servers=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    unit=st.floats(1e-6, 1e6),
)
def test_laws_of_jackson(load, mu, servers, unit):
    visits = np.linalg.solve(np.eye(3) - LOOP.T, [1.0, 0, 0])
    most = np.min(np.array(mu) * servers / visits)
    gamma = load * most
    r = jackson(arrival_rate=[gamma, 0, 0], service_rate=mu, routing=LOOP, servers=servers)
    assert r.stable.all()
    assert_allclose(r.visits, visits, rtol=1e-12)
    assert_allclose(r.system_throughput, gamma, rtol=1e-12)
    assert_allclose(r.mean_number_in_network, gamma * r.system_response_time, rtol=1e-12)
    assert_allclose(r.station_utilization.max(), load, rtol=1e-12)
    s = jackson(
        arrival_rate=[gamma * unit, 0, 0], service_rate=np.array(mu) * unit, routing=LOOP, servers=servers
    )
    assert_allclose(s.mean_response_time * unit, r.mean_response_time, rtol=1e-8)
    # QNA and BCMP are this network for Poisson arrivals and exponential service.
    q = qna(arrival_rate=[gamma, 0, 0], service_rate=mu, routing=LOOP, servers=servers)
    assert_allclose(q.mean_response_time, r.mean_response_time, rtol=1e-9)
    assert_allclose(q.arrival_scv, 1.0, rtol=1e-12)
    b = bcmp(arrival_rate=[[gamma], [0], [0]], service_rate=mu, routing=LOOP, servers=servers)
    assert_allclose(b.mean_response_time[:, 0], r.mean_response_time, rtol=1e-12)
    assert_allclose(b.system_throughput, [gamma], rtol=1e-12)


def test_overloaded_stations_pass_on_what_they_can():
    # Station 0 is too slow; station 1 behind it gets 1, station 2 half of it, and some comes back.
    r = jackson(
        arrival_rate=[3, 0, 0.1], service_rate=[1, 2, 5], routing=[[0, 1, 0], [0, 0, 0.5], [0.3, 0, 0]]
    )
    assert r.stable.tolist() == [False, True, True]
    assert_allclose(r.throughput, [1, 1, 0.6])
    assert_allclose(r.utilization, [1, 0.5, 0.12])
    assert np.isinf(r.mean_response_time[0]) and np.isinf(r.mean_number_in_system[0])
    assert_allclose(r.mean_response_time[1:], [1.0, 1 / (5 - 0.6)])
    assert_allclose(r.system_throughput, 0.92)
    assert "overloaded: 0" in repr(r)
    # A station that only the unlimited flows would overload is not: 0 holds them back.
    r = jackson(arrival_rate=[3, 0], service_rate=[1, 1.5], routing=[[0, 1], [0, 0]])
    assert r.stable.tolist() == [False, True]
    assert_allclose(r.mean_response_time[1], 1 / 0.5)
    # Exactly full is overloaded too.
    full = jackson(arrival_rate=[1.0], service_rate=[1.0], routing=[[0.0]])
    assert not full.stable[0] and np.isinf(full.mean_response_time[0]) and full.utilization[0] == 1
    q = qna(arrival_rate=[3, 0], service_rate=[1, 1.5], routing=[[0, 1], [0, 0]])
    assert q.stable.tolist() == [False, True] and np.isinf(q.mean_number_in_system[0])
    assert_allclose(q.throughput, [1, 1])


def test_no_arrivals():
    for solve in (jackson, qna):
        r = solve(arrival_rate=[0, 0], service_rate=[1, 2], routing=[[0, 1], [0, 0]])
        assert_allclose(r.mean_response_time, [1.0, 0.5])
        assert_allclose(r.mean_number_in_system, 0)
        assert r.system_throughput == 0 and r.stable.all()
    b = bcmp(arrival_rate=[0.0], mean_service_time=[1.0, 0.5])
    assert_allclose(b.mean_response_time[:, 0], [1.0, 0.5])
    assert b.mean_number_in_network[0] == 0


def test_bcmp_against_balance_equations(chain):
    servers, times = [1, 2], [[0.5, 1.0], [2.0, 0.7]]
    line = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    number, flow = chain(
        population=[0, 0],
        times=times,
        routing=[line, line],
        think_time=[0.0, 0.0],
        rate=lambda i, n: min(n, servers[i]),
        arrivals=[0.25, 0.2],
        room=11,
    )
    r = bcmp(arrival_rate=[0.25, 0.2], mean_service_time=times, servers=servers)
    assert_allclose(r.mean_number_in_system, number, rtol=2e-3)  # cut off at 11 jobs of each class
    assert_allclose(r.throughput, flow, rtol=1e-4)


def test_bcmp_disciplines_and_delays():
    times = {"cpu": 0.5, "disk": 0.25, "think": 3.0}
    r = bcmp(arrival_rate=[0.6, 0.4], mean_service_time=times, discipline=["fcfs", "lcfs", "is"])
    assert r.stations == ("cpu", "disk", "think")
    assert_allclose(r.mean_response_time[:, 0], [1.0, 1 / 3, 3.0])
    assert_allclose(r.mean_number_in_system[2], [1.8, 1.2])
    assert_allclose(r.utilization[2], 0)
    assert_allclose(r.station_utilization, [0.5, 0.25, 0])
    same = bcmp(arrival_rate=[0.6, 0.4], mean_service_time=times, servers=[1, 1, np.inf])
    assert_allclose(same.mean_number_in_system, r.mean_number_in_system)


def test_bcmp_jobs_may_change_class():
    change = np.zeros((2, 2, 2, 2))
    change[0, 0, 1, 1] = 1.0
    r = bcmp(arrival_rate=[[0.5, 0], [0, 0]], mean_service_time=[[1.0, 9.0], [9.0, 0.5]], routing=change)
    assert_allclose(r.throughput, [[0.5, 0], [0, 0.5]])
    assert_allclose(r.mean_response_time, [[2.0, 0], [0, 0.5 / 0.75]])
    assert_allclose(r.system_throughput, [0, 0.5])
    assert_allclose(r.system_response_time.sum(), 2.0 + 0.5 / 0.75)
    assert_allclose(r.to_networkx().edges[0, 1]["flow"], 0.5)


def test_bcmp_overload_hits_the_classes_that_visit():
    r = bcmp(
        arrival_rate={"a": 1.5, "b": 0.5, "c": 0.1},
        mean_service_time=[[1.0, 1.0, 1.0], [0.2, 0.2, 0.2]],
        visits=[[1, 1, 0], [1, 1, 1]],
    )
    assert r.stable.tolist() == [[False, False, True], [True, True, True]]
    assert np.isinf(r.mean_response_time[0, :2]).all() and r.mean_response_time[0, 2] == 0
    assert_allclose(r.throughput[0], [0.75, 0.25, 0])
    assert_allclose(r.station_utilization[0], 1.0)
    assert_allclose(r.system_throughput, [0.75, 0.25, 0.1])
    assert np.isfinite(r.mean_response_time[1]).all()


def test_a_closed_network_fed_by_many_jobs_is_the_open_one():
    open_ = bcmp(arrival_rate=[0.5, 0.2], mean_service_time=[[0.5, 1.0], [0.8, 0.4]])
    errors = []
    for people in (250, 1000):
        closed = mva(
            population=[people, people],
            mean_service_time=[[0.5, 1.0], [0.8, 0.4]],
            think_time=[people / 0.5, people / 0.2],
        )
        errors.append(np.abs(closed.mean_response_time / open_.mean_response_time - 1).max())
    assert errors[1] < 4e-3 and errors[0] / errors[1] > 3.5


@given(load=st.floats(0.05, 0.95), scv=st.floats(0.0, 5.0), arrival=st.floats(0.0, 5.0))
def test_qna_of_one_station_is_the_single_queue(load, scv, arrival):
    r = qna(arrival_rate=[load], service_rate=[1], routing=[[0]], arrival_scv=arrival, service_scv=scv)
    one = gg1_klb(arrival_rate=load, service_rate=1, arrival_scv=arrival, service_scv=scv)
    assert_allclose(r.mean_response_time[0], one.mean_response_time, rtol=1e-12)
    poisson = qna(arrival_rate=[load], service_rate=[1], routing=[[0]], service_scv=scv)
    exact = mg1(arrival_rate=load, service_rate=1, service_scv=scv)
    assert_allclose(poisson.mean_response_time[0], exact.mean_response_time, rtol=1e-12)


def test_qna_flows_by_hand():
    # Split: 1 - q + q c_d^2; fixed service counts as SCV 0.2 in the departures.
    r = qna(
        arrival_rate=[0.8, 0, 0],
        service_rate=[1, 1, 1],
        routing=[[0, 0.25, 0.75], [0, 0, 0], [0, 0, 0]],
        service_scv=[0, 1, 1],
    )
    departing = 1 - 0.64 + 0.64 * 0.2
    assert_allclose(r.departure_scv[0], departing)
    assert_allclose(r.arrival_scv[1:], [1 - 0.25 + 0.25 * departing, 1 - 0.75 + 0.75 * departing])
    # Merge of two streams with weights p = 0.75 and 0.25.
    r = qna(arrival_rate=[0.3, 0.1], service_rate=[1, 1], routing=[[0, 1.0], [0, 0]], arrival_scv=[4.0, 0.5])
    first = (1 - 0.09) * 4.0 + 0.09
    weight = 1 / (1 + 4 * (1 - 0.4) ** 2 * (1 / (0.75**2 + 0.25**2) - 1))
    assert_allclose(r.arrival_scv[1], weight * (0.75 * first + 0.25 * 0.5) + 1 - weight)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_qna_of_deterministic_arrivals_with_feedback(size):
    # The SCV of the arrivals is 0 but for rounding, on either side.
    rng = np.random.default_rng(size)
    for _ in range(200):
        back = rng.choice([0.0, 0.1, 0.3, 0.5, 0.7], size)
        routing = np.diag(back) + np.diag(1 - back[:-1], 1)
        gamma = np.eye(size)[0] * rng.uniform(0.01, 0.25)
        r = qna(arrival_rate=gamma, service_rate=[1] * size, routing=routing, arrival_scv=0, service_scv=0)
        assert np.all(r.arrival_scv >= 0) and r.arrival_scv[0] < 1e-12
        assert np.isfinite(r.mean_response_time).all()


def test_qna_immediate_returns_are_one_service():
    # M/G/1 with feedback to the tail of the queue or to its head: the same number of jobs for M/M/1.
    again = qna(arrival_rate=[0.5], service_rate=[2.0], routing=[[0.5]])
    once = jackson(arrival_rate=[0.5], service_rate=[2.0], routing=[[0.5]])
    assert_allclose(again.mean_number_in_system, once.mean_number_in_system, rtol=1e-13)
    assert_allclose(again.mean_response_time, once.mean_response_time, rtol=1e-13)
    assert_allclose(again.utilization, once.utilization)


def fifo_tandem(rng, arrivals, services):
    """Response times of a line of single servers, by Lindley's recursion."""
    clock = np.cumsum(arrivals)
    times = []
    for service in services:
        total = np.cumsum(service)
        start = np.maximum.accumulate(clock - np.concatenate([[0.0], total[:-1]]))
        done = total + start
        times.append(done - clock)
        clock = done
    return np.array(times)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("scv", "error"), [(0.25, 0.05), (4.0, 0.07)])
def test_qna_against_a_simulated_line(scv, error):
    rng = np.random.default_rng(7)
    jobs, load = 40_000, 0.7

    def draw(size):
        if scv < 1:
            return rng.gamma(1 / scv, scv, size)
        p = (1 + np.sqrt((scv - 1) / (scv + 1))) / 2
        fast = rng.random(size) < p
        return rng.exponential(np.where(fast, 0.5 / p, 0.5 / (1 - p)))

    means = []
    for _ in range(20):
        arrivals = rng.exponential(1 / load, jobs)
        means.append(fifo_tandem(rng, arrivals, [draw(jobs), draw(jobs)])[:, jobs // 10 :].mean(axis=1))
    mean = np.mean(means, axis=0)
    half = 3.88 * np.std(means, axis=0, ddof=1) / np.sqrt(20)  # 99.9 %, 19 degrees of freedom
    r = qna(arrival_rate=[load, 0], service_rate=[1, 1], routing=[[0, 1], [0, 0]], service_scv=scv)
    assert np.all(half < 0.06 * mean)
    assert abs(r.mean_response_time[0] - mean[0]) < half[0]  # M/G/1, exact
    assert abs(r.mean_response_time[1] / mean[1] - 1) < error + half[1] / mean[1]


def test_graph_in_and_out():
    graph = nx.DiGraph()
    graph.add_edge("parser", "lookup", probability=0.8)
    graph.add_edge("lookup", "lookup", probability=0.5)
    rates = {"parser": 0.5, "lookup": 0.1}
    for solve in (jackson, qna):
        r = solve(arrival_rate=rates, service_rate={"lookup": 2.0, "parser": 1.0}, routing=graph)
        out = r.to_networkx()
        assert list(out.nodes) == ["parser", "lookup"]
        assert_allclose(out.edges["parser", "lookup"]["flow"], 0.4)
        assert_allclose(out.edges["lookup", "lookup"]["flow"], 0.5)
        assert_allclose(out.edges["parser", "lookup"]["probability"], 0.8)
        assert_allclose(out.nodes["lookup"]["throughput"], 1.0)
        assert_allclose(out.nodes["lookup"]["utilization"], 0.5)
        assert_allclose(out.nodes["lookup"]["mean_number_in_system"], r.mean_number_in_system[1])


@pytest.mark.parametrize("leaves", [1e-6, 1e-9, 1e-12])
def test_a_job_that_nearly_always_returns_is_one_that_leaves(leaves):
    again = 1 - leaves
    r = jackson(arrival_rate=[1.0, 0.0], service_rate=[1e14, 1e14], routing=[[0.0, 1.0], [again, 0.0]])
    assert_allclose(r.throughput, 1 / (1 - again), rtol=1e-9)


def test_a_row_of_rounded_probabilities_is_no_way_out():
    assert np.sum([0.7, 0.2, 0.1]) < 1
    with pytest.raises(ValueError, match="^routing must let every job leave the network"):
        jackson(
            arrival_rate=[1.0, 0, 0], service_rate=[5.0] * 3, routing=[[0, 1, 0], [0.7, 0.2, 0.1], [0, 1, 0]]
        )


@pytest.fixture
def two_classes():
    return mva(
        population={"read": 3, "write": 2},
        mean_service_time={"port": 1.0, "bank": 2.0},
        visits=[[1, 0.5], [1, 1]],
        think_time=1.0,
    )


def test_is_frozen_and_keyword_only(two_classes):
    with pytest.raises(dataclasses.FrozenInstanceError):
        two_classes.model = "other"
    with pytest.raises(TypeError):
        NetworkResult("MVA")


def test_shapes_and_totals(two_classes):
    r = two_classes
    assert r.stations == ("port", "bank") and r.classes == ("read", "write")
    for name in (
        "throughput",
        "utilization",
        "residence_time",
        "mean_response_time",
        "mean_number_in_system",
    ):
        assert getattr(r, name).shape == (2, 2)
    assert r.system_throughput.shape == r.system_response_time.shape == (2,)
    assert_allclose(r.residence_time, r.visits * r.mean_response_time)
    assert_allclose(r.mean_number_in_system, r.throughput * r.mean_response_time)
    assert r.bottleneck == "bank"
    one = mva(population=3, mean_service_time=[1.0, 2.0])
    assert one.throughput.shape == (2,) and np.ndim(one.system_throughput) == 0
    assert np.ndim(one.mean_number_in_network) == 0 and one.stations == (0, 1) and one.classes == ()


def test_to_dict_and_pandas(two_classes):
    data = two_classes.to_dict()
    for s, station in enumerate(two_classes.stations):
        for c, job_class in enumerate(two_classes.classes):
            assert data[f"throughput[{station}, {job_class}]"] == two_classes.throughput[s, c]
    assert not any(name.startswith("arrival_scv") for name in data)
    assert [name for name in data if name.startswith("system_throughput")] == [
        f"system_throughput[{one}]" for one in two_classes.classes
    ]
    frame = two_classes.to_pandas()
    assert list(frame.columns) == ["metric", "unit", "value"] and list(frame["metric"]) == list(data)[:-1]
    flat = jackson(arrival_rate=[0.5], service_rate=[1], routing=[[0]])
    assert flat["system_throughput"] == 0.5 and flat.stable.all()
    assert "arrival_scv[0]" in qna(arrival_rate=[0.5], service_rate=[1], routing=[[0]]).metrics


def test_tables(two_classes):
    lines = repr(two_classes).splitlines()
    assert lines[0] == "MVA (exact)"
    assert len(lines) == 1 + len(two_classes.metrics) + 1
    assert lines[-1].strip() == "stable; bottleneck: bank"
    html = two_classes._repr_html_()
    assert html.count("<tr>") == len(two_classes.metrics) and "<td>jobs/time</td>" in html


def test_graph_of_a_closed_network_with_classes():
    routing = np.array([[[0, 1.0], [1, 0]], [[0.5, 0.5], [1, 0]]])
    r = mva(population=[2, 1], mean_service_time=[1.0, 2.0], routing=routing)
    graph = r.to_networkx()
    flow = r.throughput[0] @ [1.0, 0.5]
    assert_allclose(graph.edges[0, 1]["flow"], flow)
    assert_allclose(graph.edges[0, 1]["probability"], flow / r.throughput[0].sum())
    assert_allclose(graph.nodes[1]["throughput"], r.throughput[1].sum())
    # What enters a station leaves it.
    for node in graph:
        inflow = sum(data["flow"] for _, _, data in graph.in_edges(node, data=True))
        assert_allclose(inflow, graph.nodes[node]["throughput"])


def test_graph_needs_a_routing(two_classes):
    with pytest.raises(ValueError, match="routing must be given to draw the network, got visits only"):
        two_classes.to_networkx()
