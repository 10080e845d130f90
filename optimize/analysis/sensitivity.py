"""Which fields matter: derivatives and elasticities of metrics by fields, all in one batch of designs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isfinite, nan
from typing import Any

import numpy as np

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import Evaluate, Model
from qmodels.systems.spec.fields import field_paths, find_fields, get_field, is_spec, replace_paths

STAGES = 0.02, 0.02 / 64
"""Largest steps, in sizes of the value, each halved three times; finer ones where an error is too large."""

ENOUGH = 5e-9
"""Error with which no finer stage is needed, relative to the slope; a tenth of it to metric over field."""

KINK, STEP, UNKNOWN, BLUR = 1e-6, 1e-5, 0.01, 20
"""Noise, relative, of slopes below and above, of values, of a derivative; changes in the finest step."""

EPSILON = 2 * float(np.finfo(float).eps)


Slopes = dict[str, Any]
"""Value of all metrics, and by some fields (first axis) their slope, its error, the slopes below and above,
and the kind, see `Elasticity`; a NaN is not known."""


HALVES, WAYS = 2.0 ** -np.arange(4), np.array([-1.0, 1.0])  # steps of a stage, in the largest, to either side


def _weights(*steps: float) -> FloatArray:
    """Return the weights of the values at 0 and at some steps that make the derivative at 0."""
    powers = np.vander([0.0, *steps], increasing=True).T
    return np.asarray(np.linalg.solve(powers, np.eye(len(powers))[1]))


CENTRAL = _weights(*HALVES[:3], *-HALVES[:3])[1:4]
AHEAD, NEAR = _weights(*HALVES), _weights(*HALVES[2:])
"""Weights of differences across three steps; of the value and those at all steps of a side, or at two."""


def differentiate(model: Model, point: Mapping[str, float]) -> Slopes:
    """Differentiate all metrics by all fields of a point, in one or two calls if they may be arrays."""
    x = np.array(list(map(float, point.values())))
    sizes = np.where(x, np.abs(x), 1.0)

    def look(rows: Any, largest: float, *, centre: bool) -> tuple[FloatArray, FloatArray]:
        """Return the metrics at the point, if wanted, and at steps of fields: (rows, 2, 4, metrics)."""
        steps = largest * np.outer(WAYS, HALVES).ravel()
        points = np.tile(x, (centre + len(rows) * steps.size, 1))
        moved = points[int(centre) :].reshape(len(rows), steps.size, -1)
        moved[np.arange(len(rows)), :, rows] = x[rows, None] + sizes[rows, None] * steps
        found = model(dict(zip(point, points.T.tolist(), strict=True)), forgiving=True)
        found = np.where(np.isfinite(found), found, np.nan)
        return found[:centre], found[int(centre) :].reshape(len(rows), 2, len(HALVES), -1)

    (at,), values = look(np.arange(len(x)), STAGES[0], centre=True)
    size = np.abs(at) / sizes[:, None]
    slopes, errors = _stage(values, at, STAGES[0] * sizes[:, None])
    finest = np.full(values.shape, np.nan)
    with np.errstate(invalid="ignore"):
        rest = ~(errors[0] <= ENOUGH * (np.abs(slopes[0]) + 0.1 * size)) & np.isfinite(at)
    fine = np.flatnonzero(rest.any(axis=1))
    if fine.size:
        finest[fine] = look(fine, STAGES[1], centre=False)[1]
        finer, off = _stage(finest[fine], at, STAGES[1] * sizes[fine, None])
        better = ~(errors[:, fine] <= off) & ~np.isnan(finer)
        slopes[:, fine] = np.where(better, finer, slopes[:, fine])
        errors[:, fine] = np.where(better, off, errors[:, fine])
    return _told(at, sizes, values, finest, size, slopes, errors)


def _stage(values: FloatArray, at: FloatArray, step: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slope, that below and that above, and by how much each differs from that of other steps."""
    sides, across = np.insert(values, 0, at, axis=2), values[:, 1] - values[:, 0]
    coarse, slope = (np.einsum("k,rkm->rm", CENTRAL, across[:, k : k + 3]) * 2**k / step for k in (0, 1))
    ahead = np.einsum("s,k,rskm->srm", WAYS, AHEAD, sides) / step
    near = np.einsum("s,k,rskm->srm", WAYS, NEAR, sides[:, :, [0, 3, 4]]) / step
    errors = np.abs([slope - coarse, *(ahead - near)])
    blur = 8 * EPSILON * np.abs(at) / step
    slopes = np.stack([np.where(np.isnan(coarse), np.nan, slope), *ahead])
    return slopes, errors + np.stack([blur, 2 * blur, 2 * blur])


