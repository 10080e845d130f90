"""Seeded region growing on the 16-core SRP chip: its four ways to distribute tasks, and three images."""

from __future__ import annotations

from collections.abc import Mapping

from cases.published.rows import data_folder, read_toml
from qmodels.systems.programs.region import Cube, Growth, Uneven
from qmodels.systems.programs.work_queues import RunQueues, Stealing, TaskCosts, WorkQueues

FILE = data_folder("srp") / "growing.toml"
IMAGES = ("A", "B", "C")
VERSIONS = {
    "one waterfall": "One SDRAM, waterfall",
    "four waterfall": "4 SDRAM, waterfall",
    "four clustered": "4 SDRAM, clustered",
    "four stealing": "4 SDRAM, work stealing",
}
GRID = (25, 25, 25)
CUBE_SIDE = 14.0
LOCAL_SHARE = 0.2
"""Cost of the scratchpad's queue over that of one in SDRAM: accesses to SDRAM take 4 to 5 times as long."""

FITTED = (
    ("one waterfall", "A"),
    ("one waterfall", "B"),
    ("one waterfall", "C"),
    ("four waterfall", "C"),
    ("four stealing", "C"),
)
"""The figures that calibration uses: three of image C for the costs, one of A and B for their sizes."""


def published_time(version: str, image: str) -> float:
    """Return an execution time of Table 6.2 in million cycles."""
    return float(read_toml(FILE)["published"][version][IMAGES.index(image)])


def image_body(image: str, *, radius: float | None = None, form: int | None = None) -> Growth:
    """Return one of the images, with its calibrated radius or another one, and its form or another one."""
    if image == "C":
        return Growth(grid=GRID, body=Cube(side=CUBE_SIDE))
    size = radius or float(read_toml(FILE)["calibrated"][f"radius_{image.lower()}"])
    if image == "A":
        body = Uneven(radius=size, roughness=0.8, waves=5.0, form=16 if form is None else form)
    else:
        body = Uneven(
            radius=size, roughness=0.8, waves=16.0, form=1 if form is None else form, shift=(7.5, 0.0, 0.0)
        )
    return Growth(grid=GRID, body=body)


def task_costs(values: Mapping[str, float] | None = None) -> TaskCosts:
    """Return the costs of a task, calibrated or given by name."""
    numbers = read_toml(FILE)["calibrated"] if values is None else values
    queue = float(numbers["queue_cycles"])
    return TaskCosts(
        block_cycles=float(numbers["block_cycles"]),
        transfer_cycles=float(numbers["transfer_cycles"]),
        queue_cycles=queue,
        local_cycles=LOCAL_SHARE * queue,
    )


def growing_spec(version: str, tasks: Growth, costs: TaskCosts | None = None) -> WorkQueues:
    """Return one of the four versions of the program on a region."""
    waterfall = RunQueues(organisation="distributed", placement="next", local_length=0)
    clustered = RunQueues(organisation="hierarchical", placement="home", local_length=8, minimum_length=10)
    shepherds = Stealing(thieves="shepherd", victims="nearest", protected=10, share=0.5, most=20)
    data, queues, stealing = {
        "one waterfall": ("one", waterfall, Stealing()),
        "four waterfall": ("nearest", waterfall, Stealing()),
        "four clustered": ("home", clustered, Stealing()),
        "four stealing": ("home", clustered, shepherds),
    }[version]
    return WorkQueues(tasks=tasks, costs=costs or task_costs(), queues=queues, stealing=stealing, data=data)
