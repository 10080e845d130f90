"""Tables I to III of the STNoC paper: published, from the model, and simulated flit by flit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cases.published.cell import Cell, mean_and_largest, select
from cases.published.rows import published
from cases.published.stnoc.calibration import Place, fit_power, places, power, said, throughput
from cases.published.stnoc.specs import CALIBRATED, PAYLOAD, WIDTHS, closed_noc, open_noc
from cases.published.text import errors_text, grid_text, three
from cases.tables import text_table

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
    "nodes16": "16 nodes, 7 engines: aggregate throughput [MB/s]",
    "table3": "Table III: power of the routers, 32 nodes [W]",
}
OURS: tuple[Any, ...] = ("model", "simulated", "low", "high")
GRIDS = {"table1": ("table1", "grid"), "text": ("text", "random_grid")}
"""Where the steps of published rates stand."""


def saturation_cells(*, precision: float, cycles: int) -> list[Cell]:
    """Return Table I and the rate in the text, by bisection with the simulator and by the model.

    The interval of a simulated rate is that of the bisection.
    """
    from qmodels import solve
    from validate.noc.saturation import saturation_rate

    data = published("stnoc")
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
                place={"table": table, "reading": reading, "width": width, "channels": channels},
                group="text_rate" if table == "text" else GROUPS[reading], published=rate,
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
        table = "table2" if nodes == 32 else "nodes16"
        cells.append(
            Cell(
                place={"table": table, "width": place[0], "channels": place[1]},
                group="table2_fitted" if nodes == 32 else "",
                published=said("table2", place) if nodes == 32 else None,
                model=throughput(CALIBRATED, place, nodes=nodes), simulated=1000 * estimate.best,
                low=1000 * estimate.low, high=1000 * estimate.high,
            )
        )  # fmt: skip
    return cells


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
    """Return the nearest point of a grid.

    Examples
    --------
    >>> on_grid(0.0278, 0.01)
    0.03
    """
    return round(round(rate / grid) * grid, 9)


def table_text(cells: Sequence[Cell], table: str) -> str:
    """Return one table: in each cell published | model | simulated, or with the points of the grid."""
    mine = select(cells, table=table)
    if table in GRIDS:
        part, name = GRIDS[table]
        return _grid_text(mine, TITLES[table], published("stnoc")[part][name])
    names = {width: f"{width}-byte links" for width in WIDTHS}
    form = "{:.3f}" if table == "table3" else "{:.0f}"
    mine.sort(key=lambda cell: (cell["channels"], cell["width"]))
    text = grid_text(TITLES[table], mine, rows=("channels",), column="width", shown=three(form), names=names)
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
    """Return the errors of predicted columns."""
    lines = []
    for table, name in (("table2_left_out", "Table II"), ("table3_left_out", "Table III")):
        for width in WIDTHS:
            mean, largest = mean_and_largest(select(cells, table=table, width=width), "model")
            lines.append([name, f"{width}-byte links", f"{mean:.1f}", f"{largest:.1f}"])
    return "A column left out, predicted by a calibration on the other two (model)\n" + text_table(
        ["table", "left out", "mean error %", "largest %"], lines
    )
