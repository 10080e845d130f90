"""Tables I to III and Figure 4 of the STNoC paper: published, from the model, and simulated flit by flit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cases.published.cell import Cell, mean_and_largest, select
from cases.published.design import Design, name_of
from cases.published.rows import published
from cases.published.stnoc.calibration import (
    NARROW_LEFT_OUT,
    ONE_LEFT_OUT,
    Place,
    fit_power,
    places,
    power,
    said,
)
from cases.published.stnoc.specs import PAYLOAD, TRANSFERS, WIDTHS, closed_noc, open_noc
from cases.published.text import errors_text, grid_text, three
from cases.tables import text_table
from qmodels.systems.noc.spec import Noc

READINGS: dict[str, dict[str, Any]] = {
    "in turn": {},
    "random channel": {"random": True, "one_packet": 4},
    "router of tables II and III": {"one_packet": 0},
}
"""Readings of the set-up of 8 nodes, see `open_noc`; the first is the one that is used elsewhere."""

GROUPS = dict(zip(READINGS, ("table1_fitted", "table1_random", "table1_other"), strict=True))
TITLES = {
    "table1": "Table I: highest rate without saturation, 8 nodes [packets/cycle/CPU]",
    "text": "Random requests to 4 memories, 8-byte links, 8 nodes [packets/cycle/CPU]",
    "table2": "Table II: aggregate throughput, 32 nodes, 23 engines [MB/s]",
    "figure4": "Figure 4, shorter transfers: aggregate throughput, 32 nodes, 23 engines [MB/s]",
    "nodes16": "16 nodes, 7 engines: aggregate throughput [MB/s]",
    "table3": "Table III: power of the routers, 32 nodes [W]",
}
OURS: tuple[Any, ...] = ("model", "simulated", "low", "high")
GRIDS = {"table1": ("table1", "grid"), "text": ("text", "random_grid")}
"""Where the steps of published rates stand."""


def open_cells() -> list[Cell]:
    """Return the places of Table I and of the rate in the text, with what is published there."""
    data = published("stnoc")
    rows: list[tuple[str, str, int, int, float]] = [
        ("table1", reading, 16, channels, rate)
        for reading in READINGS
        for channels, rate in zip(data["table1"]["channels"], data["table1"]["rate"], strict=True)
    ]
    rows += [("text", reading, 8, 4, data["text"]["random_rate"]) for reading in READINGS]
    return [
        Cell(
            place={"table": table, "reading": reading, "width": width, "channels": channels},
            group="text_rate" if table == "text" else GROUPS[reading],
            published=rate,
        )
        for table, reading, width, channels, rate in rows
    ]


def closed_cells() -> list[Cell]:
    """Return the places of Table II, of Figure 4 and of the set-up of 16 nodes."""
    wanted = [("table2", PAYLOAD, place) for place in places()]
    wanted += [("figure4", transfer, place) for transfer in TRANSFERS[:-1] for place in places()]
    wanted += [
        ("nodes16", transfer, place)
        for transfer in TRANSFERS
        for place in places()
        if transfer == PAYLOAD or place[1] in (1, 8)
    ]
    return [
        Cell(
            place={"table": table, "transfer": transfer, "width": width, "channels": channels},
            group="table2_fitted" if table == "table2" else "",
            published=said("table2", (width, channels)) if table == "table2" else None,
        )
        for table, transfer, (width, channels) in wanted
    ]


def noc_of(cell: Cell) -> Noc:
    """Return the network behind a cell."""
    if cell["table"] in GRIDS:
        options = READINGS[cell["reading"]] | ({"random": True} if cell["table"] == "text" else {})
        return open_noc(channels=cell["channels"], link_width=cell["width"], **options)
    nodes = 16 if cell["table"] == "nodes16" else 32
    return closed_noc(
        channels=cell["channels"], link_width=cell["width"], nodes=nodes, transfer=cell["transfer"]
    )


def measure(cell: Cell) -> tuple[str, float]:
    """Return the metric behind a cell, and what it is multiplied with there: GB/s are MB/s."""
    return ("saturation_rate", 1.0) if cell["table"] in GRIDS else ("bandwidth", 1000.0)


def designs() -> Iterable[Design]:
    """Yield the networks behind Tables I and II, Figure 4 and the set-up of 16 nodes."""
    for cell in (*open_cells(), *closed_cells()):
        metric, factor = measure(cell)
        said = None if cell.published is None else cell.published / factor
        yield Design(name=name_of(**cell.place), spec=noc_of(cell), published={metric: said})


def solved(cells: Iterable[Cell]) -> list[Cell]:
    """Return open and closed cells with the numbers of the model."""
    from qmodels import solve

    found = []
    for cell in cells:
        metric, factor = measure(cell)
        found.append(replace(cell, model=factor * float(solve(noc_of(cell))[metric])))
    return found


def saturation_cells(*, precision: float, cycles: int) -> list[Cell]:
    """Return Table I and the rate in the text, by bisection with the simulator and by the model.

    The interval of a simulated rate is that of the bisection.
    """
    from validate.noc.saturation import saturation_rate

    cells = []
    for cell in solved(open_cells()):
        found = saturation_rate(noc_of(cell), precision=precision, replications=3, cycles=cycles)
        cells.append(replace(cell, simulated=found.rate, low=found.low, high=found.high))
    return cells


def loop_cells(*, packets: int, replications: int, store: Path | None = None) -> list[Cell]:
    """Return Table II, Figure 4 and the set-up of 16 nodes."""
    from validate import simulate

    cells = solved(closed_cells())
    nocs = list(map(noc_of, cells))
    results = simulate(nocs, packets=packets, replications=replications, store=store).results
    estimates = [result.metrics["bandwidth"] for result in results]
    return [
        replace(cell, simulated=1000 * one.best, low=1000 * one.low, high=1000 * one.high)
        for cell, one in zip(cells, estimates, strict=True)
    ]


def today(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells with the numbers of the model of today; those of fits without a part stay."""
    mine = solved(cell for cell in cells if cell["table"] in (*GRIDS, "table2", "figure4", "nodes16"))
    left = [cell for cell in cells if cell.group.endswith("left_out")]
    return [*mine, *power_cells(mine), *left]


