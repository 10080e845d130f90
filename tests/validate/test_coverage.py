"""Do the intervals of the simulator cover what is known exactly, as often as they say?

``python tests/validate/test_coverage.py`` repeats the study behind ``tests/reference/coverage.csv``; the
tests here hold a smaller one, with its own seeds, and the kept one to the nominal rates.
"""

from __future__ import annotations

import argparse
import csv
import runpy
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from validate.estimates.statistics import Estimate
from validate.network.recursions import applies, run_replication
from validate.network.run import NetworkExperiment

KNOWN = runpy.run_path(str(Path(__file__).with_name("known_systems.py")))
SYSTEMS = KNOWN["single_class"], KNOWN["special"], KNOWN["with_priorities"], KNOWN["in_networks"]
SYSTEMS = [system for part in SYSTEMS for system in part()]
RESULTS = Path(__file__).parents[1] / "reference" / "coverage.csv"
CONFIDENCE, REPLICATIONS = 0.999, 10
LEVELS = (0.9, 0.99, 0.999)
STUDENT = stats.t(REPLICATIONS - 1)


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
        return float((self.pooled.best - self.exact) / (self.pooled.high - self.pooled.best) * quantile)


def observe(system: Any, *, first: int, count: int, passages: int, executor: Executor) -> list[Seen]:
    """Repeat the experiment with so many seeds.

    No two systems share one: the same seed gives the same arrivals to all, so that they would be wrong
    together.
    """
    start = first + 1_000_000 * SYSTEMS.index(system)
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
        half = np.array([e.high for e in estimates]) - best
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
            for system in SYSTEMS
        }


def test_the_table_itself():
    assert len({label(s) for s in SYSTEMS}) == len(SYSTEMS) and len({s.name for s in SYSTEMS}) >= 30
    assert min(s.load for s in SYSTEMS) == 0.1 and max(s.load for s in SYSTEMS) == 0.95
    assert all(np.isfinite(v) and v > 0 for s in SYSTEMS for v in s.exact.values())


@pytest.mark.parametrize("name", [label(s) for s in SYSTEMS])
def test_no_system_is_off(study, name):
    """All experiments with one system together: 80 replications, an error of 1 in 10,000."""
    for seen in study[name]:
        assert abs(seen.pooled_deviation) < stats.t.ppf(1 - 0.5e-4, 8 * REPLICATIONS - 1), seen
        assert seen.pooled.half_width < 0.12 * seen.exact, seen


@pytest.mark.parametrize("level", LEVELS)
def test_intervals_cover_at_the_nominal_rate(study, level):
    """One metric of each system, since those of one system depend on each other; 1 in 1,000 per side."""
    deviations = np.concatenate([seen[0].deviations for seen in study.values()])
    expected = stats.binom(deviations.size, level)
    assert expected.ppf(0.001) <= covered(deviations, level) <= expected.ppf(0.999)


def test_deviations_have_the_law_of_student(study):
    deviations = np.concatenate([seen[0].deviations for seen in study.values()])
    assert stats.kstest(deviations, STUDENT.cdf).pvalue > 0.001


def hold_to_nominal_rates(file: Path) -> None:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len({row["system"] for row in rows}) >= 30
    assert all(float(row["pooled_half_width"]) < 0.01 for row in rows)
    assert all(abs(float(row["pooled_deviation"])) < stats.norm.ppf(1 - 0.5e-4) for row in rows)
    first = {(row["system"], row["load"]): row for row in reversed(rows)}.values()
    trials = sum(int(row["experiments"]) for row in first)
    assert trials >= 1000
    for level in LEVELS:
        expected = stats.binom(trials, level)
        hits = sum(int(row[f"covered_{level:g}"]) for row in first)
        assert expected.ppf(0.001) <= hits <= expected.ppf(0.999)
        for row in first:
            alone = stats.binom(int(row["experiments"]), level)
            assert int(row[f"covered_{level:g}"]) >= alone.ppf(1e-5), row


def test_the_kept_study_has_the_nominal_rates():
    hold_to_nominal_rates(RESULTS)


@pytest.mark.slow
def test_the_whole_study_again(tmp_path):
    """Minutes to hours of both cores; other seeds than the kept one."""
    main(["--first-seed", "5001", "--half-width", "0.04", "--file", str(tmp_path / "again.csv")])
    hold_to_nominal_rates(tmp_path / "again.csv")


def main(arguments: list[str] | None = None) -> None:
    """Make the table of results: of every system so many experiments with intervals so narrow."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--experiments", type=int, default=24, help="seeds per system")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--half-width", type=float, default=0.009, help="relative, of each 99.9 %% interval")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--file", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    command = f"--experiments {given.experiments} --half-width {given.half_width:g}"
    given.file.parent.mkdir(exist_ok=True)
    with (
        ThreadPoolExecutor(given.workers) as executor,
        given.file.open("w", encoding="utf-8", newline="") as file,
    ):
        file.write(f"# python tests/validate/test_coverage.py {command}\n")
        writer = csv.writer(file, lineterminator="\n")
        rates = [f"covered_{level:g}" for level in LEVELS]
        head = ["system", "load", "metric", "exact", "experiments", "replications", "passages", *rates]
        writer.writerow([*head, "mean_half_width", "pooled", "pooled_half_width", "pooled_deviation"])
        for system in SYSTEMS:
            # A pilot with seeds of its own finds how long the runs must be.
            pilot = observe(system, first=900_000, count=4, passages=20_000, executor=executor)
            wide = max(seen.pooled.half_width / seen.exact for seen in pilot)
            # Four experiments together are half as wide as one, but for Student's quantile.
            wide *= 2 * STUDENT.ppf((1 + CONFIDENCE) / 2) / stats.t.ppf((1 + CONFIDENCE) / 2, 39)
            passages = max(5000, int(20_000 * (wide / given.half_width) ** 2))
            first, count = given.first_seed, given.experiments
            for seen in observe(system, first=first, count=count, passages=passages, executor=executor):
                row = [system.name, f"{system.load:.3g}", seen.metric, f"{seen.exact:.8g}", count]
                row += [REPLICATIONS, passages, *(covered(seen.deviations, level) for level in LEVELS)]
                row += [f"{seen.half_widths.mean():.4f}", f"{seen.pooled.best:.8g}"]
                row += [f"{seen.pooled.half_width / seen.exact:.5f}", f"{seen.pooled_deviation:.3f}"]
                writer.writerow(row)
            file.flush()
            print(label(system), passages, flush=True)


if __name__ == "__main__":
    main()
