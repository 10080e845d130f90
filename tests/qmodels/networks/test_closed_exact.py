"""Closed and mixed networks: MVA, convolution, balance equations and 60-digit arithmetic agree."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import (
    bcmp,
    convolution,
    log_normalising_constant,
    marginal_distribution,
    mixed,
    mva,
    throughput_curve,
)
from qmodels.networks.closed.inputs import describe
from qmodels.networks.closed.mva import _one_class

times = st.floats(0.05, 5.0)


@st.composite
def lines(draw, classes=2):
    """Stations in a row that jobs leave early by chance, with the balance equations' view of them."""
    stations, kinds = draw(st.integers(1, 3)), draw(st.integers(1, classes))
    table = [[draw(times) for _ in range(kinds)] for _ in range(stations)]
    servers = [draw(st.sampled_from([1, 1, 2, 3, np.inf])) for _ in range(stations)]
    people = [draw(st.integers(1, 3)) for _ in range(kinds)]
    think = [draw(st.sampled_from([0.0, 0.7, 4.0])) for _ in range(kinds)]
    onward = [draw(st.sampled_from([0.25, 0.6, 1.0])) for _ in range(stations - 1)] + [0.0]
    routing = np.zeros((stations + 1, stations + 1))
    routing[stations, 0] = 1.0
    for i, p in enumerate(onward):
        routing[i, i + 1] += p
        routing[i, stations] += 1 - p
    visits = np.cumprod([1.0, *onward[:-1]])
    network = {
        "population": people,
        "mean_service_time": table,
        "visits": visits,
        "think_time": think,
        "servers": servers,
    }
    balance = {
        "population": people,
        "times": table,
        "routing": [routing.tolist()] * kinds,
        "think_time": think,
        "rate": lambda i, n: n if np.isinf(servers[i]) else min(n, servers[i]),
    }
    return network, balance


@given(line=lines())
def test_mva_convolution_and_balance_equations_agree(chain, line):
    network, balance = line
    number, flow = chain(**balance)
    for solve in (mva, convolution):
        r = solve(**network)
        assert r.kind == "exact" and r.stable.all()
        assert_allclose(r.mean_number_in_system, number, rtol=1e-11, atol=1e-13)
        assert_allclose(r.throughput, flow, rtol=1e-11)


@given(
    demands=st.lists(times, min_size=1, max_size=4),
    rates=st.lists(st.floats(0.2, 4.0), min_size=1, max_size=6),
    people=st.integers(1, 5),
    think=st.sampled_from([0.0, 2.0]),
)
def test_load_dependent_rates_against_balance_equations(chain, marginal, demands, rates, people, think):
    stations = len(demands)
    routing = np.zeros((stations + 1, stations + 1))
    routing[stations, 0] = 1.0
    routing[np.arange(stations), np.arange(stations) + 1] = 1.0
    balance = {
        "population": [people],
        "times": [[d] for d in demands],
        "routing": [routing.tolist()],
        "think_time": [think],
        "rate": lambda i, n: rates[min(n, len(rates)) - 1] if i == 0 else 1.0,
    }
    network = {
        "population": people,
        "mean_service_time": demands,
        "think_time": think,
        "rate_multiplier": {0: rates},
    }
    number, flow = chain(**balance)
    law = marginal(0, **balance)
    for solve in (mva, convolution):
        r = solve(**network)
        assert_allclose(r.mean_number_in_system, number[:, 0], rtol=1e-11, atol=1e-13)
        assert_allclose(r.throughput, flow[:, 0], rtol=1e-11)
        assert_allclose(r.utilization[0], 1 - law[0], rtol=1e-11)
    found = marginal_distribution(station=0, **network)
    assert_allclose(found, np.pad(law, (0, people + 1 - law.size)), rtol=1e-10, atol=1e-14)


def test_two_class_load_dependent_utilization_is_the_share_of_the_service(chain):
    rates = [1.0, 0.5, 2.0, 3.0]
    line = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    balance = {
        "population": [2, 2],
        "times": [[1.0, 2.0], [0.5, 0.3]],
        "routing": [line, line],
        "think_time": [1.0, 3.0],
        "rate": lambda i, n: rates[min(n, 4) - 1] if i == 0 else 1.0,
    }
    number, flow = chain(**balance)
    r = mva(
        population=[2, 2],
        mean_service_time=[[1.0, 2.0], [0.5, 0.3]],
        think_time=[1.0, 3.0],
        rate_multiplier={0: rates},
    )
    assert_allclose(r.mean_number_in_system, number, rtol=1e-12)
    assert_allclose(r.throughput, flow, rtol=1e-12)
    joint = marginal_distribution(
        station=0,
        population=[2, 2],
        mean_service_time=[[1.0, 2.0], [0.5, 0.3]],
        think_time=[1.0, 3.0],
        rate_multiplier={0: rates},
    )
    assert_allclose(joint.sum(), 1.0, rtol=1e-14)
    assert_allclose(r.utilization[0].sum(), 1 - joint[0, 0], rtol=1e-12)


