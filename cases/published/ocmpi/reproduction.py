"""The message-passing case: Joven et al., "QoS-ocMPI", published, solved and simulated.

``python -m cases.published.ocmpi.reproduction`` computes everything anew and writes ``data/ocmpi-cells.csv``,
``data/ocmpi-processes.csv`` and ``data/ocmpi-alternatives.csv``, which are kept. It takes half a minute.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from cases.published.numbers import Number, tags_text
from cases.published.ocmpi.calibrate import Alternative, alternatives_text, find_alternatives
from cases.published.ocmpi.claims import ASSUMPTIONS, STATEMENTS
from cases.published.ocmpi.specs import DATA
from cases.published.ocmpi.tables import (
    ARMS,
    FIGURES,
    Cell,
    Finish,
    cells_text,
    find_finishes,
    finishes_text,
    profile_cells,
    profile_programs,
    service_cells,
    service_programs,
)
from cases.tables import csv_text

CELLS, PROCESSES, ALTERNATIVES = "ocmpi-cells.csv", "ocmpi-processes.csv", "ocmpi-alternatives.csv"
Row = TypeVar("Row", Cell, Finish, Alternative)


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What `reproduce` found.

    Parameters
    ----------
    cells : tuple of Cell
        Every published number.
    finishes : tuple of Finish
        When each process ends in the experiments of the figures, which the paper only draws.
    alternatives : tuple of Alternative
        The effects with other packets and buffers.
    """

    cells: tuple[Cell, ...]
    finishes: tuple[Finish, ...]
    alternatives: tuple[Alternative, ...]

    def table(self) -> str:
        """Return everything as text."""
        cycles = [cell for cell in self.cells if cell.unit == "cycles"]
        effects = [cell for cell in self.cells if cell.unit == "%"]
        return "\n\n".join(
            [
                "QoS-ocMPI, message passing on a 4x4 mesh of ARM cores\n"
                "Errors against the published number or the nearer end of its range; "
                "what is calibrated proves nothing.",
                f"Library (sec. VIII.A), errors in percent\n{cells_text(cycles)}",
                f"Quality of service (sec. VIII.B), errors in percentage points\n{cells_text(effects)}",
                *(finishes_text(self.finishes, section) for section in FIGURES),
                alternatives_text(self.alternatives),
                "Statements of the paper\n" + "\n".join(f"  - {text}" for text in STATEMENTS),
                tags_text("ocmpi", self.numbers()),
                "Not in the paper, assumed\n" + "\n".join(f"  - {text}" for text in ASSUMPTIONS),
            ]
        )

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        return [
            Number(
                group=("library" if cell.unit == "cycles" else "effects") + "_fitted" * cell.calibrated,
                published=cell.low,
                high=cell.high,
                model=cell.model,
                simulated=cell.simulated,
                points=cell.unit == "%",
            )
            for cell in self.cells
        ]

    def columns(self) -> dict[str, list[Any]]:
        """Return the published numbers with ours, one row each."""
        rows = [asdict(cell) for cell in self.cells]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return {
            "cells": [asdict(cell) for cell in self.cells],
            "processes": [asdict(one) for one in self.finishes],
            "alternatives": [asdict(one) for one in self.alternatives],
            "statements": list(STATEMENTS),
            "assumptions": list(ASSUMPTIONS),
        }

    def to_pandas(self) -> Any:
        """Return the published numbers as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory and return their paths."""
        from cases.published.ocmpi.plots import save_plots

        out.mkdir(parents=True, exist_ok=True)
        text = out / "ocmpi.txt"
        text.write_text(self.table() + "\n", encoding="utf-8")
        return [text, *write_numbers(self, out), *save_plots(self, out)]


def kept() -> Reproduction:
    """Return the reproduction that ``data`` holds, made by ``python -m cases.published.ocmpi.reproduction``.

    Examples
    --------
    >>> max(abs(c.error(c.simulated)) for c in kept().cells if c.unit == "cycles") < 5
    True
    """
    return Reproduction(
        cells=tuple(_read(DATA / CELLS, Cell)),
        finishes=tuple(_read(DATA / PROCESSES, Finish)),
        alternatives=tuple(_read(DATA / ALTERNATIVES, Alternative)),
    )


def reproduce(trace: Path | None = None, *, store: Path | None = None) -> Reproduction:
    """Solve and simulate everything; the programs are deterministic, and there is no trace in the case.

    Parameters
    ----------
    trace : path, optional
        Not used.
    store : path, optional
        An SQLite file that keeps finished simulations.

    Returns
    -------
    Reproduction
    """
    from qmodels import solve
    from validate import simulate

    del trace
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
    profiled, served = profile_programs(), service_programs()
    programs = [*profiled.values(), *served.values()]
    simulated = simulate(programs, replications=2, store=store).results
    solved = [solve(program) for program in programs]
    split = len(profiled)
    cells = profile_cells(
        {name: one["execution_time"] for name, one in zip(profiled, solved[:split], strict=True)},
        {name: one["execution_time"].best for name, one in zip(profiled, simulated[:split], strict=True)},
    )
    names = [f"finish_time[{k}]" for k in range(ARMS)]
    finishes = find_finishes(
        {key: [one[n] for n in names] for key, one in zip(served, solved[split:], strict=True)},
        {key: [one[n].best for n in names] for key, one in zip(served, simulated[split:], strict=True)},
    )
    return Reproduction(
        cells=(*cells, *service_cells(finishes)),
        finishes=tuple(finishes),
        alternatives=tuple(find_alternatives()),
    )


def write_numbers(result: Reproduction, out: Path) -> list[Path]:
    """Write the numbers in full into a directory; return the paths."""
    files: dict[str, Sequence[Any]] = {
        CELLS: result.cells,
        PROCESSES: result.finishes,
        ALTERNATIVES: result.alternatives,
    }
    for name, rows in files.items():
        lines = [asdict(row) for row in rows]
        columns = {key: [line[key] for line in lines] for key in lines[0]}
        (out / name).write_text(csv_text(columns), encoding="utf-8")
    return [out / name for name in files]


def _read(path: Path, kind: type[Row]) -> list[Row]:
    """Return the rows of a table, whose headings may end with a unit in brackets."""
    hints = get_type_hints(kind)
    convert: dict[Any, Callable[[str], Any]] = {
        str: str,
        int: int,
        float: float,
        bool: lambda word: word in ("True", "yes", "true"),
    }
    with path.open(encoding="utf-8", newline="") as file:
        rows = [{key.split(" [")[0]: value for key, value in row.items()} for row in csv.DictReader(file)]
    return [kind(**{f.name: convert[hints[f.name]](row[f.name]) for f in fields(kind)}) for row in rows]


if __name__ == "__main__":
    everything = reproduce()
    print(everything.table())
    write_numbers(everything, DATA)
