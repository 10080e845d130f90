"""Do the intervals of the simulator cover what is known exactly, as often as they say?

A small study at three levels, with its own seeds; the table of all systems is `cases.coverage.study`.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from cases.coverage.known import Known, in_networks, single_class, special, with_priorities
from validate.estimates.statistics import Estimate
from validate.network.recursions import applies, run_replication
from validate.network.run import NetworkExperiment

COUNT = 51
"""Systems: what is exact of some takes chains, which each process that collects tests would solve."""
CONFIDENCE, REPLICATIONS = 0.999, 10
LEVELS = (0.9, 0.99, 0.999)
STUDENT = stats.t(REPLICATIONS - 1)


@cache
def systems() -> list[Known]:
    return [system for part in (single_class, special, with_priorities, in_networks) for system in part()]


class Seen(NamedTuple):
    """What the experiments say about one metric.

    ``deviations`` has that of each experiment from the exact value, in standard errors: covered by the
    interval of some level if below Student's quantile. ``pooled`` is the estimate from all of them.
    """

    metric: str
    exact: float
    deviations: Any
    half_widths: Any
    pooled: Estimate

    @property
    def pooled_deviation(self) -> float:
        replications = REPLICATIONS * len(self.deviations)
        quantile = stats.t.ppf((1 + CONFIDENCE) / 2, replications - 1)
        return float((self.pooled.best - self.exact) / (self.pooled.best - self.pooled.low) * quantile)


def observe(system: Any, *, first: int, count: int, passages: int, executor: Executor) -> list[Seen]:
    """Repeat the experiment with so many seeds.

    No two systems share one: the same seed gives the same arrivals to all, so that they would be wrong
    together.
    """
    start = first + 1_000_000 * systems().index(system)
    seeds = range(start, start + count)
    experiments = [
        NetworkExperiment(spec=system.spec, seed=seed, confidence=CONFIDENCE, passages=passages)
        for seed in seeds
    ]
    jobs = [job for experiment in experiments for job in experiment.jobs(0, REPLICATIONS)]
    replicate = run_replication if applies(system.spec) else experiments[0].run_replication
    pairs = list(zip(jobs, executor.map(replicate, jobs), strict=True))
    results = [
        experiment.summarize(
            pairs[k * REPLICATIONS : (k + 1) * REPLICATIONS], replications=REPLICATIONS, seconds=0.0
        )
        for k, experiment in enumerate(experiments)
    ]
    whole = experiments[0].summarize(pairs, replications=len(pairs), seconds=0.0)
    found = []
    for metric, exact in system.exact.items():
        estimates = [result[metric] for result in results]
        best = np.array([e.best for e in estimates])
        half = best - np.array([e.low for e in estimates])
        deviations = (best - exact) / half * STUDENT.ppf((1 + CONFIDENCE) / 2)
        found.append(Seen(metric, exact, deviations, half / best, whole[metric]))
    return found


def covered(deviations: Any, level: float) -> int:
    return int(np.sum(np.abs(deviations) <= STUDENT.ppf((1 + level) / 2)))


def label(system: Any) -> str:
    return f"{system.name} at {system.load:.2g}"


@pytest.fixture(scope="module")
def study():
    """Return eight experiments with every system: a million jobs by events, many more by recursion."""
    with ThreadPoolExecutor(2) as executor:
        return {
            label(system): observe(
                system,
                first=500_000,
                count=8,
                passages=400_000 if applies(system.spec) else 15_000,
                executor=executor,
            )
            for system in systems()
        }


def test_the_table_itself():
    known = systems()
    assert len({label(s) for s in known}) == len(known) == COUNT and len({s.name for s in known}) >= 30
    assert min(s.load for s in known) == 0.1 and max(s.load for s in known) == 0.95
    assert all(np.isfinite(v) and v > 0 for s in known for v in s.exact.values())


@pytest.mark.parametrize("number", range(COUNT))
def test_no_system_is_off(study, number):
    """All experiments with one system together: 80 replications, an error of 1 in 10,000."""
    name = label(systems()[number])
    for seen in study[name]:
        assert abs(seen.pooled_deviation) < stats.t.ppf(1 - 0.5e-4, 8 * REPLICATIONS - 1), (name, seen)
        assert seen.pooled.best - seen.pooled.low < 0.12 * seen.exact, (name, seen)


@pytest.mark.parametrize("level", LEVELS)
def test_intervals_cover_at_the_nominal_rate(study, level):
    """One metric of each system, since those of one system depend on each other; 1 in 1,000 per side."""
    deviations = np.concatenate([seen[0].deviations for seen in study.values()])
    expected = stats.binom(deviations.size, level)
    assert expected.ppf(0.001) <= covered(deviations, level) <= expected.ppf(0.999)


def test_deviations_have_the_law_of_student(study):
    deviations = np.concatenate([seen[0].deviations for seen in study.values()])
    assert stats.kstest(deviations, STUDENT.cdf).pvalue > 0.001
