"""Result of `optimize.size`, and the ranges it searches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Size:
    """The outcome of `size`."""

    status: str  # "met" or "unreachable"
    field: Any  # the field, or several
    value: Any  # the value asked for, of several ``{field: value}``; None if unreachable
    spec: Any  # with it, or with the best value seen if unreachable
    metrics: dict[str, float]  # those with targets at that spec; the goal as well, of several fields
    # The value nearest to the answer that misses a target: the answer is proven up to between the two if the
    # metrics are monotone. None if the end of the range is met.
    misses: Any
    best: Any  # the value of least miss; the answer itself if met
    # False if a metric turned between the values evaluated, True if all values of the range were evaluated
    # and none did; None if none did, and there are values in between that nobody looked at.
    monotone: bool | None
    evaluations: int
    message: str = (
        ""  # what is missed by how much, where a metric turns, or which end the spec refuses and why
    )
    binding: tuple[str, ...] = ()  # of several fields: what keeps the goal from being better


def ends_of(within: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the ends of a range."""
    try:
        low, high = within
        good = -np.inf < low <= high < np.inf
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"within must be a pair (low, high) of finite numbers, low <= high, got {within!r}")
    return low, high
