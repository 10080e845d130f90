"""Designs that do not keep up, by what a model says of them: ``stable``, ``bottleneck`` and its load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray
from optimize.spaces.numbering import Columns

STABLE = "stable"
"""Name of the truth value by which a model says that a design keeps up with what it is offered."""

RESOURCE, LOAD = "bottleneck", "bottleneck_load"
"""Names of the word for the resource that fills up first, and of the number that says how far."""

MOST_RESOURCES = 3
"""Resources that are named of those that fill up."""


def saturated(table: Columns, named: Iterable[str] = ()) -> npt.NDArray[np.bool_]:
    """Tell which rows do not keep up; none if the model does not say or the user limits ``stable`` himself.

    >>> saturated({"latency": np.array([3.0, np.inf]), "stable": np.array([True, False])})
    array([False,  True])
    """
    rows = len(next(iter(table.values()), ()))
    if STABLE in named or STABLE not in table or table[STABLE].dtype.kind != "b":
        return np.zeros(rows, dtype=bool)
    return ~table[STABLE]


def excess(table: Columns, rows: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray] | None:
    """Return the load of the fullest resource of saturated rows and what is too much of it, if known."""
    if LOAD not in table or table[LOAD].dtype.kind not in "iuf":
        return None
    load = table[LOAD][rows].astype(float)
    # A model may find a design unstable for another reason than a full resource.
    return load, np.maximum(load - 1.0, np.finfo(float).tiny)


def resources(table: Columns, rows: npt.NDArray[np.int64]) -> Counter[str]:
    """Return in how many of the rows which resource fills up first; empty if the model does not say.

    >>> words(resources({"bottleneck": np.array(["bus", "list", "bus"])}, np.arange(3)))
    'full first: bus in 2, list in 1'
    """
    known = RESOURCE in table and table[RESOURCE].dtype.kind == "U"
    return Counter(table[RESOURCE][rows].tolist() if known else ())


def words(counts: Counter[str]) -> str:
    """Return which resources fill up first, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MOST_RESOURCES]
    return "full first: " + ", ".join(f"{name} in {count}" for name, count in ordered) if ordered else ""
