"""Percentiles of systems: against exact laws of round trips, limits, and simulations that were kept."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import gamma

import qmodels as qm
from qmodels import Flow, Station, System, Tokens
from qmodels.laws import Deterministic, Erlang, Exponential
from qmodels.steps import Acquire, Branch, Fork, Hold, Release, Repeat, Visit
from qmodels.traffic import Poisson


def closed(services, population, *, think=None, program=None, flows=1):
    """Return flows of jobs that go round all stations, or through a program."""
    parts = {name: law if isinstance(law, Tokens) else Station(service=law) for name, law in services.items()}
    steps = tuple(Visit(name) for name in services) if program is None else program
    return System(
        parts=parts,
        flows=[Flow(name=f"f{k}", population=population, think=think, program=steps) for k in range(flows)],
    )


@settings(max_examples=8, deadline=None)
@given(population=st.integers(1, 30), phases=st.integers(1, 12), mean=st.floats(0.1, 1e3))
def test_jobs_at_one_station_take_the_services_of_all(population, phases, mean):
    answer = qm.solve(closed({"s": Erlang(mean=mean, phases=phases)}, population))
    exact = gamma.ppf(0.99, population * phases) * mean / phases
    assert_allclose(answer.latency_p99, exact, rtol=0.01)


@settings(max_examples=8, deadline=None)
@given(means=st.lists(st.floats(0.3, 3.0), min_size=2, max_size=3), population=st.integers(1, 12))
def test_a_round_of_exponential_stations_has_nearly_its_exact_moments(means, population):
    """Given the numbers found, of product form, a round is their services and one's own."""
    times = np.array(means)
    found = [n for n in product(range(population), repeat=times.size) if sum(n) == population - 1]
    weights = np.array([np.prod(times ** np.array(n)) for n in found])
    weights /= weights.sum()
    mean = (np.array(found) + 1) @ times
    total = weights @ mean
    variance = weights @ ((np.array(found) + 1) @ times**2) + weights @ (mean - total) ** 2
    answer = qm.solve(closed({f"s{k}": Exponential(mean=m) for k, m in enumerate(means)}, population))
    assert_allclose(answer.latency, total, rtol=1e-6)
    about = gamma.ppf(0.99, total**2 / variance) * variance / total
    assert_allclose(answer.latency_p99, about, rtol=0.05)


@pytest.mark.parametrize("services", [(5.0,), (5.0, 3.0), (4.0, 1.0, 3.0)])
def test_constant_services_make_rounds_that_hardly_vary(services):
    answer = qm.solve(closed({f"s{k}": Deterministic(mean=m) for k, m in enumerate(services)}, 4))
    assert answer.latency <= answer.latency_p99 <= 1.15 * answer.latency


@pytest.mark.parametrize("law", [Deterministic(mean=5.0), Exponential(mean=5.0)])
def test_flows_of_one_job_are_one_flow_of_as_many(law):
    one = qm.solve(closed({"s": law}, 4))
    four = qm.solve(closed({"s": law}, 1, flows=4))
    assert_allclose(four["latency_p99[f0]"], one.latency_p99, rtol=0.01)


S, T = Visit("s"), Visit("t")
TOKEN = (Acquire("pool"), S, Hold(Exponential(mean=10.0)), Release("pool"))
KEPT = {
    "constant, think": (closed({"s": Deterministic(mean=5.0)}, 8, think=Exponential(mean=20.0)), 34.4, 0.25),
    "constant, constant think": (
        closed({"s": Deterministic(mean=5.0)}, 8, think=Deterministic(mean=20.0)), 20.0, 0.01,
    ),
    "exponential, think": (closed({"s": Exponential(mean=5.0)}, 16, think=Exponential(mean=50.0)), 84.1, 0.1),
    "pool": (
        closed(
            {"s": Exponential(mean=5.0), "pool": Tokens(count=2)}, 8, think=Exponential(mean=20.0),
            program=TOKEN,
        ), 102.1, 0.1,
    ),
    "branch": (
        closed(
            {"s": Deterministic(mean=5.0), "t": Deterministic(mean=10.0)}, 8, think=Exponential(mean=20.0),
            program=(Branch(((S,), (T,)), (0.5, 0.5)),),
        ), 62.8, 0.3,
    ),
    "fork": (
        closed(
            {"s": Deterministic(mean=5.0), "t": Exponential(mean=5.0)}, 8, think=Exponential(mean=20.0),
            program=(Fork(((S,), (T,))),),
        ), 58.4, 0.1,
    ),
}  # fmt: skip
"""Systems, p99 of ``simulate(spec, packets=20_000, replications=3, seed=3)``, and how near it is."""


@pytest.mark.parametrize("name", KEPT)
def test_percentiles_are_near_simulated_ones(name):
    spec, simulated, near = KEPT[name]
    assert_allclose(qm.solve(spec).latency_p99, simulated, rtol=near)


AGAIN = (Repeat((S,), 4),)
VISITED = {
    "several times": (AGAIN, {"s": Exponential(mean=5.0)}, 0.71 / 20, 293.5),
    "at low load": (AGAIN, {"s": Exponential(mean=5.0)}, 0.3 / 20, 98.9),
    "constant": (AGAIN, {"s": Deterministic(mean=5.0)}, 0.9 / 20, 717.0),
    "later": ((S, T, S), {"s": Exponential(mean=5.0), "t": Deterministic(mean=8.0)}, 0.8 / 10, 235.2),
}
"""Programs, services, rates, and p99 of ``simulate(spec, packets=20_000, replications=3, seed=5)``."""


@pytest.mark.parametrize("name", VISITED)
def test_a_job_finds_much_the_same_queue_at_each_visit(name):
    program, services, rate, simulated = VISITED[name]
    parts = {part: Station(service=law) for part, law in services.items()}
    system = System(parts=parts, flows=Flow(arrivals=Poisson(), rate=rate, program=program))
    assert_allclose(qm.solve(system).latency_p99, simulated, rtol=0.2)
