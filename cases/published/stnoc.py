"""Grammatikakis et al.: address interleaving on the Spidergon STNoC, its three set-ups and its calibration.

``python -m cases.published.stnoc`` fits the closed loops to Table II anew and writes ``calibrated.toml``:
the values, their intervals, and the errors of columns and rows that were left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cases.published.numbers import (
    Cell,
    Design,
    data_folder,
    mean_and_largest,
    name_of,
    published,
    read_toml,
    select,
)
from cases.tables import text_table
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.pareto import hypervolume
from optimize.spaces.space import Space
from qmodels.noc.closed_loop import closed_loop
from qmodels.noc.power import PowerFit, calibrate_power, router_power
from qmodels.systems.noc.memory import Transactions, interleaved, transactions
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topologies import crossbar, spidergon
from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.fields import replace_fields

WIDTHS, TRANSFERS = (8, 16, 32), (16, 32, 64, 128)
"""Bytes of a link, and of a transfer of an engine in Figure 4; Tables II and III have the last."""
PAYLOAD, HEADER = 128, 8
MEMORIES = 8
"""Memory nodes of the set-ups with engines; with fewer channels, these are spread over them."""
CONTROLLER_CYCLES = 30.0
"""Fixed latency of gem5's RubyMemoryControl of January 2013: 12 cycles of 2.5 ns. [network cycles]"""
FILE = data_folder("stnoc") / "calibrated.toml"
READINGS: dict[str, dict[str, Any]] = {
    "in turn": {},
    "random channel": {"random": True, "one_packet": 4},
    "router of tables II and III": {"one_packet": 0},
}
"""Readings of the set-up of 8 nodes, see `open_noc`; the first is the one that is used elsewhere."""
GROUPS = dict(zip(READINGS, ("table1_fitted", "table1_random", "table1_other"), strict=True))
STEPS, CHANNELS = (1, 2, 4, 8, 16, 32), (1, 2, 4)
FIELDS, ORDER = ("step", "channels", "link_width"), ("channels", "step", "link_width")
"""Of the designs, and in which order the greedy search varies them: a step needs channels."""
TABLES = ("table1", "text", "table2", "figure4", "nodes16", "crossbar", "crossbar16")
"""Those whose cells are a metric of a network each."""
Place = tuple[int, int]
"""A cell of Tables II and III: link width and channels."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Parameters of the closed loops that the paper does not give, calibrated on Table II."""

    think_cycles: float  # from an answer to the next request of an engine, mean [cycles]
    service_cycles: float  # time of a memory controller for a transfer [cycles]
    write_fraction: float  # part of the transfers that are writes


CALIBRATED, CROSSBAR = (Loop(**read_toml(FILE)[part]) for part in ("loop", "crossbar"))
"""Least squares of the model's relative errors in all of Table II, see `fit_loop`: on the Spidergon, and with
one crossbar in its place, in which packets wait at the memory nodes alone."""


