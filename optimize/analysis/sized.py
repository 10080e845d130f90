"""What `optimize.size` finds, and the ranges it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True, eq=False)
class Size:
    """The outcome of `size`.

    Parameters
    ----------
    status : {"met", "unreachable"}
        Whether a value that meets the targets was found.
    field : str or tuple of str
        The field, or several.
    value : int, float, dict or None
        The value asked for, of several ``{field: value}``; None if unreachable.
    spec : object
        The spec with it, or with the best value seen if unreachable.
    metrics : dict of str to float
        The metrics with targets at that spec; the goal as well, of several fields.
    misses : float or None
        The value nearest to the answer that misses a target: the answer is proven up to
        between the two if the metrics are monotone. None if the end of the range is met.
    best : int, float or dict
        The value of least miss; the answer itself if met.
    monotone : bool or None
        False if a metric turned between the values evaluated, True if all values of the range were evaluated
        and none did; None if none did, and there are values in between that nobody looked at.
    evaluations : int
        Values evaluated.
    message : str
        What is missed by how much, where a metric turns, or which end of the range the spec
        refuses and why; empty if all is well.
    binding : tuple of str
        Of several fields: the limits and ends of ranges that keep the goal from being better.
    """

    status: str
    field: Any
    value: Any
    spec: Any
    metrics: dict[str, float]
    misses: Any
    best: Any
    monotone: bool | None
    evaluations: int
    message: str = ""
    binding: tuple[str, ...] = ()


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
