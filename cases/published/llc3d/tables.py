"""The numbers of the LLC-slice case: points of curves, readings of the text, realistic capacities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cases.published.llc3d.specs import Place, published
from cases.tables import text_table
from qmodels.systems.cache.llc_processor import LlcProcessor

if TYPE_CHECKING:
    from validate.estimates.simulation import Simulation

METRICS = ("blocking_probability", "waiting_latency", "data_rate")
HIT_RATIOS = ("l1_hit_ratio", "l2_hit_ratio", "llc_hit_ratio")
HEADINGS = {
    "blocking_probability": "blocking [%]",
    "waiting_latency": "waiting [ns]",
    "data_rate": "throughput [Gb/s]",
    "l1_hit_ratio": "L1 hits [%]",
    "l2_hit_ratio": "L2 hits [%]",
    "llc_hit_ratio": "LLC hits [%]",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One number: a metric at a point of a curve.

    Parameters
    ----------
    figures, curve, variable, x
        Where, see `cases.published.llc3d.specs.Place`; for a reading or for realistic capacities
        ``variable`` says that, and ``x`` is 0.
    metric : str
        Which, of `METRICS` or `HIT_RATIOS`.
    published : float or None
        The paper's number, where its text has one.
    model : float
        The analytic answer.
    simulated, low, high : float
        Our estimate and its interval of 95 %.
    """

    figures: str
    curve: str
    variable: str
    x: float
    metric: str
    published: float | None
    model: float
    simulated: float
    low: float
    high: float


def cells_of(
    place: Place,
    spec: LlcProcessor,
    result: Simulation,
    metrics: Sequence[str],
    *,
    as_published: bool,
) -> list[Cell]:
    """Return the cells of a point, with the text's numbers where it is the published design."""
    from qmodels import solve

    answer = solve(spec)
    said = _converted(spec) if as_published else {}
    return [
        Cell(
            figures=place.figures,
            curve=place.curve,
            variable=place.variable,
            x=float(place.x),
            metric=metric,
            published=said.get(metric),
            model=answer.metrics[metric],
            simulated=result.metrics[metric].best,
            low=result.metrics[metric].low,
            high=result.metrics[metric].high,
        )
        for metric in metrics
    ]


def _converted(spec: LlcProcessor) -> dict[str, float]:
    """Return the numbers of the text for an architecture, and the blocking probability that they imply."""
    said = {metric: float(of[spec.architecture]) for metric, of in published()["converted"].items()}
    offered = spec.gbps(spec.arrival_rate)
    return said | {"blocking_probability": 1 - said["data_rate"] / offered}


def curves_text(cells: Iterable[Cell], figures: str) -> str:
    """Return the curves of some figures as a table: published, where it is, | model | simulated."""
    mine = [cell for cell in cells if cell.figures == figures]
    metrics = list(dict.fromkeys(cell.metric for cell in mine))
    points: dict[tuple[str, float], dict[str, Cell]] = {}
    for cell in mine:
        points.setdefault((cell.curve, cell.x), {})[cell.metric] = cell
    rows: list[list[Any]] = [
        [curve, x, *(shown(row[m]) if m in row else "-" for m in metrics)]
        for (curve, x), row in points.items()
    ]
    return f"Figures {figures}\n" + text_table(
        ["curve", mine[0].variable, *(HEADINGS[metric] for metric in metrics)], rows
    )


def shown(cell: Cell) -> str:
    """Return a cell's text: published, if it is, | model | simulated."""
    factor = 100.0 if cell.metric in ("blocking_probability", *HIT_RATIOS) else 1.0
    values = (
        [cell.model, cell.simulated]
        if cell.published is None
        else [cell.published, cell.model, cell.simulated]
    )
    return " | ".join(f"{factor * value:{'.2f' if factor > 1 else '.4g'}}" for value in values)


def grouped_text(cells: Iterable[Cell], variable: str, heading: str) -> str:
    """Return the readings, or the realistic capacities, as a table."""
    rows: dict[tuple[str, str], dict[str, Cell]] = {}
    for cell in cells:
        if cell.variable == variable:
            rows.setdefault((cell.figures, cell.curve), {})[cell.metric] = cell
    lines = [[*names, *(shown(row[m]) for m in METRICS)] for names, row in rows.items()]
    return f"{heading}\n" + text_table([variable, "architecture", *(HEADINGS[m] for m in METRICS)], lines)
