"""A model's answer beside the simulated one, metric by metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.systems.metrics import METRICS
from qmodels.systems.packet_processor import PacketProcessor
from validate.result import SimulationResult
from validate.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric: the model's value, the reference with its interval, and how far apart they are.

    ``error`` is model minus reference; ``relative_error`` is that over the reference (``inf``
    where only one of them is infinite or the reference is 0 and the model is not).
    """

    metric: str
    unit: str
    model: float
    reference: Estimate
    error: float
    relative_error: float
    inside: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A model beside a reference.

    Parameters
    ----------
    rows : mapping of str to Row
        By metric name.
    model : object
        The model's whole answer.
    reference : SimulationResult
        The whole reference.
    """

    rows: Mapping[str, Row]
    model: Any
    reference: SimulationResult

    def __getitem__(self, metric: str) -> Row:
        return self.rows[metric]

    def table(self) -> str:
        """Return the comparison as text, one metric a line, with units and intervals."""
        lines = [f"{'metric':<36} {'model':>12} {'simulated':>12} {'interval':>25} {'error':>9}"]
        for row in self.rows.values():
            interval = f"[{row.reference.low:.5g}, {row.reference.high:.5g}]"
            marks = f"{' ' if row.inside else '*'} {'' if row.unit == '1' else row.unit}"
            values = (
                f"{row.model:>12.5g} {row.reference.best:>12.5g} {interval:>25} {row.relative_error:>9.2%}"
            )
            lines.append(f"{row.metric:<36} {values} {marks}".rstrip())
        if not all(row.inside for row in self.rows.values()):
            lines.append("* the model lies outside the interval")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the rows as plain dictionaries."""
        return {name: asdict(row) for name, row in self.rows.items()}

    def __repr__(self) -> str:
        return self.table()


def compare(
    spec: PacketProcessor,
    *,
    solve: Callable[[PacketProcessor], Any] | None = None,
    reference: SimulationResult | None = None,
    **simulate_options: Any,
) -> Comparison:
    """Lay a model's answer beside the simulation of the same spec.

    Parameters
    ----------
    spec : PacketProcessor
        One design.
    solve : callable, optional
        What to compare: takes the spec and returns a result with ``metrics``; otherwise
        ``qmodels.solve``.
    reference : SimulationResult, optional
        A simulation of the spec made before; otherwise one is made.
    **simulate_options
        For `validate.simulate`.

    Returns
    -------
    Comparison
        A row for every metric both have. Two infinite values agree: their errors are 0.

    Raises
    ------
    ValueError
        If options for a simulation come with one made before.
    """
    if reference is not None and simulate_options:
        raise ValueError(
            f"simulate options must be left out when a reference is given, got {sorted(simulate_options)}"
        )
    if solve is None:
        from qmodels import solve as default

        solve = default
    if reference is None:
        from validate.packet_processor import simulate

        reference = simulate(spec, **simulate_options)
    answer = solve(spec)
    rows = {
        name: _row(name, float(answer.metrics[name]), estimate)
        for name, estimate in reference.metrics.items()
        if name in answer.metrics
    }
    return Comparison(rows=rows, model=answer, reference=reference)


def _row(name: str, model: float, reference: Estimate) -> Row:
    agree = model == reference.best
    error = 0.0 if agree else model - reference.best
    relative = 0.0 if agree else math.inf
    if not agree and reference.best != 0 and math.isfinite(reference.best):
        relative = error / abs(reference.best)
    return Row(
        metric=name,
        unit=METRICS[name].unit,
        model=model,
        reference=reference,
        error=error,
        relative_error=relative,
        inside=model in reference,
    )
