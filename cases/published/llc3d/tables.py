"""The numbers of the LLC-slice case: points of curves, readings of the text, realistic capacities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cases.published.cell import Cell, select
from cases.published.design import Design, name_of
from cases.published.llc3d.specs import NAMES, readings, realistic
from cases.published.rows import published
from cases.published.text import grid_text, three
from qmodels.systems.cache.llc_processor import LlcProcessor

if TYPE_CHECKING:
    from qmodels.systems.spec.answer import Answer

FIGURES = ("13-15", "16-18", "19-21", "22-25")
REALISTIC = "capacities"
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


def cells_of(
    place: Mapping[str, Any],
    spec: LlcProcessor,
    result: Answer,
    metrics: Sequence[str],
    *,
    as_published: bool,
) -> list[Cell]:
    """Return the cells of a point, with the text's numbers where it is the published design.

    The design is a point of several figures: its numbers are counted once, in the first.
    """
    from qmodels import solve

    answer = solve(spec)
    said = _converted(spec) if as_published else {}
    groups = dict(zip(METRICS, ("blocking", "text", "text"), strict=True))
    return [
        Cell(
            place={**place, "metric": metric},
            group=groups[metric] if metric in said and place["figures"] == FIGURES[0] else "",
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
    converted = published("llc3d")["converted"]
    said = {metric: float(of[spec.architecture]) for metric, of in converted.items()}
    offered = spec.gbps(spec.arrival_rate)
    return said | {"blocking_probability": 1 - said["data_rate"] / offered}


def designs() -> Iterable[Design]:
    """Yield the three architectures of the text, their other readings, and realistic capacities."""
    for name in NAMES:
        spec = LlcProcessor(architecture=name)
        yield Design(name=name, spec=spec, published=_converted(spec))
    unknown = dict.fromkeys(METRICS)
    for reading, specs in readings().items():
        for curve, spec in specs.items():
            if spec != LlcProcessor(architecture=spec.architecture):
                yield Design(name=name_of(reading=reading, curve=curve), spec=spec, published=unknown)
    for name in NAMES:
        yield Design(name=f"realistic-{name}", spec=realistic(name), published=unknown)


def scale(metric: str) -> float:
    """Return what a metric is multiplied with where it is shown."""
    return 100.0 if "%" in HEADINGS[metric] else 1.0


def shown(cell: Cell) -> str:
    """Return a cell's text: published, if it is, | model | simulated."""
    factor = scale(cell["metric"])
    return three("{:.2f}" if factor > 1 else "{:.4g}", factor=factor)(cell)


def curves_text(cells: Iterable[Cell], figures: str) -> str:
    """Return the curves of some figures as a table."""
    mine = select(cells, figures=figures)
    names = HEADINGS | {"x": mine[0]["variable"]}
    return grid_text(
        f"Figures {figures}", mine, rows=("curve", "x"), column="metric", shown=shown, names=names
    )


def grouped_text(cells: Iterable[Cell], variable: str, heading: str) -> str:
    """Return the readings, or the realistic capacities, as a table."""
    mine = [cell for cell in select(cells, variable=variable) if cell["metric"] in METRICS]
    names = HEADINGS | {"figures": variable, "curve": "architecture"}
    return grid_text(heading, mine, rows=("figures", "curve"), column="metric", shown=shown, names=names)
