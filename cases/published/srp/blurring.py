"""Table 6.1 of the 16-SRP paper: fitted to one row, the other predicted, by the model and simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from cases.published.srp.specs import ALGORITHMS, PLACEMENTS, Costs, blurring, published
from cases.tables import text_table
from qmodels.systems.memory.numa import NumaMachine


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number of Table 6.1 for one calibration.

    Parameters
    ----------
    fitted_on : str
        The row that the costs are fitted to.
    algorithm, placement : str
        Row and column.
    published, model, simulated : float
        Execution time. [million cycles]
    regime : str
        What the model says: "compute" or "transfer".
    """

    fitted_on: str
    algorithm: str
    placement: str
    published: float
    model: float
    simulated: float
    regime: str

    @property
    def predicted(self) -> bool:
        """Whether the number was not used in the fit."""
        return self.fitted_on != self.algorithm

    @property
    def model_error(self) -> float:
        """Error of the model against the paper. [%]."""
        return 100 * (self.model / self.published - 1)

    @property
    def simulated_error(self) -> float:
        """Error of the simulation against the paper. [%]."""
        return 100 * (self.simulated / self.published - 1)


def execution_time(machine: NumaMachine) -> float:
    """Return the model's execution time. [million cycles]."""
    from qmodels import solve

    return float(solve(machine).execution_time) / 1e6


def calibrate(row: str, evaluate: Callable[[NumaMachine], float] = execution_time) -> Costs:
    """Return the costs with which one row of Table 6.1 comes out as published.

    One memory gives the controllers' time, clustered data the computing, all memories the turning: each
    is found by bisection with the ones before.

    Parameters
    ----------
    row : {"non-optimal", "optimal"}
        The row.
    evaluate : callable
        Execution time of a machine [million cycles]; the model's by default.
    """
    table = published()["table61"]
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
    """Return all numbers for every calibration."""
    from qmodels import solve

    cells = []
    for (fitted, algorithm, placement), machine in table_specs(costs).items():
        answer = solve(machine)
        cells.append(
            Cell(
                fitted_on=fitted,
                algorithm=algorithm,
                placement=placement,
                published=published()["table61"][placement][algorithm],
                model=float(answer.execution_time) / 1e6,
                simulated=simulated[machine] / 1e6,
                regime=answer.regime,
            )
        )
    return cells


def table_text(cells: Iterable[Cell]) -> str:
    """Return the table once for each calibration, with both errors."""
    cells = list(cells)
    parts = []
    for fitted in dict.fromkeys(cell.fitted_on for cell in cells):
        rows = [
            [
                cell.algorithm,
                cell.placement,
                "predicted" if cell.predicted else "fitted",
                f"{cell.published:.2f}",
                f"{cell.model:.2f}",
                f"{cell.simulated:.2f}",
                f"{cell.model_error:+.1f}",
                f"{cell.simulated_error:+.1f}",
                cell.regime,
            ]
            for cell in cells
            if cell.fitted_on == fitted
        ]
        headings = ["blurring", "memories", "", "published", "model", "simulated", "model %", "simulated %"]
        title = f"Table 6.1: execution time [million cycles], fitted to the row {fitted}"
        parts.append(f"{title}\n{text_table([*headings, 'regime'], rows)}")
    for name in ("model", "simulated"):
        sizes = [abs(getattr(cell, f"{name}_error")) for cell in cells if cell.predicted]
        parts.append(
            f"{len(sizes)} predicted figures, {name}: {sum(sizes) / len(sizes):.1f} % in the mean, "
            f"{max(sizes):.1f} % at most"
        )
    return "\n\n".join(parts)
