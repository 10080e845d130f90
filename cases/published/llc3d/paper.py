"""The LLC-slice case: Korikawa et al. (IEEE Access 2020), figures 13 to 25, simulated and solved."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cases.published.cell import Cell
from cases.published.llc3d.claims import check_claims
from cases.published.llc3d.plots import figures
from cases.published.llc3d.specs import FEWER, NAMES, READING, every_point, realistic
from cases.published.llc3d.tables import (
    FIGURES,
    HIT_RATIOS,
    METRICS,
    REALISTIC,
    cells_of,
    curves_text,
    designs,
    grouped_text,
)
from cases.published.reproduction import Paper, Reproduction
from qmodels.systems.cache.llc_processor import LlcProcessor

CAPACITIES = "L1 64 KiB, L2 512 KiB, LLC 28 MiB, 143 million entries"


def simulate(
    *,
    store: Path | None = None,
    requests: int = 75_000,
    replications: int = 16,
    realistic_requests: int = 800_000,
    realistic_replications: int = 4,
    seed: int = 0,
) -> Reproduction:
    """Simulate and solve figures 13 to 25, other readings of the text, and realistic capacities.

    ``requests``, ``replications``: of each point of a curve or of a reading; ``realistic_requests``,
    ``realistic_replications``: of each point of realistic capacities; with 0 requests there is none.
    """
    from validate import simulate

    run = {
        "requests": requests,
        "replications": replications,
        "realistic_requests": realistic_requests,
        "realistic_replications": realistic_replications,
        "seed": seed,
    }
    points = every_point()
    specs = list(dict.fromkeys(spec for _, spec in points))
    options: dict[str, Any] = {"seed": seed, "store": store}
    campaign = simulate(specs, requests=requests, replications=replications, **options)
    results = dict(zip(specs, campaign, strict=True))
    cells: list[Cell] = []
    for place, spec in points:
        metrics = (*METRICS, *HIT_RATIOS) if place["figures"] == FIGURES[-1] else METRICS
        said = spec == LlcProcessor(architecture=spec.architecture)
        said |= place["variable"] == READING and place["curve"] != FEWER
        cells += cells_of(place, spec, results[spec], metrics, as_published=said)
    seconds = []
    options |= {"requests": realistic_requests, "replications": realistic_replications}
    for name in NAMES if realistic_requests else ():
        more, took = realistic_cells(name, options)
        cells += more
        seconds.append({"architecture": name, "seconds": took})
    return Reproduction(paper=PAPER, run=run, cells=tuple(cells), tables={"seconds": tuple(seconds)})


def realistic_cells(architecture: str, options: Mapping[str, Any]) -> tuple[list[Cell], float]:
    """Return the cells of realistic capacities and the processor time [s] they took, 0 if stored."""
    from validate import simulate

    spec = realistic(architecture)
    started = time.process_time()
    result = simulate(spec, **options)
    seconds = time.process_time() - started
    place = {"figures": CAPACITIES, "curve": NAMES[architecture], "variable": REALISTIC, "x": 0}
    return cells_of(place, spec, result, (*METRICS, *HIT_RATIOS), as_published=False), seconds


def sections(found: Reproduction) -> list[str]:
    """Return the curves, the readings and the realistic capacities."""
    parts = [
        f"LLC slices, {found.run['requests']} requests, {found.run['replications']} replications, seed "
        f"{found.run['seed']}\nEvery cell: model | simulated; published | model | simulated where the text "
        "has a number",
        *(curves_text(found.cells, name) for name in FIGURES),
        grouped_text(found.cells, READING, "Readings of the text"),
    ]
    rows = found.tables.get("seconds", ())
    if rows:
        took = ", ".join(f"{NAMES[row['architecture']]} {row['seconds']:.0f} s" for row in rows)
        parts.append(
            grouped_text(found.cells, REALISTIC, "Realistic capacities")
            + f"\n  simulated in, processor time: {took} (the paper's estimate: a month at least)"
        )
    return parts


PAPER = Paper(
    name="llc3d",
    simulate=simulate,
    sections=sections,
    designs=designs,
    claims=lambda found: check_claims(found.cells),
    figures=figures,
    tables={"seconds": dict},
)
