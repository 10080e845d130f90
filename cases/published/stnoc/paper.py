"""The STNoC case: Grammatikakis et al., address interleaving on a Spidergon, simulated and solved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cases.published.reproduction import Paper, Reproduction
from cases.published.stnoc.calibration import left_out
from cases.published.stnoc.claims import assumptions, check_claims, contradictions
from cases.published.stnoc.explore import designs_text, explore_designs, greedy_rows, simulate_grid
from cases.published.stnoc.plots import figures
from cases.published.stnoc.tables import (
    TITLES,
    designs,
    left_out_text,
    loop_cells,
    power_cells,
    saturation_cells,
    table_text,
    today,
)


def simulate(
    *,
    store: Path | None = None,
    packets: int = 40_000,
    replications: int = 4,
    cycles: int = 60_000,
    precision: float = 0.01,
) -> Reproduction:
    """Simulate and solve everything.

    ``store``: keeps finished replications of Table II, Figure 4 and the set-up of 16 nodes; ``packets``,
    ``replications``: of each number of these; ``cycles``: of each replication in the search for saturation
    [cycles]; ``precision``: relative width of the interval of a saturation rate.
    """
    loops = loop_cells(packets=packets, replications=replications, store=store)
    cells = [*saturation_cells(precision=precision, cycles=cycles), *loops, *power_cells(loops), *left_out()]
    grid = simulate_grid(cycles=cycles, replications=2)
    tables = {"grid": tuple(grid), "greedy": tuple(greedy_rows(explore_designs(grid)[1]))}
    return Reproduction(paper=PAPER, cells=tuple(cells), tables=tables)


def sections(found: Reproduction) -> list[str]:
    """Return the tables, the columns and rows left out and the designs."""
    return [
        "Address interleaving on a Spidergon; in the cells of Tables II and III published | model | "
        "simulated, without a published number model | simulated",
        *(table_text(found.cells, name) for name in TITLES),
        left_out_text(found.cells),
        designs_text(*explore_designs(found.tables["grid"])),
    ]


def renew(kept: Reproduction) -> Reproduction:
    """Return the numbers of the model of today beside the kept simulations."""
    return replace(kept, cells=tuple(today(kept.cells)))


PAPER = Paper(
    name="stnoc",
    simulate=simulate,
    renew=renew,
    sections=sections,
    designs=designs,
    claims=lambda found: check_claims(found.cells, found.tables["grid"]),
    figures=figures,
    tables={"grid": dict, "greedy": dict},
    derived={"Contradictions": contradictions(), "Where the parameters come from": assumptions()},
)
