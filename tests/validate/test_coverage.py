"""Do the intervals of the simulator cover what is known exactly, as often as they say?"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

import qmodels as qm
from qmodels import QueueingNetwork, single_station, tandem
from qmodels.laws import Deterministic, Erlang, Exponential, Geometric, HyperExponential, Uniform
from validate.network.recursions import applies, run_replication
from validate.network.run import NetworkExperiment

CONFIDENCE, REPLICATIONS, EXPERIMENTS = 0.999, 10, 5
LEVELS = (0.9, 0.99, 0.999)
STUDENT = stats.t(REPLICATIONS - 1)
UNIT, H2 = Exponential(mean=1.0), HyperExponential(probabilities=[0.25, 0.75], means=[2.5, 0.5])


def poisson(rate: float) -> Exponential:
    return Exponential(mean=1 / rate)


@cache
def systems() -> dict[str, tuple[QueueingNetwork, str, float]]:
    """Return networks with an exact model, by their form: a metric, and what the model says of it."""
    wait, specs = "mean_waiting_time", {}
    for load in (0.1, 0.5, 0.8, 0.95):
        specs[f"M/M/1 at {load}"] = wait, single_station(arrivals=poisson(load), service=UNIT)
    laws = {"D": Deterministic(mean=1.0), "E3": Erlang(mean=1.0, phases=3), "H2": H2}
    for name, law in laws.items():
        specs[f"M/{name}/1"] = wait, single_station(arrivals=poisson(0.7), service=law)
        shared = single_station(arrivals=poisson(0.8), service=law, discipline="sharing")
        specs[f"M/{name}/1 shared"] = "mean_response_time", shared
    specs |= {
        "M/M/8": (wait, single_station(arrivals=poisson(7.6), service=UNIT, servers=8)),
        "E2/M/1": (wait, single_station(arrivals=Erlang(mean=1.25, phases=2), service=UNIT)),
        "U/M/1": (wait, single_station(arrivals=Uniform(low=0.0, high=2.5), service=UNIT)),
        "D/M/3": (wait, single_station(arrivals=Deterministic(mean=0.4), service=UNIT, servers=3)),
        "M/M/1/5": ("blocking_probability", single_station(arrivals=poisson(0.95), service=UNIT, capacity=5)),
        "M/H2/1/6": ("blocking_probability", single_station(arrivals=poisson(0.7), service=H2, capacity=6)),
        "M^Geo/M/1": (
            wait,
            single_station(arrivals=poisson(0.3), batch=Geometric(mean=2.0), service=UNIT),
        ),
        "two in a row": (
            "system_response_time",
            tandem(arrivals=poisson(0.6), services=[UNIT, Exponential(mean=1.2)]),
        ),
    }
    found = {}
    for name, (metric, spec) in specs.items():
        answer = qm.solve(spec)
        assert answer.kind == "exact" and answer.interval(metric) == (answer[metric],) * 2, name
        found[name] = spec, metric, float(answer[metric])
    return found


@pytest.fixture(scope="module")
def study() -> dict[str, tuple[Any, float, float]]:
    """Return how many standard errors each of several experiments is off, and all of them pooled.

    No two systems share a seed: it would give the same arrivals to all, so that they were wrong together.
    """

    def observe(number: int, name: str) -> tuple[Any, float, float]:
        spec, metric, exact = systems()[name]
        passages = 100_000 if applies(spec) else 8_000
        experiments = [
            NetworkExperiment(spec=spec, seed=1000 * number + k, confidence=CONFIDENCE, passages=passages)
            for k in range(EXPERIMENTS)
        ]
        run = run_replication if applies(spec) else experiments[0].run_replication
        each = [[(job, run(job)) for job in one.jobs(0, REPLICATIONS)] for one in experiments]
        estimates = [
            one.summarize(pairs, replications=REPLICATIONS, seconds=0.0)[metric]
            for one, pairs in zip(experiments, each, strict=True)
        ]
        every = [pair for pairs in each for pair in pairs]
        whole = experiments[0].summarize(every, replications=len(every), seconds=0.0)[metric]
        errors = np.array([(e.best - e.low) / STUDENT.ppf((1 + CONFIDENCE) / 2) for e in estimates])
        error = (whole.best - whole.low) / stats.t.ppf((1 + CONFIDENCE) / 2, len(every) - 1)
        deviations = (np.array([e.best for e in estimates]) - exact) / errors
        return deviations, (whole.best - exact) / error, (whole.best - whole.low) / exact

    with ThreadPoolExecutor(2) as executor:
        return dict(zip(systems(), executor.map(observe, range(len(systems())), systems()), strict=True))


def test_no_system_is_off(study: dict[str, tuple[Any, float, float]]) -> None:
    """All experiments with one system together: 50 replications, an error of 1 in 10,000."""
    for name, (_, pooled, half) in study.items():
        assert abs(pooled) < stats.t.ppf(1 - 0.5e-4, EXPERIMENTS * REPLICATIONS - 1) and half < 0.2, name


def test_intervals_cover_at_the_nominal_rate(study: dict[str, tuple[Any, float, float]]) -> None:
    """At each level, 1 in 1,000 per side; and deviations have Student's law."""
    deviations = np.concatenate([seen for seen, *_ in study.values()])
    for level in LEVELS:
        held = int(np.sum(np.abs(deviations) <= STUDENT.ppf((1 + level) / 2)))
        expected = stats.binom(deviations.size, level)
        assert expected.ppf(0.001) <= held <= expected.ppf(0.999)
    assert stats.kstest(deviations, STUDENT.cdf).pvalue > 0.001