@given(line=lines(classes=3), unit=st.floats(1e-6, 1e6))
def test_unit_of_time_and_conservation(line, unit):
    network, _ = line
    r = mva(**network)
    s = mva(
        **network
        | {
            "mean_service_time": np.array(network["mean_service_time"]) * unit,
            "think_time": np.array(network["think_time"]) * unit,
        }
    )
    assert_allclose(s.mean_number_in_system, r.mean_number_in_system, rtol=1e-9)
    assert_allclose(s.mean_response_time, r.mean_response_time * unit, rtol=1e-9)
    assert_allclose(s.system_throughput * unit, r.system_throughput, rtol=1e-9)
    # Every job is at a station or thinks; cycles take response plus think time.
    thinking = r.system_throughput * r.think_time
    assert_allclose(r.mean_number_in_network + thinking, network["population"], rtol=1e-12)
    assert_allclose(
        r.system_throughput * (r.system_response_time + r.think_time), network["population"], rtol=1e-12
    )
    assert np.all(r.station_utilization <= 1 + 1e-12)


@given(
    demands=st.lists(times, min_size=2, max_size=5),
    servers=st.lists(st.sampled_from([1, 2, 5]), min_size=5, max_size=5),
    people=st.integers(2, 30),
    think=st.sampled_from([0.0, 3.0]),
)
def test_more_jobs_and_servers_help(demands, servers, people, think):
    network = {"mean_service_time": demands, "think_time": think}
    few = mva(population=people, servers=servers[: len(demands)], **network)
    more = mva(population=people + 1, servers=servers[: len(demands)], **network)
    assert more.system_throughput >= few.system_throughput * (1 - 1e-12)
    assert np.all(more.mean_number_in_system >= few.mean_number_in_system * (1 - 1e-12))
    wide = mva(population=people, servers=[c + 1 for c in servers[: len(demands)]], **network)
    assert wide.system_throughput >= few.system_throughput * (1 - 1e-12)
    # As many servers as jobs are a delay.
    assert_allclose(
        mva(population=people, servers=people, **network).system_throughput,
        people / (think + sum(demands)),
        rtol=1e-12,
    )


@given(line=lines(classes=2))
def test_one_class_split_in_two_equal_ones(line):
    network, _ = line
    times = np.array(network["mean_service_time"])[:, 0]
    think, people = network["think_time"][0], network["population"][0] + 1
    kept = {"visits": network["visits"], "servers": network["servers"]}
    one = mva(population=people, mean_service_time=times, think_time=think, **kept)
    two = mva(
        population=[people - 1, 1],
        mean_service_time=np.column_stack([times, times]),
        think_time=think,
        **kept,
    )
    assert_allclose(two.throughput.sum(axis=1), one.throughput, rtol=1e-12)
    assert_allclose(two.mean_number_in_system.sum(axis=1), one.mean_number_in_system, rtol=1e-12, atol=1e-15)


def exact_constants(demands, multipliers, think, people):
    """Normalising constants by plain convolution in 60 digits."""
    with mpmath.workdps(60):
        g = [mpmath.mpf(think) ** k / mpmath.factorial(k) for k in range(people + 1)]
        for demand, multiplier in zip(demands, multipliers, strict=True):
            f = [mpmath.mpf(1)]
            for k in range(1, people + 1):
                f.append(f[-1] * mpmath.mpf(demand) / mpmath.mpf(multiplier(k)))
            g = [mpmath.fsum(f[j] * g[n - j] for j in range(n + 1)) for n in range(people + 1)]
        return g


