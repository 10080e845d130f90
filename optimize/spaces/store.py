"""Finished designs of a space in a result store, so that an exploration that was killed resumes."""

from __future__ import annotations

import hashlib
import os
from types import TracebackType
from typing import Any, Self

import numpy as np

from optimize.spaces.numbering import Columns, Designs
from optimize.spaces.space import Space
from qmodels.systems.spec.hashing import stable_text
from qmodels.systems.spec.store import ResultStore


class Store:
    """The finished designs of explorations, each committed at once under a stable key.

    The key hashes the identity, the varied fields and all other fields of the base spec, so
    that one file serves many spaces and models. Use it as a context manager.

    Parameters
    ----------
    path : path
        The file; it is made if it does not exist.
    space : Space
        The space that design numbers refer to.
    identity : str
        What evaluates the designs: change it when the model or its arguments change.

    Raises
    ------
    ValueError
        If the file is damaged or is no such store (it is left as it is), the identity is
        empty, or a field of the spec has no stable text.
    """

    def __init__(self, path: str | os.PathLike[str], space: Space, identity: str) -> None:
        if not isinstance(identity, str) or not identity:
            raise ValueError(f"identity must be a text that names the model of a store, got {identity!r}")
        self._space = space
        rest = stable_text(space.base, without=set(space.paths.values()))
        self._texts = [
            [f"{path}={stable_text(value, path=path)}" for value in space.choices[name]]
            for name, path in space.paths.items()
        ]
        self._prefix = hashlib.sha256(f"{identity}\n{rest}".encode()).hexdigest()
        self._results = ResultStore(path)

    def key(self, design: int) -> str:
        """Return the key of a design."""
        digits = self._space.digits(design)
        text = ",".join(sorted(texts[digit] for texts, digit in zip(self._texts, digits, strict=True)))
        return hashlib.sha256(f"{self._prefix}\n{text}".encode()).hexdigest()

    def restore(self, designs: Designs) -> tuple[Designs, list[dict[str, Any]]]:
        """Return which of the designs are finished and their metrics."""
        numbers = {self.key(design): int(design) for design in designs}
        found = {numbers[key]: metrics for key, metrics in self._results.get(numbers).items()}
        done = sorted(found)
        return np.array(done, dtype=np.int64), [found[design] for design in done]

    def put(self, designs: Designs, columns: Columns) -> None:
        """Commit the metrics of finished designs."""
        lists = {name: column.tolist() for name, column in columns.items()}
        self._results.put(
            {
                self.key(design): {name: values[k] for name, values in lists.items()}
                for k, design in enumerate(designs)
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._results.__exit__(kind, error, traceback)
