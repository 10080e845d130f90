"""Approximate MVA: errors against exact solutions and chains, limits, convergence."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from qmodels.networks import bard_schweitzer, convolution, linearizer, mixed, mva
from qmodels.networks.closed import amva


def random_networks(seed, count, draw):
    rng = np.random.default_rng(seed)
    return [draw(rng) for _ in range(count)]


def shared_classes(rng):
    stations, classes = rng.integers(2, 6), rng.integers(2, 4)
    return {
        "population": rng.choice([1, 2, 5, 10], classes).tolist(),
        "mean_service_time": rng.uniform(0.1, 1, (stations, classes)),
        "think_time": rng.choice([0, rng.uniform(0, 10)]),
    }


def several_servers(rng):
    stations = rng.integers(1, 5)
    servers = rng.choice([1, 2, 4, 8, 16], stations)
    return {
        "population": int(rng.choice([2, 5, 10, 20, 50])),
        "mean_service_time": rng.uniform(0.1, 1, stations) * np.where(rng.random(stations) < 0.7, servers, 1),
        "servers": servers,
        "think_time": rng.choice([0, rng.uniform(0, 10)]),
    }


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(
    ("draw", "solve", "mean", "largest"),
    [
        # Measured over 60 networks each; the bounds are these errors rounded up.
        (shared_classes, bard_schweitzer, 0.035, 0.11),
        (shared_classes, linearizer, 0.003, 0.02),
        (several_servers, bard_schweitzer, 0.013, 0.08),
        (several_servers, linearizer, 0.006, 0.08),
    ],
)
def test_throughput_error_against_exact_mva(draw, solve, mean, largest):
    errors = []
    for network in random_networks(3, 60, draw):
        exact = np.atleast_1d(mva(**network).system_throughput)
        found = np.atleast_1d(solve(**network, discipline="ps").system_throughput)
        errors.append(np.abs(found / exact - 1).max())
    assert np.mean(errors) < mean and np.max(errors) < largest


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("discipline", "mean"),
    # Mean error of the response times per cycle over 20 networks of 1-2 stations and 2-8 jobs.
    [("fcfs", 0.07), ("priority", 0.10), ("preemptive", 0.11)],
)
def test_order_of_service_against_chains(ordered_chain, discipline, mean):
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(20):
        stations = int(rng.integers(1, 3))
        rates, people = rng.uniform(0.3, 3, (stations, 2)), rng.integers(1, 5, 2)
        think = rng.uniform(0.3, 6, 2)
        number = ordered_chain(
            population=people.tolist(),
            rates=rates.tolist(),
            think_time=think.tolist(),
            discipline=discipline,
            rank=[0, 1],
        ).sum(axis=0)
        wanted = number / ((people - number) / think)
        r = linearizer(
            population=people.tolist(), service_rate=rates, think_time=think, discipline=discipline
        )
        errors.append(np.abs(r.system_response_time / wanted - 1).mean())
    assert np.mean(errors) < mean


def test_priority_order_can_be_given():
    network = {"population": [3, 3], "mean_service_time": [[1.0, 1.0]], "think_time": 4.0}
    first = linearizer(**network, discipline="preemptive", priority=[0, 1])
    second = linearizer(**network, discipline="preemptive", priority=[1, 0])
    assert first.mean_response_time[0, 0] < first.mean_response_time[0, 1]
    assert_allclose(first.mean_response_time[:, ::-1], second.mean_response_time, rtol=1e-8)
    equal = linearizer(**network, discipline="priority", priority=[0, 0])
    assert_allclose(
        equal.mean_response_time, linearizer(**network, discipline="fcfs").mean_response_time, rtol=1e-8
    )


@given(
    demands=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=4),
    people=st.integers(1, 200),
    think=st.sampled_from([0.0, 1.0, 20.0]),
    unit=st.floats(1e-6, 1e6),
)
def test_laws(demands, people, think, unit):
    for solve in (bard_schweitzer, linearizer):
        r = solve(population=people, mean_service_time=demands, think_time=think)
        assert_allclose(r.mean_number_in_network + think * r.system_throughput, people, rtol=1e-9)
        assert np.all(r.utilization <= 1 + 1e-9) and r.kind == "approximation"
        s = solve(population=people, mean_service_time=np.array(demands) * unit, think_time=think * unit)
        assert_allclose(s.system_throughput * unit, r.system_throughput, rtol=1e-6)
        if people == 1:
            assert_allclose(r.system_throughput, 1 / (think + sum(demands)), rtol=1e-9)
        queued = solve(population=people, mean_service_time=demands, think_time=think, discipline="fcfs")
        assert_allclose(queued.system_throughput, r.system_throughput, rtol=1e-7)


@settings(max_examples=settings.default.max_examples // 4)
@given(
    times=hnp.arrays(float, (3, 2), elements=st.floats(0.1, 3.0)),
    people=st.tuples(st.integers(60, 200), st.integers(60, 200)),
    scv=st.sampled_from([0.2, 1.0, 4.0]),
)
@example([[2.2604, 2.2021], [2.6531, 2.0648], [1.8068, 2.9833]], (71, 68), 0.2)  # has a second solution
def test_many_jobs_keep_a_server_busy_in_any_unit(times, people, scv):
    options = {"population": people, "service_scv": scv, "discipline": "fcfs"}
    for solve in (bard_schweitzer, linearizer):
        r = solve(mean_service_time=times, **options)
        assert r.station_utilization.max() > 0.93
        tripled = solve(mean_service_time=3.0 * np.asarray(times), **options)
        assert_allclose(3.0 * tripled.system_throughput, r.system_throughput, rtol=1e-6)


@settings(max_examples=settings.default.max_examples // 2)
@given(
    scv=st.floats(0.0, 10.0),
    people=st.integers(1, 60),
    servers=st.integers(1, 4),
    discipline=st.sampled_from(["fcfs", "priority", "preemptive"]),
)
def test_no_server_is_more_than_busy(scv, people, servers, discipline):
    r = bard_schweitzer(
        population=[people, people],
        mean_service_time=[[1.0, 2.0], [0.3, 0.4]],
        service_scv=scv,
        servers=[servers, 1],
        discipline=discipline,
        think_time=1.0,
    )
    assert np.all(r.station_utilization <= 1 + 1e-14)
    assert_allclose(r.mean_number_in_network + r.system_throughput, people, rtol=1e-6)


@pytest.mark.parametrize("solve", [bard_schweitzer, linearizer])
def test_nor_within_the_tolerance_of_the_iteration(solve):
    rng = np.random.default_rng(1)
    for _ in range(15):
        stations, classes = rng.integers(1, 4), rng.integers(1, 3)
        r = solve(
            population=rng.integers(1, 60, classes).tolist(),
            mean_service_time=rng.uniform(0.1, 5, (stations, classes)),
            service_scv=rng.uniform(0, 4, (stations, classes)),
            servers=rng.integers(1, 4, stations).tolist(),
            discipline="fcfs",
        )
        assert np.all(r.station_utilization <= 1 + 1e-14)


def test_one_job_and_classes_without_jobs():
    r = linearizer(population=[1, 0], mean_service_time=[[1.0, 1.0], [0.5, 0.5]])
    assert_allclose(r.system_throughput, [1 / 1.5, 0], rtol=1e-9)
    assert_allclose(r.mean_number_in_system[:, 1], 0)
    assert np.isfinite(r.mean_response_time).all()


def test_large_populations_and_many_classes():
    rng = np.random.default_rng(2)
    demand = rng.uniform(0.01, 1, (10, 4))
    r = linearizer(population=[1000] * 4, mean_service_time=demand, think_time=500.0, discipline="ps")
    assert np.all(r.station_utilization <= 1 + 1e-9)
    assert r.station_utilization.max() > 0.99
    one = linearizer(population=100_000, mean_service_time=demand[:, 0], think_time=10.0)
    exact = mva(population=100_000, mean_service_time=demand[:, 0], think_time=10.0)
    assert_allclose(one.system_throughput, exact.system_throughput, rtol=1e-6)


def test_error_when_it_does_not_converge(monkeypatch):
    monkeypatch.setattr(amva, "_ITERATIONS", 3)
    with pytest.raises(
        RuntimeError, match=r"approximate MVA did not converge in 3 iterations \(residual .* jobs"
    ):
        bard_schweitzer(population=50, mean_service_time=[1.0, 0.9])


def test_the_same_arguments_mean_the_same_network_in_every_method(ordered_chain):
    """Without a discipline all of them solve the product form; a chain of the states tells the two apart."""
    network = {"population": [20, 20], "mean_service_time": [[1.0, 0.2]], "think_time": [40.0, 20.0]}
    exact = mva(**network)
    assert_allclose(convolution(**network).system_throughput, exact.system_throughput, rtol=1e-12)
    # Their own mean errors of throughput are 3.5 and 0.3 %, see above.
    for solve, error in ((bard_schweitzer, 0.035), (linearizer, 0.003)):
        assert_allclose(solve(**network).system_throughput, exact.system_throughput, rtol=error)
        assert_allclose(
            solve(**network).system_throughput, solve(**network, discipline="ps").system_throughput
        )
        first_come = solve(**network, discipline="fcfs").mean_response_time
        assert first_come[0, 1] > 1.4 * exact.mean_response_time[0, 1]
    number = ordered_chain(
        population=[3, 3], rates=[[1.0, 5.0]], think_time=[4.0, 2.0], discipline="fcfs", rank=[0, 1]
    ).sum(axis=0)
    wanted = number / ((3 - number) / np.array([4.0, 2.0]))
    small = {"population": [3, 3], "mean_service_time": [[1.0, 0.2]], "think_time": [4.0, 2.0]}
    found = linearizer(**small, discipline="fcfs").system_response_time
    shared = mva(**small).system_response_time
    assert wanted[1] > 1.4 * shared[1] and abs(found[1] - wanted[1]) < abs(shared[1] - wanted[1])


def test_first_come_first_served_by_class_has_no_product_form():
    network = {"population": [3, 3], "mean_service_time": [[1.0, 0.2], [0.5, 0.5]]}
    rule = (
        r"^mean_service_time must be the same for every class with discipline 'fcfs' .* got \[1.0, 0.2\] at 0"
    )
    for solve in (mva, convolution):
        with pytest.raises(ValueError, match=rule):
            solve(**network, discipline="fcfs")
        assert_allclose(
            solve(**network, discipline=["ps", "fcfs"]).system_throughput, solve(**network).system_throughput
        )
        with pytest.raises(ValueError, match="^discipline must be one of ps, fcfs, got 'priority'"):
            solve(**network, discipline="priority")
        alone = network | {"population": [3, 0]}
        assert_allclose(solve(**alone, discipline="fcfs").system_throughput, solve(**alone).system_throughput)
    with pytest.raises(ValueError, match=rule):
        mixed(arrival_rate=[0.1, 0], population=[0, 3], mean_service_time=[[1.0, 0.2]], discipline="fcfs")
