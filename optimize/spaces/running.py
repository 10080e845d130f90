"""Running a model over designs: a plan that a worker can follow, and one that keeps every design."""

from __future__ import annotations

import csv
import os
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from optimize.checks import nearest
from optimize.spaces.evaluation import metric_columns, significant, stack
from optimize.spaces.numbering import NAN, STOPS, Columns, Designs, Found, MisuseError, said
from optimize.spaces.space import Space
from qmodels.systems.spec.whole import whole

if TYPE_CHECKING:
    from optimize.spaces.evaluation import ChunkStore


IN_FLIGHT = 256  # submitted tasks that are not finished: bounds the memory of a long exploration
Results = Generator[tuple[Any, Any], None, None]


@dataclass(frozen=True)
class _Filed:
    """Data that tasks share, in a file that each process of a pool reads once."""

    path: str


@lru_cache(maxsize=2)
def _read(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


@contextmanager
def _shared(owner: Any, executor: Executor) -> Iterator[Any]:
    """Yield what stands for an object in the arguments of tasks."""
    client = getattr(executor, "_client", None)
    if client is not None:  # of Dask, which puts the object itself in its place
        yield client.scatter(owner, broadcast=True, hash=False)
    elif isinstance(executor, ProcessPoolExecutor):
        with TemporaryDirectory(prefix="explore-") as folder:
            path = Path(folder) / "shared.pickle"
            try:
                path.write_bytes(pickle.dumps(owner))
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                what = "model, spec, choices and constraints that are no tables"
                raise ValueError(f"a process pool needs {what} that can be pickled: {error}") from error
            yield _Filed(str(path))
    else:
        yield owner


def workers_of(executor: Executor) -> int:
    """Return the number of tasks an executor runs at a time; two if it does not say."""
    client = getattr(executor, "_client", None)
    number = getattr(executor, "_max_workers", 2) if client is None else sum(client.ncores().values())
    return max(int(number), 1)


def _call(owner: Any, work: Callable[..., Any], key: Any) -> Any:
    return work(_read(owner.path) if isinstance(owner, _Filed) else owner, key)


def results(owner: Any, work: Callable[..., Any], keys: Iterable[Any], executor: Executor | None) -> Results:
    """Yield keys with what ``work(owner, key)`` returned, in the order in which they finish.

    `owner` is any object; it travels once to every worker, and what it caches stays there. Failures
    come last, so that what is finished is kept.
    """
    if executor is None:
        for key in keys:
            yield key, work(owner, key)
        return
    with _shared(owner, executor) as shared:
        waiting: dict[Future[Any], Any] = {}
        try:
            for key in keys:
                waiting[executor.submit(_call, shared, work, key)] = key
                if len(waiting) >= IN_FLIGHT:
                    yield from _finished(waiting)
            while waiting:
                yield from _finished(waiting)
        finally:
            for future in waiting:
                future.cancel()


def _finished(waiting: dict[Future[Any], Any]) -> Results:
    done = wait(waiting, return_when=FIRST_COMPLETED).done
    for future in sorted(done, key=lambda future: future.exception() is not None):
        yield waiting.pop(future), future.result()


MIXING = np.uint64(0xBF58476D1CE4E5B9)
"""Odd factor that spreads the bits of a number (SplitMix64): rows are told apart by 64 bits."""
ROWS = 65536  # rows turned into Python objects at a time


def distinct_rows(columns: Columns, fields: Iterable[str]) -> int:
    """Count the rows that differ in any metric, to all digits: in what is no field, number or count of ties.

    >>> columns = {"design": np.arange(3), "width": np.array([1, 2, 3]), "latency": np.array([7.0, 7.0, 5.0])}
    >>> distinct_rows(columns, ["width"])
    2
    """
    code = np.zeros(len(columns["design"]), dtype=np.uint64)
    for name, column in columns.items():
        if name in ("design", "ties", *fields):
            continue
        if column.dtype.kind in "biuf":
            bits = (column + 0.0).astype(np.float64).view(np.uint64)
        else:
            bits = np.unique(column.astype(str), return_inverse=True)[1].astype(np.uint64)
        code = (code ^ bits) * MIXING
        code ^= code >> np.uint64(29)
    return int(np.unique(code).size)


def save_table(columns: Columns, path: str | os.PathLike[str]) -> Path:
    """Write columns of equal length to ``.csv`` or ``.parquet`` and return the path.

    Numbers in CSV have as many digits as it takes to read them back unchanged.
    """
    target = Path(path)
    if target.suffix == ".csv":
        with whole(target) as part, part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            for start in range(0, len(next(iter(columns.values()), ())), ROWS):
                lists = [column[start : start + ROWS].tolist() for column in columns.values()]
                writer.writerows(zip(*lists, strict=True))
    elif target.suffix == ".parquet":
        try:
            from pyarrow import parquet, table
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"{str(target)!r} needs pyarrow; .csv does not") from error
        cells = {n: [str(v) for v in c] if c.dtype.kind == "O" else c for n, c in columns.items()}
        with whole(target) as part:
            parquet.write_table(table(cells), part)
    else:
        raise ValueError(f"path must end in .csv or .parquet, got {str(path)!r}")
    return target


