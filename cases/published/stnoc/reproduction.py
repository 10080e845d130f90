"""The STNoC case: Grammatikakis et al., address interleaving on a Spidergon, simulated and solved.

``python -m cases.published.stnoc.reproduction`` simulates everything in some minutes and writes
``data/stnoc-cells.csv``, ``data/stnoc-grid.csv`` and ``data/stnoc-left-out.csv``, which are kept.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cases.published.numbers import Number, tags_text
from cases.published.stnoc.calibration import errors, left_out
from cases.published.stnoc.claims import (
    ASSUMPTIONS,
    Claim,
    check_claims,
    claims_text,
    contradictions,
    step_rate,
)
from cases.published.stnoc.explore import Designs, designs_text, explore_designs, read_grid, simulate_grid
from cases.published.stnoc.specs import DATA, WIDTHS, published
from cases.published.stnoc.tables import (
    READINGS,
    TITLES,
    Cell,
    loop_cells,
    power_cells,
    read_cells,
    saturation_cells,
    table_text,
)
from cases.tables import csv_text, text_table

COLUMNS = ("published", "model", "simulated")
CELLS, GRID, LEFT_OUT = "stnoc-cells.csv", "stnoc-grid.csv", "stnoc-left-out.csv"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What `reproduce` found.

    Parameters
    ----------
    cells : tuple of Cell
        Tables I to III, the rate in the text, and the set-up of 16 nodes.
    grid : list of dict
        Simulated saturation rate by step, channels and link width.
    left_out : list of dict
        Columns of Tables II and III, predicted by a calibration on the others.
    """

    cells: tuple[Cell, ...]
    grid: list[dict[str, Any]]
    left_out: list[dict[str, Any]]

    @property
    def designs(self) -> Designs:
        """The greedy search beside all designs."""
        return explore_designs(self.grid)

    @property
    def claims(self) -> list[Claim]:
        """The statements of the text."""
        return check_claims(self.cells, self.grid)

    def table(self) -> str:
        """Return everything as text."""
        return "\n\n".join(
            [
                "Address interleaving on a Spidergon; in the cells of Tables II and III published | model | "
                "simulated, without a published number model | simulated",
                *(table_text(self.cells, name) for name in TITLES),
                _left_out_text(self.left_out),
                claims_text(self.claims),
                designs_text(self.designs),
                tags_text("stnoc", self.numbers()),
                ASSUMPTIONS,
            ]
        )

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        said = published()["text"]
        tables = {
            ("table1", "in turn"): "table1",
            ("table1", "random channel"): "table1_random",
            ("table1", "router of tables II and III"): "table1_other",
            **{("text", reading): "text_rate" for reading in READINGS},
        }
        found = [
            Number(
                group=tables.get((cell.table, cell.reading), cell.table),
                published=cell.published,
                model=cell.model,
                simulated=cell.simulated,
            )
            for cell in self.cells
            if cell.published
        ]
        found += [
            Number(
                group=f"{row['table']}_left_out",
                published=row["published"],
                model=row["predicted"],
                simulated=None,
            )
            for row in self.left_out
        ]
        rate = step_rate(self.grid)
        found.append(
            Number(
                group="step32", published=said["step32_above"], high=said["step32_below"], model=None,
                simulated=rate[32, 4],
            )
        )  # fmt: skip
        first = {c.channels: c for c in self.cells if (c.table, c.reading) == ("table1", "in turn")}
        one, four = first[1], first[4]
        found.append(
            Number(
                group="ratio", published=four.published / one.published, model=four.model / one.model,
                simulated=four.simulated / one.simulated,
            )
        )  # fmt: skip
        known = {(c.table, c.width, c.channels): c for c in self.cells if not c.reading}
        for width, least, most in ((8, said["gain8"], None), (32, said["gain32"], None)):
            found.append(_gain(known, "gains", "table2", width, least, most))
        found += [_gain(known, "nodes16", "nodes16", width, 0.0, said["gain16"]) for width in WIDTHS]
        narrow, wide = known["table2", 8, 8], known["table2", 32, 8]
        below = {name: 100 * (1 - getattr(narrow, name) / getattr(wide, name)) for name in COLUMNS}
        found.append(Number(group="narrow", **below, points=True))
        return found

    def columns(self) -> dict[str, list[Any]]:
        """Return the numbers of the tables, one row each."""
        return _columns([asdict(cell) for cell in self.cells])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return {
            "cells": [asdict(cell) for cell in self.cells],
            "claims": [asdict(claim) for claim in self.claims],
            "contradictions": contradictions(),
            "left_out": self.left_out,
            "designs": self.grid,
            "greedy": [
                {"field": step.field, "value": step.value, "kept": step.kept} for step in self.designs.steps
            ],
        }

    def to_pandas(self) -> Any:
        """Return the numbers of the tables as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory and return their paths."""
        from cases.published.stnoc.plots import save_plots

        out.mkdir(parents=True, exist_ok=True)
        text = out / "stnoc.txt"
        text.write_text(self.table() + "\n", encoding="utf-8")
        return [text, *write_numbers(self, out), *save_plots(self, out)]


