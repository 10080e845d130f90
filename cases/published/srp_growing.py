"""Seeded region growing on the 16-core SRP chip: four ways to distribute tasks, three images, Table 6.2.

The images are not published, and those of the case were chosen with the table in view. So what the table is
worth is told by other forms, and by other rules of size, as well. ``python -m cases.published.srp_growing``
calibrates three costs from image C and the sizes of A and B from a row, and writes them into
``growing.toml``; with ``forms`` it simulates the other forms and writes ``growing-forms.csv``.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cases.published.numbers import Cell, data_folder, mean_and_largest, read_toml, select, write_rows
from cases.tables import text_table
from qmodels.checks import FloatArray
from qmodels.systems.programs.region import Cube, Growth, Uneven, grow
from qmodels.systems.programs.work_queues import RunQueues, Stealing, TaskCosts, WorkQueues

FILE = data_folder("srp") / "growing.toml"
IMAGES = ("A", "B", "C")
VERSIONS = {
    "one waterfall": "One SDRAM, waterfall",
    "four waterfall": "4 SDRAM, waterfall",
    "four clustered": "4 SDRAM, clustered",
    "four stealing": "4 SDRAM, work stealing",
}
GRID, CUBE_SIDE = (25, 25, 25), 14.0
LOCAL_SHARE = 0.2
"""Cost of the scratchpad's queue over that of one in SDRAM: accesses to SDRAM take 4 to 5 times as long."""
FITTED = (
    ("one waterfall", "A"), ("one waterfall", "B"), ("one waterfall", "C"), ("four waterfall", "C"),
    ("four stealing", "C"),
)  # fmt: skip
"""The figures that calibration uses: three of image C for the costs, one of A and B for their sizes."""
REPLICATIONS, FIT_REPLICATIONS, FORM_REPLICATIONS, COUNT = 400, 200, 60, 12
"""Of a number of the table, in a fit, and of another form of an image; so many forms of A and of B."""
SIZED = {"row": "first row", "blocks": "blocks of C"}
GROUPS = {"row": "table62_forms", "blocks": "table62_blocks"}
"""What the numbers of other forms are, by the rule of size; the first row fits the one rule's sizes."""


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
        lump = 1 if form is None else form
        body = Uneven(radius=size, roughness=0.8, waves=16.0, form=lump, shift=(7.5, 0.0, 0.0))
    return Growth(grid=GRID, body=body)


def shifted(blocks: float) -> Growth:
    """Return image B with its body so many superblocks to one side."""
    image = image_body("B")
    return replace(image, body=replace(image.body, shift=(blocks, 0.0, 0.0)))  # type: ignore[arg-type]


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


def solved_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells with the model's times of today."""
    from qmodels import solve

    specs = [growing_spec(cell["row"], image_body(cell["column"])) for cell in cells]
    times = [float(solve(spec).execution_time) / 1e6 for spec in specs]
    return [replace(cell, model=time) for cell, time in zip(cells, times, strict=True)]


def simulated_cells(*, replications: int = REPLICATIONS, store: Path | None = None) -> list[Cell]:
    """Simulate and solve the twelve cells, in million cycles.

    Besides row and column a cell's place holds ``imbalance``: simulated tasks of the cluster that runs
    most, over an equal share, less 1.
    """
    from validate import simulate

    places = list(itertools.product(VERSIONS, IMAGES))
    specs = [growing_spec(version, image_body(image)) for version, image in places]
    cells = []
    for (version, image), result in zip(
        places, simulate(specs, replications=replications, store=store), strict=True
    ):
        time = result.execution_time
        place = {"table": "table62", "row": version, "column": image, "imbalance": result.imbalance.best}
        values = {"simulated": time.best / 1e6, "low": time.low / 1e6, "high": time.high / 1e6}
        group = "table62" + "_fitted" * ((version, image) in FITTED)
        cells.append(Cell(place=place, group=group, published=published_time(version, image), **values))
    return solved_cells(cells)


def orderings(cells: Sequence[Cell], name: str) -> tuple[int, int]:
    """Return the number of pairs within a row or a column in the published order, and of all pairs.

    ``name``: ``"published"``, ``"model"`` or ``"simulated"``.
    """
    pairs = [
        (a, b)
        for a, b in itertools.combinations(cells, 2)
        if a["row"] == b["row"] or a["column"] == b["column"]
    ]
    right = [
        (getattr(a, name) < getattr(b, name)) == (a.published < b.published)  # type: ignore[operator]
        for a, b in pairs
    ]
    return sum(right), len(pairs)


def mean_makespans(specs: Sequence[WorkQueues], replications: int) -> FloatArray:
    """Return simulated mean makespans in million cycles."""
    from validate import simulate

    found = simulate(specs, replications=replications, progress=lambda done, total: None)
    return np.array([result.metrics["execution_time"].best for result in found]) / 1e6


