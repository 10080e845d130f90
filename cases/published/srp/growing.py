"""Table 6.2 of the 16-core SRP chip: seeded region growing, four versions on three images.

Source: a master's thesis on task and data placement for the Samsung 16-SRP prototype, written at Seoul
National University, section 6.2. The costs in ``data/growing.toml`` were calibrated by
``python -m cases.published.srp.growing_calibrate``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

from cases.published.cell import Cell, only
from cases.published.claim import Claim, compared, ratio
from cases.published.rows import read_toml
from cases.published.srp.growing_specs import (
    FILE,
    FITTED,
    IMAGES,
    VERSIONS,
    growing_spec,
    image_body,
    published_time,
)

REPLICATIONS = 400
HEADING = "Statements about region growing"


def solved_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Return cells with the model's times of today."""
    from qmodels import solve

    specs = (growing_spec(cell["row"], image_body(cell["column"])) for cell in cells)
    return [
        replace(cell, model=float(solve(spec).execution_time) / 1e6)
        for cell, spec in zip(cells, specs, strict=True)
    ]


def simulated_cells(*, replications: int = REPLICATIONS, store: Path | None = None) -> list[Cell]:
    """Simulate and solve the twelve cells, in million cycles.

    Besides row and column a cell's place holds ``imbalance``: simulated tasks of the cluster that runs
    most, over an equal share, less 1.
    """
    from validate import simulate

    places = [(version, image) for version in VERSIONS for image in IMAGES]
    specs = [growing_spec(version, image_body(image)) for version, image in places]
    results = simulate(specs, replications=replications, store=store)
    cells = [
        Cell(
            place={"table": "table62", "row": version, "column": image, "imbalance": result.imbalance.best},
            group="table62" + "_fitted" * ((version, image) in FITTED),
            published=published_time(version, image),
            simulated=result.execution_time.best / 1e6,
            low=result.execution_time.low / 1e6,
            high=result.execution_time.high / 1e6,
        )
        for (version, image), result in zip(places, results, strict=True)
    ]
    return solved_cells(cells)


def orderings(cells: Sequence[Cell], name: str) -> tuple[int, int]:
    """Return how many pairs within a row or a column are in the published order, and of how many.

    ``name``: ``"published"``, ``"model"`` or ``"simulated"``.
    """
    pairs = [(a, b) for a, b in combinations(cells, 2) if a["row"] == b["row"] or a["column"] == b["column"]]
    right = [
        (getattr(a, name) < getattr(b, name)) == (a.published < b.published)  # type: ignore[operator]
        for a, b in pairs
    ]
    return sum(right), len(pairs)


def check_claims(cells: Sequence[Cell]) -> list[Claim]:
    """Return what the source says of Table 6.2; a claim holds if the simulation says so."""
    claims = []
    for one in read_toml(FILE)["statements"]:
        for image in one["images"]:
            base, cell = (only(cells, row=one[speed], column=image) for speed in ("slow", "fast"))
            faster = ratio(base, cell)
            low, high = one["holds"]
            found = {"published": faster("published"), "holds": low <= faster("simulated") <= high}
            claims.append(
                compared(one["text"].format(image), faster, heading=HEADING, form="{:.4g}", **found)
            )
    right: dict[str, Any] = {name: orderings(cells, name)[0] for name in ("published", "model", "simulated")}
    text = "pairs of a row or a column in the published order, with the images chosen for it"
    return [*claims, Claim(text=text, heading=HEADING, points=True, **right)]
