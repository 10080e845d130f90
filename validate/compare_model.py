"""A model's answer beside the simulated one, metric by metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels._check import FloatArray
from qmodels.systems.metrics import METRICS
from qmodels.systems.packet_processor import PacketProcessor
from validate.result import SimulationResult
from validate.statistics import Estimate


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric: the model's value, the reference with its interval, and how far apart they are.

    ``error`` is model minus reference; ``relative_error`` is that over the reference; both as
    `signed_error` gives them.
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


def signed_error(
    model: npt.ArrayLike, reference: npt.ArrayLike, *, relative: npt.ArrayLike = False
) -> FloatArray:
    """Return how far a model's values are above the reference (below: negative).

    Parameters
    ----------
    model, reference : array_like
        Values of one metric each, in one unit.
    relative : array_like of bool
        Whether to divide by the size of the reference.

    Returns
    -------
    ndarray
        0 where both are equal, infinite ones included. Infinite, with the sign of the difference,
        where only one is infinite or the error is relative to a reference of 0.

    Examples
    --------
    >>> signed_error([110.0, 90.0, np.inf], [100.0, 100.0, np.inf], relative=True)
    array([ 0.1, -0.1,  0. ])
    >>> float(signed_error(0.05, 0.04).round(4)), float(signed_error(100.0, np.inf, relative=True))
    (0.01, -inf)
    """
    values, truth = np.asarray(model, dtype=float), np.asarray(reference, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        difference = np.where(values == truth, 0.0, values - truth)
        scale = np.where(relative & np.isfinite(truth), np.abs(truth), 1.0)
        return np.asarray(np.where(difference == 0, 0.0, difference / scale))


def _row(name: str, model: float, reference: Estimate) -> Row:
    return Row(
        metric=name,
        unit=METRICS[name].unit,
        model=model,
        reference=reference,
        error=float(signed_error(model, reference.best)),
        relative_error=float(signed_error(model, reference.best, relative=True)),
        inside=model in reference,
    )
