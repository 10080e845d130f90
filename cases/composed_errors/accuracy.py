"""The measured error of the model of systems of parts, made by a command and kept as data.

``python -m cases.composed_errors.accuracy`` draws systems (`cases.composed_errors.drawn`), solves and
simulates them, writes each to ``cases/data/composed.csv`` and the errors by region to the map that answers
show (``qmodels/composed/error_map.csv``). A quarter of an hour on one core; ``--solve`` solves the model anew
beside the kept simulations, half a minute; ``--summary`` makes the map from what is kept.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cases.composed_errors.drawn import LOTS, Lot, at_load, jobs_of, with_jobs
from cases.study.packet_processor import DATA
from cases.tables import Table, as_columns, load_table, write_table
from qmodels.composed import solve_system
from qmodels.composed.errors import ERRORS, FEW, LOADS, region_of
from qmodels.evidence.error_map import summarize
from qmodels.systems.composed.system import System
from qmodels.systems.spec.hashing import stable_hash
from validate.composed.experiment import SystemExperiment
from validate.composed.replication import run_replication

FILE = DATA / "composed.csv"
COMMAND = "python -m cases.composed_errors.accuracy"
ABOUT = """\
Systems drawn at random: model minus simulation by load of the fullest resource; several flows, caches and
free lists on a few. Runs that are less certain than 10 % are left out. The model was mended while most of
them were looked at; the lot "held out" of cases/data/composed.csv was only measured."""

METRICS = ("latency", "latency_p99", "flow_throughput")
SATURATION = "saturation_factor"
PASSAGES, REPLICATIONS = 30_000, 3
CROWD = 300
"""Jobs that go round to find out how many an open flow can carry."""
UNCERTAIN = 0.1
REGIONS = [f"{a}, {b}" for a, b in product(("open", "closed", "window"), ("stations", "with a memory"))]
WIDE_LOADS = ((0.0, 0.78), (0.78, 0.95))
"""Of the regions of which there are few systems."""


def simulated(
    system: System, *, passages: int = PASSAGES, replications: int = REPLICATIONS, seed: int = 1
) -> Any:
    """Return the simulation of a system."""
    experiment = SystemExperiment(spec=system, seed=seed, passages=passages, confidence=0.95)
    runs = [(job, run_replication(job)) for job in experiment.jobs(0, replications)]
    return experiment.summarize(runs, replications=replications, seconds=0.0)


def rows_of(what: dict[str, Any], system: System, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each metric of a system: what is simulated, and its interval."""
    run = simulated(system, **options)
    what = what | {"jobs": jobs_of(system), "key": key_of(system)}
    for metric in METRICS:
        yield what | _row(metric, run.metrics[metric], bool(run.stable))
    if len(system.flows) == 1 and not system.flows[0].closed:
        flow = system.flows[0]
        jobs = flow.window or CROWD
        crowd = replace(flow, arrivals=None, rate=None, window=None, population=jobs)
        most = simulated(replace(system, flows=(crowd,)), **options).metrics["flow_throughput"]
        yield what | _row(SATURATION, most, True)


def _row(metric: str, estimate: Any, stable: bool) -> dict[str, Any]:
    known = {"metric": metric, "simulated": estimate.best}
    return known | {"low": estimate.low, "high": estimate.high, "stable": stable}


def key_of(system: System) -> str:
    """Return what tells a system that was simulated from others."""
    return stable_hash(system)[:12]


def measure(lot: Lot, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of the simulations of all systems of a lot."""
    for what, system in lot.drawn():
        yield from rows_of(what, at_load(system, what["load"]), **options)


def solved(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with what the model says today beside what was simulated.

    Raises
    ------
    RuntimeError
        If a system is drawn that is not the one that was simulated.
    """
    found = []
    for lot in LOTS:
        drawn = {what["number"]: system for what, system in lot.drawn()}
        known: dict[int, tuple[System, Any]] = {}
        for row in (row for row in rows if row["lot"] == lot.name):
            number = int(row["number"])
            if number not in known:
                system = with_jobs(drawn[number], float(row["jobs"]))
                if key_of(system) != row["key"]:
                    raise RuntimeError(
                        f"system {number} of {lot.name!r} must be the simulated one, {row['key']}, "
                        f"got {key_of(system)}: simulate it anew"
                    )
                known[number] = system, solve_system(system)
            found.append(row | {"number": number} | _beside(row, *known[number]))
    return found


def _beside(row: dict[str, Any], system: System, answer: Any) -> dict[str, Any]:
    """Return what the model says of a metric, and its error. [%]."""
    model = float(answer.metrics[row["metric"]])
    model *= float(row["jobs"]) if row["metric"] == SATURATION else 1.0
    error = 100.0 * (model / float(row["simulated"]) - 1.0)
    full = float(answer.bottleneck_load)
    return {"region": region_of(system), "full": full, "model": model, "error": error}


def rows_in(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table of columns."""
    return [{name: column[k] for name, column in table.items()} for k in range(len(table["lot"]))]


def summary(table: Table) -> list[dict[str, Any]]:
    """Return the rows of the error map; stable runs that are certain enough only."""
    where = [*product(REGIONS, LOADS), *product(FEW, WIDE_LOADS)]
    good, lines = usable(table), []
    for metric, (region, (above, to)) in product((*METRICS, SATURATION), where):
        mine = good & (table["metric"] == metric) & (table["region"] == region)
        mine &= (table["full"] > above) & (table["full"] <= to)
        if mine.any():
            here = {"region": region, "load_above": above, "load_to": to}
            lines.append(
                {"metric": metric, "unit": "%", **here, **summarize(table["error"][mine], decimals=2)}
            )
    return lines


def usable(table: Table) -> Any:
    """Return which rows are of stable runs that are certain enough."""
    certain = (table["high"] - table["low"]) / 2 <= UNCERTAIN * np.abs(table["simulated"])
    return table["stable"].astype(bool) & np.isfinite(table["error"]) & certain


def main() -> None:
    """Measure, write the table and the map, and print how good it is."""
    if "--summary" not in sys.argv:
        kept = rows_in(load_table(FILE))
        if "--solve" not in sys.argv:
            kept = [row for lot in LOTS for row in measure(lot)]
        write_table(FILE, as_columns(solved(kept)))
    table = load_table(FILE)
    ERRORS.write(summary(table), about=ABOUT, command=COMMAND)
    good, loads = usable(table), sorted(set(table["load"]))
    for lot, metric in product(LOTS, (*METRICS, SATURATION)):
        for load in loads:
            mine = good & (table["lot"] == lot.name) & (table["load"] == load) & (table["metric"] == metric)
            if mine.any():
                print(f"{lot.name}, {load:.0%}, {metric}:", summarize(table["error"][mine], decimals=1))


if __name__ == "__main__":
    main()
