"""Which fields matter: elasticities, a tornado of ranges, and shares of the variance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import metric_columns
from optimize.spaces.readings import numeric_column, words
from qmodels.systems.spec.fields import find_field, get_field, replace_fields

Evaluate = Callable[[Any], object]

SHRINK = 1.6
"""Each step of a difference is smaller than the last by this."""

KINK = 1e-6
"""Relative difference of the slopes below and above a value that is noise of the model and no kink."""


@dataclass(frozen=True, kw_only=True)
class Elasticity:
    """How one metric answers to one field.

    Parameters
    ----------
    field, metric : str
        The field, by the name it was given, and the metric.
    value : float
        The metric at the spec.
    derivative : float
        Change of the metric per unit of the field; the mean of both slopes where they differ.
    elasticity : float
        ``derivative * field / value``: percent of the metric per percent of the field; NaN
        where the metric is 0.
    error : float
        Estimated error of the derivative: the difference between extrapolations of
        central differences, half the difference of both slopes at a kink and between neighbours of a
        whole-numbered field, 0 for a symbolic one.
    how : {"central differences", "kink", "neighbours", "one neighbour", "symbolic"}
        Where the derivative comes from.
    slopes : tuple of float or None
        The slopes below and above the value, at a kink and between neighbours; None where they are one.
    """

    field: str
    metric: str
    value: float
    derivative: float
    elasticity: float
    error: float
    how: str
    slopes: tuple[float, float] | None = None


def sensitivity(
    spec: Any,
    evaluate: Evaluate,
    fields: Iterable[str],
    *,
    metrics: str | Iterable[str],
    neighbours: Mapping[str, Sequence[Any]] | None = None,
    symbolic: Mapping[str, Any] | None = None,
) -> list[Elasticity]:
    r"""Differentiate metrics with respect to numeric fields of a spec.

    Parameters
    ----------
    spec : dataclass instance
        The design.
    evaluate : callable
        Takes a spec and returns metrics, as for `optimize.search.explore`.
    fields : sequence of str
        Names as `optimize.find_field` takes them. A float is varied by central differences; of a
        whole number the designs one below and one above are compared, or the one that the spec
        accepts.
    metrics : str or sequence of str
        Numeric metrics.
    neighbours : mapping, optional
        ``{field: (below, above)}`` where whole numbers come in other steps, such as powers of 2.
    symbolic : mapping, optional
        ``{metric: SymPy expression}`` whose symbols have the names of fields: such a metric is
        differentiated exactly and `evaluate` is not asked for it.

    Returns
    -------
    list of Elasticity
        One entry per field and metric, fields first.

    Raises
    ------
    ValueError
        For an unknown field or metric, a field that is no number, a metric that is not finite,
        or a whole number without any neighbour.

    Notes
    -----
    Central differences with steps of 5 % of the value (0.05 at 0), then smaller by 1.6 each
    time, are extrapolated to step 0 (Richardson); of the extrapolations the one is taken that
    differs least from those it comes from, and the difference is the error. The table ends
    when the error grows, as rounding then wins (Ridders' method [1]_). A step that leaves the
    domain (the spec refuses it or a metric is not finite) is left out. The differences to either side are
    extrapolated as well: where they disagree by ten times their errors, the metric has a kink, as a maximum
    of two has where both are equal, and no derivative.

    References
    ----------
    .. [1] C. J. F. Ridders, "Accurate computation of F'(x) and F'(x) F''(x)", Advances in
       Engineering Software 4(2), 1982.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Queue:
    ...     arrival_rate: float = 0.8
    ...     servers: int = 1
    >>> def model(queue):
    ...     return {"time": 1 / (queue.servers - queue.arrival_rate)}
    >>> one, = sensitivity(Queue(), model, ["arrival_rate"], metrics="time")
    >>> round(one.derivative, 6), round(one.elasticity, 6), one.error < 1e-6
    (25.0, 4.0, True)
    """
    names = checks.names("metrics", metrics)
    symbols = dict(symbolic or {})
    numeric = [name for name in names if name not in symbols]
    model = _Model(spec, evaluate, numeric)
    around = dict(neighbours or {})
    asked = checks.names("fields", fields)
    for name in around:
        if name not in asked:
            raise ValueError(f"neighbours must name fields asked for, got {name!r}")
    result = []
    for field in asked:
        value = get_field(spec, field)
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise ValueError(f"field {field!r} must be a number, got {value!r}")
        whole = isinstance(value, (int, np.integer))
        found = []
        if numeric and (whole or field in around):
            found = _by_neighbours(model, field, value, around.get(field))
        elif numeric:
            found = _by_differences(model, field, float(value))
        for name in names:
            if name in symbols:
                at, slope = _by_symbols(spec, symbols[name], field)
                error, source, both = 0.0, "symbolic", None
            else:
                k = numeric.index(name)
                at, (slope, error, source, both) = model.base[k], found[k]
            result.append(
                Elasticity(
                    field=field,
                    metric=name,
                    value=float(at),
                    derivative=float(slope),
                    elasticity=float(slope * value / at) if at else float("nan"),
                    error=float(error),
                    how=source,
                    slopes=both,
                )
            )
    return result


class _Model:
    """The model as a function of some fields, for chosen metrics."""

    def __init__(self, spec: Any, evaluate: Evaluate, metrics: Sequence[str]) -> None:
        self._spec, self._evaluate, self._metrics = spec, evaluate, metrics
        self.base = self({}) if metrics else np.zeros(0)

    def __call__(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the metrics; finite or an error that names the point."""
        columns = metric_columns(self._evaluate(replace_fields(self._spec, values)))
        result = []
        for name in self._metrics:
            value = float(numeric_column(columns, name)[0])
            if not np.isfinite(value):
                raise ValueError(f"metric {name!r} must be finite, got {value} at {words(values)}")
            result.append(value)
        return np.array(result)

    def maybe(self, values: Mapping[str, Any]) -> FloatArray | None:
        """Return the metrics, or None where the spec or the metrics are out of their domain."""
        try:
            return self(values)
        except (ValueError, ZeroDivisionError):
            return None


_Slope = tuple[float, float, str, tuple[float, float] | None]
"""Derivative, error, where it comes from, and both slopes where they differ."""


def _by_neighbours(model: _Model, field: str, value: Any, around: Sequence[Any] | None) -> list[_Slope]:
    below, above = (value - 1, value + 1) if around is None else around
    if not below <= value <= above or below == above:
        raise ValueError(f"neighbours[{field!r}] must be below and above {value}, got {(below, above)}")
    slopes = []
    for other in (below, above):
        metrics = model.maybe({field: other}) if other != value else None
        if metrics is not None:
            slopes.append(((metrics - model.base) / (other - value)).tolist())
    if not slopes:
        raise ValueError(f"field {field!r} has no neighbour: neither {below} nor {above} can be evaluated")
    if len(slopes) == 1:
        return [(slope, inf, "one neighbour", None) for slope in slopes[0]]
    share = (above - value) / (above - below)  # of the parabola through all three
    return [
        (share * a + (1 - share) * b, abs(b - a) / 2, "neighbours", (a, b))
        for a, b in zip(*slopes, strict=True)
    ]


class _Extrapolation:
    """Slopes of smaller and smaller steps, extrapolated to step 0 (Ridders' method), for all metrics at once.

    ``order`` is the power of the step by which the terms of the error differ.
    """

    def __init__(self, metrics: int, order: int) -> None:
        self.best, self.error = np.zeros(metrics), np.full(metrics, inf)
        self._previous: list[FloatArray] = []
        self._order = order
        self.worse = False

    def restart(self) -> None:
        """Forget the steps so far."""
        self._previous = []

    def add(self, slopes: FloatArray, rounding: FloatArray) -> None:
        """Add the slopes of the next step; nothing is known better than the rounding allows."""
        row = [slopes]
        for k, coarse in enumerate(self._previous):
            factor = SHRINK ** (self._order * (k + 1))
            row.append((row[k] * factor - coarse) / (factor - 1))
            change = np.maximum(np.abs(row[k + 1] - row[k]), np.abs(row[k + 1] - coarse)) + rounding
            better = change < self.error
            self.best = np.where(better, row[k + 1], self.best)
            self.error = np.where(better, change, self.error)
        moved = np.abs(row[-1] - self._previous[-1]) if self._previous else np.zeros(1)
        self.worse = len(row) > 5 and bool((moved > 2 * self.error).all())
        self._previous = row


def _by_differences(model: _Model, field: str, value: float) -> list[_Slope]:
    """Return derivatives by differences to both sides, and the two slopes where they disagree."""
    step = 0.05 * (abs(value) or 1.0)
    tables = [_Extrapolation(len(model.base), order) for order in (2, 1, 1)]
    rows = 0
    for _ in range(60):
        high, low = model.maybe({field: value + step}), model.maybe({field: value - step})
        if high is None or low is None:
            for table in tables:
                table.restart()
            step /= SHRINK
            continue
        rounding = 2 * np.finfo(float).eps * np.maximum(np.abs(high), np.abs(low)) / step
        sides = (high - low) / (2 * step), (model.base - low) / step, (high - model.base) / step
        for table, slopes in zip(tables, sides, strict=True):
            table.add(slopes, rounding)
        step, rows = step / SHRINK, rows + 1
        if rows == 12 or all(table.worse for table in tables):
            break
    central, below, above = tables
    if not np.isfinite(central.error).all():
        raise ValueError(f"field {field!r} cannot be varied around {value!r}: no two steps can be evaluated")
    result: list[_Slope] = []
    for k, (a, b) in enumerate(zip(below.best.tolist(), above.best.tolist(), strict=True)):
        if abs(b - a) > 10 * (below.error[k] + above.error[k]) + KINK * (abs(a) + abs(b)):
            result.append(((a + b) / 2, abs(b - a) / 2, "kink", (a, b)))
        else:
            result.append((float(central.best[k]), float(central.error[k]), "central differences", None))
    return result


def _by_symbols(spec: Any, expression: Any, field: str) -> tuple[float, float]:
    """Return the value of an expression and its derivative with respect to a field."""
    import sympy

    expression = sympy.sympify(expression)
    values = {symbol: get_field(spec, symbol.name) for symbol in expression.free_symbols}
    path = find_field(spec, field)
    slope = sum(
        (expression.diff(symbol) for symbol in values if find_field(spec, symbol.name) == path),
        start=sympy.Integer(0),
    )
    return float(expression.subs(values)), float(slope.subs(values))
