"""Grammatikakis et al.: address interleaving on the Spidergon STNoC, its tables and its calibration.

Its networks are in `cases.published.stnoc_networks`, its designs in `cases.published.stnoc_designs`.

``python -m cases.published.stnoc`` fits the closed loops to Table II anew and writes ``calibrated.toml``:
the values, their intervals, and the errors of columns and rows that were left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from cases.published.numbers import Cell, Design, mean_and_largest, name_of, published, read_toml, select
from cases.published.stnoc_designs import (  # noqa: F401
    best_step,
    designs_text,
    greedy_rows,
    simulate_grid,
    step_rate,
)
from cases.published.stnoc_networks import (  # noqa: F401
    CALIBRATED,
    CONTROLLER_CYCLES,
    CROSSBAR,
    FILE,
    PAYLOAD,
    TRANSFERS,
    WIDTHS,
    Loop,
    closed_noc,
    crossed,
    engines_of,
    flits,
    loop,
    open_noc,
    resized,
)
from cases.tables import text_table
from qmodels.noc.closed_loop import closed_loop
from qmodels.noc.power import PowerFit, calibrate_power, router_power
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topologies import crossbar, spidergon
from qmodels.systems.noc.topology import Topology

READINGS: dict[str, dict[str, Any]] = {
    "in turn": {},
    "random channel": {"random": True, "one_packet": 4},
    "router of tables II and III": {"one_packet": 0},
}
"""Readings of the set-up of 8 nodes, see `open_noc`; the first is the one that is used elsewhere."""
GROUPS = dict(zip(READINGS, ("table1_fitted", "table1_random", "table1_other"), strict=True))
TABLES = ("table1", "text", "table2", "figure4", "nodes16", "crossbar", "crossbar16")
"""Those whose cells are a metric of a network each."""
Place = tuple[int, int]
"""A cell of Tables II and III: link width and channels."""


def places(widths: Iterable[int] = WIDTHS) -> list[Place]:
    """Return the cells of some columns of Tables II and III."""
    return [(width, channels) for width in widths for channels in published("stnoc")["table2"]["channels"]]


def number(table: str, place: Place) -> float:
    """Return a published number of Table II [MB/s] or III [W]."""
    data = published("stnoc")[table]
    return float(data[f"width{place[0]}"][data["channels"].index(place[1])])


def throughput(engines: Loop, place: Place, network: Callable[[int], Topology] = spidergon) -> float:
    """Return the model's aggregate throughput [MB/s]."""
    noc = closed_noc(channels=place[1], link_width=place[0], loop=engines, network=network)
    return 1000 * closed_loop(noc).bandwidth


def fit_loop(
    cells: list[Place], start: Loop = CALIBRATED, network: Callable[[int], Topology] = spidergon
) -> Loop:
    """Return the parameters with the least squares of relative errors in some cells of Table II."""
    from scipy.optimize import least_squares

    def made(values: Any) -> Loop:
        return Loop(**dict(zip(asdict(start), map(float, values), strict=True)))

    def errors(values: Any) -> Any:
        return [throughput(made(values), place, network) / number("table2", place) - 1 for place in cells]

    first, limits = list(asdict(start).values()), ([1, 1, 0.5], [200, 20, 1])
    options: dict[str, Any] = {"diff_step": [1e-3], "xtol": 1e-4, "ftol": 1e-4}
    return made(least_squares(errors, first, x_scale=first, bounds=limits, **options).x)


def interval(found: Loop, cells: list[Place]) -> dict[str, Loop]:
    r"""Return the ends of the parameters' intervals of 95 %, from fits without each of some cells.

    With :math:`m` cells it is the jackknife's, :math:`t_{m-1} \sqrt{\tfrac{m-1}{m} \sum_k (\theta_k -
    \bar\theta)^2}` on either side.
    """
    from scipy.special import stdtrit

    count, best = len(cells), asdict(found)
    without = [fit_loop([one for one in cells if one != place]) for place in cells]
    values = np.array([list(asdict(one).values()) for one in without])
    spread = (count - 1) / count * ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    half = stdtrit(count - 1, 0.975) * np.sqrt(spread)
    return {
        name: Loop(**{field: best[field] + float(more) for field, more in zip(best, change, strict=True)})
        for name, change in {"low": -half, "high": half}.items()
    }