ARRAY_CHUNK = 65536  # designs per call of a model that broadcasts: bounds memory, costs nothing in speed
SHARED_CHUNK = 8192
"""Designs per call from which cutting smaller, so that every worker has some, costs more than it gives."""

TASKS = 4  # tasks of a worker, at least, so that none waits long for the others at the end
PROBES = 32  # designs that are tried, at most, when the model first raises
Shape = int | tuple[int, ...] | None
"""How designs are handed to a model: one by one (None), as flat arrays, as a grid."""

Task = tuple[Designs, Shape]


def spread(designs: Sequence[int] | Designs) -> Designs:
    """Return some of the designs, from the first to the last."""
    count = len(designs)
    few = min(PROBES, count)
    return np.array([designs[k * (count - 1) // max(few - 1, 1)] for k in range(few)], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Evaluation of the designs of a space, wherever that is; the arguments are those of `explore`.

    `probes` are designs spread over the space: a model that has no answer at any of them is at fault itself.
    """

    space: Space
    evaluate: Callable[[Any], object]
    required: Sequence[str] = ()
    vectorized: bool | str | Sequence[str] = False
    digits: int | None = None
    probes: Designs = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

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
        """Return the number of designs of a task, as the user says."""
        if chunk is not None:
            return chunk
        if self.vectorized is False:
            return 1 if executor is None else min(max(designs // 64, 1), 256)
        tasks = 1 if executor is None else TASKS * workers_of(executor)
        return min(ARRAY_CHUNK, max(designs // tasks, SHARED_CHUNK))

    def parts(self, designs: Designs, chunk: int) -> Iterator[Task]:
        """Split ascending designs into those of one task or call, with how the model takes them."""
        if self.vectorized == "grid":
            for part, shape in self.space.boxes(designs, self.arrays, chunk):
                yield part, shape or part.size
            return
        flat = self.vectorized is not False
        for group in self.space.groups(designs, self.arrays) if flat else [designs]:
            for start in range(0, group.size, chunk):
                part = group[start : start + chunk]
                yield part, part.size if flat else None

    def metrics(self, task: Task) -> Found:
        """Return the metrics of a part, checked; raise what the model raises."""
        part, shape = task
        columns = self._singly(part)[0] if shape is None else self.called(self._spec(task), shape, part)
        self.check(columns)
        for design, text in self._nan(part, columns).items():
            raise ValueError(f"{text.split(': ', 1)[1]} at {self.space.label(design)}")
        return Found(part, columns, {})

    def found(self, task: Task) -> Found:
        """Return the metrics, checked, of those designs of a part that have any, and errors at the others."""
        part, shape = task
        if shape is not None:
            return self.of_arrays(part, lambda: self.called(self._spec(task), shape, part))
        columns, errors = self._singly(part, passing=True)
        return self._known(part[~np.isin(part, list(errors))], columns, errors)

    def of_arrays(self, part: Designs, answer: Callable[[], Columns]) -> Found:
        """Evaluate in one call designs that agree in all that is no array.

        If it raises, halves of them are tried, down to single designs.
        """
        try:
            return self._known(part, answer(), {})
        except STOPS:
            raise
        except Exception as error:
            self._give_up_if_hopeless()
            if part.size == 1:
                return Found(part[:0], {}, {int(part[0]): said(error)})
            middle = part.size // 2
            return joined_found(
                [self.found((half, half.size)) for half in (part[:middle], part[middle:])], self
            )

    def called(self, spec: Any, shape: int | tuple[int, ...], part: Designs) -> Columns:
        """Return the metrics of a spec that stands for the designs of a part."""
        try:
            return metric_columns(self.evaluate(spec), shape)
        except Exception as error:
            label = self.space.label(part[0])
            error.add_note(f"while evaluating {part.size} designs as arrays, the first is {label}")
            raise

    def _spec(self, task: Task) -> Any:
        part, shape = task
        return (self.space.grid if isinstance(shape, tuple) else self.space.batch)(part, self.arrays)

    def _singly(self, part: Designs, *, passing: bool = False) -> tuple[Columns, dict[int, str]]:
        blocks, errors = [], {}
        for design in part.tolist():
            try:
                blocks.append(metric_columns(self.evaluate(self.space.spec(design))))
            except Exception as error:
                if not passing or isinstance(error, STOPS):
                    error.add_note(f"while evaluating {self.space.label(design)}")
                    raise
                self._give_up_if_hopeless()
                errors[design] = said(error)
        return stack(blocks, part[~np.isin(part, list(errors))], self.space), errors

    def _known(self, part: Designs, columns: Columns, errors: dict[int, str]) -> Found:
        """Leave out the rows that are no numbers."""
        if not part.size:
            return Found(part, {}, errors)
        self.check(columns)
        bad = self._nan(part, columns)
        if not bad:
            return Found(part, columns, errors)
        if len(bad) == part.size:
            self._give_up_if_hopeless()
        good = ~np.isin(part, list(bad))
        kept = {name: column[good] for name, column in columns.items()} if good.any() else {}
        return Found(part[good], kept, errors | bad)

    @staticmethod
    def _nan(part: Designs, columns: Columns) -> dict[int, str]:
        found: dict[int, str] = {}
        for name, column in columns.items():
            if column.dtype.kind == "f":
                for row in np.flatnonzero(np.isnan(column)).tolist():
                    found.setdefault(int(part[row]), f"{NAN}: evaluate returned NaN for {name!r}")
        return found

    def _give_up_if_hopeless(self) -> None:
        if self._hopeless:
            raise MisuseError(
                f"evaluate answers at none of {len(self.probes)} designs tried: {self._hopeless}"
            )

    @cached_property
    def _hopeless(self) -> str:
        """The error at the first of the probes if none of them has an answer."""
        first = ""
        for design in self.probes:
            # Twice the same design: a model that takes no arrays takes no two.
            two = self.vectorized is not False
            part = np.repeat(design, 1 + two)
            try:
                self.metrics((part, part.size if two else None))
            except STOPS:
                raise
            except Exception as error:
                first = first or f"{self.space.label(design)}: {said(error)}"
            else:
                return ""
        return first

    def check(self, columns: Columns) -> None:
        """Refuse what is no answer: a metric missing, or named as a varied field."""
        for name in self.required if columns else ():
            known = [*columns, *self.space.choices]
            if name not in known:
                raise MisuseError(f"no metric {name!r}{nearest(name, known)}")
        for name in columns:
            if name in self.space.choices or name == "design":
                raise MisuseError(f"metric {name!r} has the name of a column that is no metric")

    def compared(self, columns: Columns) -> Columns:
        """Return the required metrics that are numbers, as they are compared; none without `digits`."""
        if self.digits is None:
            return {}
        names = [name for name in self.required if name in columns and columns[name].dtype.kind == "f"]
        return {name: significant(columns[name], self.digits) for name in names}


def joined_found(parts: Sequence[Found], plan: Plan) -> Found:
    """Join the tables of disjoint sets of designs."""
    some = [part for part in parts if part.designs.size]
    designs = np.concatenate([np.zeros(0, dtype=np.int64), *(part.designs for part in some)])
    errors = {design: text for part in parts for design, text in part.errors.items()}
    return Found(designs, stack([part.columns for part in some], designs, plan.space), errors)


@dataclass(frozen=True, kw_only=True, eq=False)
class Runner:
    """Evaluates designs by a plan and keeps all that the model says of them."""

    plan: Plan
    chunk: int | None = None
    executor: Executor | None = None
    store: ChunkStore | None = None
    progress: Callable[[int, int], None] = lambda finished, total: None

    def run(self, designs: Designs) -> tuple[Columns, int]:
        """Return the metrics of designs, in their order, and how many were new; raise what is raised."""
        found, new = self.found(designs, Plan.metrics)
        for design, text in found.errors.items():  # of a store
            raise ValueError(f"evaluate has no answer at {self.plan.space.label(design)}: {text}")
        return found.columns, new

    def found(self, designs: Designs, work: Callable[[Plan, Task], Found] = Plan.found) -> tuple[Found, int]:
        """Return the table of designs, in their order, and the number of new ones."""
        plan, blocks = self.plan, [] if self.store is None else self.store.restore(designs)
        known = [
            part for block in blocks for part in (block.designs, np.array(list(block.errors), dtype=np.int64))
        ]
        todo = designs[~np.isin(designs, np.concatenate([designs[:0], *known]))]
        for block in blocks:
            plan.check(block.columns)
        if not blocks and work is Plan.found:
            plan = replace(plan, probes=spread(todo))
        finished = designs.size - todo.size
        self.progress(finished, designs.size)
        parts = plan.parts(todo, plan.chunk(self.chunk, todo.size, self.executor))
        sent = plan if self.executor is None else plan.portable()
        with closing(results(sent, work, parts, self.executor)) as new:
            for (part, _), found in new:
                if self.store is not None:
                    self.store.put(found)
                blocks.append(found)
                finished += part.size
                self.progress(finished, designs.size)
        every = joined_found(blocks, plan)
        order = np.argsort(every.designs)
        rows = designs if not every.errors else designs[~np.isin(designs, list(every.errors))]
        place = order[np.searchsorted(every.designs[order], rows)]
        return Found(rows, {n: column[place] for n, column in every.columns.items()}, every.errors), todo.size