def flits(link_width: int, transfer: int = PAYLOAD) -> int:
    """Return the flits of a packet with data."""
    return -(-(transfer + HEADER) // link_width)


def open_noc(
    *,
    channels: int,
    step: int = 1,
    link_width: int = 16,
    random: bool = False,
    one_packet: int = 6,
    rate: float = 0.01,
) -> Noc:
    """Return the set-up of 8 nodes: 4 CPUs write to 1, 2 or 4 of the other 4 nodes.

    ``channels``, ``step``, ``link_width``: as in the paper; the step is in packets, the width in bytes;
    ``random``: whether each packet goes to a random channel instead of the next one in turn; ``one_packet``:
    cycles beyond its length for which a packet holds a virtual channel, if that takes a packet only when the
    one before has left it, as in the routers of gem5's Garnet: with a buffer of a packet the place of each
    flit is then free again after a packet's length and these cycles. 4 are the credit loop of the router of
    one stage (of 5 cycles, less the one that the tail takes); 6 are calibrated on Table I with 4 channels. 0
    lets packets follow one another in a buffer, as in the other set-ups [cycles]; ``rate``: packets per cycle
    of a CPU.
    """
    longest = flits(link_width)
    return Noc(
        topology=spidergon(8),
        router=Router(buffer_flits=longest, credit_cycles=longest + one_packet if one_packet else 5),
        traffic=interleaved(
            initiators=range(4),
            channels=range(4, 8, 4 // channels),
            step=step,
            packet_bytes=PAYLOAD,
            addresses="random" if random else "sequential",
        ),
        injection_rate=rate,
        link_width=link_width,
        header_bytes=HEADER,
        packet_bytes=PAYLOAD,
    )


def engines_of(nodes: int = 32) -> int:
    """Return the DMA engines of a set-up: one node is left over.

    >>> engines_of(32), engines_of(16)
    (23, 7)
    """
    return nodes - MEMORIES - 1


def closed_noc(
    *,
    channels: int,
    link_width: int,
    loop: Loop = CALIBRATED,
    nodes: int = 32,
    transfer: int = PAYLOAD,
    network: Callable[[int], Topology] = spidergon,
) -> Noc:
    """Return a set-up with DMA engines: 23 in 32 nodes, or 7 in 16.

    Engines are on the first nodes, the 8 memory nodes behind them, one node is left over. A transfer of
    `transfer` bytes is a packet, and takes a controller as long as any other: a closed bank, one burst.
    """
    engines = engines_of(nodes)
    return Noc(
        topology=network(nodes),
        router=Router(buffer_flits=flits(link_width, transfer)),
        traffic=transactions(
            initiators=range(engines),
            channels=range(engines, engines + MEMORIES, MEMORIES // channels),
            think_cycles=loop.think_cycles,
            think_law="exponential",
            request_bytes=transfer,
            read_fraction=1 - loop.write_fraction,
            service_cycles=loop.service_cycles,
            latency_cycles=CONTROLLER_CYCLES,
            cut_through=True,
        ),
        link_width=link_width,
        header_bytes=HEADER,
        packet_bytes=PAYLOAD,
    )


def loop(width: int, channels: int, *, think: float = CALIBRATED.think_cycles, nodes: int = 32) -> Noc:
    """Return a set-up with engines that think for another time."""
    changed = replace(CALIBRATED, think_cycles=think)
    return closed_noc(channels=channels, link_width=width, nodes=nodes, loop=changed)


def crossed(noc: Noc) -> Noc:
    """Return a set-up with one crossbar, the loop calibrated on it; other times to think differ as much."""
    traffic = noc.traffic
    assert isinstance(traffic, Transactions)
    changed: dict[str, Any] = {
        "think_cycles": traffic.think_cycles - CALIBRATED.think_cycles + CROSSBAR.think_cycles,
        "service_cycles": CROSSBAR.service_cycles,
        "read_fraction": 1 - CROSSBAR.write_fraction,
    }
    return replace(noc, topology=crossbar(noc.topology.nodes), traffic=replace(traffic, **changed))


def resized(noc: Noc, transfer: int) -> Noc:
    """Return a set-up with transfers of another length."""
    return replace_fields(noc, {"packet_bytes": transfer, "traffic.request_bytes": transfer})


def places(widths: Iterable[int] = WIDTHS) -> list[Place]:
    """Return the cells of some columns of Tables II and III."""
    return [(width, channels) for width in widths for channels in published("stnoc")["table2"]["channels"]]


def number(table: str, place: Place) -> float:
    """Return a published number of Table II [MB/s] or III [W]."""
    data = published("stnoc")[table]
    return float(data[f"width{place[0]}"][data["channels"].index(place[1])])


def throughput(loop: Loop, place: Place, network: Callable[[int], Topology] = spidergon) -> float:
    """Return the model's aggregate throughput [MB/s]."""
    noc = closed_noc(channels=place[1], link_width=place[0], loop=loop, network=network)
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


@dataclass(frozen=True, kw_only=True)
class Varied:
    """A design: packets to a channel before the next one, memory channels, and bytes of a link."""

    step: int = 32
    channels: int = 1
    link_width: int = 16


def knee(noc: Noc, *, cycles: int, replications: int) -> tuple[float, float]:
    """Return between which rates the simulated packet latency passes 10 times that without load.

    With long steps the queues of sources that meet at a channel grow for hundreds of cycles long
    before they grow without end: this is where the delays of the paper's Fig. 3 rise.
    """
    from validate import simulate

    def latency(rate: float) -> float:
        one = replace(noc, injection_rate=rate)
        result = simulate(one, cycles=cycles, replications=replications, progress=lambda done, known: None)
        return float(result.packet_latency.best) if result.stable else float("inf")

    low, high = 0.0, 1 / float(noc.flow_table().channel_load().max())
    most = 10 * latency(0.02 * high)
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if latency(middle) <= most else (low, middle)
    return low, high


def simulate_grid(*, cycles: int, replications: int) -> list[dict[str, Any]]:
    """Return the simulated `knee` of every design [packets/cycle/CPU]; one channel has no step."""
    rows: list[dict[str, Any]] = []
    for width in WIDTHS:
        for channels in CHANNELS:
            for step in STEPS if channels > 1 else STEPS[:1]:
                noc = open_noc(channels=channels, step=step, link_width=width)
                low, high = knee(noc, cycles=cycles, replications=replications)
                rows += [
                    {"step": s, "channels": channels, "link_width": width, "low": low, "high": high}
                    for s in ([step] if channels > 1 else STEPS)
                ]
    return rows


@cache
def _explored(known: tuple[tuple[Place | float, ...], ...]) -> tuple[Exploration, Exploration]:
    rates = {row[:3]: row[3] for row in known}
    space = Space(Varied(), step=list(STEPS), channels=list(CHANNELS), link_width=list(WIDTHS))

    def evaluate(design: Varied) -> dict[str, float]:
        rate: Any = rates[design.step, design.channels, design.link_width]
        return {"knee_rate": rate, "link_bits": 8.0 * design.link_width}

    goals: dict[str, Any] = {"maximize": ("knee_rate",), "minimize": ("link_bits",)}
    return explore(space, evaluate, **goals), explore(space, evaluate, **goals, method="greedy", order=ORDER)


def explore_designs(grid: Iterable[Mapping[str, Any]]) -> tuple[Exploration, Exploration]:
    """Return all designs and those of the greedy search: simulated rates against wires."""
    return _explored(tuple((*(row[name] for name in FIELDS), (row["low"] + row["high"]) / 2) for row in grid))


def front_points(exploration: Exploration) -> list[tuple[int, ...]]:
    """Return the designs of a front."""
    table = exploration.table
    return [tuple(int(table[name][row]) for name in FIELDS) for row in exploration.front]


def dominated(exploration: Exploration) -> float:
    """Return the hypervolume that a front dominates."""
    table, front = exploration.table, exploration.front
    costs = np.stack([-table["knee_rate"], table["link_bits"]], axis=1)[front]
    return float(hypervolume(costs, reference=[0.0, 8.0 * 33]))


def greedy_rows(grid: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the designs that the greedy search evaluated, and whether each was kept."""
    history = explore_designs(grid)[1].history
    return [{"field": step.field, "value": step.value, "kept": step.kept} for step in history]


def designs_text(grid: Iterable[Mapping[str, Any]]) -> str:
    """Return the front, and what the greedy search found of it."""
    every, greedy = explore_designs(grid)
    front, found = front_points(every), set(front_points(greedy))
    rates = every.table["knee_rate"][every.front]
    rows = [
        [*point, f"{rate:.4f}", "yes" if point in found else "no"]
        for point, rate in zip(front, rates, strict=True)
    ]
    title = (
        f"Designs: {len(every.table['design'])}, the greedy search looked at {len(greedy.table['design'])}; "
        f"it found {len(found & set(front))} of {len(front)} on the front, "
        f"hypervolume {100 * dominated(greedy) / dominated(every):.1f} %"
    )
    return f"{title}\n" + text_table(["step", "channels", "width", "rate", "greedy"], rows)


def step_rate(grid: Iterable[Mapping[str, Any]]) -> dict[Place, float]:
    """Return the simulated rate at which delays rise with 16-byte links, by step and channels."""
    mine = select(grid, link_width=16)
    return {(row["step"], row["channels"]): (row["low"] + row["high"]) / 2 for row in mine}


def best_step(grid: Iterable[Mapping[str, Any]]) -> int:
    """Return the step with the highest rate with 4 channels."""
    rates = step_rate(grid)
    return max((step for step, channels in rates if channels == 4), key=lambda step: rates[step, 4])


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
