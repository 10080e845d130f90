"""Fit parameters of a model to observations: how well they are known, and a refusal where they are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.fields import find_field, is_spec, replace_fields
from validate.calibration.result import Calibration
from validate.calibration.search import (
    AT_BOUND,
    effects,
    inverse,
    leave_one_out,
    require_identifiable,
    search,
    start,
)
from validate.comparison.metrics import answered
from validate.estimates.statistics import Estimate
from validate.readers.run_set import RunSet, point


class _Data(NamedTuple):
    """What is fitted: a run, a metric, its value and its weight in each row."""

    runs: list[int]
    metrics: list[str]
    values: FloatArray
    scales: FloatArray


def calibrate(
    model: Any,
    observations: RunSet,
    parameters: Mapping[str, Sequence[float]],
    *,
    metrics: Iterable[str] | Mapping[str, float] | None = None,
    errors: Literal["relative", "absolute"] = "relative",
    confidence: float = 0.95,
    leave_out: str = "run",
    solve: Callable[[Any], Any] | None = None,
) -> Calibration:
    r"""Fit parameters of a model to observations by bounded least squares.

    Parameters
    ----------
    model : spec or callable
        A frozen spec, of which the parameters are dotted fields, and the settings of the
        observations too; or a function of settings and parameters by name. It returns a
        result with ``metrics`` or ``to_dict``, a mapping, or a number if one metric is fitted.
    observations : RunSet
        Measured runs, see `RunSet.from_columns` and ``validate.readers``. Settings that are the
        same in all runs are given to a function, but not to a spec.
    parameters : mapping of str to pair of float
        ``{name: (lowest, highest)}``.
    metrics : iterable or mapping, optional
        The metrics to fit, or ``{metric: weight}`` with weights > 0; otherwise all that model and
        observations share.
    errors : {"relative", "absolute"}
        What is made small: differences over the observed value, or differences. Absolute ones of
        metrics with different units need weights.
    confidence : float
        Coverage of the intervals of the parameters.
    leave_out : str
        What is left out at a time to see how well the rest predicts it: ``"run"``, ``"metric"``, or
        a setting, whose equal values form a group.
    solve : callable, optional
        What answers for a spec, otherwise ``qmodels.solve``.

    Returns
    -------
    Calibration
        The parameters with intervals, their covariance, the error left, and the error of
        predictions of what was left out. A parameter at a bound is flagged and has no interval.

    Raises
    ------
    ValueError
        If the parameters cannot be identified: there are not more observations than parameters,
        one has no effect, or some can be traded for one another (they are named). If the model
        gives no finite value anywhere in the bounds, or an argument is out of range.
    RuntimeError
        If the search does not converge.

    Notes
    -----
    Residuals are :math:`w (m(\theta) - y) / |y|` (relative) or :math:`w (m(\theta) - y)`. With
    :math:`s^2` their sum of squares over :math:`n - p` and :math:`J` their derivatives at the
    solution, the covariance is :math:`s^2 (J^T J)^{-1}` and the intervals are Student's with
    :math:`n - p` degrees of freedom: first-order results for independent errors of equal variance
    in the chosen form, approximate otherwise.

    Identifiability is judged by the singular values of :math:`J` after its columns were scaled to
    unit length: with a ratio of the smallest to the largest below 1e-5 the parameters that make up
    the smallest direction are refused. It is the collinearity of Brun, Reichert and Künsch (2001),
    with a threshold at the error of the differences rather than at practical usefulness: how little
    is known of identifiable parameters is what the intervals say.

    References
    ----------
    .. [1] R. Brun, P. Reichert, H. R. Künsch, "Practical identifiability analysis of large
       environmental simulation models", Water Resources Research 37(4), 2001.

    Examples
    --------
    Pipeline depth and service time of a link, from latencies measured at four loads:

    >>> def link(rate, pipeline, service):
    ...     return {"latency": pipeline + service + rate * service**2 / (2 * (1 - rate * service))}
    >>> runs = RunSet.from_columns(settings={"rate": [0.02, 0.05, 0.1, 0.15]},
    ...     metrics={"latency": [12.18, 12.54, 13.31, 14.97]})
    >>> fit = calibrate(link, runs, {"pipeline": (0, 50), "service": (1, 6)})
    >>> round(fit.parameters["pipeline"].best, 1), round(fit.parameters["service"].best, 1)
    (8.0, 4.0)
    >>> fit.at_bound, fit.leave_one_out.largest < 0.05
    ((), True)
    """
    names, low, high = _bounds(parameters)
    checks.choice("errors", errors, ("relative", "absolute"))
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    at = _evaluator(model, observations, names, solve)
    middle = at(dict(zip(names, ((low + high) / 2).tolist(), strict=True)), 0)
    data = _data(observations, metrics, errors, middle)
    if data.values.size <= len(names):
        raise ValueError(
            f"parameters must be fewer than observations to be identified, got {len(names)} "
            f"({', '.join(names)}) for {data.values.size}"
        )
    groups = _groups(observations, data, leave_out)
    residuals = _Residuals(at, names, low, high, data)
    best = search(residuals, start(residuals, names))
    moved = effects(residuals, best)
    require_identifiable(moved, names)
    left = residuals(best)
    at_bound = tuple(n for n, u in zip(names, best, strict=True) if min(u, 1 - u) < AT_BOUND)
    free = np.array([name not in at_bound for name in names])
    freedom = left.size - int(free.sum())
    covariance = np.zeros((len(names), len(names)))
    covariance[np.ix_(free, free)] = float(left @ left) / freedom * inverse(moved[:, free])
    covariance *= np.outer(high - low, high - low)
    fitted = low + best * (high - low)
    return Calibration(
        parameters=_estimates(names, fitted, covariance, freedom, confidence, at_bound),
        bounds={name: (float(a), float(b)) for name, a, b in zip(names, low, high, strict=True)},
        at_bound=at_bound,
        covariance=covariance,
        errors=errors,
        observations=int(left.size),
        rms_error=float(np.sqrt(np.mean(left**2))),
        largest_error=float(np.abs(left).max()),
        leave_one_out=leave_one_out(residuals, best, groups),
        evaluations=residuals.evaluations,
        spec=replace_fields(model, residuals.values(best)) if is_spec(model) else None,
    )


class _Residuals:
    """Weighted differences of a model from what is fitted, where each parameter is within its bounds."""

    def __init__(self, at: Any, names: list[str], low: FloatArray, high: FloatArray, data: _Data) -> None:
        self.at, self.names, self.low, self.high, self.data = at, names, low, high, data
        self.evaluations = 0

    def values(self, unit: FloatArray) -> dict[str, float]:
        """Return the parameters, each a part of the way from its lower bound to its upper one."""
        return dict(zip(self.names, (self.low + unit * (self.high - self.low)).tolist(), strict=True))

    def __call__(self, unit: FloatArray) -> FloatArray:
        values, data = self.values(unit), self.data
        needed = dict.fromkeys(data.runs)
        self.evaluations += len(needed)
        answers = {run: self.at(values, run) for run in needed}
        found = [_metric(answers[r], m) for r, m in zip(data.runs, data.metrics, strict=True)]
        return (np.array(found) - data.values) / data.scales


def _bounds(parameters: Mapping[str, Sequence[float]]) -> tuple[list[str], FloatArray, FloatArray]:
    if not parameters:
        raise ValueError("parameters must name at least one, got none")
    for name, pair in parameters.items():
        ends = checks.finite(f"bounds of {name}", pair)
        if ends.shape != (2,) or not ends[0] < ends[1]:
            raise ValueError(f"bounds of {name} must be a lower and a higher number, got {pair!r}")
    low, high = np.array([list(map(float, pair)) for pair in parameters.values()]).T
    return list(parameters), low, high


def _evaluator(
    model: Any, observations: RunSet, names: list[str], solve: Callable[[Any], Any] | None
) -> Callable[[Mapping[str, float], int], Any]:
    """Return the model as a function of parameters and the number of a run."""
    if is_spec(model):
        if solve is None:
            from validate.comparison.model import default_model

            solve = default_model()
        varied = observations.varied
        _keep_apart({find_field(model, name): name for name in names}, {find_field(model, n) for n in varied})
        settings = [{n: run.settings[n] for n in varied if n in run.settings} for run in observations]
        return lambda values, run: solve(replace_fields(model, {**settings[run], **values}))
    if not callable(model):
        raise TypeError(f"model must be a spec or a function, got {type(model).__name__}")
    runs = [dict(run.settings) for run in observations]
    _keep_apart({name: name for name in names}, {name for settings in runs for name in settings})
    return lambda values, run: model(**runs[run], **values)


def _keep_apart(parameters: Mapping[str, str], settings: set[str]) -> None:
    for path, name in parameters.items():
        if path in settings:
            raise ValueError(f"parameters must not be settings of the observations, got {name!r}")


def _metric(answer: Any, metric: str) -> float:
    if isinstance(answer, int | float | np.number):
        return float(answer)
    values = answered(answer)
    return values[metric] if metric in values else math.nan


def _data(observations: RunSet, metrics: Any, errors: str, answer: Any) -> _Data:
    weights = dict(metrics) if isinstance(metrics, Mapping) else {}
    chosen = list(observations.metrics if metrics is None else metrics)
    if isinstance(answer, int | float | np.number):
        if len(chosen) != 1:
            raise ValueError(
                f"metrics must be one for a model that returns a number, got {', '.join(chosen)}"
            )
    else:
        known = answered(answer)
        if metrics is None:
            chosen = [name for name in chosen if name in known]
            if not chosen:
                raise ValueError(
                    f"metrics must be some that model and observations share, got {', '.join(known)} and "
                    f"{', '.join(observations.metrics)}"
                )
        for name in chosen:
            if name not in known:
                raise ValueError(
                    f"metrics must be in the model's answer, got {name!r}{checks.nearest(name, known)}"
                )
    for name in chosen:
        if name not in observations.metrics:
            close = checks.nearest(name, observations.metrics)
            raise ValueError(f"metrics must be among the observations, got {name!r}{close}")
        checks.positive(f"weight of {name}", weights.get(name, 1.0))
    rows = [
        (k, name, run.metrics[name].best)
        for k, run in enumerate(observations)
        for name in chosen
        if name in run.metrics and math.isfinite(run.metrics[name].best)
    ]
    values = np.array([value for _, _, value in rows])
    if errors == "relative" and np.any(values == 0):
        zero = rows[int(np.flatnonzero(values == 0)[0])][1]
        raise ValueError(f"errors must be 'absolute' where an observation is 0, got {errors!r} with {zero}")
    weight = np.array([weights.get(name, 1.0) for _, name, _ in rows])
    return _Data(
        runs=[k for k, _, _ in rows],
        metrics=[name for _, name, _ in rows],
        values=values,
        scales=(np.abs(values) if errors == "relative" else np.ones(len(rows))) / weight,
    )


def _groups(observations: RunSet, data: _Data, leave_out: str) -> dict[str, FloatArray]:
    """Return which rows belong to each group that is left out together."""
    if leave_out == "metric":
        labels = list(data.metrics)
    elif leave_out == "run":
        labels = [f"run {k}" for k in data.runs]
    else:
        column = observations.setting(leave_out)
        labels = [f"{leave_out} {column[k]}" for k in data.runs]
    return {label: np.array([one == label for one in labels]) for label in dict.fromkeys(labels)}


def _estimates(
    names: list[str],
    values: FloatArray,
    covariance: FloatArray,
    freedom: int,
    confidence: float,
    at_bound: tuple[str, ...],
) -> dict[str, Estimate]:
    from scipy.special import stdtrit

    half = float(stdtrit(freedom, (1 + confidence) / 2)) * np.sqrt(np.diag(covariance))
    return {
        name: point(value)
        if name in at_bound
        else Estimate(low=value - h, best=value, high=value + h, confidence=confidence)
        for name, value, h in zip(names, values.tolist(), half.tolist(), strict=True)
    }
