"""A model as a function of some fields of a spec, for chosen metrics, at many points at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import metric_columns
from qmodels.systems.spec.fields import find_field, replace_paths, walk

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
            point = words({name: values[row] for name, values in columns.items()})
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


def words(point: Mapping[str, Any]) -> str:
    """Return ``load=0.5, width=8``; ``the spec`` where nothing is varied."""
    return ", ".join(f"{field}={value!s}" for field, value in point.items()) or "the spec"
