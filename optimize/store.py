"""Finished designs in an SQLite file, so that an exploration that was killed resumes."""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from optimize.space import Columns, Designs, Space

APPLICATION_ID = 0x716D6F70
"""Marks a file as such a store (SQLite's ``application_id``, bytes 68-71 of the file)."""

VERSION = 1
_IN_A_QUERY = 500


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
        self.path = Path(path)
        self._space = space
        rest = stable_text(space.base, without=set(space.paths.values()))
        self._texts = [
            [f"{path}={stable_text(value, path=path)}" for value in space.choices[name]]
            for name, path in space.paths.items()
        ]
        self._prefix = hashlib.sha256(f"{identity}\n{rest}".encode()).hexdigest()
        new = not self.path.exists() or self.path.stat().st_size == 0
        if not new:
            self._require_ours()
        try:
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(f"cannot be opened ({error})") from error
        try:
            if new:
                self._create()
            damage = self._connection.execute("PRAGMA quick_check").fetchone()[0]
        except sqlite3.Error as error:
            damage = str(error)
        if damage != "ok":
            self._connection.close()
            raise self._refusal(f"is damaged ({' '.join(damage.split())})")

    def _create(self) -> None:
        run = self._connection.execute
        run("BEGIN EXCLUSIVE")
        run(f"PRAGMA application_id = {APPLICATION_ID}")
        run(f"PRAGMA user_version = {VERSION}")
        run(
            "CREATE TABLE IF NOT EXISTS designs"
            " (key TEXT PRIMARY KEY, metrics TEXT NOT NULL, crc INTEGER NOT NULL)"
        )
        run("COMMIT")
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")

    def _require_ours(self) -> None:
        with self.path.open("rb") as file:
            header = file.read(100)
        marks = (header[:16], header[60:64], header[68:72])
        ours = (b"SQLite format 3\0", VERSION.to_bytes(4, "big"), APPLICATION_ID.to_bytes(4, "big"))
        if marks != ours:
            raise self._refusal("is not a store of finished designs")

    def _refusal(self, reason: str) -> ValueError:
        return ValueError(
            f"store {str(self.path)!r} {reason}; it is left as it is: give another path or remove it"
        )

    def key(self, design: int) -> str:
        """Return the key of a design."""
        digits = self._space.digits(design)
        text = ",".join(sorted(texts[digit] for texts, digit in zip(self._texts, digits, strict=True)))
        return hashlib.sha256(f"{self._prefix}\n{text}".encode()).hexdigest()

    def restore(self, designs: Designs) -> tuple[Designs, list[dict[str, Any]]]:
        """Return which of the designs are finished and their metrics."""
        numbers = {self.key(design): int(design) for design in designs}
        keys = list(numbers)
        found: dict[int, dict[str, Any]] = {}
        for start in range(0, len(keys), _IN_A_QUERY):
            part = keys[start : start + _IN_A_QUERY]
            query = f"SELECT key, metrics, crc FROM designs WHERE key IN ({','.join('?' * len(part))})"
            try:
                for key, text, crc in self._connection.execute(query, part):
                    if zlib.crc32(f"{key}{text}".encode()) != crc:
                        raise self._refusal("is damaged")
                    found[numbers[key]] = json.loads(text)
            except (sqlite3.Error, UnicodeError) as error:
                raise self._refusal(f"is damaged ({error})") from error
        done = sorted(found)
        return np.array(done, dtype=np.int64), [found[design] for design in done]

    def put(self, designs: Designs, columns: Columns) -> None:
        """Commit the metrics of finished designs."""
        lists = {name: column.tolist() for name, column in columns.items()}
        rows = []
        for k, design in enumerate(designs):
            key = self.key(design)
            text = json.dumps({name: values[k] for name, values in lists.items()})
            rows.append((key, text, zlib.crc32(f"{key}{text}".encode())))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO designs VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise OSError(f"store {str(self.path)!r} cannot be written: {error}") from error

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self._connection.close()


def stable_text(value: object, *, without: Collection[str] = (), path: str = "") -> str:
    """Return a text that is the same in every process for equal values, for hashing.

    Fields of dataclasses are named; those whose dotted paths are in `without` are left out.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return repr(value)
    if isinstance(value, PurePath):
        return f"path:{value.as_posix()}"
    if isinstance(value, (bytes, bytearray)):
        return f"bytes:{hashlib.sha256(value).hexdigest()}"
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return f"array:{stable_text(value.tolist(), path=path)}"
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array:{value.dtype.str}:{value.shape}:{digest}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        prefix = f"{path}." if path else ""
        inner = [
            f"{name}={stable_text(getattr(value, name), without=without, path=prefix + name)}"
            for name in (field.name for field in dataclasses.fields(value) if field.init)
            if prefix + name not in without
        ]
        return f"{type(value).__qualname__}({','.join(inner)})"
    if isinstance(value, Mapping):
        items = [f"{stable_text(k, path=path)}:{stable_text(v, path=path)}" for k, v in value.items()]
        return f"{{{','.join(sorted(items))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(stable_text(item, path=path) for item in value)}]"
    if isinstance(value, (set, frozenset)):
        return f"set:[{','.join(sorted(stable_text(item, path=path) for item in value))}]"
    raise ValueError(
        f"{path or 'the value'} cannot be part of a store's key: a {type(value).__name__} has no stable text"
    )