def _told(
    at: FloatArray,
    sizes: FloatArray,
    values: FloatArray,
    finest: FloatArray,
    size: FloatArray,
    slopes: FloatArray,
    errors: FloatArray,
) -> Slopes:
    """Return slopes with the words that say what they are."""
    (slope, below, above), (error, below_error, above_error) = slopes, errors
    h = sizes[:, None, None] * STAGES[0] / 2.0 ** np.arange(4)[:, None]
    secants = (values[:, 1] - values[:, 0]) / (2 * h)
    kind = np.full(slope.shape, "smooth", dtype="U8")

    def decide(word: str, where: Any, slope_there: Any, error_there: Any) -> None:
        nonlocal slope, error
        kind[where] = word
        slope, error = np.where(where, slope_there, slope), np.where(where, error_there, error)

    with np.errstate(invalid="ignore"):
        missing = np.isnan(below)
        one, off = np.where(missing, above, below), np.where(missing, above_error, below_error)
        decide("edge", np.isnan(slope) & ~np.isnan(one), one, off)
        bent = np.abs(above - below) > 10 * (below_error + above_error) + KINK * (
            np.abs(below) + np.abs(above)
        )
        decide("kink", bent, (below + above) / 2, np.abs(above - below) / 2)
        # A metric that tends to another value than it has, in the last steps of a stage that was needed.
        before, limits = (2 * finest[:, :, k] - finest[:, :, k - 1] for k in (2, 3))
        height = np.abs(limits - at)
        near = (np.abs(finest[:, :, 2:] - limits[:, :, None]) < height[:, :, None] / 4).all(axis=2)
        blur = BLUR * np.nan_to_num(np.abs(secants)).max(axis=1) * STAGES[-1] / 8 * sizes[:, None]
        jumps = near & (height > 10 * np.abs(limits - before) + STEP * np.abs(at) + blur[:, None])
        decide("step", jumps.any(axis=1), np.nan, np.inf)
        # Slopes of wide steps tend to that of a smooth metric.
        weights = np.where(np.isfinite(secants), h**2, 0.0)
        wide = (weights * np.nan_to_num(secants)).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-300)
        spread = np.maximum(np.nan_to_num(np.abs(secants - wide[:, None])).max(axis=1), np.abs(slope - wide))
        rough = error > UNKNOWN * (np.abs(slope) + UNKNOWN**2 * size)
        decide("rough", (kind == "smooth") & rough & (weights > 0).any(axis=1), wide, spread)
    decide("refused", np.isnan(slope) & (kind != "step"), np.nan, np.inf)
    decide("unstable", np.broadcast_to(~np.isfinite(at), kind.shape), np.nan, np.inf)
    return {"value": at, "slope": slope, "error": error, "below": below, "above": above, "kind": kind}


BETWEEN = 0.375  # added to a whole number: a field that takes the sum is continuous
TWO = "kink", "edge"  # kinds of slopes of a continuous field that differ below and above