@pytest.mark.parametrize("think", [0.0, 0.03, 40.0])
@pytest.mark.parametrize("people", [1, 7, 120])
def test_constants_and_curve_against_60_digits(think, people):
    demands = [1.0, 0.99, 3.0, 1e-4, 0.2]
    servers = [1, 1, 4, 1, np.inf]
    g = exact_constants(demands, [lambda k, c=c: min(k, c) for c in servers], think, people)
    network = {
        "population": people,
        "mean_service_time": demands,
        "servers": servers,
        "think_time": think,
    }
    with mpmath.workdps(60):
        wanted = [float(g[n - 1] / g[n]) for n in range(1, people + 1)]
        log_wanted = float(mpmath.log(g[people]))
    assert_allclose(throughput_curve(**network), wanted, rtol=1e-12)
    assert_allclose(convolution(**network).system_throughput, wanted[-1], rtol=1e-13)
    assert_allclose(log_normalising_constant(**network), log_wanted, rtol=1e-13)


@pytest.mark.parametrize(("people", "servers"), [(100_000, 1), (20_000, 16)])
def test_many_jobs_against_30_digits(people, servers):
    # Linear recurrences of the constants themselves; a decimal's exponent has no range to leave.
    demands, wide, think = [1.0, 0.7, 0.9999], 10.0 if servers == 1 else 15.9, 3.0
    with localcontext(prec=30, Emin=MIN_EMIN, Emax=MAX_EMAX):
        g = [Decimal(1)]
        for k in range(1, people + 1):
            g.append(g[-1] * Decimal(think) / k)

        def with_server(g, demand):
            h, ahead = [], Decimal(0)
            for constant in g:
                ahead = constant + Decimal(demand) * ahead
                h.append(ahead)
            return h

        first = [Decimal(wide) ** k / math.factorial(k) for k in range(servers)]
        tail = with_server(g, Decimal(wide) / servers)
        full = Decimal(wide) ** servers / math.factorial(servers)
        g = [
            sum(first[k] * g[n - k] for k in range(min(servers, n + 1)))
            + (full * tail[n - servers] if n >= servers else 0)
            for n in range(people + 1)
        ]
        for demand in demands:
            g = with_server(g, demand)
        wanted = float(g[-2] / g[-1])
        # The queue of a single server is the sum of the constants with it twice.
        number = float(Decimal(demands[2]) * with_server(g, demands[2])[-2] / g[-1])
    r = mva(
        population=people, mean_service_time=[*demands, wide], servers=[1, 1, 1, servers], think_time=think
    )
    assert_allclose(r.system_throughput, wanted, rtol=1e-13)
    assert_allclose(r.mean_number_in_system[2], number, rtol=1e-12)
    assert_allclose(r.mean_number_in_network + r.system_throughput * think, people, rtol=1e-13)


def test_large_machine_repair_model_against_erlang(recwarn):
    # Jobs that think and c servers: M/M/c//N, by its birth-death balance in 30 digits.
    people, servers, think, time = 5_000, 300, 15.0, 1.0
    with mpmath.workdps(30):
        p, weights = mpmath.mpf(1), [mpmath.mpf(1)]
        for n in range(1, people + 1):
            p = p * (people - n + 1) / mpmath.mpf(think) * time / min(n, servers)
            weights.append(p)
        total = mpmath.fsum(weights)
        mean = float(mpmath.fsum(n * w for n, w in enumerate(weights)) / total)
    r = convolution(population=people, mean_service_time=[time], servers=servers, think_time=think)
    assert_allclose(r.mean_number_in_system[0], mean, rtol=1e-12)
    assert_allclose(r.system_throughput, (people - mean) / think, rtol=1e-12)
    law = marginal_distribution(
        station=0, population=people, mean_service_time=[time], servers=servers, think_time=think
    )
    assert np.all(law >= 0)
    assert_allclose(law @ np.arange(people + 1), mean, rtol=1e-12)


def test_recursion_and_convolution_where_mva_switches():
    demands = np.linspace(0.2, 1.0, 10)
    for people in (1, 1999, 2000, 2001):
        net = describe(population=people, mean_service_time=demands, think_time=7.0)
        x, residence = _one_class(net)
        r = mva(population=people, mean_service_time=demands, think_time=7.0)
        assert_allclose(r.system_throughput, x[0], rtol=1e-13)
        assert_allclose(r.mean_number_in_system, (x * residence)[:, 0], rtol=1e-11)


def test_collapsing_rates_are_still_solved():
    # Thrashing: beyond 50 jobs the station is a million times slower, and all jobs end there.
    r = convolution(
        population=100,
        mean_service_time=[1.0, 0.5],
        think_time=20.0,
        rate_multiplier={0: [1.0] * 50 + [1e-6] * 50},
    )
    assert_allclose(r.system_throughput, 1e-6, rtol=1e-4)
    assert_allclose(r.mean_number_in_system, [100.0, 5e-7], rtol=1e-4)


