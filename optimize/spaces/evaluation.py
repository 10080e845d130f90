"""Running a model over designs: batches, executors, the store, and what counts as a metric."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from optimize.checks import nearest
from optimize.spaces.batches import boxes
from optimize.spaces.choices import Column
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space

if TYPE_CHECKING:
    from optimize.spaces.chunk_store import ChunkStore

ARRAY_CHUNK = 65536
"""Designs per call of a model that broadcasts: bounds memory, costs nothing in speed."""

IN_FLIGHT = 256
"""Submitted tasks that are not finished: bounds the memory of a long exploration."""

Results = Generator[tuple[Designs, list[Columns]], None, None]
Task = tuple[Designs, Callable[..., list[Columns]], tuple[Any, ...]]


def metric_columns(result: object, shape: int | tuple[int, ...] | None = None) -> Columns:
    """Turn what a model returned for one design or for arrays of designs into columns.

    Parameters
    ----------
    result : mapping or object
        ``{metric: value}``, or an object whose public attributes are metrics, those in a
        mapping ``metrics`` included and first. Values are numbers, truth values, words,
        arrays of them with one entry per design, or estimates with ``best`` (and ``low`` and
        ``high``, which become columns of their own). Other attributes are passed over.
    shape : int or tuple of int, optional
        Length of the arrays in the spec, or the shape of the grid that they span: then arrays
        have as many axes, of that length or 1. None for a spec of one design, without arrays.

    Raises
    ------
    ValueError
        If there are no metrics, or an entry of a mapping is none.
    """
    metrics = result if isinstance(result, Mapping) else getattr(result, "metrics", None)
    explicit: dict[str, Any] = dict(metrics) if isinstance(metrics, Mapping) else {}
    attributes: list[str] = []
    if not isinstance(result, Mapping) and (hasattr(result, "__dict__") or dataclasses.is_dataclass(result)):
        attributes = [name for name in dir(result) if not name.startswith("_") and name not in explicit]
    count = math.prod(shape) if isinstance(shape, tuple) else shape
    several = "" if count is None else f", or {count} of them"
    columns: Columns = {}
    # A tuple describes the result, as its shape does: with one design it would pass for an array of one.
    described = (
        (name, value) for name in attributes if not isinstance(value := getattr(result, name), tuple)
    )
    for name, value in [*explicit.items(), *described]:
        parts = {name: value}
        if hasattr(value, "best"):
            bounds = ("low", "high") if hasattr(value, "low") and hasattr(value, "high") else ()
            parts = {name: value.best} | {f"{name}_{end}": getattr(value, end) for end in bounds}
        arrays = {part: _as_column(values, shape) for part, values in parts.items()}
        good = {part: array for part, array in arrays.items() if array is not None}
        if len(good) == len(arrays):
            columns.update(good)
        elif name in explicit:
            raise ValueError(f"metric {name!r} must be a number, word or estimate{several}, got {value!r}")
    if not columns:
        raise ValueError(f"evaluate must return metrics, a mapping or an object with them, got {result!r}")
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

    Examples
    --------
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
                raise ValueError(
                    f"metric {name!r} is missing or of another kind at {space.label(designs[start])}"
                )
    for block, start in zip(blocks, starts[:-1], strict=True):
        for name in block.keys() - blocks[0].keys():
            raise ValueError(
                f"metric {name!r} of {space.label(designs[start])} is missing at {space.label(designs[0])}"
            )
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _evaluate_each(evaluate: Callable[[Any], object], specs: list[Any], labels: list[str]) -> list[Columns]:
    blocks = []
    for spec, label in zip(specs, labels, strict=True):
        try:
            blocks.append(metric_columns(evaluate(spec)))
        except Exception as error:
            error.add_note(f"while evaluating {label}")
            raise
    return blocks


def _evaluate_batch(
    evaluate: Callable[[Any], object], spec: Any, shape: int | tuple[int, ...], label: str
) -> list[Columns]:
    try:
        return [metric_columns(evaluate(spec), shape)]
    except Exception as error:
        count = math.prod(shape) if isinstance(shape, tuple) else shape
        error.add_note(f"while evaluating {count} designs as arrays, the first is {label}")
        raise


@dataclass(frozen=True, kw_only=True, eq=False)
class Runner:
    """Evaluates designs of a space; the arguments are those of `explore`."""

    space: Space
    evaluate: Callable[[Any], object]
    required: Sequence[str] = ()
    vectorized: bool | str | Sequence[str] = False
    chunk: int | None = None
    executor: Executor | None = None
    store: ChunkStore | None = None
    progress: Callable[[int, int], None] | None = None
    digits: int | None = None
    raw: list[tuple[Designs, Columns]] = field(default_factory=list)

    def run(self, designs: Designs) -> tuple[Columns, int]:
        """Return the metrics of designs, in their order, and how many were evaluated now.

        Raises
        ------
        ValueError
            If a metric is NaN, missing, of an unusable kind, or named as a varied field, or a
            required one does not exist.
        """
        numbers: list[Designs] = []
        blocks: list[Columns] = []
        done = designs[:0]
        if self.store is not None:
            done, restored = self.store.restore(designs)
            numbers.append(done)
            blocks.extend(self._rounded(restored, done))
            self._check(done, blocks)
        todo = designs[~np.isin(designs, done)]
        finished = done.size
        self._report(finished, designs.size)
        with closing(self._results(todo)) as results:
            for part, found in results:
                columns = self._rounded(found, part)
                self._check(part, columns)
                if self.store is not None:
                    self.store.put(part, stack(found, part, self.space))
                numbers.append(part)
                blocks.extend(columns)
                finished += part.size
                self._report(finished, designs.size)
        rows = np.concatenate([designs[:0], *numbers])
        table = stack(blocks, rows, self.space)
        order = np.argsort(rows)
        place = order[np.searchsorted(rows[order], designs)]
        return {name: column[place] for name, column in table.items()}, todo.size

    def _rounded(self, blocks: list[Columns], designs: Designs) -> list[Columns]:
        if self.digits is None or not blocks:
            return blocks
        names = [
            name
            for name in self.required
            if all(name in block and block[name].dtype.kind == "f" for block in blocks)
        ]
        self.raw.append(
            (designs, {name: np.concatenate([block[name] for block in blocks]) for name in names})
        )
        return [
            columns | {name: significant(columns[name], self.digits) for name in names} for columns in blocks
        ]

    def unrounded(self, table: Columns) -> Columns:
        """Return a table of designs that ran with all metrics as the model gave them."""
        if not self.raw or not table["design"].size:
            return table
        numbers = np.concatenate([designs for designs, _ in self.raw])
        order = np.argsort(numbers, kind="stable")
        place = order[np.searchsorted(numbers[order], table["design"])]
        return table | {
            name: np.concatenate([columns[name] for _, columns in self.raw])[place] for name in self.raw[0][1]
        }

    def _report(self, finished: int, total: int) -> None:
        if self.progress is not None:
            self.progress(finished, total)

    def _check(self, part: Designs, blocks: list[Columns]) -> None:
        for name in self.required if blocks else ():
            known = [*blocks[0], *self.space.choices]
            if name not in known:
                raise ValueError(f"no metric {name!r}{nearest(name, known)}")
        start = 0
        for columns in blocks:
            for name, column in columns.items():
                if name in self.space.choices or name == "design":
                    raise ValueError(f"metric {name!r} has the name of a column that is no metric")
                if column.dtype.kind == "f" and np.isnan(column).any():
                    design = part[start + int(np.isnan(column).argmax())]
                    raise ValueError(f"evaluate returned NaN for {name!r} at {self.space.label(design)}")
            start += len(column)

    def _tasks(self, designs: Designs) -> Iterator[Task]:
        if self.vectorized is False:
            size = self.chunk or (1 if self.executor is None else min(max(designs.size // 64, 1), 256))
            for start in range(0, designs.size, size):
                part = designs[start : start + size]
                specs, labels = map(self.space.spec, part), map(self.space.label, part)
                yield part, _evaluate_each, (self.evaluate, list(specs), list(labels))
            return
        size = self.chunk or ARRAY_CHUNK
        if self.chunk is None and self.executor is not None:  # some tasks for every worker
            size = min(ARRAY_CHUNK, max(designs.size // 64, 4096))
        if self.vectorized == "grid":
            arrays = self.space.numeric
            for part, shape in boxes(self.space, designs, arrays, size):
                spec = (self.space.batch if shape is None else self.space.grid)(part, arrays)
                label = self.space.label(part[0])
                yield part, _evaluate_batch, (self.evaluate, spec, shape or part.size, label)
            return
        arrays = self.space.numeric if self.vectorized is True else tuple(self.vectorized)
        for name in arrays:
            if name not in self.space.numeric:
                raise ValueError(f"vectorized must name numeric fields of the space, got {name!r}")
        for group in self.space.groups(designs, arrays):
            for start in range(0, group.size, size):
                part = group[start : start + size]
                spec = self.space.batch(part, arrays)
                yield part, _evaluate_batch, (self.evaluate, spec, part.size, self.space.label(part[0]))

    def _results(self, designs: Designs) -> Results:
        if self.executor is None:
            for part, work, arguments in self._tasks(designs):
                yield part, work(*arguments)
            return
        waiting: dict[Future[list[Columns]], Designs] = {}
        try:
            for part, work, arguments in self._tasks(designs):
                waiting[self.executor.submit(work, *arguments)] = part
                if len(waiting) >= IN_FLIGHT:
                    yield from self._finished(waiting)
            while waiting:
                yield from self._finished(waiting)
        finally:
            for future in waiting:
                future.cancel()

    @staticmethod
    def _finished(waiting: dict[Future[list[Columns]], Designs]) -> Results:
        done = wait(waiting, return_when=FIRST_COMPLETED).done
        for future in sorted(done, key=lambda future: future.exception() is not None):
            yield waiting.pop(future), future.result()  # failures last: what is finished is kept
