"""Each feature of the engine against exact theory, where the intervals are narrow enough to tell.

Every case runs 20 replications with a fixed seed; 99.9 % intervals must cover the exact value and
be as narrow as stated.
"""

from math import inf

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, queues, single_station, tandem
from qmodels.laws import MAP, Deterministic, Empirical, Exponential, HyperExponential
from qmodels.systems.stations.parts import Cyclic, ShortestQueue, StateDependent
from validate import simulate

ONE = Exponential(mean=1.0)
WIDE = HyperExponential(probabilities=[0.9, 0.1], means=[0.5, 5.5])


def poisson(rate):
    return Exponential(mean=1 / rate)


def verify(spec, exact, *, within, passages=40_000, seed=1):
    result = simulate(spec, passages=passages, replications=20, seed=seed, confidence=0.999)
    assert result.stable
    for name, value in exact.items():
        estimate = result[name]
        assert float(value) in estimate, f"{name}: {float(value)} not in {estimate}"
        assert estimate.half_width <= within * abs(float(value)) + 1e-12, f"{name}: {estimate}"


def means(q, *names):
    every = (
        "mean_waiting_time",
        "mean_response_time",
        "mean_number_in_system",
        "mean_number_in_queue",
        "utilization",
    )
    return {name: getattr(q, name) for name in names or every}


def test_quantiles_of_the_response_time():
    result = simulate(
        single_station(arrivals=poisson(0.7), service=ONE),
        passages=50_000,
        replications=20,
        confidence=0.999,
    )
    for p in (0.5, 0.9, 0.99):
        estimate = result.quantile("response", p)
        assert -np.log(1 - p) / 0.3 in estimate and estimate.relative_half_width < 0.08
    waiting = result.quantile("waiting", 0.9)
    assert -np.log(0.1 / 0.7) / 0.3 in waiting


@pytest.mark.in_ci(3)
@pytest.mark.parametrize(
    "options", [{"discipline": "sharing"}, {"rate_multiplier": [1.0]}, {"discipline": "lifo"}]
)
@pytest.mark.parametrize("off", ["vacation", "setup"])
def test_vacations_and_setup_with_other_disciplines(off, options):
    # With exponential service the number in the system does not depend on who is served.
    law = {"vacation": Deterministic(mean=2.0)} if off == "vacation" else {"setup": Deterministic(mean=2.0)}
    model = queues.mg1_vacations if off == "vacation" else queues.mg1_setup
    q = model(arrival_rate=0.7, mean_service_time=1.0, service_scv=1.0, **law)
    spec = single_station(arrivals=poisson(0.7), service=ONE, **{off: Deterministic(mean=2.0)}, **options)
    verify(spec, means(q, "mean_number_in_system", "mean_response_time", "utilization"), within=0.04)


def test_interruption_with_several_servers():
    # Equal exponential service: the high class does not see the low one, and together they are M/M/2.
    high, both = (queues.mmc(arrival_rate=r, service_rate=1.0, servers=2) for r in (0.6, 1.4))
    spec = QueueingNetwork(
        stations=Station(name="s", service=ONE, servers=2, discipline="priority-preemptive"),
        classes=[
            JobClass(name=n, arrivals=poisson(r), priority=p)
            for p, (n, r) in enumerate((("a", 0.6), ("b", 0.8)))
        ],
    )
    exact = {
        "mean_response_time[a]": high.mean_response_time,
        "mean_number_in_system": both.mean_number_in_system,
    }
    verify(spec, exact, within=0.04)


def test_sharing_never_slows_a_job_that_is_alone():
    # A loss system with one place: whoever gets in is alone.
    spec = single_station(arrivals=poisson(0.7), service=ONE, discipline="sharing", capacity=1)
    result = simulate(spec, passages=40_000, replications=4)
    assert result["waiting_probability"].best == result["mean_waiting_time"].best == 0


def test_last_come_first_served_waits_as_long_in_the_mean():
    spec = single_station(arrivals=poisson(0.7), service=WIDE, discipline="lifo")
    verify(spec, {"mean_waiting_time": 0.7 * (1 + WIDE.scv) / 2 / 0.3}, within=0.1)


def test_correlated_arrivals():
    # MAP/M/1 by its chain on (phase, number), cut far out.
    d0, d1 = np.array([[-1.5, 0.1], [0.05, -0.25]]), np.array([[1.4, 0.0], [0.0, 0.2]])
    levels, mu = 400, 1.3
    size = 2 * levels
    q = np.zeros((size, size))
    for n in range(levels):
        here = slice(2 * n, 2 * n + 2)
        q[here, here] += d0 + (d1 if n == levels - 1 else 0)
        if n + 1 < levels:
            q[here, 2 * n + 2 : 2 * n + 4] += d1
        if n > 0:
            q[here, here] -= mu * np.eye(2)
            q[here, 2 * n - 2 : 2 * n] += mu * np.eye(2)
    law = np.linalg.lstsq(np.vstack([q.T, np.ones(size)]), np.append(np.zeros(size), 1.0), rcond=None)[0]
    number = np.repeat(np.arange(levels), 2) @ law
    spec = single_station(arrivals=MAP(d0=d0, d1=d1), service=poisson(mu))
    verify(spec, {"mean_number_in_system": number}, within=0.12)


