"""What answers of models and results of simulators say, by metric name, whatever their kind."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from validate.estimates.statistics import Estimate
from validate.readers.run_set import Run, point

_SHARES = ("probability", "ratio", "utilization", "fraction")


def answered(answer: Any) -> dict[str, float]:
    """Return the metrics of a model's answer for one system.

    Parameters
    ----------
    answer : object
        A mapping of names to numbers; or an object with such ``metrics``, or with ``to_dict``.
        Arrays over the ``stations`` (and ``classes``) of a network give a metric for each:
        ``utilization[disk]``, ``throughput[disk, read]``. What is neither number nor such an array
        is left out, and so is NaN, what the model does not know.

    Examples
    --------
    >>> answered({"mean_response_time": 2.0, "model": "M/M/1"})
    {'mean_response_time': 2.0}
    """
    if isinstance(answer, Mapping):
        values = answer
    elif isinstance(getattr(answer, "metrics", None), Mapping):
        values = answer.metrics
    elif hasattr(answer, "to_dict"):
        values = answer.to_dict()
    else:
        raise TypeError(
            f"model must return a mapping or a result with metrics or to_dict, got {type(answer).__name__}"
        )
    stations = tuple(getattr(answer, "stations", ()))
    classes = tuple(getattr(answer, "classes", ()))
    return {
        name: value
        for key, given in values.items()
        for name, value in _named(key, given, stations, classes)
        if not math.isnan(value)
    }


def _named(
    key: str, value: Any, stations: tuple[Any, ...], classes: tuple[Any, ...]
) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool | np.bool_ | str) or value is None:
        return
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return
    if np.asarray(value).dtype == bool:
        return
    if array.ndim == 0:
        yield key, float(array)
    elif array.shape == (len(stations),):
        yield from ((f"{key}[{s}]", float(v)) for s, v in zip(stations, array, strict=True))
    elif array.shape == (len(classes),):
        yield from ((f"{key}[{c}]", float(v)) for c, v in zip(classes, array, strict=True))
    elif array.shape == (len(stations), len(classes)):
        for s, row in zip(stations, array, strict=True):
            yield from ((f"{key}[{s}, {c}]", float(v)) for c, v in zip(classes, row, strict=True))


def measured(result: Any) -> dict[str, tuple[Estimate, str]]:
    """Return the estimates of a simulation, or the values of an imported run, with their units if known.

    Parameters
    ----------
    result : object
        A `Run`, a mapping of names to numbers or estimates, or a simulator's result with such
        ``metrics`` and, for their units, with ``rows``, each of which has a metric and its unit.
    """
    if isinstance(result, Run | Mapping):
        values = result.metrics if isinstance(result, Run) else result
        return {name: (_estimate(value), "") for name, value in values.items()}
    units = {one["metric"]: one["unit"] for one in result.rows()} if hasattr(result, "rows") else {}
    return {name: (_estimate(value), units.get(name, "")) for name, value in result.metrics.items()}


def _estimate(value: Any) -> Estimate:
    return value if isinstance(value, Estimate) else point(value)


def load_of(answer: Any) -> float | None:
    """Return the load of the busiest resource in a model's answer, if it says so.

    Above 1 in an overloaded system where the answer holds traffic intensities. An answer without any
    may have a ``max_utilization`` among its metrics.
    """
    stations = getattr(answer, "station_utilization", None)
    if stations is not None:
        return float(np.max(stations))
    utilization = (
        answer.get("utilization") if isinstance(answer, Mapping) else getattr(answer, "utilization", None)
    )
    if isinstance(utilization, Mapping):
        return float(max(utilization.values(), default=0.0))
    if utilization is None:
        metrics = getattr(answer, "metrics", None)
        utilization = metrics.get("max_utilization") if isinstance(metrics, Mapping) else None
    if utilization is None or np.ndim(utilization) != 0:
        return None
    return float(utilization)


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of one, whose error is stated in percentage points.

    Examples
    --------
    >>> is_share("row_hit_ratio"), is_share("utilization[disk]"), is_share("packet_latency")
    (True, True, False)
    """
    return metric.partition("[")[0].endswith(_SHARES)


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