def power_cells(loops: Iterable[Cell]) -> list[Cell]:
    """Return Table III at the throughputs of the model, on which it is calibrated, and of the simulation."""
    values = {
        (cell["width"], cell["channels"]): [cell.model, cell.simulated, max(cell.low or 0.0, 0.0), cell.high]
        for cell in select(loops, table="table2")
    }
    rates: dict[Place, list[float]] = {
        place: [(value or 0.0) / 1000 / PAYLOAD for value in mine] for place, mine in values.items()
    }
    fit = fit_power(list(rates), {place: mine[0] for place, mine in rates.items()})
    return [
        Cell(
            place={"table": "table3", "width": place[0], "channels": place[1]},
            group="table3_fitted",
            published=said("table3", place),
            **dict(zip(OURS, (power(fit, place, rate) for rate in mine), strict=True)),
        )
        for place, mine in rates.items()
    ]


def on_grid(rate: float, grid: float) -> float:
    """Return the nearest point of a grid."""
    return round(round(rate / grid) * grid, 9)


def table_text(cells: Sequence[Cell], table: str) -> str:
    """Return one table: in each cell published | model | simulated, or with the points of the grid."""
    mine = select(cells, table=table)
    if table in GRIDS:
        part, name = GRIDS[table]
        return _grid_text(mine, TITLES[table], published("stnoc")[part][name])
    names = {width: f"{width}-byte links" for width in WIDTHS}
    form = "{:.3f}" if table == "table3" else "{:.0f}"
    rows = ("transfer", "channels") if table in ("figure4", "nodes16") else ("channels",)
    mine.sort(key=lambda cell: tuple(cell[name] for name in (*rows, "width")))
    text = grid_text(TITLES[table], mine, rows=rows, column="width", shown=three(form), names=names)
    return f"{text}\n  {errors_text(mine, digits=2)}" if mine[0].group else text


def _grid_text(cells: Sequence[Cell], title: str, grid: float) -> str:
    rows = [
        [
            cell["reading"], cell["channels"], f"{cell.published:g}",
            f"{cell.model:.4f}", f"{cell.simulated:.4f}",
            *(f"{on_grid(value or 0.0, grid):g}" for value in (cell.model, cell.simulated)),
        ]
        for cell in cells
    ]  # fmt: skip
    headings = ["reading", "channels", "published", "model", "simulated", "on the grid: model", "simulated"]
    return f"{title}\n{text_table(headings, rows)}"


def left_out_text(cells: Sequence[Cell]) -> str:
    """Return the errors of predicted columns and rows."""
    lines = []
    for table, place, value, name in (
        (NARROW_LEFT_OUT, "width", 8, "Table II, 8-byte links"),
        *(("table2_left_out", "width", width, f"Table II, {width}-byte links") for width in WIDTHS[1:]),
        *(("table2_row_left_out", "channels", count, f"Table II, {count} channels") for count in (8, 4, 2)),
        (ONE_LEFT_OUT, "channels", 1, "Table II, one channel"),
        *(("table3_left_out", "width", width, f"Table III, {width}-byte links") for width in WIDTHS),
    ):
        mine = select(cells, table=table, **{place: value})
        mean, largest = mean_and_largest(mine, "model")
        lines.append([name, f"{mean:.1f}", f"{largest:.1f}"])
    return "A column or a row left out, predicted by a calibration on the others (model)\n" + text_table(
        ["left out", "mean error %", "largest %"], lines
    )
