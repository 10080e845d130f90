"""Table 6.1 of the 16-SRP paper: fitted to one row, the other predicted, by the model and simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cases.published.cell import Cell
from cases.published.rows import published
from cases.published.srp.specs import ALGORITHMS, PLACEMENTS, Costs, blurring
from qmodels.systems.memory.numa import NumaMachine


def execution_time(machine: NumaMachine) -> float:
    """Return the model's execution time. [million cycles]."""
    from qmodels import solve

    return float(solve(machine).execution_time) / 1e6


def calibrate(row: str, evaluate: Callable[[NumaMachine], float] = execution_time) -> Costs:
    """Return the costs with which one row of Table 6.1 comes out as published.

    One memory gives the controllers' time, clustered data the computing, all memories the turning: each
    is found by bisection with the ones before.

    ``row``: "non-optimal" or "optimal"; ``evaluate``: execution time of a machine [million cycles]; the
    model's by default.
    """
    table = published("srp")["table61"]
    costs = Costs(controller_cycles=35.0, compute_per_byte=0.0, switch_cycles=0.0)
    for placement, name, most in (
        ("one", "controller_cycles", 200.0),
        ("clustered", "compute_per_byte", 20.0),
        ("all", "switch_cycles", 200_000.0),
    ):
        low, high = 0.0, most
        for _ in range(24):
            middle = (low + high) / 2
            costs = replace(costs, **{name: middle})
            if evaluate(blurring(costs, row, placement)) < table[placement][row]:
                low = middle
            else:
                high = middle
    return costs


def table_specs(costs: Mapping[str, Costs]) -> dict[tuple[str, str, str], NumaMachine]:
    """Return the machines of all numbers, by fitted row, row and column."""
    return {
        (fitted, algorithm, placement): blurring(one, algorithm, placement)
        for fitted, one in costs.items()
        for algorithm in ALGORITHMS
        for placement in PLACEMENTS
    }


def table_cells(costs: Mapping[str, Costs], simulated: Mapping[NumaMachine, float]) -> list[Cell]:
    """Return all numbers for every calibration, in million cycles.

    Besides row and column a cell's place holds ``fitted_on``, the row that the costs are fitted to, and
    ``regime``, by which the model says whether computing or transfers set the time.
    """
    from qmodels import solve

    cells = []
    for (fitted, algorithm, placement), machine in table_specs(costs).items():
        answer = solve(machine)
        where = {"table": "table61", "row": algorithm, "column": placement}
        cells.append(
            Cell(
                place={**where, "fitted_on": fitted, "regime": answer.regime},
                group="table61" + "_fitted" * (fitted == algorithm),
                published=published("srp")["table61"][placement][algorithm],
                model=float(answer.execution_time) / 1e6,
                simulated=simulated[machine] / 1e6,
            )
        )
    return cells