def test_open_limit_of_a_closed_network():
    # Many jobs that think very long are a Poisson source; the error falls as one over their number.
    wanted, errors = np.array([1 / (1 - 0.8), 0.5 / (1 - 0.4)]), []
    for people in (10_000, 100_000):
        r = mva(population=people, mean_service_time=[1.0, 0.5], think_time=people / 0.8)
        errors.append(np.abs(r.mean_response_time / wanted - 1))
    assert np.all(errors[1] < 4e-4)
    assert_allclose(errors[0] / errors[1], 10, rtol=0.05)


def test_marginal_distributions_hold_the_means():
    network = {
        "population": [4, 3],
        "mean_service_time": [[1.0, 0.4], [0.3, 2.0], [0.7, 0.7], [0.0, 0.0]],
        "servers": [1, 2, np.inf, 1],
        "think_time": [1.0, 0.0],
    }
    r = convolution(**network)
    for i in range(4):
        law = marginal_distribution(station=i, **network)
        assert law.shape == (5, 4)
        assert_allclose(law.sum(), 1.0, rtol=1e-13)
        means = [(law.sum(axis=1 - k) @ np.arange(law.shape[k])) for k in range(2)]
        assert_allclose(means, r.mean_number_in_system[i], rtol=1e-12, atol=1e-15)


def test_classes_without_jobs_and_unvisited_stations():
    r = mva(
        population={"a": 3, "none": 0, "b": 2},
        mean_service_time=[1.0, 2.0],
        visits=[[1, 1, 0], [1, 0, 2]],
        think_time=1.0,
    )
    same = mva(population=[3, 2], mean_service_time=[1.0, 2.0], visits=[[1, 0], [1, 2]], think_time=1.0)
    assert r.classes == ("a", "none", "b")
    assert_allclose(r.throughput[:, [0, 2]], same.throughput, rtol=1e-14)
    assert_allclose(r.mean_response_time[:, [0, 2]], same.mean_response_time, rtol=1e-14)
    assert r.system_throughput[1] == 0 and np.all(r.throughput[:, 1] == 0)
    assert r.mean_response_time[0, 2] == 0 and r.mean_number_in_system[0, 2] == 0
    several = convolution(
        population=[3, 0, 2],
        mean_service_time=[1.0, 2.0],
        visits=[[1, 1, 0], [1, 0, 2]],
        think_time=1.0,
        servers=[2, 1],
    )
    assert np.isfinite(several.mean_response_time).all()


def test_routing_and_visits_describe_the_same_network():
    routing = [[0, 0.8, 0.2], [1, 0, 0], [1, 0, 0]]
    by_routing = mva(population=5, mean_service_time=[0.1, 0.5, 0.3], routing=routing)
    by_visits = mva(population=5, service_rate=[10, 2, 1 / 0.3], visits=[1, 0.8, 0.2])
    assert_allclose(by_routing.throughput, by_visits.throughput, rtol=1e-13)
    assert by_routing.routing is not None and by_visits.routing is None


def test_exactness_of_small_hand_solved_case():
    # Two stations with demands 1 and 2 and two jobs: weights 4, 2, 1 of (0,2), (1,1), (2,0).
    r = mva(population=2, mean_service_time=[1.0, 2.0])
    assert_allclose(r.mean_number_in_system, [4 / 7, 10 / 7], rtol=1e-15)
    assert_allclose(r.system_throughput, 3 / 7, rtol=1e-15)
    assert math.isclose(r.utilization[1], 6 / 7, rel_tol=1e-15)


@pytest.mark.parametrize("servers", [[1, 1], [1, 3], [2, 3], [6, np.inf]])
def test_against_balance_equations(chain, servers):
    # The open class is cut off at 22 jobs, beyond which the probability is below 1e-11.
    times = [[1.0, 1.0], [2.0, 3.0]]
    line = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    number, flow = chain(
        population=[0, 3],
        times=times,
        routing=[line, line],
        think_time=[0.0, 2.0],
        rate=lambda i, n: min(n, servers[i]),
        arrivals=[0.1, 0.0],
        room=22,
    )
    r = mixed(
        arrival_rate=[0.1, 0],
        population=[0, 3],
        mean_service_time=times,
        think_time=[0, 2.0],
        servers=servers,
    )
    assert_allclose(r.mean_number_in_system, number, rtol=1e-9)
    assert_allclose(r.throughput, flow, rtol=1e-9)
    assert r.kind == "exact" and r.stable.all()


