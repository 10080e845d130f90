"""Fit parameters of a model to observations: how well they are known, and a refusal where they are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.fields import find_field, is_spec, replace_fields
from validate.comparison.metrics import answered
from validate.readers.run_set import RunSet, point

STARTS = 16
"""Places drawn in the bounds, from the best of which, and the middle, the search begins."""
STEP, INDEPENDENT, AT_BOUND = 1e-4, 1e-5, 1e-6
"""Step of derivatives, in ranges; ratio of singular values that tells parameters apart; width of a bound."""


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut:
    """Sizes of the errors of observations, predicted by fits without their group; ``inf`` if none."""

    mean: float
    largest: float
    by_group: Mapping[str, float]  # root mean square of the errors of each group


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """The parameters that bring a model closest to observations."""

    parameters: Mapping[str, Estimate]  # best values with intervals; without one (confidence 0) at a bound
    bounds: Mapping[str, tuple[float, float]]
    at_bound: tuple[str, ...]  # parameters at a bound: the best value may lie beyond
    covariance: FloatArray  # of the parameters in their order; 0 for those at a bound
    errors: str  # "relative" (shares of the observed value) or "absolute"
    observations: int
    rms_error: float
    largest_error: float
    leave_one_out: LeaveOneOut
    evaluations: int  # times the model was solved
    spec: Any = None  # with the fitted values, if the model is a spec

    @property
    def correlation(self) -> FloatArray:
        """Correlations of the errors of the parameters; 0 for those at a bound."""
        deviations = np.sqrt(np.diag(self.covariance))
        scale = np.where(deviations > 0, deviations, 1.0)
        return self.covariance / np.outer(scale, scale)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the spec as plain dictionaries, lists, numbers and words."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "spec"}
        return plain | {
            "parameters": {name: asdict(value) for name, value in self.parameters.items()},
            "bounds": {name: list(ends) for name, ends in self.bounds.items()},
            "at_bound": list(self.at_bound),
            "covariance": self.covariance.tolist(),
            "leave_one_out": asdict(self.leave_one_out),
        }

    def table(self) -> str:
        """Return the parameters as text, one a line, and the errors."""
        lines = [f"{'parameter':<32} {'best':>12} {'interval':>27} {'bounds':>21}"]
        for name, value in self.parameters.items():
            interval = "at its bound" if name in self.at_bound else f"[{value.low:.6g}, {value.high:.6g}]"
            bounds = f"[{self.bounds[name][0]:.5g}, {self.bounds[name][1]:.5g}]"
            lines.append(f"{name:<32} {value.best:>12.6g} {interval:>27} {bounds:>21}")
        left = self.leave_one_out
        sizes = [
            f"{100 * error:.3g} %" if self.errors == "relative" else f"{error:.4g}"
            for error in (self.rms_error, self.largest_error, left.mean, left.largest)
        ]
        return "\n".join(lines) + (
            f"\n{self.errors} error of {self.observations} observations: root mean square {sizes[0]}, largest"
            f" {sizes[1]}; predicted when left out: mean {sizes[2]}, largest {sizes[3]}"
        )

    __repr__ = table


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
        A frozen spec, of which the parameters are dotted fields, and the settings of the observations too; or
        a function of settings and parameters by name. It returns a result with ``metrics`` or ``to_dict``, a
        mapping, or a number if one metric is fitted.
    observations : RunSet
        Measured runs, see `RunSet.from_columns` and ``validate.readers``. Settings that are the same in all
        runs are given to a function, but not to a spec.
    parameters : mapping of str to pair of float
        ``{name: (lowest, highest)}``.
    metrics : iterable or mapping, optional
        The metrics to fit, or ``{metric: weight}``; otherwise all that model and observations share.
    errors : {"relative", "absolute"}
        What is made small: differences over the observed value, or differences.
    confidence : float
        Coverage of the intervals of the parameters.
    leave_out : str
        What is left out at a time to see how well the rest predicts it: ``"run"``, ``"metric"``, or a
        setting, whose equal values form a group.
    solve : callable, optional
        What answers for a spec, otherwise ``qmodels.solve``.

    Returns
    -------
    Calibration
        The parameters with intervals, their covariance, the error left, and the error of predictions of what
        was left out. A parameter at a bound is flagged and has no interval.

    Raises
    ------
    ValueError
        If there are not more observations than parameters, one has no effect, or some can be traded for one
        another (they are named); if the model is finite nowhere in the bounds, or an argument is wrong.
    RuntimeError
        If the search does not converge.

    Notes
    -----
    Residuals are :math:`w (m(\theta) - y) / |y|` or :math:`w (m(\theta) - y)`, made small by
    ``scipy.optimize.least_squares``. With :math:`s^2` their sum of squares over :math:`n - p` and :math:`J`
    their derivatives, the covariance is :math:`s^2 (J^T J)^{-1}` and the intervals are Student's: first-order
    results for independent errors of equal variance. Parameters with a ratio of the singular values of
    :math:`J`, its columns scaled to unit length, below 1e-5 are refused (collinearity [1]_).

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
    from scipy.special import stdtrit

    if not parameters:
        raise ValueError("parameters must name at least one, got none")
    for name, pair in parameters.items():
        ends = checks.finite(f"bounds of {name}", pair)
        if ends.shape != (2,) or not ends[0] < ends[1]:
            raise ValueError(f"bounds of {name} must be a lower and a higher number, got {pair!r}")
    names = list(parameters)
    low, high = np.array([list(map(float, pair)) for pair in parameters.values()]).T
    checks.choice("errors", errors, ("relative", "absolute"))
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    at = _evaluator(model, observations, names, solve)
    middle = at(dict(zip(names, ((low + high) / 2).tolist(), strict=True)), 0)
    weights = _weights(observations, metrics, middle)
    rows = [
        (k, name, run.metrics[name].best)
        for k, run in enumerate(observations)
        for name in weights
        if name in run.metrics and math.isfinite(run.metrics[name].best)
    ]
    zero = next((name for _, name, value in rows if value == 0), None)
    if errors == "relative" and zero is not None:
        raise ValueError(f"errors must be 'absolute' where an observation is 0, got {errors!r} with {zero}")
    if len(rows) <= len(names):
        raise ValueError(
            f"parameters must be fewer than observations to be identified, got {len(names)} "
            f"({', '.join(names)}) for {len(rows)}"
        )
    groups = _groups(observations, rows, leave_out)
    observed = np.array([value for _, _, value in rows])
    scales = np.abs(observed) if errors == "relative" else np.ones(len(rows))
    scales = scales / [weights[name] for _, name, _ in rows]
    solved = 0

    def values(unit: FloatArray) -> dict[str, float]:
        return dict(zip(names, (low + unit * (high - low)).tolist(), strict=True))

    def residuals(unit: FloatArray) -> FloatArray:
        nonlocal solved
        answers = {run: at(values(unit), run) for run in dict.fromkeys(k for k, _, _ in rows)}
        solved += len(answers)
        return (np.array([_metric(answers[k], name) for k, name, _ in rows]) - observed) / scales

    def part(rest: Any, unit: FloatArray) -> FloatArray:
        return np.asarray(residuals(unit)[rest])

    best = _searched(residuals, _start(residuals, names))
    moved = _effects(residuals, best)
    _require_identifiable(moved, names)
    left = residuals(best)
    free = np.minimum(best, 1 - best) >= AT_BOUND
    freedom = left.size - int(free.sum())
    covariance = np.zeros((len(names), len(names)))
    inverted = np.linalg.inv(np.linalg.qr(moved[:, free], mode="r"))  # by QR: the condition is not squared
    covariance[np.ix_(free, free)] = float(left @ left) / freedom * (inverted @ inverted.T)
    covariance *= np.outer(high - low, high - low)
    half = float(stdtrit(freedom, (1 + confidence) / 2)) * np.sqrt(np.diag(covariance))
    missed = {}
    for label, mine in groups.items():
        if (~mine).sum() >= best.size:
            without = _searched(partial(part, ~mine), np.clip(best, 1e-6, 1 - 1e-6))
            missed[label] = np.abs(residuals(without)[mine])
    every = np.concatenate(list(missed.values())) if missed else np.array([math.inf])
    return Calibration(
        parameters={
            name: Estimate(low=value - h, best=value, high=value + h, confidence=confidence)
            if inside
            else point(value)
            for (name, value), h, inside in zip(values(best).items(), half.tolist(), free, strict=True)
        },
        bounds={name: (float(a), float(b)) for name, a, b in zip(names, low, high, strict=True)},
        at_bound=tuple(name for name, inside in zip(names, free, strict=True) if not inside),
        covariance=covariance,
        errors=errors,
        observations=len(rows),
        rms_error=float(np.sqrt(np.mean(left**2))),
        largest_error=float(np.abs(left).max()),
        leave_one_out=LeaveOneOut(
            mean=float(every.mean()),
            largest=float(every.max()),
            by_group={label: float(np.sqrt(np.mean(one**2))) for label, one in missed.items()},
        ),
        evaluations=solved,
        spec=replace_fields(model, values(best)) if is_spec(model) else None,
    )


def _start(residuals: Callable[[FloatArray], FloatArray], names: list[str]) -> FloatArray:
    """Return the best of the middle and of places drawn in the bounds."""
    places = np.random.default_rng(0).random((STARTS, len(names)))
    places[0] = 0.5
    with np.errstate(all="ignore"):
        sums = np.array([float(np.sum(residuals(place) ** 2)) for place in places])
    if not np.isfinite(sums).any():
        raise ValueError(
            f"bounds must contain values for which the model is finite at every observation, got none "
            f"of {STARTS} for {', '.join(names)}"
        )
    return np.asarray(places[int(np.argmin(np.where(np.isfinite(sums), sums, np.inf)))])


def _searched(residuals: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """Return the place of least squares that is found from a start; RuntimeError if none is."""
    from scipy.optimize import least_squares

    close: dict[str, Any] = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-12)
    with np.errstate(all="ignore"):
        found = least_squares(residuals, start, bounds=(0.0, 1.0), jac="3-point", max_nfev=400, **close)
    if not found.success:
        raise RuntimeError(
            f"calibration did not converge in {found.nfev} steps (cost {found.cost:.3g}): narrow the bounds"
        )
    # The search stays strictly inside the bounds; a bound itself may be better than what is next to it.
    snapped = np.where(found.x < 1e-4, 0.0, np.where(found.x > 1 - 1e-4, 1.0, found.x))
    at_ends = residuals(snapped)
    better = np.all(np.isfinite(at_ends)) and float(at_ends @ at_ends) / 2 <= found.cost
    return np.asarray(snapped if better else found.x)


def _effects(residuals: Callable[[FloatArray], FloatArray], unit: FloatArray) -> FloatArray:
    """Return the derivatives of the residuals by each parameter over its range."""
    columns = []
    for k in range(unit.size):
        ends = np.clip([unit[k] - STEP, unit[k] + STEP], 0.0, 1.0)
        below, above = (residuals(np.where(np.arange(unit.size) == k, end, unit)) for end in ends)
        columns.append((above - below) / (ends[1] - ends[0]))
    return np.array(columns).T


def _require_identifiable(effects: FloatArray, names: list[str]) -> None:
    """Refuse parameters without effect, or whose effects are combinations of each other's."""
    if not np.all(np.isfinite(effects)):
        raise ValueError(f"the model must be finite around the solution, got no effect of {', '.join(names)}")
    lengths = np.linalg.norm(effects, axis=0)
    idle = [n for n, size in zip(names, lengths, strict=True) if size <= 1e-9 * max(lengths.max(), 1.0)]
    if idle:
        raise ValueError(
            f"{' and '.join(idle)} cannot be identified: no effect on the observations; "
            "fix it or observe more"
        )
    _, singular, directions = np.linalg.svd(effects / lengths)
    if (ratio := float(singular[-1] / singular[0])) < INDEPENDENT:
        shares = np.abs(directions[-1])
        involved = [name for name, share in zip(names, shares, strict=True) if share > 0.1 * shares.max()]
        raise ValueError(
            f"{' and '.join(involved)} cannot be told apart by these observations (singular values of "
            f"their effects in the ratio {ratio:.1e}); fix one of them or observe more"
        )


