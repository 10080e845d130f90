"""Reading single numeric metrics of a model, with errors that name the point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from optimize import checks
from optimize.search.pareto import FloatArray


def numeric_column(columns: Mapping[str, Any], metric: str) -> FloatArray:
    """Return the column of a metric, which must exist and be numbers or truth values."""
    if metric not in columns:
        raise ValueError(f"no metric {metric!r}{checks.nearest(metric, columns)}")
    column = columns[metric]
    if column.dtype.kind not in "bf":
        raise ValueError(f"metric {metric!r} must be a number, got {column[0]!s}")
    return np.asarray(column, dtype=float)


def words(point: Mapping[str, Any]) -> str:
    """Return ``load=0.5, width=8``; ``the spec`` where nothing is varied."""
    return ", ".join(f"{field}={value!s}" for field, value in point.items()) or "the spec"
