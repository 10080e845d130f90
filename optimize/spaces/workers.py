"""Calls through an executor: what they share travels to a worker once, results come as they finish."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

IN_FLIGHT = 256
"""Submitted tasks that are not finished: bounds the memory of a long exploration."""

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
