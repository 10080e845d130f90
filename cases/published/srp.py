"""The 16-core SRP chip (a thesis of Seoul National University): forms of images for seeded region growing.

The images are not published, and those of the case were chosen with Table 6.2 in view. So what the table is
worth is told by other forms, and by other rules of size, as well. The placement of tasks stands in
`cases.published.srp_placement`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cases.published.numbers import Cell, mean_and_largest, published, select
from cases.published.srp_placement import placements  # noqa: F401
from cases.tables import text_table
from qmodels.systems.programs.region import grow

ALGORITHMS, PLACEMENTS = ("non-optimal", "optimal"), ("one", "clustered", "all")
IMAGES = ("A", "B", "C")
LEADERS, EVERYONE = (0, 5, 10, 15), tuple(range(16))
"""The corners of the mesh, a core of each cluster, equally far from its memory; all cores."""
OWN = tuple(core // 4 for core in range(16))
SWAPPED = tuple((2, 3, 0, 1)[cluster] for cluster in OWN)
OPPOSITE = tuple(3 - cluster for cluster in OWN)
ROUND = tuple(tuple((core + k) % 4 for k in range(4)) for core in range(16))
VERSIONS: dict[str, str] = published("srp")["shown"]
FORM_REPLICATIONS, COUNT = 60, 12
"""Of another form of an image; so many forms of A and of B."""
SIZED = {"row": "first row", "blocks": "blocks of C"}
GROUPS = {"row": "table62_forms", "blocks": "table62_blocks"}
"""What the numbers of other forms are, by the rule of size; the first row fits the one rule's sizes."""


def published_time(version: str, image: str) -> float:
    """Return an execution time of Table 6.2 in million cycles."""
    return float(published("srp")["table62"][version][IMAGES.index(image)])


def makespan(spec: Any, replications: int = 200) -> float:
    """Return the simulated mean makespan in million cycles."""
    from validate import simulate

    found = simulate(spec, replications=replications, progress=lambda done, total: None)
    return float(found.metrics["execution_time"].best) / 1e6


def sized(measure: Callable[[float], float], wanted: float, steps: int) -> float:
    """Return the radius with which a measure, which grows as its cube, is as wanted."""
    radius = 8.4
    for _ in range(steps):
        radius *= float(wanted / measure(radius)) ** (1 / 3)
    return radius


def run_forms(growing_spec: Callable[..., Any], image_body: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Simulate the four versions on each form, sized by either rule. [million cycles].

    The place of a cell holds the image and the form of its lump, how it is ``sized`` (``"row"``: as large
    as to meet the figure of the first row; ``"blocks"``: as many blocks as image C, so that only figures of
    image C are used), the version, and the tasks: superblocks of the region.
    """
    blocks = float(grow(image_body("C")).blocks.sum())
    for image, form, rule in itertools.product(("A", "B"), range(COUNT), SIZED):

        def body(radius: float, image: str = image, form: int = form) -> Any:
            return image_body(image, radius, form)

        def first(radius: float, body: Any = body) -> float:
            return makespan(growing_spec("one waterfall", body(radius)), FORM_REPLICATIONS)

        def volume(radius: float, body: Any = body) -> float:
            return float(grow(body(radius)).blocks.sum())

        if rule == "row":
            radius = sized(first, published_time("one waterfall", image), 4)
        else:
            radius = sized(volume, blocks, 8)
        tasks = body(radius)
        place = {"image": image, "form": form, "sized": rule, "tasks": int(grow(tasks).blocks.size)}
        for version in VERSIONS:
            time = makespan(growing_spec(version, tasks), FORM_REPLICATIONS)
            where = {**place, "version": version}
            yield Cell(place=where, published=published_time(version, image), simulated=time).row()


def form_cells(rows: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return the forms that were found, with the groups of those that nothing was fitted to."""
    cells = map(Cell.of_row, rows)
    return [replace(cell, group="" if fitted_form(cell) else GROUPS[cell["sized"]]) for cell in cells]


def fitted_form(cell: Cell) -> bool:
    """Return whether the size of a form was fitted to the figure."""
    return cell["sized"] == "row" and cell["version"] == next(iter(VERSIONS))


def orderings(cells: Sequence[Cell], name: str) -> int:
    """Return the number of pairs within a row or a column in the published order.

    ``name``: ``"published"``, ``"model"`` or ``"simulated"``.
    """
    return sum(
        (getattr(a, name) < getattr(b, name)) == (a.published < b.published)  # type: ignore[operator]
        for a, b in itertools.combinations(cells, 2)
        if a["row"] == b["row"] or a["column"] == b["column"]
    )


def pairs(rows: Iterable[Mapping[str, Any]], rule: str, table: Sequence[Cell]) -> list[int]:
    """Return the simulated pairs in the published order for each choice of forms of A and B.

    Image C and the published figures are those of `table`, Table 6.2 as it was found.
    """
    forms = select(map(Cell.of_row, rows), sized=rule)
    times = {(cell["image"], cell["form"], cell["version"]): cell.simulated for cell in forms}
    return [
        orderings(
            [
                replace(
                    cell,
                    simulated=times.get(
                        (cell["column"], chosen.get(cell["column"]), cell["row"]), cell.simulated
                    ),
                )
                for cell in table
            ],
            "simulated",
        )
        for chosen in ({"A": a, "B": b} for a, b in itertools.product(range(COUNT), repeat=2))
    ]


def forms_text(forms: Sequence[Cell]) -> str:
    """Return the spread of the errors over the forms as a table."""
    rows = []
    for (rule, said), image, (version, name) in itertools.product(
        SIZED.items(), ("A", "B"), VERSIONS.items()
    ):
        mine = select(forms, sized=rule, image=image, version=version)
        some = [cell.error(cell.simulated or 0.0) for cell in mine]
        within = f"{sum(abs(error) <= 15 for error in some)} of {len(some)}"
        ends = (min(some), sum(some) / len(some), max(some))
        size, _ = mean_and_largest(mine, "simulated")
        shown = [*(f"{error:+.1f}" for error in ends), f"{size:.1f}", within]
        rows.append([said, image, name, *shown, "fitted" if fitted_form(mine[0]) else ""])
    headings = ["sized by", "image", "version", "least", "mean", "most", "mean size", "within 15 %", ""]
    return f"Table 6.2 with {COUNT} forms of A and of B: errors [%]\n" + text_table(headings, rows)