def fit_power(cells: list[Place], rates: Mapping[Place, float]) -> PowerFit:
    """Return the powers of a bit calibrated on some cells of Table III, at their transactions per cycle."""
    nocs = [closed_noc(channels=channels, link_width=width) for width, channels in cells]
    watts = [number("table3", place) for place in cells]
    return calibrate_power(nocs, watts, rates=[rates[place] for place in cells])


def published_rates() -> dict[Place, float]:
    """Return the transactions per cycle that Table II amounts to."""
    return {place: number("table2", place) / 1000 / PAYLOAD for place in places()}


def power(fit: PowerFit, place: Place, rate: float) -> float:
    """Return the power of the routers in one cell [W]."""
    noc = closed_noc(channels=place[1], link_width=place[0])
    return float(router_power(noc, fit.parameters, rate=rate).total)


def left_out() -> Iterator[Cell]:
    """Yield what is predicted of each column and row of Table II by a calibration on the others.

    A column is a link width, a row a number of channels. Of Table III columns are left out: powers are
    calibrated and predicted with the throughputs published. Of the row of one channel, what 8 channels gain
    over it is told too, and the crossbar's prediction, which is simulated as well. Without 8-byte links
    nothing says how many transfers are writes: these have a group of their own.
    """
    from validate import simulate

    def cell(table: str, place: Place, of: str = "", **values: Any) -> Cell:
        where = {"table": table, "width": place[0], "channels": place[1]}
        return Cell(group=of or table, place=where, **values)

    rates, every = published_rates(), places()
    for width in WIDTHS:
        fit = fit_power(places(w for w in WIDTHS if w != width), rates)
        for place in places([width]):
            watts = power(fit, place, rates[place])
            yield cell("table3_left_out", place, published=number("table3", place), model=watts)
    parts = [("table2_narrow_left_out" if w == 8 else "table2_left_out", 0, w) for w in WIDTHS]
    for n in published("stnoc")["table2"]["channels"]:
        parts.append(("table2_one_left_out" if n == 1 else "table2_row_left_out", 1, n))
    for group, axis, value in parts:
        fitted = fit_loop([place for place in every if place[axis] != value])
        for place in (place for place in every if place[axis] == value):
            model = throughput(fitted, place)
            yield cell(group, place, published=number("table2", place), model=model)
            if group == "table2_one_left_out":
                gain = 100 * (throughput(fitted, (place[0], 8)) / model - 1)
                stated = float(published("stnoc")["table2"]["gain"][WIDTHS.index(place[0])])
                of = "gain8_left_out" if place[0] == 8 else "gains_left_out"
                wide = (place[0], 8)
                yield cell("gains_left_out", wide, of, published=stated, points=True, model=gain)
    fitted = fit_loop([place for place in every if place[1] != 1], CROSSBAR, crossbar)
    row = [(width, 1) for width in WIDTHS]
    nocs = [closed_noc(channels=1, link_width=w, loop=fitted, network=crossbar) for w, _ in row]
    for place, noc, one in zip(row, nocs, simulate(nocs, packets=40_000, replications=4), strict=True):
        yield cell(
            "crossbar_one_left_out",
            place,
            published=number("table2", place),
            model=1000 * closed_loop(noc).bandwidth,
            **{name: 1000 * value for name, value in ends_of(one.metrics["bandwidth"]).items()},
        )


def open_cells() -> list[Cell]:
    """Return the places of Table I and of the rate in the text, with what is published there."""
    data = published("stnoc")
    steps = list(zip(data["table1"]["channels"], data["table1"]["rate"], strict=True))
    rows = [("table1", reading, 16, *step) for reading in READINGS for step in steps]
    rows += [("text", reading, 8, 4, data["text"]["random_rate"]) for reading in READINGS]
    return [
        Cell(
            place={"table": table, "reading": reading, "width": width, "channels": channels},
            group="text_rate" if table == "text" else GROUPS[reading],
            published=rate,
        )
        for table, reading, width, channels, rate in rows
    ]


