"""Fork-join against a Markov chain of the branches, simulation, and limits."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.markov import CTMC
from qmodels.networks import fork_join, fork_join_unequal, split_merge
from qmodels.networks.open.fork_join import _mean_largest
from qmodels.queues import mm1


def by_chain(load, rates, room):
    """Response time from the balance equations: a job is there while its longest branch is."""

    def moves(parts):
        if max(parts) < room:
            yield tuple(n + 1 for n in parts), load
        for i, n in enumerate(parts):
            if n:
                yield (*parts[:i], n - 1, *parts[i + 1 :]), rates[i]

    law = CTMC.from_transitions(initial_state=(0,) * len(rates), transitions=moves).stationary()
    jobs = np.array([max(parts) for parts in law.states])
    return law.probabilities @ jobs / (load * (1 - law.probabilities[jobs == room].sum()))


@pytest.mark.parametrize("load", [0.1, 0.4, 0.6])
def test_two_branches_are_exact(load):
    q = fork_join(arrival_rate=load, service_rate=1.0, branches=2)
    assert q.kind == "exact"
    assert_allclose(q.mean_response_time, by_chain(load, [1, 1], 60), rtol=1e-8)
    assert q.mean_response_time_lower == q.mean_response_time == q.mean_response_time_upper


@pytest.mark.parametrize(("load", "error"), [(0.2, 0.004), (0.5, 0.011)])
def test_three_branches(load, error):
    q = fork_join(arrival_rate=load, service_rate=1.0, branches=3)
    exact = by_chain(load, [1, 1, 1], 18)
    assert abs(q.mean_response_time / exact - 1) < error
    assert q.mean_response_time_lower < exact < q.mean_response_time_upper


@pytest.mark.parametrize("fast", [1.0, 1.2, 2.0, 5.0])
@pytest.mark.parametrize(("load", "room"), [(0.3, 25), (0.6, 45)])
def test_unequal_branches(fast, load, room):
    q = fork_join_unequal(arrival_rate=load, service_rates=[1.0, fast])
    exact = by_chain(load, [1.0, fast], room)
    assert abs(q.mean_response_time / exact - 1) < 0.01
    assert q.mean_response_time_lower < exact * (1 + 1e-9) < q.mean_response_time_upper * (1 + 2e-9)


def simulated(rng, load, rates, jobs):
    clock, longest = np.cumsum(rng.exponential(1 / load, jobs)), np.zeros(jobs)
    for rate in rates:
        total = np.cumsum(rng.exponential(1 / rate, jobs))
        done = total + np.maximum.accumulate(clock - np.concatenate([[0.0], total[:-1]]))
        longest = np.maximum(longest, done - clock)
    return longest[jobs // 10 :].mean()


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("branches", "load", "error"), [(4, 0.5, 0.02), (16, 0.5, 0.01), (8, 0.8, 0.05)])
def test_many_branches_against_simulation(branches, load, error):
    rng = np.random.default_rng(1)
    means = [simulated(rng, load, [1.0] * branches, 40_000) for _ in range(20)]
    mean, half = np.mean(means), 3.88 * np.std(means, ddof=1) / math.sqrt(20)
    q = fork_join(arrival_rate=load, service_rate=1.0, branches=branches)
    assert half < 0.02 * mean
    assert abs(q.mean_response_time / mean - 1) < error + half / mean
    assert q.mean_response_time_lower < mean < q.mean_response_time_upper


@given(load=st.floats(0.01, 0.98), branches=st.integers(1, 40), unit=st.floats(1e-6, 1e6))
def test_laws(load, branches, unit):
    q = fork_join(arrival_rate=load, service_rate=1.0, branches=branches)
    r = fork_join(arrival_rate=load * unit, service_rate=unit, branches=branches)
    assert_allclose(r.mean_response_time * unit, q.mean_response_time, rtol=1e-9)
    assert q.mean_response_time_lower <= q.mean_response_time * (1 + 1e-12)
    assert q.mean_response_time <= q.mean_response_time_upper * (1 + 1e-12)
    more = fork_join(arrival_rate=load, service_rate=1.0, branches=branches + 1)
    assert more.mean_response_time > q.mean_response_time
    merge = split_merge(arrival_rate=load, service_rate=1.0, branches=branches)
    assert merge.mean_response_time >= q.mean_response_time_lower * (1 - 1e-12)
    if branches == 1:
        one = mm1(arrival_rate=load, service_rate=1.0).mean_response_time
        assert_allclose([q.mean_response_time, merge.mean_response_time], one, rtol=1e-12)


@given(rates=st.lists(st.floats(0.2, 20.0), min_size=1, max_size=6))
def test_mean_of_the_largest_by_inclusion_and_exclusion(rates):
    exact = sum(
        (-1) ** (k + 1) / sum(part)
        for k in range(1, len(rates) + 1)
        for part in itertools.combinations(rates, k)
    )
    assert_allclose(_mean_largest(np.array(rates)), exact, rtol=1e-9)


def test_overload_and_arrays():
    q = fork_join(arrival_rate=[0.0, 0.5, 1.0, 2.0], service_rate=1.0, branches=4)
    assert q.stable.tolist() == [True, True, False, False]
    assert np.isinf(q.mean_response_time[2:]).all() and np.isinf(q.mean_response_time_lower[2:]).all()
    assert_allclose(q.mean_response_time[0], 1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert_allclose(q.throughput, [0, 0.5, 1, 1])
    assert_allclose(q.utilization, [0, 0.5, 1, 1])
    assert q.mean_number_in_system[0] == 0 and np.isinf(q.mean_number_in_system[3])
    table = fork_join(arrival_rate=[[0.5], [0.7]], service_rate=1.0, branches=[1, 2, 5])
    assert table.mean_response_time.shape == (2, 3)
    slow = fork_join_unequal(arrival_rate=1.5, service_rates=[1.0, 3.0])
    assert np.isinf(slow.mean_response_time) and not slow.stable and slow.utilization == 1
    alone = fork_join_unequal(arrival_rate=0.5, service_rates=[1.0])
    assert_allclose(alone.mean_response_time, 2.0)
