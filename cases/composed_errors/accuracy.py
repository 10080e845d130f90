"""The measured error of the model of systems of parts, made by a command and kept as data.

``python -m cases.composed_errors.accuracy`` draws systems (`cases.composed_errors.drawn`), solves and
simulates them, writes each to ``cases/data/composed.csv`` and the errors by region to the map that answers
show (``qmodels/composed/error_map.csv``). A quarter of an hour on one core; ``--summary`` makes the map from
the kept runs alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cases.composed_errors.drawn import SORTS, systems
from cases.study.packet_processor import DATA
from cases.tables import Table, as_columns, load_table, write_table
from qmodels.composed import solve_system
from qmodels.composed.errors import ERRORS, LOADS, region_of
from qmodels.error_map import summarize
from qmodels.systems.composed.system import System
from validate.composed.experiment import SystemExperiment
from validate.composed.replication import run_replication

FILE = DATA / "composed.csv"
COMMAND = "python -m cases.composed_errors.accuracy"
ABOUT = """\
Systems drawn at random, one flow each: model minus simulation by load of the fullest resource. The saturation
of a closed flow is its rate with many jobs; runs that are less certain than 10 % are left out."""

METRICS = ("latency", "latency_p99", "flow_throughput")
COUNT, SEED = 60, 2
PASSAGES, REPLICATIONS = 30_000, 3
CROWD = 300
"""Jobs that go round to find out how many an open flow can carry."""
UNCERTAIN = 0.1


def simulated(
    system: System, *, passages: int = PASSAGES, replications: int = REPLICATIONS, seed: int = 1
) -> Any:
    """Return the simulation of a system."""
    experiment = SystemExperiment(spec=system, seed=seed, passages=passages, confidence=0.95)
    runs = [(job, run_replication(job)) for job in experiment.jobs(0, replications)]
    return experiment.summarize(runs, replications=replications, seconds=0.0)


def rows_of(what: dict[str, Any], system: System, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each metric of a system: model, simulated, its interval, error."""
    answer, run = solve_system(system), simulated(system, **options)
    what = what | {"region": region_of(system), "full": float(answer.bottleneck_load)}
    for metric in METRICS:
        yield what | _row(metric, float(answer.metrics[metric]), run.metrics[metric], bool(run.stable))
    (flow,) = system.flows
    if not flow.closed:
        jobs = flow.window or CROWD
        crowd = replace(flow, arrivals=None, rate=None, window=None, population=jobs)
        most = simulated(replace(system, flows=(crowd,)), **options).metrics["flow_throughput"]
        model = float(answer.metrics["saturation_factor"]) * float(flow.rate)
        yield what | _row("saturation_factor", model, most, True)


def _row(metric: str, model: float, estimate: Any, stable: bool) -> dict[str, Any]:
    known = {"metric": metric, "model": model, "simulated": estimate.best}
    known |= {"low": estimate.low, "high": estimate.high, "stable": stable}
    return known | {"error": 100.0 * (model / estimate.best - 1.0)}


def measure(count: int = COUNT, seed: int = SEED, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of all systems."""
    for what, system in systems(count, seed=seed):
        yield from rows_of(what, system, **options)


def summary(table: Table) -> list[dict[str, Any]]:
    """Return the rows of the error map; stable runs that are certain enough only."""
    regions = [f"{source}, {sort}" for source, sort in product(("open", "closed", "window"), REGION_SORTS)]
    certain = (table["high"] - table["low"]) / 2 <= UNCERTAIN * np.abs(table["simulated"])
    good = table["stable"].astype(bool) & np.isfinite(table["error"]) & certain
    lines = []
    for metric, region, (above, to) in product((*METRICS, "saturation_factor"), regions, LOADS):
        mine = good & (table["metric"] == metric) & (table["region"] == region)
        mine &= (table["full"] > above) & (table["full"] <= to)
        where = {"region": region, "load_above": above, "load_to": to}
        if mine.any():
            lines.append(
                {"metric": metric, "unit": "%", **where, **summarize(table["error"][mine], decimals=2)}
            )
    return lines


REGION_SORTS = ("stations", "with a memory")


def main() -> None:
    """Measure, write the table and the map, and print how good it is."""
    if "--summary" not in sys.argv:
        rows = []
        for row in measure():
            rows.append(row)
            write_table(FILE, as_columns(rows))
    table = load_table(FILE)
    ERRORS.write(summary(table), about=ABOUT, command=COMMAND)
    for load in sorted(set(table["load"])):
        for sort, metric in product(SORTS, (*METRICS, "saturation_factor")):
            mine = (table["load"] == load) & (table["sort"] == sort) & (table["metric"] == metric)
            print(load, sort, metric, summarize(table["error"][mine], decimals=1))


if __name__ == "__main__":
    main()
