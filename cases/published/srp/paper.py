"""The 16-SRP case: image blurring and region growing on a NUMA chip with DMA channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from cases.published.cell import Cell, select
from cases.published.claim import Claim
from cases.published.design import Design, name_of
from cases.published.reproduction import Paper, Reproduction
from cases.published.rows import published
from cases.published.srp import growing as region
from cases.published.srp.benchmarks import Benchmark, benchmark_rows, benchmark_specs, check_claims
from cases.published.srp.blurring import calibrate, table_cells, table_specs
from cases.published.srp.growing_forms import form_cells, form_claims, forms_text, run_forms
from cases.published.srp.growing_specs import IMAGES, VERSIONS, growing_spec, image_body, published_time
from cases.published.srp.placement import Placed, find_placements, placed_rows, placement_text
from cases.published.srp.plots import figures
from cases.published.srp.specs import ALGORITHMS, Costs
from cases.published.text import errors_text, list_text
from cases.tables import text_table


def simulate(*, store: Path | None = None) -> Reproduction:
    """Fit, solve and simulate everything anew; the store keeps finished replications."""
    forms = tuple(cell.row() for cell in run_forms())
    return _reproduction(region.simulated_cells(store=store), forms, store=store)


def renew(kept: Reproduction) -> Reproduction:
    """Return everything anew but the simulations of region growing, which take minutes."""
    growing = region.solved_cells(select(kept.cells, table="table62"))
    return _reproduction(growing, kept.tables["growing_forms"])


def _reproduction(
    growing: Sequence[Cell], forms: tuple[Any, ...], *, store: Path | None = None
) -> Reproduction:
    from validate import simulate

    costs = {row: calibrate(row) for row in ALGORITHMS}
    found = find_placements(costs[ALGORITHMS[0]])
    benchmarks = benchmark_specs(costs[ALGORITHMS[0]])
    machines = (machine for machine, _ in found.values())
    wanted = list(dict.fromkeys([*table_specs(costs).values(), *benchmarks.values(), *machines]))
    # Nothing in these machines is random: the second replication only shows that.
    results = simulate(wanted, replications=2, store=store)
    simulated = {spec: float(one.execution_time) for spec, one in zip(wanted, results, strict=True)}
    return Reproduction(
        paper=PAPER,
        cells=(*table_cells(costs, simulated), *growing),
        tables={
            "costs": tuple({"row": row, **asdict(one)} for row, one in costs.items()),
            "benchmarks": tuple(benchmark_rows(benchmarks, simulated)),
            "placements": placed_rows(found, simulated),
            "growing_forms": forms,
        },
    )


def fitted_costs(found: Reproduction) -> Mapping[str, Costs]:
    """Return the fitted times by the row of Table 6.1 they are fitted to."""
    rows = [dict(row) for row in found.tables["costs"]]
    return {row.pop("row"): Costs(**row) for row in rows}


def sections(found: Reproduction) -> list[str]:
    """Return the two tables, the fitted times and the placements."""
    blurring, growing = (select(found.cells, table=table) for table in ("table61", "table62"))
    unit = "execution time [million cycles]"
    labels = {"row": "blurring", "column": "memories", "regime": "regime"}
    costs = [
        [row, *(f"{value:.4g}" for value in asdict(one).values())] for row, one in fitted_costs(found).items()
    ]
    headings = ["fitted to", "controller [cycles]", "computing [cycles/byte]", "turning [cycles]"]
    return [
        "Samsung 16-SRP: 16 cores, 4 memories, 8 DMA channels",
        *(
            list_text(f"Table 6.1: {unit}, fitted to the row {row}", select(blurring, fitted_on=row), labels)
            for row in ALGORITHMS
        ),
        errors_text(blurring),
        f"Fitted times\n{text_table(headings, costs)}",
        placement_text(found.tables["placements"]),
        list_text(
            f"Table 6.2: seeded region growing, {unit}", growing, {"row": "version", "column": "image"},
            names=VERSIONS,
        )
        + f"\n{errors_text(growing)}",
        forms_text(form_cells(found.tables["growing_forms"])),
    ]  # fmt: skip


def designs() -> Iterator[Design]:
    """Yield the machines of Table 6.1, with the times as fitted, and the programs of Table 6.2."""
    for (fitted, row, column), machine in table_specs(fitted_costs(PAPER.kept())).items():
        name = name_of(table="table61", row=row, column=column, fitted=f"fitted to {fitted}")
        said = published("srp")["table61"][column][row]
        yield Design(name=name, spec=machine, published={"execution_time": 1e6 * said})
    for version, image in product(VERSIONS, IMAGES):
        said = {"execution_time": 1e6 * published_time(version, image)}
        name = name_of(table="table62", row=version, image=f"image {image}")
        yield Design(name=name, spec=growing_spec(version, image_body(image)), published=said)


def claims(found: Reproduction) -> list[Claim]:
    """Return the statements about blurring and the chip, and about region growing."""
    costs, growing = fitted_costs(found)[ALGORITHMS[0]], select(found.cells, table="table62")
    return [
        *check_claims(costs, found.cells, found.tables["benchmarks"]),
        *region.check_claims(growing),
        *form_claims(form_cells(found.tables["growing_forms"]), growing),
    ]


PAPER = Paper(
    name="srp",
    simulate=simulate,
    renew=renew,
    sections=sections,
    designs=designs,
    claims=claims,
    more=lambda found: form_cells(found.tables["growing_forms"]),
    figures=figures,
    tables={"costs": dict, "benchmarks": Benchmark, "placements": Placed, "growing_forms": dict},
)
