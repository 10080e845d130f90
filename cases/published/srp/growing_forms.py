"""What the unknown images matter: the region-growing case with other forms and with other rules of size.

The images of Table 6.2 are not published, and those of the case were chosen with the table in view. So
what the table is worth is told by all of these. ``python -m cases.published.srp.growing_forms`` simulates
them and writes ``data/growing-forms.csv``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cases.published.cell import Cell, mean_and_largest, select
from cases.published.claim import Claim
from cases.published.rows import data_folder, write_rows
from cases.published.srp.growing import HEADING, orderings
from cases.published.srp.growing_calibrate import fitted_radius, mean_makespans
from cases.published.srp.growing_specs import VERSIONS, growing_spec, image_body, published_time, task_costs
from cases.tables import text_table
from qmodels.systems.programs.region import grow

FORMS = data_folder("srp") / "growing-forms.csv"
SIZED = {"row": "first row", "blocks": "blocks of C"}
GROUPS = {"row": "table62_forms", "blocks": "table62_blocks"}
"""What the numbers of other forms are, by the rule of size; the first row fits the one rule's sizes."""

COUNT = 12
REPLICATIONS = 60


def radius_of_blocks(image: str, form: int) -> float:
    """Return the radius with which an image has as many blocks as image C."""
    wanted = grow(image_body("C")).blocks.sum()
    radius = 8.0
    for _ in range(8):
        radius *= float(wanted / grow(image_body(image, radius=radius, form=form)).blocks.sum()) ** (1 / 3)
    return radius


def run_forms(*, count: int = COUNT, replications: int = REPLICATIONS) -> list[Cell]:
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
        found += [
            Cell(
                place={**place, "version": version},
                published=published_time(version, image),
                simulated=float(time),
            )
            for version, time in zip(VERSIONS, times, strict=True)
        ]
    return found


def form_cells(rows: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return the forms that were found, with the groups of those that nothing was fitted to."""
    return [
        replace(cell, group="" if fitted(cell) else GROUPS[cell["sized"]]) for cell in map(Cell.of_row, rows)
    ]


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

    return [
        orderings(with_forms({"A": a, "B": b}), "simulated")[0] for a in numbers["A"] for b in numbers["B"]
    ]


def form_claims(forms: Sequence[Cell], table: Sequence[Cell]) -> list[Claim]:
    """Return how many pairs of Table 6.2 are in the published order, over all choices of A and B."""
    claims = []
    for sized, said in SIZED.items():
        pairs = orderings_with_forms(forms, sized, table)
        text = f"pairs in the published order, images A and B sized by {said}, {len(pairs)} choices"
        for name, value in (("mean", sum(pairs) / len(pairs)), ("least", min(pairs))):
            claims.append(
                Claim(
                    text=f"{text}: {name}",
                    heading=HEADING,
                    form="{:.1f}",
                    group="orderings",
                    points=True,
                    published=float(orderings(table, "published")[0]),
                    simulated=float(value),
                )
            )
    return claims


def forms_text(forms: Sequence[Cell]) -> str:
    """Return the spread of the errors over the forms as a table."""
    rows = []
    for sized, said in SIZED.items():
        for image in ("A", "B"):
            for version, name in VERSIONS.items():
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
    found = run_forms()
    write_rows(FORMS, (cell.row() for cell in found))
    print(forms_text(found))
