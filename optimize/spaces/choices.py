"""The choices of one field: checked values, and the same as an array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[Any]


def choice_values(name: str, values: Iterable[object]) -> tuple[Any, ...]:
    """Return the choices of a field as a tuple: at least one, none twice."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be a sequence of choices, got {values!r}")
    result = tuple(values)
    if not result:
        raise ValueError(f"{name} must have at least one choice, got {values!r}")
    try:
        distinct = len(set(result)) == len(result)
    except TypeError:  # values that cannot be hashed are compared one by one
        distinct = False
    for k, value in enumerate(() if distinct else result):
        if value in result[:k]:
            raise ValueError(f"{name} must have distinct choices, got {value!r} twice")
    return result


def choice_column(values: tuple[Any, ...]) -> Column:
    """Return choices as an array: numbers, truth values or words; anything else as objects."""
    for kind in (bool, str):
        if all(isinstance(value, kind) for value in values):
            return np.array(values)
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        column[k] = value
    return column
