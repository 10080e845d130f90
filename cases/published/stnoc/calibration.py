"""What is calibrated in the STNoC case, and how well columns that were left out are predicted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from cases.published.cell import Cell
from cases.published.rows import published
from cases.published.stnoc.specs import CALIBRATED, PAYLOAD, WIDTHS, Loop, closed_noc
from qmodels.noc.closed_loop import closed_loop
from qmodels.noc.power import PowerFit, calibrate_power, router_power

Place = tuple[int, int]
"""A cell of Tables II and III: link width and channels."""


def places(widths: Iterable[int] = WIDTHS) -> list[Place]:
    """Return the cells of some columns of Tables II and III."""
    return [(width, channels) for width in widths for channels in published("stnoc")["table2"]["channels"]]


def said(table: str, place: Place) -> float:
    """Return a published number of Table II [MB/s] or III [W]."""
    data = published("stnoc")[table]
    return float(data[f"width{place[0]}"][data["channels"].index(place[1])])


def throughput(loop: Loop, place: Place, *, nodes: int = 32) -> float:
    """Return the model's aggregate throughput [MB/s]."""
    answer = closed_loop(closed_noc(channels=place[1], link_width=place[0], loop=loop, nodes=nodes))
    return 1000 * answer.bandwidth


def fit_loop(cells: list[Place], start: Loop = CALIBRATED) -> Loop:
    """Return the parameters with the least squares of relative errors in some cells of Table II."""
    from scipy.optimize import least_squares

    def loop(values: Any) -> Loop:
        think, service, writes = map(float, values)
        return Loop(think_cycles=think, service_cycles=service, write_fraction=writes)

    def errors(values: Any) -> Any:
        return [throughput(loop(values), place) / said("table2", place) - 1 for place in cells]

    first = [start.think_cycles, start.service_cycles, start.write_fraction]
    found = least_squares(
        errors,
        first,
        x_scale=first,
        bounds=([1, 1, 0.5], [200, 20, 1]),
        diff_step=np.array([1e-3]),
        xtol=1e-5,
        ftol=1e-6,
    )
    return loop(found.x)


def fit_power(cells: list[Place], rates: Mapping[Place, float]) -> PowerFit:
    """Return the powers of a bit calibrated on some cells of Table III.

    Parameters
    ----------
    cells : list of (int, int)
        Widths and channels.
    rates : mapping
        Transactions per cycle in each of them.
    """
    nocs = [closed_noc(channels=channels, link_width=width) for width, channels in cells]
    watts = [said("table3", place) for place in cells]
    return calibrate_power(nocs, watts, rates=[rates[place] for place in cells])


def published_rates() -> dict[Place, float]:
    """Return the transactions per cycle that Table II amounts to."""
    return {place: said("table2", place) / 1000 / PAYLOAD for place in places()}


def power(fit: PowerFit, place: Place, rate: float) -> float:
    """Return the power of the routers in one cell [W]."""
    noc = closed_noc(channels=place[1], link_width=place[0])
    return router_power(noc, fit.parameters, rate=rate).total


def left_out() -> list[Cell]:
    """Return what is predicted of each column of Tables II and III by a calibration on the other two.

    A column is a link width. Powers are calibrated and predicted with the throughputs published.
    """
    cells = []
    rates = published_rates()
    for width in WIDTHS:
        others, mine = places(w for w in WIDTHS if w != width), places([width])
        loop, fit = fit_loop(others), fit_power(others, rates)
        for place in mine:
            predicted = {"table2": throughput(loop, place), "table3": power(fit, place, rates[place])}
            for table, value in predicted.items():
                name = f"{table}_left_out"
                where = {"table": name, "width": width, "channels": place[1]}
                cells.append(Cell(group=name, place=where, published=said(table, place), model=value))
    return cells