@dataclass(frozen=True, kw_only=True)
class Elasticity:
    """Sensitivity of one metric to one field.

    The kind says what the derivative is:

    - ``smooth``: the derivative;
    - ``kink``: the mean of two `slopes` that differ;
    - ``edge``: the slope to the one side that has an answer;
    - ``rough``: the slope over 2 % to either side, as the metric wavers, bends or steps within less;
    - ``whole``: a whole-numbered field's difference to its neighbours;
    - ``step``: none, the metric jumps at this value;
    - ``unstable``: none, the metric is not finite;
    - ``refused``: none, the spec or the model refuses all values around (say of a derived field).
    """

    field: str  #: The field, by the name it was given
    metric: str  #: The metric
    at: float  #: The field at the spec
    value: float  #: The metric there
    derivative: float  #: Change of the metric per unit of the field; NaN where there is none
    #: Estimated error of the derivative: how far steps differ, with rounding; half the difference of both
    #: slopes at a kink and between neighbours; infinite where nothing is known of it
    error: float
    kind: str  #: See above
    #: The slopes below and above the value, where they differ; a side without any is NaN
    slopes: tuple[float, float] | None = None

    @property
    def elasticity(self) -> float:
        """``derivative * at / value``: percent of the metric by percent of the field; NaN if it is 0."""
        return self.derivative * self.at / self.value if self.value and isfinite(self.value) else nan


def sensitivity(
    spec: Any,
    evaluate: Evaluate,
    fields: Iterable[str] | None = None,
    *,
    metrics: str | Iterable[str] | None = None,
    neighbours: Mapping[str, Sequence[Any]] | None = None,
    vectorized: bool = False,
) -> list[Elasticity]:
    r"""Differentiate metrics with respect to numeric fields of a spec.

    Parameters
    ----------
    spec : dataclass instance
        The design.
    evaluate : callable
        Takes a spec and returns metrics, as for `optimize.search.explore`.
    fields : sequence of str, optional
        Names as `optimize.find_field` takes them; all continuous fields if left out. Of a whole number the
        designs one below and one above are compared, or the one that the spec accepts.
    metrics : str or sequence of str, optional
        Numeric metrics; all if left out. Others in the mapping ``metrics`` of an answer are not read.
    neighbours : mapping, optional
        ``{field: (below, above)}`` where whole numbers come in other steps, such as powers of 2.
    vectorized : bool
        Whether `evaluate` broadcasts over specs with arrays in their fields. All fields that the spec takes
        as arrays (any, if it declares none) are then varied in one call; others take a call for each design.

    Returns
    -------
    list of Elasticity
        One entry per field and metric, fields first.

    Raises
    ------
    ValueError
        For an unknown field or metric, a field that is no number, or a spec that has no answer.

    Notes
    -----
    Around the value, designs are evaluated at 2, 1, 0.5 and 0.25 % of it (of 1 where it is 0) to either side;
    of fields of which that does not give every derivative to nine digits at a 64th of these steps as well:
    8 or 16 designs a field in one or two calls. Derivatives are central ones of order 6 and one-sided ones of
    order 4 [1]_. Designs that the spec refuses, or whose metric is not finite, are left out. Where the slopes
    to either side disagree by ten times their errors, the metric has a kink, as a maximum of two has where
    both are equal; where the metric itself tends to another value, it has a step. A kink nearer than 4e-5 of
    the value passes for one at it.

    References
    ----------
    .. [1] B. Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids",
       Mathematics of Computation 51, 1988.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Queue:
    ...     arrival_rate: float = 0.8
    ...     servers: int = 1
    >>> def model(queue):
    ...     return {"time": 1 / (queue.servers - queue.arrival_rate)}
    >>> one, = sensitivity(Queue(), model, vectorized=True)
    >>> one.field, round(one.derivative, 6), round(one.elasticity, 6), one.error / 25 < 1e-8, one.kind
    ('arrival_rate', 25.0, 4.0, True, 'smooth')
    """
    asked = continuous_fields(spec) if fields is None else checks.names("fields", fields)
    around = dict(neighbours or {})
    for name in around:
        if name not in asked:
            raise ValueError(f"neighbours must name fields asked for, got {name!r}")
    paths = find_fields(spec, asked)
    values = {name: _number(spec, name) for name in asked}
    model = Model(
        spec, evaluate, None if metrics is None else checks.names("metrics", metrics), vectorized=vectorized
    )
    smooth = [name for name in asked if name not in around]
    # One spec with all of them shows it, mostly.
    if not continuous(spec, *(paths[name] for name in smooth)):
        smooth = [name for name in smooth if continuous(spec, paths[name])]
    base = None
    if smooth:
        found = differentiate(model, {paths[name]: float(values[name]) for name in smooth})
        base = found["value"]
    if base is None or np.isnan(base).any():
        base = model({})[0]  # what is wrong with the spec itself is said by it
        model.refuse_nan(base[None], {})
    result: list[Elasticity] = []
    for name in asked:
        if name in smooth:
            result += _entries(model, name, values[name], found, smooth.index(name))
        else:
            result += _by_neighbours(model, name, values[name], around.get(name), base)
    return result


