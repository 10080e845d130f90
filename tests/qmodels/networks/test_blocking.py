"""Finite buffers: the decomposition against the Markov chain of the whole line."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.markov import CTMC, ph_from_moments
from qmodels.networks import loss_network, tandem_blocking
from qmodels.networks.open import blocking as module
from qmodels.queues import mm1k, mmck

KINDS = ("after-service", "before-service", "repetitive-service", "loss")


class Line:
    """The chain of a whole line: jobs and service phase of every station, by the rules of blocking.

    A phase of None is a server without a job it may serve; -1 one that holds a finished job.
    """

    def __init__(self, load, laws, places, blocking):
        self.load, self.laws, self.places, self.blocking = load, laws, places, blocking
        self.last = len(laws) - 1

    def settle(self, jobs, phases):
        """Move held jobs on and start servers that may; return states with their probabilities."""
        jobs, phases = list(jobs), list(phases)
        if math.isinf(self.load):
            jobs[0] = self.places[0]
        moved = True
        while moved:
            moved = False
            for i in range(self.last):
                if phases[i] == -1 and jobs[i + 1] < self.places[i + 1]:
                    jobs[i], jobs[i + 1], phases[i], moved = jobs[i] - 1, jobs[i + 1] + 1, None, True
                    if math.isinf(self.load):
                        jobs[0] = self.places[0]
        branches = [(tuple(phases), 1.0)]
        for i, law in enumerate(self.laws):
            full = i < self.last and jobs[i + 1] == self.places[i + 1]
            if phases[i] is None and jobs[i] and not (self.blocking == "before-service" and full):
                branches = [
                    ((*p[:i], k, *p[i + 1 :]), weight * a)
                    for p, weight in branches
                    for k, a in enumerate(law.initial)
                    if a > 0
                ]
        return [((tuple(jobs), p), weight) for p, weight in branches]

    def moves(self, state):
        jobs, phases = state
        changes = []
        if math.isfinite(self.load) and jobs[0] < self.places[0]:
            changes.append(((jobs[0] + 1, *jobs[1:]), phases, self.load))
        for i, k in enumerate(phases):
            if k is None or k == -1:
                continue
            rates = np.asarray(self.laws[i].generator)[k]
            for j, rate in enumerate(rates):
                if j != k and rate > 0:
                    changes.append((jobs, (*phases[:i], j, *phases[i + 1 :]), rate))
            done = -rates.sum()
            if done > 1e-12:
                after, p = list(jobs), list(phases)
                p[i] = None
                if i < self.last and jobs[i + 1] == self.places[i + 1] and self.blocking != "loss":
                    p[i] = -1 if self.blocking == "after-service" else None
                else:
                    after[i] -= 1
                    if i < self.last and jobs[i + 1] < self.places[i + 1]:
                        after[i + 1] += 1
                changes.append((tuple(after), tuple(p), done))
        for after, p, rate in changes:
            for target, weight in self.settle(after, p):
                yield target, rate * weight

    def solve(self):
        start = self.settle((0,) * (self.last + 1), (None,) * (self.last + 1))[0][0]
        law = CTMC.from_transitions(initial_state=start, transitions=self.moves).stationary()
        number = np.array([law.expected(lambda s, i=i: s[0][i]) for i in range(self.last + 1)])
        final = self.laws[-1]
        exits = -np.asarray(final.generator).sum(axis=1)
        out = law.expected(lambda s: 0.0 if s[1][-1] is None else exits[s[1][-1]])
        return out, number


def random_lines(seed, count, stations, most):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        size = int(rng.integers(2, stations + 1))
        load = math.inf if rng.random() < 0.3 else float(rng.uniform(0.2, 2))
        yield load, rng.uniform(0.5, 2, size), rng.integers(1, most + 1, size)


@pytest.mark.parametrize("blocking", KINDS)
def test_exponential_lines_against_the_whole_chain(blocking):
    # Measured: throughput within 2.6 %, numbers within 2.5 % of the capacity.
    for load, mu, places in random_lines(0, 12, 3, 4):
        laws = [ph_from_moments(mean=1 / m, scv=1.0) for m in mu]
        out, number = Line(load, laws, places.tolist(), blocking).solve()
        r = tandem_blocking(arrival_rate=load, service_rate=mu, capacity=places, blocking=blocking)
        assert abs(r.system_throughput / out - 1) < 0.026
        assert np.all(np.abs(r.mean_number_in_system - number) < 0.025 * places.max())


@pytest.mark.parametrize("blocking", KINDS)
@pytest.mark.parametrize("scv", [0.5, 3.0])
def test_two_moment_lines_against_the_whole_chain(blocking, scv):
    for load, mu, places in random_lines(1, 5, 3, 3):
        laws = [ph_from_moments(mean=1 / m, scv=scv) for m in mu]
        out, number = Line(load, laws, places.tolist(), blocking).solve()
        r = tandem_blocking(
            arrival_rate=load, service_rate=mu, capacity=places, blocking=blocking, service_scv=scv
        )
        assert abs(r.system_throughput / out - 1) < 0.03
        assert np.all(np.abs(r.mean_number_in_system - number) < 0.03 * places.max())


@pytest.mark.parametrize("blocking", KINDS)
def test_one_station_is_exact(blocking):
    r = tandem_blocking(arrival_rate=0.8, service_rate=[1.0], capacity=4, blocking=blocking)
    q = mm1k(arrival_rate=0.8, service_rate=1.0, capacity=4)
    assert_allclose(r.throughput, q.throughput, rtol=1e-12)
    assert_allclose(r.mean_number_in_system, q.mean_number_in_system, rtol=1e-12)
    assert_allclose(r.blocking_probability, q.blocking_probability, rtol=1e-12)
    full = tandem_blocking(arrival_rate=math.inf, service_rate=[2.0], capacity=4, blocking=blocking)
    assert_allclose([full.system_throughput, full.mean_number_in_system[0]], [2.0, 4.0])


def test_two_saturated_stations_are_exact():
    # Station 1 never starves: station 2 alone is M/M/1/K with one place more after service (the
    # blocked server's), with its own places before service.
    for places in (1, 3, 6):
        line = {"arrival_rate": math.inf, "service_rate": [1.0, 1.3], "capacity": [1, places]}
        after = tandem_blocking(**line, blocking="after-service")
        assert_allclose(
            after.system_throughput,
            mm1k(arrival_rate=1.0, service_rate=1.3, capacity=places + 1).throughput,
            rtol=1e-9,
        )
        before = tandem_blocking(**line, blocking="before-service")
        again = tandem_blocking(**line, blocking="repetitive-service")
        wanted = mm1k(arrival_rate=1.0, service_rate=1.3, capacity=places)
        assert_allclose(before.system_throughput, wanted.throughput, rtol=1e-9)
        assert_allclose(again.system_throughput, wanted.throughput, rtol=1e-9)
        assert_allclose(before.mean_number_in_system[1], wanted.mean_number_in_system, rtol=1e-9)


@settings(max_examples=15)
@given(
    load=st.floats(0.2, 2.0),
    mu=st.lists(st.floats(0.5, 2.0), min_size=2, max_size=3),
    places=st.integers(1, 5),
    scv=st.sampled_from([0.3, 1.0, 2.0]),
    blocking=st.sampled_from(KINDS),
    unit=st.floats(1e-3, 1e3),
)
def test_laws(load, mu, places, scv, blocking, unit):
    line = {"capacity": places, "blocking": blocking, "service_scv": scv}
    r = tandem_blocking(arrival_rate=load, service_rate=mu, **line)
    s = tandem_blocking(arrival_rate=load * unit, service_rate=np.array(mu) * unit, **line)
    assert_allclose(s.throughput / unit, r.throughput, rtol=1e-6)
    assert np.all(r.mean_number_in_system <= places) and np.all(r.utilization <= 1)
    assert_allclose(r.throughput[0], load * (1 - r.blocking_probability[0]), rtol=1e-6)
    if blocking == "loss":
        assert_allclose(r.throughput[1:], r.throughput[:-1] * (1 - r.blocking_probability[1:]), rtol=1e-6)
    else:
        assert_allclose(r.throughput, r.system_throughput, rtol=1e-5)
    more = tandem_blocking(arrival_rate=load, service_rate=mu, **line | {"capacity": places + 1})
    assert more.system_throughput >= r.system_throughput * (1 - 1e-6)


def test_large_buffers_are_the_open_tandem():
    r = tandem_blocking(arrival_rate=0.5, service_rate=[1.0, 0.8], capacity=60)
    assert_allclose(r.mean_number_in_system, [1.0, 0.5 / 0.3], rtol=1e-6)
    assert_allclose(r.blocking_probability, 0, atol=1e-9)


def test_loss_network_exact_cases_and_graph():
    # Losses only where jobs enter from outside: M/M/c/K, then what is left is Poisson for a delay.
    r = loss_network(
        arrival_rate=[2.0, 0],
        service_rate=[1.0, 3.0],
        routing=[[0, 1], [0, 0]],
        servers=[2, 1],
        capacity=[3, 80],
    )
    q = mmck(arrival_rate=2.0, service_rate=1.0, servers=2, capacity=3)
    assert_allclose(r.blocking_probability[0], q.blocking_probability, rtol=1e-9)
    assert_allclose(r.system_throughput, q.throughput, rtol=1e-9)
    assert_allclose(r.to_networkx().edges[0, 1]["flow"], q.throughput, rtol=1e-9)
    empty = loss_network(arrival_rate=[0.0], service_rate=[1.0], routing=[[0]], capacity=2)
    assert empty.system_throughput == 0 and empty.blocking_probability[0] == 0


@pytest.mark.parametrize("load", [0.6, 1.5])
def test_loss_network_against_the_whole_chain(load):
    # With a loop back the flows are far from Poisson: measured within 5.5 %.
    places, mu = (3, 2), (1.0, 0.8)

    def moves(jobs):
        a, b = jobs
        if a < places[0]:
            yield (a + 1, b), load
        if a:
            yield (a - 1, min(b + 1, places[1])), mu[0]
        if b:
            yield (a, b - 1), 0.7 * mu[1]
            yield (min(a + 1, places[0]), b - 1), 0.3 * mu[1]

    law = CTMC.from_transitions(initial_state=(0, 0), transitions=moves).stationary()
    r = loss_network(arrival_rate=[load, 0], service_rate=mu, routing=[[0, 1], [0.3, 0]], capacity=places)
    out = [law.expected(lambda s, i=i: mu[i] * (s[i] > 0)) for i in (0, 1)]
    assert_allclose(r.throughput, out, rtol=0.055)


def test_errors_when_iterations_do_not_converge(monkeypatch):
    monkeypatch.setattr(module, "_SWEEPS", 1)
    with pytest.raises(RuntimeError, match="decomposition did not converge in 1 sweeps"):
        tandem_blocking(arrival_rate=1.0, service_rate=[1.0, 1.0], capacity=2)
    with pytest.raises(RuntimeError, match="loss network did not converge in 1 sweeps"):
        loss_network(arrival_rate=[1.0, 0], service_rate=1.0, routing=[[0, 1], [0.5, 0]], capacity=2)