def write_numbers(result: Reproduction, out: Path) -> list[Path]:
    """Write the numbers in full into a directory; return the paths."""
    texts = {
        CELLS: csv_text(result.columns()),
        GRID: csv_text(_columns(result.grid)),
        LEFT_OUT: csv_text(_columns(result.left_out)),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]


def kept() -> Reproduction:
    """Return the reproduction that ``data`` holds, made by ``python -m cases.published.stnoc.reproduction``.

    Examples
    --------
    >>> print(kept().table().splitlines()[2])
    Table I: highest rate without saturation, 8 nodes [packets/cycle/CPU]
    """
    with (DATA / LEFT_OUT).open(encoding="utf-8", newline="") as file:
        rows = [
            {name: value if name == "table" else float(value) for name, value in row.items()}
            for row in csv.DictReader(file)
        ]
    return Reproduction(cells=read_cells(DATA / CELLS), grid=read_grid(DATA / GRID), left_out=rows)


def reproduce(
    trace: Path | None = None,
    *,
    store: Path | None = None,
    packets: int = 100_000,
    replications: int = 4,
    cycles: int = 60_000,
    precision: float = 0.01,
) -> Reproduction:
    """Simulate and solve everything.

    Parameters
    ----------
    trace : path, optional
        Not used: the paper's traffic is synthetic.
    store : path, optional
        An SQLite file that keeps finished replications of Table II and the set-up of 16 nodes.
    packets, replications : int
        Of each number of Table II.
    cycles : int
        Of each replication in the search for saturation. [cycles]
    precision : float
        Relative width of the interval of a saturation rate.

    Returns
    -------
    Reproduction
    """
    loops = loop_cells(packets=packets, replications=replications, store=store)
    return Reproduction(
        cells=(*saturation_cells(precision=precision, cycles=cycles), *loops, *power_cells(loops)),
        grid=simulate_grid(cycles=cycles, replications=2),
        left_out=left_out(),
    )


def _gain(
    known: Mapping[tuple[str, int, int], Cell],
    group: str,
    table: str,
    width: int,
    low: float,
    high: float | None,
) -> Number:
    """Return a published gain of 8 channels over one beside ours, in percent."""
    one, many = known[table, width, 1], known[table, width, 8]
    ours = {name: 100 * (getattr(many, name) / getattr(one, name) - 1) for name in ("model", "simulated")}
    return Number(group=group, published=low, high=high, **ours, points=True)


def _left_out_text(rows: list[dict[str, Any]]) -> str:
    """Return the errors of predicted columns."""
    lines = []
    for table in ("table2", "table3"):
        for width in WIDTHS:
            mine: list[Mapping[str, Any]] = [r for r in rows if (r["table"], r["width"]) == (table, width)]
            mean, largest = errors([r["predicted"] for r in mine], [r["published"] for r in mine])
            name = {"table2": "Table II", "table3": "Table III"}[table]
            lines.append([name, f"{width}-byte links", f"{mean:.1f}", f"{largest:.1f}"])
    return "A column left out, predicted by a calibration on the other two (model)\n" + text_table(
        ["table", "left out", "mean error %", "largest %"], lines
    )


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


if __name__ == "__main__":
    everything = reproduce()
    print(everything.table())
    write_numbers(everything, DATA)