def ends_of(estimate: Any) -> dict[str, Any]:
    """Return a simulated number and its interval as a cell has them."""
    return {"simulated": estimate.best, "low": estimate.low, "high": estimate.high}


def closed_cells() -> list[Cell]:
    """Return the places of Table II, of Figure 4 and of the set-up of 16 nodes, and those of the crossbar."""
    wanted = [("table2", PAYLOAD, place) for place in places()]
    wanted += [("figure4", transfer, place) for transfer in TRANSFERS[:-1] for place in places()]
    wanted += [
        ("nodes16", transfer, place)
        for transfer in TRANSFERS
        for place in places()
        if transfer == PAYLOAD or place[1] in (1, 8)
    ]
    wanted += [("crossbar", PAYLOAD, place) for place in places()]
    wanted += [("crossbar16", PAYLOAD, place) for place in places() if place[1] in (1, 8)]
    groups = {"table2": "table2_fitted", "crossbar": "crossbar_fitted"}
    return [
        Cell(
            place={"table": table, "transfer": transfer, "width": width, "channels": channels},
            group=groups.get(table, ""),
            published=number("table2", (width, channels)) if table in groups else None,
        )
        for table, transfer, (width, channels) in wanted
    ]


def noc_of(cell: Cell) -> Noc:
    """Return the network behind a cell."""
    width, channels = cell["width"], cell["channels"]
    if cell["table"] in ("table1", "text"):
        options = READINGS[cell["reading"]] | ({"random": True} if cell["table"] == "text" else {})
        return open_noc(channels=channels, link_width=width, **options)
    nodes = 16 if cell["table"] in ("nodes16", "crossbar16") else 32
    options = {"channels": channels, "link_width": width, "nodes": nodes, "transfer": cell["transfer"]}
    if cell["table"] in ("crossbar", "crossbar16"):
        options |= {"network": crossbar, "loop": CROSSBAR}
    return closed_noc(**options)


def measure(cell: Cell) -> tuple[str, float]:
    """Return the metric behind a cell, and what it is multiplied with there: GB/s are MB/s."""
    return ("saturation_rate", 1.0) if cell["table"] in ("table1", "text") else ("bandwidth", 1000.0)


def designs() -> Iterable[Design]:
    """Yield the networks behind Tables I and II, Figure 4 and the set-up of 16 nodes."""
    for cell in (*open_cells(), *closed_cells()):
        metric, factor = measure(cell)
        known = None if cell.published is None else cell.published / factor
        yield Design(name=name_of(**cell.place), spec=noc_of(cell), published={metric: known})


def solved(cells: Iterable[Cell]) -> list[Cell]:
    """Return open and closed cells with the numbers of the model."""
    from qmodels import solve

    every = [(cell, *measure(cell)) for cell in cells]
    return [replace(one, model=factor * float(solve(noc_of(one))[metric])) for one, metric, factor in every]


def simulated_cells(
    *, packets: int, replications: int, cycles: int, precision: float, store: Path | None
) -> list[Cell]:
    """Return Table I and the rate in the text, by bisection with its interval, and the closed loops."""
    from validate import simulate
    from validate.noc.saturation import saturation_rate

    cells = []
    for cell in solved(open_cells()):
        found = saturation_rate(noc_of(cell), precision=precision, replications=3, cycles=cycles)
        cells.append(replace(cell, simulated=found.rate, low=found.low, high=found.high))
    loops = solved(closed_cells())
    results = simulate(
        list(map(noc_of, loops)), packets=packets, replications=replications, store=store
    ).results
    for cell, result in zip(loops, results, strict=True):
        ends = ends_of(result.metrics["bandwidth"])
        cells.append(replace(cell, **{name: 1000 * value for name, value in ends.items()}))
    return cells


