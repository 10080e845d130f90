"""Results of a model, their columns, and finished ones in a store; a model at many points at once."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.pareto import BoolArray, FloatArray
from optimize.spaces.numbering import Column, Columns, Designs, Found, MisuseError
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import find_field, replace_paths, stable_text, walk

if TYPE_CHECKING:
    from qmodels.systems.spec.store import ResultStore


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


Marks = npt.NDArray[np.uint64]

RAISED = "raised\n"
"""The one column of designs without an answer: their errors. No metric is called like that."""


class ChunkStore:
    """The finished designs of explorations, each chunk committed at once as one record.

    A record holds arrays of metrics and a mark of 128 bits per design. The mark is the sum of one
    hash per field and value, so that it is the same in whatever chunks, and for whatever order and
    further choices of the fields, a design is evaluated. The key of a record hashes the identity, the
    varied fields and all other fields of the base spec, so that one file serves many spaces and models.
    Nothing here is done per design in Python.

    ``records``: the opened file; ``space``: the space that design numbers refer to; ``identity``: what
    evaluates the designs: change it when the model or its arguments change.
    """

    def __init__(self, records: ResultStore, space: Space, identity: str) -> None:
        self._records, self._space = records, space
        self._prefix = f"chunk:{digest_of(model_text(space, identity))}"
        self._marks = [
            np.array([_mark(f"{field}={stable_text(v, path=field)}") for v in space.choices[name]], np.uint64)
            for name, field in space.paths.items()
        ]

    @cached_property
    def _chunks(self) -> tuple[list[Columns], Marks, Designs, Designs]:
        """Columns of each chunk; marks of designs, sorted, with the chunk of each and its place there."""
        records = [record for _, record in self._records.scan(self._prefix)]
        columns = [{n: text_array(column) for n, column in record["columns"].items()} for record in records]
        marks = [text_array(record["marks"]).reshape(-1, 2) for record in records]
        every = np.concatenate([np.zeros((0, 2), dtype=np.uint64), *marks])
        order = np.argsort(every[:, 0], kind="stable")
        sizes = list(map(len, marks))
        chunk = np.repeat(np.arange(len(marks)), sizes)
        place = np.concatenate([np.zeros(0, dtype=np.int64), *map(np.arange, sizes)])
        return columns, every[order], chunk[order], place[order]

    def restore(self, designs: Designs) -> list[Found]:
        """Return the finished among some distinct designs, a block for each chunk that has some of them.

        Chunks are read once: what others put into the file later is not seen.
        """
        columns, known, chunks, places = self._chunks
        if not len(known):
            return []
        marks = self._of(designs)
        at = np.minimum(np.searchsorted(known[:, 0], marks[:, 0]), len(known) - 1)
        rows = np.flatnonzero((known[at] == marks).all(axis=1))
        chunks, places = chunks[at[rows]], places[at[rows]]
        order = np.argsort(chunks, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(chunks[order])) + 1) if order.size else []
        blocks = []
        for part in parts:
            chunk, own = columns[chunks[part[0]]], designs[rows[part]]
            block = {name: column[places[part]] for name, column in chunk.items()}
            if RAISED in block:
                errors = dict(zip(own.tolist(), block[RAISED].tolist(), strict=True))
                blocks.append(Found(own[:0], {}, errors))
            else:
                blocks.append(Found(own, block, {}))
        return blocks

    def put(self, found: Found) -> None:
        """Commit the metrics of finished designs at once, and so the errors at those that have none."""
        raised = np.array(list(found.errors), dtype=np.int64)
        for designs, columns in (
            (found.designs, found.columns),
            (raised, {RAISED: np.array(list(found.errors.values()), dtype=str)}),
        ):
            if designs.size:
                marks = self._of(designs)
                record = {
                    "marks": array_text(marks.reshape(-1)),
                    "columns": {name: array_text(column) for name, column in columns.items()},
                }
                self._records.put({f"{self._prefix}:{hashlib.sha256(marks.tobytes()).hexdigest()}": record})

    def _of(self, designs: Designs) -> Marks:
        marks = np.zeros((designs.size, 2), dtype=np.uint64)
        for table, digit in zip(self._marks, self._space.all_digits(designs), strict=True):
            marks += table[digit]  # modulo 2^64
        return marks


def model_text(space: Space, identity: str) -> str:
    """Return the model, the varied fields and all other fields of the base spec as a text."""
    if not isinstance(identity, str) or not identity:
        raise ValueError(f"identity must be a text that names the model of a store, got {identity!r}")
    paths = sorted(space.paths.values())
    return f"{identity}\n{paths}\n{stable_text(space.base, without=set(paths))}"


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def _mark(text: str) -> list[int]:
    digest = hashlib.sha256(text.encode()).digest()
    return [int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")]


def array_text(column: Column) -> list[str]:
    """Return an array as its type and its bytes in base 64, little-endian."""
    plain = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
    return [plain.dtype.str, base64.b64encode(plain.tobytes()).decode("ascii")]


def text_array(text: list[str]) -> Column:
    """Return the array of `array_text`."""
    plain = np.frombuffer(base64.b64decode(text[1]), dtype=np.dtype(text[0]))
    return plain.astype(plain.dtype.newbyteorder("="))


Evaluate = Callable[[Any], object]
REFUSED = ValueError, ZeroDivisionError


class Model:
    """Metrics of a spec with some fields changed; points that differ in arrays alone are solved together.

    ``metrics``: those read; all numeric ones if None. ``vectorized``: whether `evaluate` broadcasts over
    arrays in fields: then those become arrays that the spec declares so, or any if it declares none.
    """

    def __init__(
        self, spec: Any, evaluate: Evaluate, metrics: Sequence[str] | None, *, vectorized: bool = False
    ) -> None:
        self.spec, self._evaluate, self.metrics = spec, evaluate, metrics
        fields = list(walk(spec))
        declared = {path for path, _, numeric in fields if numeric}
        self._own = {path: value for path, value, _ in fields}
        self._arrays = (declared or None) if vectorized else set()
        self.evaluations = 0

    def many(self, path: str) -> bool:
        """Return whether a field becomes an array."""
        return self._arrays is None or path in self._arrays

    def __call__(self, columns: Mapping[str, Iterable[Any]], *, forgiving: bool = False) -> FloatArray:
        """Return the metrics of points, ``{field: a value for each point}``: a row for each point.

        ``forgiving``: points that the spec or the model refuses are NaN.
        """
        listed = {find_field(self.spec, name): list(column) for name, column in columns.items()}
        count = len(next(iter(listed.values()), [0]))
        single = [column for path, column in listed.items() if not self.many(path)]
        groups: dict[Any, list[int]] = {}
        for number in range(count):
            alone = len(single) == len(listed)
            key = number if alone else tuple(column[number] for column in single)
            groups.setdefault(key, []).append(number)
        parts: list[tuple[list[int], FloatArray]] = []
        arrays = {path: np.array(column) for path, column in listed.items() if count > 1 and self.many(path)}

        def changed(numbers: list[int]) -> Any:
            return self._changed(listed, arrays, numbers)

        def solved(numbers: list[int]) -> FloatArray:
            return self._solved(changed(numbers), len(numbers))

        for numbers in groups.values():
            try:
                parts.append((numbers, solved(numbers)))
            except REFUSED:
                if not forgiving:
                    raise
                taken = sum((part for part, _ in _halves(numbers, changed)), [])
                by_spec = len(taken) < len(numbers)  # or the model, which would again
                parts += (_accepted if by_spec else _halves)(taken, solved)
        found = np.full((count, len(self.metrics or ())), np.nan)
        for numbers, values in parts:
            found[numbers] = values
        return found

    def _changed(
        self, listed: Mapping[str, list[Any]], arrays: Mapping[str, npt.NDArray[Any]], numbers: list[int]
    ) -> Any:
        """Return a spec that stands for points that differ in arrays alone.

        Fields that all of them leave as they are stay so: such a spec is made, and solved, in less time.
        """
        values: dict[str, Any] = {path: column[numbers[0]] for path, column in listed.items()}
        for path, array in arrays.items():
            own: Any = self._own.get(path)
            if np.ndim(own) == 0 and (array[numbers] == own).all():
                del values[path]
            elif len(numbers) > 1:
                values[path] = array[numbers]
        return replace_paths(self.spec, values)

    def _solved(self, spec: Any, count: int) -> FloatArray:
        """Return the metrics of a spec that stands for so many points."""
        self.evaluations += count
        answer: Any = self._evaluate(spec)
        metrics = getattr(answer, "metrics", None)
        if self.metrics is not None and isinstance(metrics, Mapping) and set(self.metrics) <= set(metrics):
            answer = {name: metrics[name] for name in self.metrics}  # what is not asked for is not computed
        columns = metric_columns(answer, count if count > 1 else None)
        if self.metrics is None:
            self.metrics = [name for name, column in columns.items() if column.dtype.kind == "f"]
        return np.stack([numeric_column(columns, name) for name in self.metrics], axis=1)

    def refuse_nan(self, found: FloatArray, columns: Mapping[str, Sequence[Any]]) -> FloatArray:
        """Return metrics that may be infinite, not NaN: an error names the point."""
        if np.isnan(found).any():
            row, column = np.argwhere(np.isnan(found))[0]
            point = point_words({name: values[row] for name, values in columns.items()})
            raise ValueError(f"evaluate returned NaN for {(self.metrics or [])[column]!r} at {point}")
        return found


def _accepted(numbers: list[int], made: Callable[[list[int]], Any]) -> list[tuple[list[int], Any]]:
    """Make what stands for points, in halves where some are refused; the refused are left out."""
    try:
        return [(numbers, made(numbers))] if numbers else []
    except REFUSED:
        return _halves(numbers, made)


def _halves(numbers: list[int], made: Callable[[list[int]], Any]) -> list[tuple[list[int], Any]]:
    """Return the same of points that are not accepted together."""
    if len(numbers) < 2:
        return []
    middle = len(numbers) // 2
    return _accepted(numbers[:middle], made) + _accepted(numbers[middle:], made)


def numeric_column(columns: Mapping[str, Any], metric: str) -> FloatArray:
    """Return the column of a metric, which must exist and be numbers or truth values."""
    if metric not in columns:
        raise ValueError(f"no metric {metric!r}{checks.nearest(metric, columns)}")
    column = columns[metric]
    if column.dtype.kind not in "bf":
        raise ValueError(f"metric {metric!r} must be a number, got {column[0]!s}")
    return np.asarray(column, dtype=float)


def point_words(point: Mapping[str, Any]) -> str:
    """Return ``load=0.5, width=8``; ``the spec`` where nothing is varied."""
    return ", ".join(f"{field}={value!s}" for field, value in point.items()) or "the spec"
