"""Bounds of a kind's answers over boxes of specs, without solving any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qmodels.checks import FloatArray

Ends = Mapping[str, tuple[FloatArray, FloatArray]]
"""The least and the most that every metric may be, one value per box."""


@dataclass(frozen=True, kw_only=True)
class BoxBounds:
    """Bounds of a kind's metrics over boxes: all specs between one of lowest and one of highest fields.

    Parameters
    ----------
    derived : tuple of str
        Metrics whose bounds follow from the formulas; of others nothing is known.
    spans : tuple of str
        Dotted names of the fields that may differ within a box. All others have one value in each.
    early : tuple of str
        Those of them that later stages need at one value.
    idle : mapping of str to tuple of str
        Metrics, of these or others, that do not depend on some of these fields at all.
    stages : tuple of callable
        Each takes the specs of the lowest and of the highest corners, fields that vary as flat arrays with
        one element per box, and returns the ends of the `derived` metrics, and of ``stable`` (0 to 1). The
        first is the cheapest, each later one at least as tight.
    assumes : str
        What the bounds hold for, in words.
    """

    derived: tuple[str, ...]
    spans: tuple[str, ...]
    early: tuple[str, ...]
    idle: Mapping[str, tuple[str, ...]]
    stages: tuple[Callable[[Any, Any], Ends], ...]
    assumes: str
