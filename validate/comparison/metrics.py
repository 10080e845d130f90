"""Metrics of answers, simulations and imported runs, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.metrics import METRICS, is_relative
from qmodels.systems.spec.result import Result
from validate.readers.run_set import Run, point

_SHARES = ("probability", "ratio", "utilization", "fraction")


def answered(answer: Any) -> dict[str, float]:
    """Return the metrics of a model's answer for one system, a result or a mapping of names to numbers.

    What is no number is left out, and so is NaN, what the model does not know.
    """
    if not isinstance(answer, Result | Mapping):
        raise TypeError(f"model must return a result or a mapping, got {type(answer).__name__}")
    values = answer.metrics if isinstance(answer, Result) else answer
    return {name: float(value) for name, value in values.items() if _is_known(value)}


def _is_known(value: Any) -> bool:
    return np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iuf" and not math.isnan(value)


def measured(result: Result | Run | Mapping[str, Any]) -> dict[str, Estimate]:
    """Return the estimates of a simulation, or the values of an imported run or a mapping."""
    values = result if isinstance(result, Mapping) else result.metrics
    return {name: v if isinstance(v, Estimate) else point(v) for name, v in values.items()}


def load_of(answer: Any) -> float | None:
    """Return the load of the busiest resource in a model's answer, if it says so; above 1 in overload."""
    loads = answer.get("utilization") if isinstance(answer, Mapping) else answer.traffic_intensity
    if not isinstance(answer, Mapping) and not loads:
        loads = answer.utilization
    if isinstance(loads, Mapping):
        return max(map(float, loads.values()), default=None)
    return None if loads is None or np.ndim(loads) else float(loads)


def is_share(metric: str) -> bool:
    """Return whether a metric is a share of one, whose error is stated in percentage points.

    One that is not among ours, of an imported run, is known by the end of its name.

    >>> is_share("row_hit_ratio"), is_share("utilization[disk]"), is_share("packet_latency")
    (True, True, False)
    """
    stem = metric.partition("[")[0]
    return not is_relative(stem) if stem in METRICS else stem.endswith(_SHARES)


def signed_error(
    model: npt.ArrayLike, reference: npt.ArrayLike, *, relative: npt.ArrayLike = False
) -> FloatArray:
    """Relative difference of a model's values from the reference, positive above it.

    ``model``, ``reference``: values of one metric each, in one unit; ``relative``: whether to divide by the
    size of the reference. Returns 0 where both are equal, infinite ones included. Infinite, with the sign of
    the difference, where only one is infinite or the error is relative to a reference of 0.

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
