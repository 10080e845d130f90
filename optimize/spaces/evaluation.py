"""Results of a model, and their columns."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import BoolArray, FloatArray
from optimize.spaces.numbering import Column, Columns, Designs, MisuseError
from optimize.spaces.space import Space

STABLE = "stable"
"""Name of the truth value by which a model says that a design keeps up with what it is offered."""

RESOURCE, LOAD = "bottleneck", "bottleneck_load"
"""Names of the word for the resource that fills up first, and of the number that says how far."""

MOST_RESOURCES = 3  # resources that are named of those that fill up


def saturated(table: Columns, named: Iterable[str] = ()) -> BoolArray:
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


def ends_of(metric: str) -> tuple[str, str, str]:
    """Return the names of the low end, the best value and the high end of an estimate."""
    return f"{metric}_low", metric, f"{metric}_high"


DESCRIBING = ("main", "model", "saved_as", "title")
"""Attributes of an answer with metrics that say what it is: no columns."""


def metric_columns(result: object, shape: int | tuple[int, ...] | None = None) -> Columns:
    """Turn what a model returned for one design or for arrays of designs into columns.

    ``result``: ``{metric: value}``, or an object whose public attributes are metrics, those in a mapping
    ``metrics`` included and first. Values are numbers, truth values, words, arrays of them with one entry per
    design, or estimates with ``best`` (and ``low`` and ``high``, which become columns of their own). Other
    attributes are passed over; ``shape``: length of the arrays in the spec, or the shape of the grid that
    they span: then arrays have as many axes, of that length or 1. None for a spec of one design, without
    arrays.
    """
    metrics = result if isinstance(result, Mapping) else getattr(result, "metrics", None)
    explicit: dict[str, Any] = dict(metrics) if isinstance(metrics, Mapping) else {}
    attributes: list[str] = []
    if not isinstance(result, Mapping) and (hasattr(result, "__dict__") or dataclasses.is_dataclass(result)):
        known = {*explicit, *(DESCRIBING if explicit else ())}
        attributes = [name for name in dir(result) if not name.startswith("_") and name not in known]
    count = math.prod(shape) if isinstance(shape, tuple) else shape
    several = "" if count is None else f", or {count} of them"
    columns: Columns = {}
    # A tuple or a mapping describes the result, as its shape and its errors do: with as many entries as there
    # are designs it would pass for an array.
    described = (
        (name, value)
        for name in attributes
        if not isinstance(value := getattr(result, name), tuple | Mapping)
    )
    for name, value in [*explicit.items(), *described]:
        # What is not known to keep up is not feasible.
        parts = {name: False if name == STABLE and value is None else value}
        if hasattr(value, "best"):
            low, _, high = ends_of(name)
            whole = hasattr(value, "low") and hasattr(value, "high")
            parts = {name: value.best} | ({low: value.low, high: value.high} if whole else {})
        arrays = {part: _as_column(values, shape) for part, values in parts.items()}
        good = {part: array for part, array in arrays.items() if array is not None}
        if len(good) == len(arrays):
            columns.update(good)
        elif name in explicit:
            raise MisuseError(f"metric {name!r} must be a number, word or estimate{several}, got {value!r}")
    if not columns:
        raise MisuseError(f"evaluate must return metrics, a mapping or an object with them, got {result!r}")
    return columns


def _as_column(value: object, shape: int | tuple[int, ...] | None) -> Column | None:
    if value is None or callable(value):
        return None
    try:
        array = np.asarray(value)
    except ValueError:  # ragged
        return None
    if array.dtype.kind in "iuf":
        array = array.astype(float)
        if np.ma.is_masked(value):  # not known
            array = np.ma.filled(np.ma.asarray(value).astype(float), np.nan)
    if array.dtype.kind not in "bfU":
        return None
    full = shape if isinstance(shape, tuple) else (1,) if shape is None else (shape,)
    if array.ndim == 0:
        return np.full(math.prod(full), array)
    if isinstance(shape, tuple):
        fits = array.ndim == len(full) and all(n in (1, m) for n, m in zip(array.shape, full, strict=True))
        return np.broadcast_to(array, full).reshape(-1) if fits else None
    return array if array.shape == full and shape is not None else None


def significant(values: Column, digits: int) -> Column:
    """Return numbers rounded to so many significant digits.

    >>> significant(np.array([0.12345, -98765.0, 0.0, np.inf]), 3)
    array([ 1.23e-01, -9.88e+04,  0.00e+00,       inf])
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(values))))
        rounded = np.rint(values * scale) / scale
    return np.where(np.isfinite(rounded), rounded, values)


def stack(blocks: Sequence[Columns], designs: Designs, space: Space) -> Columns:
    """Join the columns of blocks of designs; all must have the same metrics of the same kind."""
    if not blocks:
        return {}
    starts = np.cumsum([0, *(len(next(iter(block.values()))) for block in blocks)])
    for name, first in blocks[0].items():
        for block, start in zip(blocks, starts[:-1], strict=True):
            if name not in block or (block[name].dtype.kind == "U") != (first.dtype.kind == "U"):
                raise MisuseError(
                    f"metric {name!r} is missing or of another kind at {space.label(designs[start])}"
                )
    for block, start in zip(blocks, starts[:-1], strict=True):
        for name in block.keys() - blocks[0].keys():
            raise MisuseError(
                f"metric {name!r} of {space.label(designs[start])} is missing at {space.label(designs[0])}"
            )
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
