"""The LLC-slice case: Korikawa et al. (IEEE Access 2020), figures 13 to 25, simulated and solved.

``python -m cases.published.llc3d.reproduction`` simulates everything and writes ``data/llc3d-run.toml`` and
``data/llc3d-cells.csv``, which are kept. While it runs, finished replications stand in
``llc3d.sqlite`` in the working directory, from which the same command resumes if it was killed.
"""

from __future__ import annotations

import csv
import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cases.published.llc3d.claims import Claim, check_claims, claims_text
from cases.published.llc3d.specs import DATA, NAMES, Place, places, readings, realistic
from cases.published.llc3d.tables import HIT_RATIOS, METRICS, Cell, cells_of, curves_text, grouped_text
from cases.published.numbers import Number, tags_text
from cases.tables import csv_text
from qmodels.systems.cache.llc_processor import LlcProcessor

RUN, CELLS = "llc3d-run.toml", "llc3d-cells.csv"
FIGURES = ("13-15", "16-18", "19-21", "22-25")
READING, REALISTIC = "reading", "capacities"
CAPACITIES = "L1 64 KiB, L2 512 KiB, LLC 28 MiB, 143 million entries"
WORDS = ("figures", "curve", "variable", "metric")
COLUMNS = tuple(field.name for field in fields(Cell))
ASSUMPTIONS = """Assumptions
  The text leaves open which entries share a line (here: any, so that popularity is not address order), what
  becomes of a line that the LLC has when a core gets it (here: it stays), and how many lines a slice of
  146 bytes holds (here: 2 whole ones). The table of readings shows what other answers give.
  DRAM services are exponential like the other stages. Waiting is the time in the core's queue; a time unit is
  125 ns; throughput is that of 64-byte packets with one request each.
  The three exponents of figures 16 to 18 stand in the pictures alone; ours are 0.64, 0.83 and 0.95.
  No curve is traced from a picture: published numbers are those of the text."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How points are simulated.

    Parameters
    ----------
    requests, replications : int
        Of each point of a curve or of a reading.
    realistic_requests, realistic_replications : int
        Of each point of realistic capacities; with 0 requests there is none.
    seed : int
        Of all.
    """

    requests: int = 75_000
    replications: int = 16
    realistic_requests: int = 800_000
    realistic_replications: int = 4
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What `reproduce` found.

    Parameters
    ----------
    runs : Runs
        What was run.
    seconds : dict of str to float
        Processor time of a simulated point of realistic capacities, by architecture; 0 if it was in a store.
    cells : tuple of Cell
        Every number of the figures, of the readings and of the realistic capacities.
    claims : tuple of Claim
        The paper's claims beside what was found.
    """

    runs: Runs
    seconds: dict[str, float]
    cells: tuple[Cell, ...]
    claims: tuple[Claim, ...]

    def table(self) -> str:
        """Return everything as text; in each cell of a table published, where it is, | model | simulated."""
        parts = [
            f"LLC slices, {self.runs.requests} requests, {self.runs.replications} replications, seed "
            f"{self.runs.seed}\nEvery cell: model | simulated; published | model | simulated where the text "
            "has a number",
            *(curves_text(self.cells, figures) for figures in FIGURES),
            grouped_text(self.cells, READING, "Readings of the text"),
        ]
        if self.seconds:
            took = ", ".join(f"{NAMES[name]} {seconds:.0f} s" for name, seconds in self.seconds.items())
            parts.append(
                grouped_text(self.cells, REALISTIC, "Realistic capacities")
                + f"\n  simulated in, processor time: {took} (the paper's estimate: a month at least)"
            )
        return "\n\n".join(
            [*parts, claims_text(self.claims), tags_text("llc3d", self.numbers()), ASSUMPTIONS]
        )

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        # The published design is a point of the other figures as well.
        published = [cell for cell in self.cells if cell.published is not None and cell.figures == FIGURES[0]]
        found = [
            Number(
                group="blocking" if cell.metric == "blocking_probability" else "text",
                published=float(cell.published or 0.0),
                model=cell.model,
                simulated=cell.simulated,
            )
            for cell in published
        ]
        numeric = [claim for claim in self.claims if claim.published.isdecimal() and claim.text.endswith("%")]
        return found + [
            Number(
                group="headline", published=float(claim.published), model=float(claim.model),
                simulated=float(claim.simulated), points=True,
            )
            for claim in numeric
        ]  # fmt: skip

    def columns(self) -> dict[str, list[Any]]:
        """Return the numbers of the tables, one row each."""
        return {name: [getattr(cell, name) for cell in self.cells] for name in COLUMNS}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return {
            **asdict(self.runs),
            "seconds": dict(self.seconds),
            "cells": [asdict(cell) for cell in self.cells],
            "claims": [asdict(claim) for claim in self.claims],
        }

    def to_pandas(self) -> Any:
        """Return the numbers of the tables as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory and return their paths."""
        from cases.published.llc3d.plots import save_plots

        out.mkdir(parents=True, exist_ok=True)
        text = out / "llc3d.txt"
        text.write_text(self.table() + "\n", encoding="utf-8")
        return [text, *write_numbers(self, out), *save_plots(self, out)]


def write_numbers(result: Reproduction, out: Path) -> list[Path]:
    """Write what was run, and the numbers in full, into a directory; return the paths."""
    run = {name: json.dumps(value) for name, value in asdict(result.runs).items()}
    lines = [f"{name} = {value}" for name, value in run.items()]
    lines += ["", "[seconds]", *(f"{name} = {value:.1f}" for name, value in result.seconds.items())]
    (out / RUN).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / CELLS).write_text(csv_text(result.columns()), encoding="utf-8")
    return [out / RUN, out / CELLS]


def read_numbers(folder: Path) -> tuple[Runs, dict[str, float], tuple[Cell, ...]]:
    """Return what `write_numbers` wrote."""
    run = tomllib.loads((folder / RUN).read_text(encoding="utf-8"))
    seconds = run.pop("seconds")
    with (folder / CELLS).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    cells = []
    for row in rows:
        values: dict[str, Any] = {name: row[name] for name in WORDS}
        values |= {name: float(row[name]) if row[name] else None for name in COLUMNS if name not in WORDS}
        cells.append(Cell(**values))
    return Runs(**run), seconds, tuple(cells)


def kept() -> Reproduction:
    """Return the reproduction that ``data`` holds, made by ``python -m cases.published.llc3d.reproduction``.

    Examples
    --------
    >>> print(kept().table().splitlines()[3])
    Figures 13-15
    """
    runs, seconds, cells = read_numbers(DATA)
    return Reproduction(runs=runs, seconds=seconds, cells=cells, claims=tuple(check_claims(cells)))


def reproduce(
    trace: Path | None = None, *, runs: Runs | None = None, store: Path | None = None
) -> Reproduction:
    """Simulate and solve figures 13 to 25, other readings of the text, and realistic capacities.

    Parameters
    ----------
    trace : None
        The case has no recorded packets.
    runs : Runs, optional
        How each point is simulated.
    store : path, optional
        An SQLite file that keeps finished replications, so that a reproduction that was killed
        resumes with the same call.

    Returns
    -------
    Reproduction

    Raises
    ------
    ValueError
        If a trace is given, or the store is damaged or foreign.
    """
    from validate import simulate

    if trace is not None:
        raise ValueError(f"trace must be left out: the case llc3d draws its requests, got {str(trace)!r}")
    runs = runs or Runs()
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
    points = list(places())
    points += [
        (Place(figures=reading, curve=NAMES[name], variable=READING, x=0), spec)
        for reading, specs in readings().items()
        for name, spec in specs.items()
    ]
    specs = list(dict.fromkeys(spec for _, spec in points))
    options: dict[str, Any] = {"seed": runs.seed, "store": store}
    results = dict(
        zip(
            specs,
            simulate(specs, requests=runs.requests, replications=runs.replications, **options),
            strict=True,
        )
    )
    cells: list[Cell] = []
    for place, spec in points:
        metrics = (*METRICS, *HIT_RATIOS) if place.figures == FIGURES[-1] else METRICS
        said = spec == LlcProcessor(architecture=spec.architecture) or place.variable == READING
        cells += cells_of(place, spec, results[spec], metrics, as_published=said)
    seconds: dict[str, float] = {}
    for name in NAMES if runs.realistic_requests else ():
        more, seconds[name] = realistic_cells(name, runs, options)
        cells += more
    return Reproduction(runs=runs, seconds=seconds, cells=tuple(cells), claims=tuple(check_claims(cells)))


def realistic_cells(architecture: str, runs: Runs, options: Mapping[str, Any]) -> tuple[list[Cell], float]:
    """Return the cells of realistic capacities and the processor time they took to simulate."""
    from validate import simulate

    spec = realistic(architecture)
    started = time.process_time()
    result = simulate(
        spec, requests=runs.realistic_requests, replications=runs.realistic_replications, **options
    )
    seconds = time.process_time() - started
    place = Place(figures=CAPACITIES, curve=NAMES[architecture], variable=REALISTIC, x=0)
    return cells_of(place, spec, result, (*METRICS, *HIT_RATIOS), as_published=False), seconds


if __name__ == "__main__":
    unfinished = Path("llc3d.sqlite")
    everything = reproduce(store=unfinished)
    print(everything.table())
    write_numbers(everything, DATA)
    unfinished.unlink()