def calibrate(*, replications: int = FIT_REPLICATIONS) -> dict[str, float]:
    """Return the costs that fit three figures of image C, and the radii that fit one of A and one of B."""
    from scipy.optimize import least_squares

    cube, cells = image_body("C"), [version for version, image in FITTED if image == "C"]
    names = ("block_cycles", "transfer_cycles", "queue_cycles")
    wanted = np.array([published_time(version, "C") for version in cells])

    def misfit(logs: FloatArray) -> FloatArray:
        costs = task_costs(dict(zip(names, np.exp(logs), strict=True)))
        specs = [growing_spec(version, cube, costs) for version in cells]
        return np.asarray(mean_makespans(specs, replications) / wanted - 1)

    found = least_squares(misfit, np.log([1170.0, 5660.0, 2050.0]), diff_step=[0.03], max_nfev=8)
    values = {name: float(v) for name, v in zip(names, np.exp(found.x), strict=True)}
    costs = task_costs(values)
    for image in ("A", "B"):
        values[f"radius_{image.lower()}"] = fitted_radius(image, costs, replications=replications)
    return values


def fitted_radius(
    image: str, costs: TaskCosts, *, form: int | None = None, replications: int, steps: int = 6
) -> float:
    """Return the radius with which the first row's execution time is met."""
    radius, wanted = 8.4, published_time("one waterfall", image)
    for _ in range(steps):
        spec = growing_spec("one waterfall", image_body(image, radius=radius, form=form), costs)
        radius *= float(wanted / mean_makespans([spec], replications)[0]) ** (1 / 3)
    return radius


def radius_of_blocks(image: str, form: int) -> float:
    """Return the radius with which an image has as many blocks as image C."""
    radius, wanted = 8.0, grow(image_body("C")).blocks.sum()
    for _ in range(8):
        radius *= float(wanted / grow(image_body(image, radius=radius, form=form)).blocks.sum()) ** (1 / 3)
    return radius


def run_forms(*, count: int = COUNT, replications: int = FORM_REPLICATIONS) -> list[Cell]:
    """Simulate the four versions on each form, sized by either rule. [million cycles].

    The place of a cell holds the image and the form of its lump, how it is ``sized`` (``"row"``: as large
    as to meet the figure of the first row; ``"blocks"``: as many blocks as image C, so that only figures of
    image C are used), the version, and the tasks: superblocks of the region.
    """
    found = []
    for image, form, sized in itertools.product(("A", "B"), range(count), SIZED):
        if sized == "row":
            radius = fitted_radius(image, task_costs(), form=form, replications=replications, steps=4)
        else:
            radius = radius_of_blocks(image, form)
        body = image_body(image, radius=radius, form=form)
        times = mean_makespans([growing_spec(version, body) for version in VERSIONS], replications)
        place = {"image": image, "form": form, "sized": sized, "tasks": int(grow(body).blocks.size)}
        for version, time in zip(VERSIONS, times, strict=True):
            where = {**place, "version": version}
            found.append(Cell(place=where, published=published_time(version, image), simulated=float(time)))
    return found


def form_cells(rows: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return the forms that were found, with the groups of those that nothing was fitted to."""
    cells = map(Cell.of_row, rows)
    return [replace(cell, group="" if fitted(cell) else GROUPS[cell["sized"]]) for cell in cells]


def fitted(cell: Cell) -> bool:
    """Return whether the size of a form was fitted to the figure."""
    return cell["sized"] == "row" and cell["version"] == next(iter(VERSIONS))


def orderings_with_forms(forms: Sequence[Cell], sized: str, table: Sequence[Cell]) -> list[int]:
    """Return the simulated pairs in the published order for each choice of forms of A and B.

    Image C and the published figures are those of `table`, Table 6.2 as it was found.
    """
    times = {(c["image"], c["form"], c["version"]): c.simulated for c in select(forms, sized=sized)}
    numbers = {image: sorted({form for i, form, _ in times if i == image}) for image in ("A", "B")}

    def with_forms(chosen: dict[str, int]) -> list[Cell]:
        return [
            replace(cell, simulated=times[cell["column"], chosen[cell["column"]], cell["row"]])
            if cell["column"] in chosen
            else cell
            for cell in table
        ]

    choices = itertools.product(numbers["A"], numbers["B"])
    return [orderings(with_forms({"A": a, "B": b}), "simulated")[0] for a, b in choices]


def forms_text(forms: Sequence[Cell]) -> str:
    """Return the spread of the errors over the forms as a table."""
    rows = []
    for (sized, said), image, (version, name) in itertools.product(
        SIZED.items(), ("A", "B"), VERSIONS.items()
    ):
        mine = select(forms, sized=sized, image=image, version=version)
        some = [cell.error(cell.simulated or 0.0) for cell in mine]
        within = f"{sum(abs(error) <= 15 for error in some)} of {len(some)}"
        ends = (min(some), sum(some) / len(some), max(some))
        size, _ = mean_and_largest(mine, "simulated")
        shown = [*(f"{error:+.1f}" for error in ends), f"{size:.1f}", within]
        rows.append([said, image, name, *shown, "fitted" if fitted(mine[0]) else ""])
    headings = ["sized by", "image", "version", "least", "mean", "most", "mean size", "within 15 %", ""]
    return f"Table 6.2 with {COUNT} forms of A and of B: errors [%]\n" + text_table(headings, rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["forms"]:
        write_rows(data_folder("srp") / "growing-forms.csv", (cell.row() for cell in run_forms()))
    else:
        head = FILE.read_text(encoding="utf-8").partition("[calibrated]")[0]
        lines = "".join(f"{name} = {value:.6g}\n" for name, value in calibrate().items())
        FILE.write_text(f"{head}[calibrated]\n{lines}", encoding="utf-8")
