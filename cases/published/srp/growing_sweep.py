"""The model of run queues beside its simulation, in a sweep around the region-growing case.

``python -m cases.published.srp.growing_sweep`` runs it and writes ``data/growing-sweep.csv``,
and the error map of the model, ``qmodels/work_queues/error_map.csv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cases.published.measurement import Measurement, Row
from cases.published.rows import data_folder
from cases.published.srp.growing_specs import GRID, VERSIONS, growing_spec, image_body, task_costs
from qmodels.systems.programs.region import Cube, Growth, Uneven
from qmodels.systems.programs.work_queues import Clusters, RunQueues, TaskCosts, WorkQueues
from qmodels.work_queues.solve import ERRORS


def sweep_specs() -> dict[tuple[str, str], WorkQueues]:
    """Return the specs of the sweep by version and change: one parameter at a time."""
    specs: dict[tuple[str, str], WorkQueues] = {}
    changes: dict[str, dict[str, Any]] = {
        "none": {},
        **{name: {"tasks": body} for name, body in _bodies().items()},
        **{name: {"machine": machine} for name, machine in _machines().items()},
        **{name: {"costs": costs} for name, costs in _costs().items()},
    }
    for version in VERSIONS:
        base = growing_spec(version, image_body("C"))
        specs |= {(version, name): replace(base, **change) for name, change in changes.items()}
    for version in ("four clustered", "four stealing"):
        specs |= {(version, name): spec for name, spec in _queues(version).items()}
    return specs | {("four stealing", name): spec for name, spec in _thefts().items()}


def _bodies() -> dict[str, Growth]:
    return {
        "cube of 10": Growth(grid=GRID, body=Cube(side=10.0)),
        "cube of 20": Growth(grid=GRID, body=Cube(side=20.0)),
        "ball": Growth(grid=GRID, body=Uneven(radius=8.0, roughness=0.0)),
        "rough lump": Growth(grid=GRID, body=Uneven(radius=8.0, roughness=0.6, waves=6.0, form=3)),
        "image A": image_body("A"),
        "image B": image_body("B"),
    }


def _machines() -> dict[str, Clusters]:
    return {
        f"{clusters} clusters of {cores}": Clusters(
            clusters=clusters,
            cores=cores,
            numa_factors=tuple(row[:clusters] for row in Clusters().numa_factors[:clusters]),
        )
        for clusters, cores in ((1, 1), (1, 4), (1, 8), (2, 2), (2, 4), (2, 8), (4, 2), (4, 8))
    }


def _costs() -> dict[str, TaskCosts]:
    usual = task_costs()
    return {
        "computing x 0.5": replace(usual, block_cycles=usual.block_cycles / 2),
        "computing x 2": replace(usual, block_cycles=usual.block_cycles * 2),
        "transfers x 0.3": replace(usual, transfer_cycles=usual.transfer_cycles * 0.3),
        "transfers x 2": replace(usual, transfer_cycles=usual.transfer_cycles * 2),
        "queue 0": replace(usual, queue_cycles=0.0, local_cycles=0.0),
        "queue 3000": replace(usual, queue_cycles=3000.0, local_cycles=600.0),
        "queue 8000": replace(usual, queue_cycles=8000.0, local_cycles=1600.0),
        "scv 0.1": replace(usual, compute_scv=0.1),
        "scv 1": replace(usual, compute_scv=1.0),
    }


def _queues(version: str) -> dict[str, WorkQueues]:
    base = growing_spec(version, image_body("B"))
    queues = {
        "B, local 0": replace(base.queues, local_length=0),
        "B, local 40": replace(base.queues, local_length=40),
        "B, central": RunQueues(organisation="central", local_length=0),
        "B, one per core": RunQueues(organisation="distributed", placement="home", local_length=0),
    }
    return {name: replace(base, queues=one) for name, one in queues.items()}


def _thefts() -> dict[str, WorkQueues]:
    base = growing_spec("four stealing", image_body("B"))
    changes: dict[str, dict[str, Any]] = {
        "B, every core": {"thieves": "every"},
        "B, longest": {"victims": "longest"},
        "B, random": {"victims": "random"},
        "B, protected 0": {"protected": 0},
        "B, protected 50": {"protected": 50},
        "B, most 2": {"most": 2},
        "B, most 100": {"most": 100},
        "B, search 20000": {"cycles": 20_000.0},
    }
    specs = {
        name: replace(base, stealing=replace(base.stealing, **change)) for name, change in changes.items()
    }
    return specs | {"B, own": replace(base, queues=replace(base.queues, placement="own"))}


def points() -> Iterator[tuple[Row, WorkQueues]]:
    """Yield the specs with their version, change and number of tasks."""
    for (version, change), spec in sweep_specs().items():
        yield {"version": version, "change": change, "tasks": spec.task_count}, spec


MEASUREMENT = Measurement(
    errors=ERRORS,
    about="Execution time.",
    command="cases.published.srp.growing_sweep",
    points=points,
    metrics={"": ("execution_time", "%")},
    where=lambda row: {"region": "a sweep around the region-growing case"},
    file=data_folder("srp") / "growing-sweep.csv",
    options={"replications": 24},
    scale=lambda spec, metric: 1e-6,  # million cycles
    decimals=1,
)

if __name__ == "__main__":
    MEASUREMENT.main()
