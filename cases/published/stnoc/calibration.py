"""What is calibrated in the STNoC case, and how well columns and rows that were left out are predicted.

``python -m cases.published.stnoc.calibration`` fits the closed loops to Table II anew and writes
``data/calibrated.toml``: the values, their intervals, and the errors of what was left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from cases.published.cell import Cell, mean_and_largest, select
from cases.published.rows import published
from cases.published.stnoc.specs import CALIBRATED, FILE, PAYLOAD, WIDTHS, Loop, closed_noc
from cases.tables import text_table
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


def said_gain(width: int) -> float:
    """Return what 8 channels gain over one as published below Table II. [%]."""
    return float(published("stnoc")["table2"]["gain"][WIDTHS.index(width)])


def throughput(loop: Loop, place: Place, *, nodes: int = 32, transfer: int = PAYLOAD) -> float:
    """Return the model's aggregate throughput [MB/s]."""
    noc = closed_noc(channels=place[1], link_width=place[0], loop=loop, nodes=nodes, transfer=transfer)
    return 1000 * closed_loop(noc).bandwidth


def fit_loop(cells: list[Place], start: Loop = CALIBRATED) -> Loop:
    """Return the parameters with the least squares of relative errors in some cells of Table II."""
    from scipy.optimize import least_squares

    def loop(values: Any) -> Loop:
        think, service, writes = map(float, values)
        return Loop(think_cycles=think, service_cycles=service, write_fraction=writes)

    def errors(values: Any) -> Any:
        return [throughput(loop(values), place) / said("table2", place) - 1 for place in cells]

    first = list(asdict(start).values())
    found = least_squares(
        errors,
        first,
        x_scale=first,
        bounds=([1, 1, 0.5], [200, 20, 1]),
        diff_step=[1e-3],
        xtol=1e-4,
        ftol=1e-4,
    )
    return loop(found.x)


def interval(found: Loop, cells: list[Place]) -> dict[str, Loop]:
    r"""Return the ends of the parameters' intervals of 95 %, from fits without each of some cells.

    With :math:`m` cells it is the jackknife's, :math:`t_{m-1} \sqrt{\tfrac{m-1}{m} \sum_k (\theta_k -
    \bar\theta)^2}` on either side.
    """
    from scipy.special import stdtrit

    count = len(cells)
    without = [fit_loop([one for one in cells if one != place]) for place in cells]
    values = np.array([list(asdict(one).values()) for one in without])
    spread = (count - 1) / count * ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    half = stdtrit(count - 1, 0.975) * np.sqrt(spread)
    best = asdict(found)
    ends = {"low": -half, "high": half}
    return {
        name: Loop(**{field: best[field] + float(more) for field, more in zip(best, change, strict=True)})
        for name, change in ends.items()
    }


def fit_power(cells: list[Place], rates: Mapping[Place, float]) -> PowerFit:
    """Return the powers of a bit calibrated on some cells of Table III.

    ``rates``: transactions per cycle in each of them.
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
    """Return what is predicted of each column and row of Table II by a calibration on the others.

    A column is a link width, a row a number of channels. Of Table III columns are left out: powers are
    calibrated and predicted with the throughputs published. Without the row of one channel nothing says
    how many transfers a memory bears, if links do not fill up before, and without 8-byte links nothing
    says how many of them are writes: these have groups of their own. What 8 channels gain over one, by
    the model fitted without that row, is told too.
    """
    cells = [*_power_left_out()]
    for group, others, mine in _parts():
        loop = fit_loop(others)
        for place in mine:
            where = {"table": group, "width": place[0], "channels": place[1]}
            cells.append(
                Cell(group=group, place=where, published=said("table2", place), model=throughput(loop, place))
            )
            if group == ONE_LEFT_OUT:
                gain = 100 * (throughput(loop, (place[0], 8)) / throughput(loop, place) - 1)
                where = {"table": GAIN_LEFT_OUT, "width": place[0], "channels": 8}
                stated = said_gain(place[0])
                # 8-byte links are full before the memory is: what they bear the other rows say as well.
                of = HEADLINE_LEFT_OUT if place[0] == 8 else GAIN_LEFT_OUT
                cells.append(Cell(group=of, place=where, published=stated, points=True, model=gain))
    return cells


NARROW_LEFT_OUT, ONE_LEFT_OUT = "table2_narrow_left_out", "table2_one_left_out"
GAIN_LEFT_OUT, HEADLINE_LEFT_OUT = "gains_left_out", "gain8_left_out"


def _parts() -> Iterator[tuple[str, list[Place], list[Place]]]:
    """Yield the groups, and what is used and left out of Table II."""
    every = places()
    for width in WIDTHS:
        mine = places([width])
        group = NARROW_LEFT_OUT if width == 8 else "table2_left_out"
        yield group, [place for place in every if place not in mine], mine
    for channels in published("stnoc")["table2"]["channels"]:
        mine = [place for place in every if place[1] == channels]
        group = ONE_LEFT_OUT if channels == 1 else "table2_row_left_out"
        yield group, [place for place in every if place not in mine], mine


def _power_left_out() -> Iterator[Cell]:
    rates = published_rates()
    for width in WIDTHS:
        fit = fit_power(places(w for w in WIDTHS if w != width), rates)
        for place in places([width]):
            where = {"table": "table3_left_out", "width": width, "channels": place[1]}
            watts = power(fit, place, rates[place])
            yield Cell(group="table3_left_out", place=where, published=said("table3", place), model=watts)


def main() -> None:
    """Fit, keep and print."""
    loop = fit_loop(places())
    parts = {"loop": loop, **interval(loop, places())}
    lines = ["# Found by python -m cases.published.stnoc.calibration, see there.\n"]
    for name, one in parts.items():
        lines += [f"\n[{name}]\n", *(f"{field} = {value:.5g}\n" for field, value in asdict(one).items())]
    FILE.write_text("".join(lines), encoding="utf-8")
    rows = [[name, *(f"{getattr(one, name):.4g}" for one in parts.values())] for name in asdict(loop)]
    print(text_table(["parameter", "value", "low", "high"], rows))
    cells = left_out()
    for group in dict.fromkeys(cell["table"] for cell in cells):
        mean, largest = mean_and_largest(select(cells, table=group), "model")
        print(f"{group}: mean error {mean:.1f}, largest {largest:.1f}")


if __name__ == "__main__":
    main()
