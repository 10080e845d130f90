"""What the unknown images matter: the region-growing case with other forms and with other rules of size.

``python -m cases.published.srp.growing_forms`` simulates them and writes ``data/growing-forms.csv``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from cases.published.cell import Cell, select
from cases.published.rows import data_folder, write_rows
from cases.published.srp.growing import orderings
from cases.published.srp.growing_calibrate import fitted_radius, mean_makespans
from cases.published.srp.growing_specs import VERSIONS, growing_spec, image_body, published_time, task_costs
from cases.published.srp.paper import PAPER
from cases.tables import read_rows, text_table
from qmodels.systems.programs.region import grow

FORMS = data_folder("srp") / "growing-forms.csv"
SIZED = {"row": "first row", "blocks": "blocks of C"}
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


@cache
def kept_forms() -> tuple[Cell, ...]:
    """Return the forms that ``data`` holds."""
    return tuple(map(Cell.of_row, read_rows(FORMS)))


def orderings_with_forms(forms: Sequence[Cell], sized: str) -> list[int]:
    """Return the simulated pairs in the published order for each choice of forms of A and B."""
    times = {(c["image"], c["form"], c["version"]): c.simulated for c in select(forms, sized=sized)}
    numbers = {image: sorted({form for i, form, _ in times if i == image}) for image in ("A", "B")}
    kept = select(PAPER.kept().cells, table="table62")

    def table(chosen: dict[str, int]) -> list[Cell]:
        return [
            replace(cell, simulated=times[cell["column"], chosen[cell["column"]], cell["row"]])
            if cell["column"] in chosen
            else cell
            for cell in kept
        ]

    return [orderings(table({"A": a, "B": b}), "simulated")[0] for a in numbers["A"] for b in numbers["B"]]


def forms_text(forms: Sequence[Cell]) -> str:
    """Return the spread of the errors over the forms as a table.

    Examples
    --------
    >>> print(forms_text(kept_forms()).splitlines()[0])
    Errors with other forms of images A and B [%]
    """
    rows = []
    for sized, said in SIZED.items():
        for image in ("A", "B"):
            for version, name in VERSIONS.items():
                mine = select(forms, sized=sized, image=image, version=version)
                some = [cell.error(cell.simulated or 0.0) for cell in mine]
                within = sum(abs(error) <= 15 for error in some)
                mean = sum(some) / len(some)
                rows.append(
                    [said, image, name, f"{min(some):+.1f}", f"{mean:+.1f}", f"{max(some):+.1f}",
                     f"{within} of {len(some)}"]
                )  # fmt: skip
    headings = ["sized by", "image", "version", "least", "mean", "most", "within 15 %"]
    return "Errors with other forms of images A and B [%]\n" + text_table(headings, rows)


def choices_text() -> str:
    """Return what other images give: errors, and pairs of Table 6.2 in the published order."""
    forms = kept_forms()
    lines = [forms_text(forms)]
    for sized, said in SIZED.items():
        pairs = orderings_with_forms(forms, sized)
        lines.append(
            f"sized by {said}, pairs in the published order with each choice of forms: {min(pairs)} to "
            f"{max(pairs)}, {sum(pairs) / len(pairs):.1f} on average"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    write_rows(FORMS, (cell.row() for cell in run_forms()))
    kept_forms.cache_clear()
    print(choices_text())
