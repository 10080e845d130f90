"""The error that an analytic answer states of itself, in the cells of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cases.study.packet_processor import BIAS, ERROR
from cases.tables import number
from qmodels.systems.spec.metrics import is_relative

LEGEND = "±: mean size (signed mean) of the error against simulation at such loads"
"""What stands beside an analytic value in a table."""

UNKNOWN = "not validated: outside the range in which the model's error was measured"
"""What is said of an answer to which the stated error need not apply."""


def with_error(metric: str, value: Any, error: Any, bias: Any = None) -> Any:
    """Return a value with its stated error as a cell; alone if it has none.

    Examples
    --------
    >>> with_error("packet_latency", 313.3032, 3.93), with_error("row_hit_ratio", 0.51, 1.8)
    ('313.3 ± 3.9 %', '0.51 ± 0.018')
    >>> with_error("packet_latency", float("inf"), float("inf")), with_error("cost", 23.0, None)
    (inf, 23.0)
    >>> with_error("packet_latency", 313.3032, 3.93, -2.5)
    '313.3 ± 3.9 % (-2.5)'
    """
    if error is None or not np.isfinite(value) or not np.isfinite(error):
        return value
    size, mean = f"{error:.1f} %", "" if bias is None else f" ({bias:+.1f})"
    if not is_relative(metric):
        size, mean = f"{error / 100:.2g}", "" if bias is None else f" ({bias / 100:+.2g})"
    return f"{number(float(value))} ± {size}{mean}"


def cell(table: Mapping[str, Any], metric: str, row: int) -> Any:
    """Return the cell of a metric of a table of designs, with its stated error if it has one."""
    error, bias = (
        None if prefix + metric not in table else table[prefix + metric][row] for prefix in (ERROR, BIAS)
    )
    return with_error(metric, table[metric][row], error, bias)
