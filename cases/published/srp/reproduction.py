"""The 16-SRP case: image blurring and region growing on a NUMA chip with DMA channels.

``python -m cases.published.srp.reproduction`` computes everything about DMA, memories and placement anew and
writes
``data/srp-costs.csv``, ``data/srp-blurring.csv``, ``data/srp-claims.csv`` and ``data/srp-placement.csv``,
which are kept so that the results can be read without simulating. Region growing (Table 6.2) is in
`cases.published.srp.growing`, with data of its own.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases.published.numbers import Number, tags_text
from cases.published.srp.blurring import Cell, calibrate, table_cells, table_specs, table_text
from cases.published.srp.claims import Claim, check_claims, claim_specs, claims_text
from cases.published.srp.placement import Placed, find_placements, placement_text
from cases.published.srp.placement import table as placement_table
from cases.published.srp.specs import ALGORITHMS, ASSUMPTIONS, DATA, Costs
from cases.tables import csv_text, number, text_table

if TYPE_CHECKING:
    from cases.published.srp.growing import Cell as Growing

FILES = {
    "costs": "srp-costs.csv",
    "cells": "srp-blurring.csv",
    "claims": "srp-claims.csv",
    "placements": "srp-placement.csv",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What `reproduce` found.

    Parameters
    ----------
    costs : mapping of str to Costs
        The fitted times by the row of Table 6.1 they are fitted to.
    cells : tuple of Cell
        Table 6.1 for each of them.
    claims : tuple of Claim
        Statements of the text.
    placements : tuple of Placed
        Placements by integer program, greedy, and the paper's.
    growing : tuple of cases.published.srp.growing.Cell
        Table 6.2.
    """

    costs: Mapping[str, Costs]
    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...]
    placements: tuple[Placed, ...]
    growing: tuple[Growing, ...]

    def table(self) -> str:
        """Return everything as text."""
        from cases.published.srp import growing as srp_growing

        rows = [[row, *(f"{value:.4g}" for value in asdict(one).values())] for row, one in self.costs.items()]
        headings = ["fitted to", "controller [cycles]", "computing [cycles/byte]", "turning [cycles]"]
        notes = [f"- {text}" for text in (*ASSUMPTIONS, *srp_growing.assumptions())]
        return "\n\n".join(
            [
                "Samsung 16-SRP: 16 cores, 4 memories, 8 DMA channels",
                table_text(self.cells),
                "Fitted times\n" + text_table(headings, rows),
                claims_text(self.claims),
                placement_text(self.placements),
                srp_growing.tables_of(self.growing),
                _claims_text(srp_growing.claims_of(self.growing)),
                tags_text("srp", self.numbers()),
                "What the paper does not say, and we assume\n" + "\n".join(notes),
            ]
        )

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        from cases.published.srp import growing as srp_growing

        found = [
            Number(
                group="table61" if cell.predicted else "table61_fitted",
                published=cell.published,
                model=cell.model,
                simulated=cell.simulated,
            )
            for cell in self.cells
        ]
        for claim in self.claims:
            if claim.published is None or "if computing goes" in claim.text:
                continue  # other readings are no numbers of ours
            blurring = claim.text.partition(" blurring, ")
            group = {"non-optimal": "speedups_fitted", "optimal": "speedups"}.get(
                blurring[0] if blurring[1] else "", "statements"
            )
            found.append(
                Number(group=group, published=claim.published, model=claim.model, simulated=claim.simulated)
            )
        found += [
            Number(
                group="table62_fitted" if cell.calibrated else "table62",
                published=cell.published,
                model=cell.model,
                simulated=cell.simulated,
            )
            for cell in self.growing
        ]
        pairs = {name: srp_growing.orderings(self.growing, name) for name in ("model", "simulated")}
        orderings = {name: float(right) for name, (right, _) in pairs.items()}
        return [*found, Number(group="orderings", published=pairs["model"][1], **orderings, points=True)]

    def columns(self) -> dict[str, list[Any]]:
        """Return the numbers of Tables 6.1 and 6.2, one row each."""
        from cases.published.srp import growing as srp_growing

        mine = [
            {
                "table": "6.1",
                "row": cell.algorithm,
                "column": cell.placement,
                "published": cell.published,
                "model": cell.model,
                "simulated": cell.simulated,
                "model_error": cell.model_error,
                "simulated_error": cell.simulated_error,
                "calibrated": not cell.predicted,
                "fitted_on": cell.fitted_on,
            }
            for cell in self.cells
        ]
        other = [{name: row.get(name, "") for name in mine[0]} for row in srp_growing.rows_of(self.growing)]
        return {name: [row[name] for row in (*mine, *other)] for name in mine[0]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        from cases.published.srp import growing as srp_growing

        return {
            "costs": {row: asdict(one) for row, one in self.costs.items()},
            "cells": [asdict(cell) for cell in self.cells],
            "claims": [asdict(claim) for claim in self.claims],
            "placements": [asdict(placed) for placed in self.placements],
            "growing": srp_growing.rows_of(self.growing),
            "growing_claims": srp_growing.claims_of(self.growing),
        }

    def to_pandas(self) -> Any:
        """Return the numbers of the tables as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory, which is made; return their paths."""
        from cases.published.srp.plots import save_plots

        out.mkdir(parents=True, exist_ok=True)
        text = out / "srp.txt"
        text.write_text(self.table() + "\n", encoding="utf-8")
        return [text, *write_numbers(self, out), *save_plots(self, out)]


def kept() -> Reproduction:
    """Return the reproduction that ``data`` holds, made by ``python -m cases.published.srp.reproduction``.

    Examples
    --------
    >>> print(kept().table().splitlines()[2])
    Table 6.1: execution time [million cycles], fitted to the row non-optimal
    """
    from cases.published.srp import growing as srp_growing

    costs = {row.pop("row"): Costs(**_floats(row)) for row in _read("costs")}
    return Reproduction(
        costs=costs,
        cells=tuple(Cell(**_typed(row, ("published", "model", "simulated"))) for row in _read("cells")),
        claims=tuple(Claim(**_typed(row, ("published", "model", "simulated"))) for row in _read("claims")),
        placements=tuple(
            Placed(**_typed(row, ("objective", "bound", "model", "simulated", "seconds")))
            for row in _read("placements")
        ),
        growing=srp_growing.kept_cells(),
    )


def reproduce(
    trace: str | os.PathLike[str] | None = None, *, store: Path | None = None, growing: bool = True
) -> Reproduction:
    """Fit, solve and simulate everything anew.

    Parameters
    ----------
    trace : path, optional
        Not used: the case has no packets.
    store : path, optional
        An SQLite file that keeps finished replications.
    growing : bool
        Whether to simulate region growing anew too, otherwise its kept numbers are taken.

    Returns
    -------
    Reproduction

    Raises
    ------
    ValueError
        If a trace is given, or the store is damaged or foreign.
    """
    from cases.published.srp import growing as srp_growing
    from validate import simulate

    if trace is not None:
        raise ValueError(f"trace must be left out, as this case has no packets, got {os.fspath(trace)!r}")
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
    costs = {row: calibrate(row) for row in ALGORITHMS}
    first = costs[ALGORITHMS[0]]
    found = find_placements(first)
    wanted = [
        *table_specs(costs).values(),
        *claim_specs(first).values(),
        *(machine for machine, _ in found.values()),
    ]
    wanted = list(dict.fromkeys(wanted))
    # Nothing in these machines is random: the second replication only shows that.
    results = simulate(wanted, replications=2, store=store)
    simulated = {spec: float(one.execution_time) for spec, one in zip(wanted, results, strict=True)}
    cells = table_cells(costs, simulated)
    return Reproduction(
        costs=costs,
        cells=tuple(cells),
        claims=tuple(check_claims(first, cells, simulated)),
        placements=tuple(placement_table(found, simulated)),
        growing=srp_growing.simulated_cells(store=store) if growing else srp_growing.kept_cells(),
    )


def write_numbers(result: Reproduction, out: Path) -> list[Path]:
    """Write the numbers in full into a directory and return the paths."""
    rows: dict[str, list[dict[str, Any]]] = {
        "costs": [{"row": row, **asdict(one)} for row, one in result.costs.items()],
        "cells": [asdict(cell) for cell in result.cells],
        "claims": [asdict(claim) for claim in result.claims],
        "placements": [asdict(placed) for placed in result.placements],
    }
    for name, lines in rows.items():
        columns = {key: [line[key] for line in lines] for key in lines[0]}
        (out / FILES[name]).write_text(csv_text(columns), encoding="utf-8")
    return [out / name for name in FILES.values()]


def _claims_text(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return the statements about region growing as a table."""
    rows = [
        [claim["text"], *(_shown(claim[name]) for name in ("published", "model", "simulated", "holds"))]
        for claim in claims
    ]
    return "Statements about region growing\n" + text_table(
        ["statement", "published", "model", "simulated", "holds"], rows
    )


def _shown(value: Any) -> str:
    return "-" if value is None or value == "" else number(value)


def _read(name: str) -> list[dict[str, str]]:
    with (DATA / FILES[name]).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _floats(row: Mapping[str, str]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items()}


def _typed(row: Mapping[str, str], numbers: Sequence[str]) -> dict[str, Any]:
    """Return a row with its numbers as such, None for those that are missing."""
    typed: dict[str, Any] = dict(row)
    for name in numbers:
        typed[name] = float(row[name]) if row[name] else None
    if "proven" in row:
        typed["proven"] = row["proven"] == "True"
    return typed


if __name__ == "__main__":
    everything = reproduce(growing=False)
    write_numbers(everything, DATA)
    print(everything.table())