def _evaluator(
    model: Any, observations: RunSet, names: list[str], solve: Callable[[Any], Any] | None
) -> Callable[[Mapping[str, float], int], Any]:
    """Return the model as a function of parameters and the number of a run."""
    spec, answer = is_spec(model), solve
    if not spec and not callable(model):
        raise TypeError(f"model must be a spec or a function, got {type(model).__name__}")
    if spec and solve is None:
        from validate.comparison.model import default_model

        answer = default_model()
    varied = set(observations.varied) if spec else {name for run in observations for name in run.settings}

    def path(name: str) -> str:
        return find_field(model, name) if spec else name

    paths = [path(name) for name in names]
    for name, one in zip(names, paths, strict=True):
        if one in set(map(path, varied)):
            raise ValueError(f"parameters must not be settings of the observations, got {name!r}")
    runs = [{name: value for name, value in run.settings.items() if name in varied} for run in observations]

    def at(values: Mapping[str, float], run: int) -> Any:
        if not spec or answer is None:
            return model(**runs[run], **values)
        return answer(replace_fields(model, {**runs[run], **values}))

    return at


def _metric(answer: Any, metric: str) -> float:
    if isinstance(answer, int | float | np.number):
        return float(answer)
    return answered(answer).get(metric, math.nan)


def _weights(observations: RunSet, metrics: Any, answer: Any) -> dict[str, float]:
    """Return the metrics that are fitted, with their weights."""
    chosen = list(observations.metrics if metrics is None else metrics)
    single = isinstance(answer, int | float | np.number)
    if single and len(chosen) != 1:
        raise ValueError(f"metrics must be one for a model that returns a number, got {', '.join(chosen)}")
    known = chosen if single else list(answered(answer))
    if metrics is None:
        chosen = [name for name in chosen if name in known]
        if not chosen:
            raise ValueError(
                f"metrics must be some that model and observations share, got {', '.join(known)} and "
                f"{', '.join(observations.metrics)}"
            )
    for name in chosen:
        for where, names in (
            ("in the model's answer", known),
            ("among the observations", observations.metrics),
        ):
            if name not in names:
                raise ValueError(f"metrics must be {where}, got {name!r}{checks.nearest(name, names)}")
    weights = {name: float(metrics[name]) if isinstance(metrics, Mapping) else 1.0 for name in chosen}
    for name, weight in weights.items():
        checks.positive(f"weight of {name}", weight)
    return weights


def _groups(
    observations: RunSet, rows: list[tuple[int, str, float]], leave_out: str
) -> dict[str, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return which rows belong to each group that is left out together."""
    if leave_out == "metric":
        labels = [name for _, name, _ in rows]
    elif leave_out == "run":
        labels = [f"run {k}" for k, _, _ in rows]
    else:
        column = observations.setting(leave_out)
        labels = [f"{leave_out} {column[k]}" for k, _, _ in rows]
    return {label: np.array([one == label for one in labels]) for label in dict.fromkeys(labels)}
