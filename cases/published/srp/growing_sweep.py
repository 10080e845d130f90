"""The model of run queues beside its simulation, in a sweep around the region-growing case.

``python -m cases.published.srp.growing_sweep`` runs it and writes ``data/growing-sweep.csv``,
and the error map of the model, ``qmodels/work_queues/error_map.csv``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cases.published.measurement import Measurement, Row
from cases.published.rows import data_folder
from cases.published.srp.growing_specs import VERSIONS, growing_spec, image_body, task_costs
from qmodels.systems.programs.region import Cube, Uneven
from qmodels.systems.programs.work_queues import Clusters, RunQueues, WorkQueues
from qmodels.systems.spec.fields import replace_fields
from qmodels.work_queues.solve import ERRORS

Changes = dict[str, Any]
"""Values of fields by name."""


def sweep_specs() -> dict[tuple[str, str], WorkQueues]:
    """Return the specs of the sweep by version and change: one parameter at a time."""
    cube, image = image_body("C"), image_body("B")
    wanted = [(version, cube, _changes()) for version in VERSIONS]
    wanted += [(version, image, OF_QUEUES) for version in ("four clustered", "four stealing")]
    wanted += [("four stealing", image, OF_THEFTS)]
    return {
        (version, name): replace_fields(growing_spec(version, body), change)
        for version, body, changes in wanted
        for name, change in changes.items()
    }


def _changes() -> dict[str, Changes]:
    """Return what is changed in every version, on the cube: region, machine and costs."""
    usual = task_costs()
    computing, transfer = float(usual.block_cycles), float(usual.transfer_cycles)
    bodies = {
        "cube of 10": Cube(side=10.0),
        "cube of 20": Cube(side=20.0),
        "ball": Uneven(radius=8.0, roughness=0.0),
        "rough lump": Uneven(radius=8.0, roughness=0.6, waves=6.0, form=3),
        "image A": image_body("A").body,
        "image B": image_body("B").body,
    }
    factors = Clusters().numa_factors
    machines = {
        f"{clusters} clusters of {cores}": {
            "clusters": clusters,
            "machine.cores": cores,
            "numa_factors": tuple(row[:clusters] for row in factors[:clusters]),
        }
        for clusters, cores in ((1, 1), (1, 4), (1, 8), (2, 2), (2, 4), (2, 8), (4, 2), (4, 8))
    }
    return {
        "none": {},
        **{name: {"tasks.body": body} for name, body in bodies.items()},
        **machines,
        "computing x 0.5": {"block_cycles": computing / 2},
        "computing x 2": {"block_cycles": computing * 2},
        "transfers x 0.3": {"transfer_cycles": transfer * 0.3},
        "transfers x 2": {"transfer_cycles": transfer * 2},
        "queue 0": {"queue_cycles": 0.0, "local_cycles": 0.0},
        "queue 3000": {"queue_cycles": 3000.0, "local_cycles": 600.0},
        "queue 8000": {"queue_cycles": 8000.0, "local_cycles": 1600.0},
        "scv 0.1": {"compute_scv": 0.1},
        "scv 1": {"compute_scv": 1.0},
    }


OF_QUEUES: dict[str, Changes] = {
    "B, local 0": {"local_length": 0},
    "B, local 40": {"local_length": 40},
    "B, central": {"queues": RunQueues(organisation="central", local_length=0)},
    "B, one per core": {"queues": RunQueues(organisation="distributed", placement="home", local_length=0)},
}
"""What is changed of the queues, on image B."""

OF_THEFTS: dict[str, Changes] = {
    "B, every core": {"thieves": "every"},
    "B, longest": {"victims": "longest"},
    "B, random": {"victims": "random"},
    "B, protected 0": {"protected": 0},
    "B, protected 50": {"protected": 50},
    "B, most 2": {"most": 2},
    "B, most 100": {"most": 100},
    "B, search 20000": {"stealing.cycles": 20_000.0},
    "B, own": {"queues.placement": "own"},
}
"""What is changed of stealing, on image B."""


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
    convert=lambda spec, metric, value: value / 1e6,  # million cycles
    decimals=1,
)

if __name__ == "__main__":
    MEASUREMENT.main()
