"""The error that an analytic answer states of itself, in the cells of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cases.packet_processor import ERROR
from cases.tables import number
from qmodels.systems.metrics import is_relative

LEGEND = "±: mean size of the error against simulation at such loads, Poisson arrivals"
"""What stands beside an analytic value in a table."""

UNKNOWN = "not validated: outside the range in which the model's error was measured"
"""What is said of an answer to which the stated error need not apply."""


def with_error(metric: str, value: Any, error: Any) -> Any:
    """Return a value with its stated error as a cell; alone if it has none.

    Examples
    --------
    >>> with_error("packet_latency", 313.3032, 3.93), with_error("row_hit_ratio", 0.51, 1.8)
    ('313.3 ± 3.9 %', '0.51 ± 0.018')
    >>> with_error("packet_latency", float("inf"), float("inf")), with_error("cost", 23.0, None)
    (inf, 23.0)
    """
    if error is None or not np.isfinite(value) or not np.isfinite(error):
        return value
    return f"{number(float(value))} ± " + (f"{error:.1f} %" if is_relative(metric) else f"{error / 100:.2g}")


def cell(table: Mapping[str, Any], metric: str, row: int) -> Any:
    """Return the cell of a metric of a table of designs, with its stated error if it has one."""
    errors = table.get(ERROR + metric)
    return with_error(metric, table[metric][row], None if errors is None else errors[row])


def not_validated(table: Mapping[str, Any], row: int) -> str:
    """Return the mark of a design to which the stated errors need not apply."""
    return "" if table["validated"][row] else "no"