def power_cells(loops: Iterable[Cell]) -> list[Cell]:
    """Return Table III at the throughputs of the model, on which it is calibrated, and of the simulation."""
    rates: dict[Place, list[float]] = {
        (cell["width"], cell["channels"]): [
            (value or 0.0) / 1000 / PAYLOAD
            for value in (cell.model, cell.simulated, max(cell.low or 0.0, 0.0), cell.high)
        ]
        for cell in select(loops, table="table2")
    }
    fit = fit_power(list(rates), {place: mine[0] for place, mine in rates.items()})
    ours: tuple[Any, ...] = ("model", "simulated", "low", "high")
    return [
        Cell(
            place={"table": "table3", "width": place[0], "channels": place[1]},
            group="table3_fitted",
            published=number("table3", place),
            **dict(zip(ours, (power(fit, place, rate) for rate in mine), strict=True)),
        )
        for place, mine in rates.items()
    ]


def compute(
    *,
    store: Path | None = None,
    packets: int = 40_000,
    replications: int = 4,
    cycles: int = 60_000,
    precision: float = 0.01,
) -> dict[str, Any]:
    """Simulate and solve everything.

    ``store``: keeps finished replications of Table II, Figure 4 and the set-up of 16 nodes; ``packets``,
    ``replications``: of each number of these; ``cycles``: of each replication in the search for saturation
    [cycles]; ``precision``: relative width of the interval of a saturation rate.
    """
    cells = simulated_cells(
        packets=packets, replications=replications, cycles=cycles, precision=precision, store=store
    )
    grid = tuple(simulate_grid(cycles=cycles, replications=2))
    tables = {"grid": grid, "greedy": tuple(greedy_rows(grid))}
    return {"cells": (*cells, *power_cells(cells), *left_out()), "tables": tables}


def renew(kept: Any) -> dict[str, Any]:
    """Return the numbers of the model of today; those of fits without a part stay."""
    mine = solved(cell for cell in kept.cells if cell["table"] in TABLES)
    left = [cell for cell in kept.cells if cell.group.endswith("left_out")]
    return {"cells": (*mine, *power_cells(mine), *left), "tables": kept.tables}


def on_grid(rate: float, grid: float) -> float:
    """Return the nearest point of a grid."""
    return round(round(rate / grid) * grid, 9)


def left_out_text(cells: Sequence[Cell]) -> str:
    """Return the errors of predicted columns and rows."""
    lines = []
    for table, place, value, name in (
        ("table2_narrow_left_out", "width", 8, "Table II, 8-byte links"),
        *(("table2_left_out", "width", width, f"Table II, {width}-byte links") for width in WIDTHS[1:]),
        *(("table2_row_left_out", "channels", count, f"Table II, {count} channels") for count in (8, 4, 2)),
        ("table2_one_left_out", "channels", 1, "Table II, one channel"),
        ("crossbar_one_left_out", "channels", 1, "the same with one crossbar"),
        *(("table3_left_out", "width", width, f"Table III, {width}-byte links") for width in WIDTHS),
    ):
        errors = mean_and_largest(select(cells, table=table, **{place: value}), "model")
        lines.append([name, *(f"{error:.1f}" for error in errors)])
    return text_table(["left out", "mean error %", "largest %"], lines)


def closed_table(transfer: int) -> str:
    """Return the table in which 32 nodes with a transfer stand."""
    return "table2" if transfer == PAYLOAD else "figure4"


def shown(name: str) -> str:
    """Return a calibrated value with its interval."""
    kept = read_toml(FILE)
    return f"{kept['loop'][name]:.4g} ({kept['low'][name]:.4g} to {kept['high'][name]:.4g})"


def cycles(width: int) -> float:
    """Return the time of a transfer in Table II with 8 channels, one at a time. [cycles]."""
    return 1000 * PAYLOAD * engines_of() / number("table2", (width, 8))


if __name__ == "__main__":
    fitted = fit_loop(places())
    parts = {"loop": fitted, **interval(fitted, places()), "crossbar": fit_loop(places(), CROSSBAR, crossbar)}
    text = ["# Found by python -m cases.published.stnoc, see there.\n"]
    for part, one in parts.items():
        text += [f"\n[{part}]\n", *(f"{field} = {value:.5g}\n" for field, value in asdict(one).items())]
    FILE.write_text("".join(text), encoding="utf-8")
    print("".join(text))
    print(left_out_text(list(left_out())))