@given(
    load=st.floats(0.0, 0.9),
    servers=st.lists(st.integers(1, 5), min_size=2, max_size=2),
    people=st.integers(1, 8),
    unit=st.floats(1e-6, 1e6),
)
def test_laws(load, servers, people, unit):
    times = np.array([[1.0, 0.5], [0.3, 2.0]])
    rate = load * min(servers[0] / 1.0, servers[1] / 0.3)
    network = {"mean_service_time": times, "servers": servers}
    r = mixed(arrival_rate=[rate, 0], population=[0, people], think_time=[0, 1.5], **network)
    assert_allclose(r.mean_number_in_network[1] + r.system_throughput[1] * 1.5, people, rtol=1e-10)
    assert_allclose(r.mean_number_in_network[0], rate * r.system_response_time[0], rtol=1e-10, atol=1e-15)
    assert np.all(r.station_utilization <= 1 + 1e-12)
    # The open class alone is faster, the closed class alone too.
    alone = bcmp(arrival_rate=[rate], mean_service_time=times[:, :1], servers=servers)
    assert np.all(r.mean_response_time[:, 0] >= alone.mean_response_time[:, 0] * (1 - 1e-10))
    closed = mva(population=people, mean_service_time=times[:, 1], servers=servers, think_time=1.5)
    assert r.system_throughput[1] <= closed.system_throughput * (1 + 1e-10)
    if load == 0:
        assert_allclose(r.system_throughput[1], closed.system_throughput, rtol=1e-12)
    s = mixed(
        arrival_rate=[rate / unit, 0],
        population=[0, people],
        mean_service_time=times * unit,
        servers=servers,
        think_time=[0, 1.5 * unit],
    )
    assert_allclose(s.mean_number_in_system, r.mean_number_in_system, rtol=1e-7, atol=1e-12)


def test_closed_class_that_thinks_long_leaves_the_open_network():
    network = {"mean_service_time": [[1.0, 0.5], [0.3, 2.0]], "servers": [3, 1]}
    r = mixed(arrival_rate=[1.5, 0], population=[0, 1], think_time=[0, 1e9], **network)
    alone = bcmp(arrival_rate=[1.5], mean_service_time=[1.0, 0.3], servers=[3, 1])
    assert_allclose(r.mean_response_time[:, 0], alone.mean_response_time[:, 0], rtol=1e-8)
    # A single closed job meets the open network as an arrival from outside would.
    assert_allclose(r.mean_response_time[0, 1], 0.5 * alone.mean_response_time[0, 0], rtol=1e-8)


def test_many_servers_and_jobs_stay_finite():
    r = mixed(
        arrival_rate={"open": 1990.0},
        population={"closed": 500},
        mean_service_time=[1.0],
        servers=2000,
        think_time=3.0,
    )
    assert r.classes == ("open", "closed")
    assert np.isfinite(r.mean_number_in_system).all() and r.stable.all()
    assert_allclose(r.mean_number_in_network[1] + 3 * r.system_throughput[1], 500, rtol=1e-9)
    # Nearly full with the open class: the closed class gets what it leaves, up to a rounding.
    assert 0 < r.throughput[0, 1] < 10 * (1 + 1e-14)


def test_overload_by_the_open_classes():
    r = mixed(
        arrival_rate=[1.5, 0, 0],
        population=[0, 4, 3],
        visits=[[1, 0, 1], [1, 1, 0]],
        mean_service_time=[[1.0, 1.0, 1.0], [0.2, 0.3, 0.1]],
    )
    assert r.stable.tolist() == [[False, True, False], [True, True, True]]
    assert_allclose(r.throughput[0], [1.0, 0, 0])
    assert_allclose(r.station_utilization[0], 1.0)
    # Class 2 rests at the overloaded station, class 1 never goes there.
    assert_allclose(r.mean_number_in_system[:, 2], [3, 0])
    assert r.system_throughput[2] == 0 and np.isinf(r.mean_response_time[0, 2])
    assert_allclose(r.mean_number_in_network[1], 4)
    assert np.isfinite(r.mean_response_time[1]).all()
    everywhere = mixed(arrival_rate=[1.5, 0], population=[0, 4], mean_service_time=[1.0, 0.9])
    assert_allclose(everywhere.mean_number_in_system[:, 1], [2, 2])
    assert np.isinf(everywhere.mean_response_time).all() and not everywhere.stable.any()