def chain_of_line(blocking, lam, mu, places):
    """Return throughput and mean numbers of a line of two exponential servers, from its chain."""
    one, two = places

    def moves(n1, n2, held):
        if n1 < one:
            yield lam, (n1 + 1, n2, held)
        if n1 > 0 and not held:
            if n2 < two:
                yield mu[0], (n1 - 1, n2 + 1, 0)
            elif blocking == "after-service":
                yield mu[0], (n1, n2, 1)
            elif blocking == "loss":
                yield mu[0], (n1 - 1, n2, 0)
        if n2 > 0:
            yield mu[1], ((n1 - 1, n2, 0) if held else (n1, n2 - 1, held))

    states = [(a, b, h) for a in range(one + 1) for b in range(two + 1) for h in (0, 1)]
    states = [(a, b, h) for a, b, h in states if not h or (a > 0 and b == two)]
    index = {state: k for k, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for state in states:
        for rate, to in moves(*state):
            rates[index[state], index[to]] += rate
    balance = (rates - np.diag(rates.sum(axis=1))).T
    balance[-1] = 1.0
    law = np.linalg.solve(balance, np.eye(len(states))[-1])
    n1, n2, held = np.array(states).T
    return {
        "throughput[2]": mu[1] * law[n2 > 0].sum(),
        "mean_number_in_system[1]": law @ n1,
        "mean_number_in_system[2]": law @ n2,
        "blocking_probability[1]": law[n1 == one].sum(),
    } | ({"blocked_servers[1]": law @ held} if blocking == "after-service" else {})


@pytest.mark.parametrize("blocking", ["after-service", "before-service", "loss"])
def test_full_second_station(blocking):
    spec = tandem(arrivals=poisson(0.9), services=[ONE, poisson(0.9)], capacity=[4, 2], when_full=blocking)
    exact = chain_of_line(blocking, 0.9, (1.0, 0.9), (4, 2))
    if blocking != "before-service":
        exact["utilization[1]"] = (
            exact["throughput[2]"]
            if blocking == "after-service"
            else 0.9 * (1 - exact["blocking_probability[1]"])
        )
    verify(spec, exact, within=0.05)


def test_in_turn_makes_regular_arrivals():
    # Every second of a Poisson stream: gaps are Erlang, the station is E2/M/1.
    spec = QueueingNetwork(
        stations=[Station(name=n, service=ONE) for n in "ab"],
        classes=JobClass(arrivals=poisson(1.4), entry=Cyclic(to=["a", "b"])),
    )
    beta = 2.8  # each phase at 1.4: sigma solves sigma = (1.4 / (1.4 + 1 - sigma))**2
    sigma = min(
        r.real
        for r in np.roots([1, -(2 * beta / 2 + 2), (beta / 2 + 1) ** 2, -((beta / 2) ** 2)])
        if r.real < 0.999
    )
    verify(
        spec,
        {"mean_response_time[a]": 1 / (1 - sigma), "mean_response_time[b]": 1 / (1 - sigma)},
        within=0.04,
    )


def test_join_the_shortest_queue():
    # Two exponential servers: the chain on both numbers, cut far out.
    lam, top = 1.4, 60
    index = {
        (a, b): k
        for k, (a, b) in enumerate((a, b) for a in range(top) for b in range(top) if abs(a - b) < 20)
    }
    from scipy.sparse import lil_matrix
    from scipy.sparse.linalg import spsolve

    rates = lil_matrix((len(index), len(index)))
    for (a, b), k in index.items():
        choices = [(a + 1, b)] if a < b else [(a, b + 1)] if b < a else [(a + 1, b), (a, b + 1)]
        moves = [(lam / len(choices), to) for to in choices]
        moves += [(1.0, (a - 1, b))] * (a > 0) + [(1.0, (a, b - 1))] * (b > 0)
        for rate, to in moves:
            if to in index:
                rates[index[to], k] += rate
                rates[k, k] -= rate
    rates[0] = 1.0
    law = spsolve(rates.tocsr(), np.eye(1, len(index)).ravel())
    number = sum(p * (a + b) for p, (a, b) in zip(law, index, strict=True))
    spec = QueueingNetwork(
        stations=[Station(name=n, service=ONE) for n in "ab"],
        classes=JobClass(arrivals=poisson(lam), entry=ShortestQueue(to=["a", "b"])),
    )
    verify(spec, {"mean_number_in_network": number, "throughput[a]": lam / 2}, within=0.04)


def test_routing_by_a_table_of_the_state():
    # Whoever finds two jobs at the first station goes to the delay: the first one is M/M/1/2.
    spec = QueueingNetwork(
        stations=[Station(name="a", service=ONE), Station(name="b", service=ONE, servers=inf)],
        classes=JobClass(arrivals=poisson(0.8), entry=StateDependent(station="a", rules=["a", "a", "b"])),
    )
    q = queues.mmck(arrival_rate=0.8, service_rate=1.0, servers=1, capacity=2)
    exact = {
        "throughput[a]": q.throughput,
        "mean_number_in_system[a]": q.mean_number_in_system,
        "mean_number_in_system[b]": 0.8 * q.blocking_probability,
    }
    verify(spec, exact, within=0.04)


def test_recorded_batch_sizes_and_losses_inside_a_batch():
    # Pairs arrive at a loss system with one place: exactly one of each pair finds it taken, at least.
    spec = single_station(arrivals=poisson(0.5), service=ONE, capacity=1, batch=Empirical(values=[2]))
    busy = 0.5 / 1.5
    verify(spec, {"blocking_probability": 1 - (1 - busy) / 2, "utilization": busy}, within=0.02)
