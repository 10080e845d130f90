"""Finished designs of a space in a result store, by the chunk: an exploration that was killed resumes."""

from __future__ import annotations

import base64
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from optimize.spaces.numbering import Column, Columns, Designs, Found
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import stable_text

if TYPE_CHECKING:
    from qmodels.systems.spec.store import ResultStore

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