def continuous_fields(spec: Any) -> tuple[str, ...]:
    """Return the fields of a spec that hold a finite number and take any number near it."""
    numbers = {path: value for path, value in field_paths(spec).items() if _is_number(value)}
    return tuple(path for path, value in numbers.items() if isfinite(value) and continuous(spec, path))


def continuous(spec: Any, *paths: str) -> bool:
    """Return whether fields that hold a number take more than whole ones, all at once."""
    whole: dict[str, Any] = {}
    for path in paths:
        value = get_field(spec, path)
        if not isinstance(value, (int, np.integer)):
            continue
        parent, _, name = path.rpartition(".")
        owner = get_field(spec, parent) if parent else spec
        hint = (
            next((str(one.type) for one in fields(owner) if one.name == name), "") if is_spec(owner) else ""
        )
        if "float" not in hint and "Numeric" not in hint:
            return False
        whole[path] = value
    for between in (BETWEEN, -BETWEEN) if whole else ():
        try:
            replace_paths(spec, {path: value + between for path, value in whole.items()})
        except ValueError:
            continue
        return True
    return not whole


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _number(spec: Any, name: str) -> Any:
    value = get_field(spec, name)
    if not _is_number(value) or not isfinite(value):
        raise ValueError(f"field {name!r} must be a finite number, got {value!r}")
    return value


def _entries(model: Model, field: str, value: Any, found: Slopes, row: int) -> Iterable[Elasticity]:
    """Yield how all metrics answer to a continuous field."""
    for k, metric in enumerate(model.metrics or ()):
        names = ("slope", "error", "below", "above")
        (slope, error, *sides), kind = (float(found[n][row, k]) for n in names), str(found["kind"][row, k])
        two = (sides[0], sides[1]) if kind in TWO else None
        known: dict[str, Any] = {"field": field, "metric": metric, "at": float(value), "kind": kind}
        yield Elasticity(**known, value=float(found["value"][k]), derivative=slope, error=error, slopes=two)


def _by_neighbours(
    model: Model, field: str, value: Any, around: Sequence[Any] | None, base: Any
) -> Iterable[Elasticity]:
    """Yield how all metrics answer to a whole-numbered field."""
    below, above = (value - 1, value + 1) if around is None else around
    if not below <= value <= above or below == above:
        raise ValueError(f"neighbours[{field!r}] must be below and above {value}, got {(below, above)}")
    metrics = model({field: (below, above)}, forgiving=True)
    for k, metric in enumerate(model.metrics or ()):
        slopes = [
            float((one - base[k]) / (other - value)) if other != value and isfinite(one) else nan
            for other, one in zip((below, above), metrics[:, k].tolist(), strict=True)
        ]
        a, b = slopes
        share = (above - value) / (above - below)  # of the parabola through all three
        slope, error = share * a + (1 - share) * b, abs(b - a) / 2
        kind = "whole"
        if not isfinite(base[k]):
            kind, slope, error = "unstable", nan, inf
        elif not isfinite(slope):
            slope, error = (b if a != a else a), inf
            kind = "whole" if isfinite(slope) else "refused"
        known: dict[str, Any] = {"field": field, "metric": metric, "at": float(value), "kind": kind}
        yield Elasticity(**known, value=float(base[k]), derivative=slope, error=error, slopes=(a, b))
