"""Running a model over designs: a plan that a worker can follow, and one that keeps every design."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optimize.checks import nearest
from optimize.spaces.batches import boxes
from optimize.spaces.evaluation import metric_columns, significant, stack
from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space
from optimize.spaces.workers import results, workers_of

if TYPE_CHECKING:
    from optimize.spaces.chunk_store import ChunkStore

ARRAY_CHUNK = 65536
"""Designs per call of a model that broadcasts: bounds memory, costs nothing in speed."""

SHARED_CHUNK = 8192
"""Designs per call from which cutting smaller, so that every worker has some, costs more than it gives."""

TASKS = 4
"""Tasks of a worker, at least, so that none waits long for the others at the end."""

Shape = int | tuple[int, ...] | None
"""How designs are handed to a model: one by one (None), as flat arrays, as a grid."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """How designs of a space are evaluated, wherever that is; the arguments are those of `explore`."""

    space: Space
    evaluate: Callable[[Any], object]
    required: Sequence[str] = ()
    vectorized: bool | str | Sequence[str] = False
    digits: int | None = None

    @property
    def arrays(self) -> tuple[str, ...]:
        """Names of the fields that become arrays."""
        if self.vectorized is False:
            return ()
        if self.vectorized in (True, "grid"):
            return self.space.numeric
        for name in self.vectorized:  # type: ignore[union-attr]
            if name not in self.space.numeric:
                raise ValueError(f"vectorized must name numeric fields of the space, got {name!r}")
        return tuple(self.vectorized)  # type: ignore[arg-type]

    def portable(self, *, constrained: bool = False) -> Plan:
        """Return the same plan, to be sent to a worker, which may have to look at the constraints."""
        return replace(self, space=self.space.portable(constrained=constrained))

    def chunk(self, chunk: int | None, designs: int, executor: Executor | None) -> int:
        """Return how many designs go into a task, by what the user says."""
        if chunk is not None:
            return chunk
        if self.vectorized is False:
            return 1 if executor is None else min(max(designs // 64, 1), 256)
        tasks = 1 if executor is None else TASKS * workers_of(executor)
        return min(ARRAY_CHUNK, max(designs // tasks, SHARED_CHUNK))

    def parts(self, designs: Designs, chunk: int) -> Iterator[tuple[Designs, Shape]]:
        """Split ascending designs into those of one task or call, with how the model takes them."""
        if self.vectorized == "grid":
            for part, shape in boxes(self.space, designs, self.arrays, chunk):
                yield part, shape or part.size
            return
        flat = self.vectorized is not False
        for group in self.space.groups(designs, self.arrays) if flat else [designs]:
            for start in range(0, group.size, chunk):
                part = group[start : start + chunk]
                yield part, part.size if flat else None

    def metrics(self, task: tuple[Designs, Shape]) -> Columns:
        """Return the metrics of a part, checked."""
        part, shape = task
        if shape is None:
            columns = stack([self._one(int(design)) for design in part], part, self.space)
            self.check(part, columns)
            return columns
        spec = (self.space.grid if isinstance(shape, tuple) else self.space.batch)(part, self.arrays)
        return self.called(spec, shape, part)

    def called(self, spec: Any, shape: int | tuple[int, ...], part: Designs) -> Columns:
        """Return the metrics of a spec that stands for the designs of a part."""
        try:
            columns = metric_columns(self.evaluate(spec), shape)
        except Exception as error:
            label = self.space.label(part[0])
            error.add_note(f"while evaluating {part.size} designs as arrays, the first is {label}")
            raise
        self.check(part, columns)
        return columns

    def _one(self, design: int) -> Columns:
        spec = self.space.spec(design)
        try:
            return metric_columns(self.evaluate(spec))
        except Exception as error:
            error.add_note(f"while evaluating {self.space.label(design)}")
            raise

    def check(self, part: Designs, columns: Columns) -> None:
        """Refuse what is no answer: a metric missing, NaN or named as a varied field."""
        for name in self.required if part.size else ():
            known = [*columns, *self.space.choices]
            if name not in known:
                raise ValueError(f"no metric {name!r}{nearest(name, known)}")
        for name, column in columns.items():
            if name in self.space.choices or name == "design":
                raise ValueError(f"metric {name!r} has the name of a column that is no metric")
            if column.dtype.kind == "f" and np.isnan(column).any():
                design = part[int(np.isnan(column).argmax())]
                raise ValueError(f"evaluate returned NaN for {name!r} at {self.space.label(design)}")

    def compared(self, columns: Columns) -> Columns:
        """Return the required metrics that are numbers, as they are compared; none without `digits`."""
        if self.digits is None:
            return {}
        names = [name for name in self.required if name in columns and columns[name].dtype.kind == "f"]
        return {name: significant(columns[name], self.digits) for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class Runner:
    """Evaluates designs by a plan and keeps all that the model says of them."""

    plan: Plan
    chunk: int | None = None
    executor: Executor | None = None
    store: ChunkStore | None = None
    progress: Callable[[int, int], None] = lambda finished, total: None
    raw: list[tuple[Designs, Columns]] = field(default_factory=list)

    def run(self, designs: Designs) -> tuple[Columns, int]:
        """Return the metrics of designs, in their order and as they are compared, and how many were new."""
        plan, numbers, blocks = self.plan, [designs[:0]], []
        if self.store is not None:
            done, restored = self.store.restore(designs)
            if done.size:
                numbers.append(done)
                columns = stack(restored, done, plan.space)
                plan.check(done, columns)
                blocks.append(self._compared(done, columns))
        todo = designs[~np.isin(designs, numbers[-1])]
        finished = designs.size - todo.size
        self.progress(finished, designs.size)
        parts = plan.parts(todo, plan.chunk(self.chunk, todo.size, self.executor))
        sent = plan if self.executor is None else plan.portable()
        with closing(results(sent, Plan.metrics, parts, self.executor)) as found:
            for (part, _), columns in found:
                if self.store is not None:
                    self.store.put(part, columns)
                numbers.append(part)
                blocks.append(self._compared(part, columns))
                finished += part.size
                self.progress(finished, designs.size)
        rows = np.concatenate(numbers)
        table = stack(blocks, rows, plan.space)
        order = np.argsort(rows)
        place = order[np.searchsorted(rows[order], designs)]
        return {name: column[place] for name, column in table.items()}, todo.size

    def _compared(self, part: Designs, columns: Columns) -> Columns:
        rounded = self.plan.compared(columns)
        if rounded:
            self.raw.append((part, {name: columns[name] for name in rounded}))
        return columns | rounded

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
