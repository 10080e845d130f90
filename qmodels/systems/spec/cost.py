"""Limits on the work that a call may start, checked before it starts.

The limits fit a machine of 8 GB and an evening: half its memory, some hours of simulated jobs on a core, a
table of designs that is held in that memory, minutes of arithmetic, half a minute for the answer to a system.
The environment variable ``QMODELS_LIMIT`` multiplies them: ``QMODELS_LIMIT=10`` allows ten times as much.

>>> afford("packets", 1e12, jobs=8e12)
Traceback (most recent call last):
    ...
ValueError: packets must ask for at most 1e+10 jobs, got 1000000000000.0 (8e+12 jobs); QMODELS_LIMIT=1000 ...
"""

from __future__ import annotations

import math
import os
from typing import Any

from qmodels import checks

VARIABLE = "QMODELS_LIMIT"

LIMITS = {"jobs": 1e10, "bytes": 4e9, "designs": 1e7, "operations": 1e10, "seconds": 30}
"""Limit of each kind of cost unless `QMODELS_LIMIT` raises it."""


def factor() -> float:
    """Return the factor of the limits that the user allows."""
    text = os.environ.get(VARIABLE, "1")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value > 0:
        raise ValueError(f"{VARIABLE} must be a number > 0, got {text!r}")
    return value


def afford(field: str, value: Any, **cost: float) -> None:
    """Refuse work that costs more than is allowed.

    ``field``: what drives the cost; ``value``: what it is; ``**cost``: how much of the one kind of cost that
    is meant: a name of `LIMITS`.

    Raises
    ------
    ValueError
        Naming the field, what is allowed, its value, and what allows more.
    """
    ((kind, amount),) = cost.items()
    limit = LIMITS[kind] * factor()
    if amount <= limit:
        return
    enough = math.ceil(math.log10(amount / LIMITS[kind])) if math.isfinite(amount) else 0
    more = f"; {VARIABLE}={10**enough} allows more" if 0 < enough < 20 else ""
    raise ValueError(
        f"{field} must ask for at most {limit:.3g} {kind}, got {checks.shown(value)} "
        f"({amount:.3g} {kind}){more}"
    )
