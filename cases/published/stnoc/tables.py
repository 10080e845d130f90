"""Tables I to III of the STNoC paper: published, from the model, and simulated flit by flit."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cases.published.stnoc.calibration import Place, errors, fit_power, places, power, said, throughput
from cases.published.stnoc.specs import CALIBRATED, PAYLOAD, WIDTHS, closed_noc, open_noc, published
from cases.tables import text_table

READINGS: dict[str, dict[str, Any]] = {
    "in turn": {},
    "random channel": {"random": True, "one_packet": 4},
    "router of tables II and III": {"one_packet": 0},
}
"""Readings of the set-up of 8 nodes, see `open_noc`; the first is the one that is used elsewhere."""

TITLES = {
    "table1": "Table I: highest rate without saturation, 8 nodes [packets/cycle/CPU]",
    "text": "Random requests to 4 memories, 8-byte links, 8 nodes [packets/cycle/CPU]",
    "table2": "Table II: aggregate throughput, 32 nodes, 23 engines [MB/s]",
    "nodes16": "16 nodes, 7 engines: aggregate throughput [MB/s]",
    "table3": "Table III: power of the routers, 32 nodes [W]",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number.

    Parameters
    ----------
    table : str
        A key of `TITLES`.
    reading : str
        Of Table I, a key of `READINGS`; otherwise empty.
    width, channels : int
        Bytes of a link and memory channels.
    published : float
        The paper's number; 0 where it gives none.
    model, simulated, low, high : float
        Ours, with the interval of the simulation: of 95 %, or of the bisection for saturation rates.
    """

    table: str
    reading: str
    width: int
    channels: int
    published: float
    model: float
    simulated: float
    low: float
    high: float


def saturation_cells(*, precision: float, cycles: int) -> list[Cell]:
    """Return Table I and the rate in the text, by bisection with the simulator and by the model."""
    from qmodels import solve
    from validate.noc.saturation import saturation_rate

    data = published()
    rows: list[tuple[str, str, int, int, float]] = [
        ("table1", reading, 16, channels, rate)
        for reading in READINGS
        for channels, rate in zip(data["table1"]["channels"], data["table1"]["rate"], strict=True)
    ]
    rows += [("text", reading, 8, 4, data["text"]["random_rate"]) for reading in READINGS]
    cells = []
    for table, reading, width, channels, rate in rows:
        options = READINGS[reading] | ({"random": True} if table == "text" else {})
        noc = open_noc(channels=channels, link_width=width, **options)
        found = saturation_rate(noc, precision=precision, replications=3, cycles=cycles)
        cells.append(
            Cell(
                table=table, reading=reading, width=width, channels=channels, published=rate,
                model=float(solve(noc).saturation_rate), simulated=found.rate, low=found.low, high=found.high,
            )
        )  # fmt: skip
    return cells


def loop_cells(*, packets: int, replications: int, store: Path | None = None) -> list[Cell]:
    """Return Table II and the set-up of 16 nodes."""
    from validate import simulate

    wanted = [(nodes, place) for nodes in (32, 16) for place in places()]
    nocs = [closed_noc(channels=c, link_width=w, nodes=nodes) for nodes, (w, c) in wanted]
    results = simulate(nocs, packets=packets, replications=replications, store=store).results
    cells = []
    for (nodes, place), result in zip(wanted, results, strict=True):
        estimate = result.metrics["bandwidth"]
        cells.append(
            Cell(
                table="table2" if nodes == 32 else "nodes16", reading="", width=place[0], channels=place[1],
                published=said("table2", place) if nodes == 32 else 0.0,
                model=throughput(CALIBRATED, place, nodes=nodes), simulated=1000 * estimate.best,
                low=1000 * estimate.low, high=1000 * estimate.high,
            )
        )  # fmt: skip
    return cells


def power_cells(loops: Iterable[Cell]) -> list[Cell]:
    """Return Table III at the throughputs of the model, on which it is calibrated, and of the simulation."""
    mine = [cell for cell in loops if cell.table == "table2"]
    rates = {(cell.width, cell.channels): cell.model / 1000 / PAYLOAD for cell in mine}
    fit = fit_power(list(rates), rates)
    cells = []
    for cell in mine:
        place: Place = (cell.width, cell.channels)
        values = [
            power(fit, place, value / 1000 / PAYLOAD)
            for value in (cell.model, cell.simulated, max(cell.low, 0.0), cell.high)
        ]
        cells.append(
            Cell(
                table="table3", reading="", width=cell.width, channels=cell.channels,
                published=said("table3", place), model=values[0], simulated=values[1], low=values[2],
                high=values[3],
            )
        )  # fmt: skip
    return cells


def read_cells(path: Path) -> tuple[Cell, ...]:
    """Return kept numbers."""
    kinds = {field.name: {"int": int, "float": float}.get(str(field.type), str) for field in fields(Cell)}
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            Cell(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)
        )


def on_grid(rate: float, grid: float) -> float:
    """Return the nearest point of a grid.

    Examples
    --------
    >>> on_grid(0.0278, 0.01)
    0.03
    """
    return round(round(rate / grid) * grid, 9)


def table_errors(cells: Iterable[Cell], table: str, which: str) -> tuple[float, float]:
    """Return mean and largest relative error of a table [percent], of ``"model"`` or ``"simulated"``."""
    mine = [cell for cell in cells if cell.table == table]
    return errors([getattr(cell, which) for cell in mine], [cell.published for cell in mine])


def table_text(cells: Sequence[Cell], table: str) -> str:
    """Return one table: in each cell published | model | simulated."""
    mine = [cell for cell in cells if cell.table == table]
    if table in ("table1", "text"):
        grid = published()["table1"]["grid"] if table == "table1" else published()["text"]["random_grid"]
        rows: list[Sequence[Any]] = [
            [
                cell.reading, cell.channels, f"{cell.published:g}",
                f"{cell.model:.4f}", f"{cell.simulated:.4f}",
                f"{on_grid(cell.model, grid):g}", f"{on_grid(cell.simulated, grid):g}",
            ]
            for cell in mine
        ]  # fmt: skip
        headings = [
            "reading",
            "channels",
            "published",
            "model",
            "simulated",
            "on the grid: model",
            "simulated",
        ]
        return f"{TITLES[table]}\n{text_table(headings, rows)}"
    known = {(cell.width, cell.channels): cell for cell in mine}
    channels = sorted({cell.channels for cell in mine})
    digits = "{:.3f}" if table == "table3" else "{:.0f}"

    def shown(cell: Cell) -> str:
        ours = [digits.format(cell.model), digits.format(cell.simulated)]
        return " | ".join([digits.format(cell.published), *ours] if cell.published else ours)

    rows = [[c, *(shown(known[w, c]) for w in WIDTHS)] for c in channels]
    lines = [f"{TITLES[table]}\n" + text_table(["channels", *(f"{w}-byte links" for w in WIDTHS)], rows)]
    if all(cell.published for cell in mine):
        for which in ("model", "simulated"):
            mean, largest = table_errors(mine, table, which)
            lines.append(f"  error of the {which}: mean {mean:.2f} %, largest {largest:.2f} %")
    return "\n".join(lines)
