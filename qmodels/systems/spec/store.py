"""Finished results in an SQLite file, so that work that was killed resumes."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from qmodels import checks
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.whole import whole

UNDECIDED = "undecided"
"""Word in files and tables where ``stable`` is None."""
FORMAT = 1
"""Of saved results."""


def said(stable: Any) -> Any:
    """Return whether a system keeps up as files and tables have it: a truth value or `UNDECIDED`."""
    return UNDECIDED if stable is None else stable


def write(result: Any, path: Path) -> Path:
    """Write a result; see `Result.save`."""
    from qmodels.systems.spec.text.toml import to_toml

    document = {
        "format": FORMAT,
        "result": result.saved_as,
        "title": result.title,
        "notes": list(result.notes),
        "spec": None if result.spec is None else to_toml(result.spec, kind=True),
        "units": result.units,
        **{name: _plain(getattr(result, name)) for name in result.saved},
        "stable": _plain(said(result.stable)),
    }
    with whole(path) as part:
        part.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def read(path: Path, made: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Rebuild a saved result."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not a saved result: {error}") from None
    if not isinstance(document, dict) or document.get("result") not in ("answer", "simulation"):
        found = document.get("result", "something else") if isinstance(document, dict) else "something else"
        raise ValueError(f"{path}: must hold answer or simulation, got {found}")
    if document.get("format") != FORMAT:
        raise ValueError(f"{path}: must have format {FORMAT}, got {checks.shown(document.get('format'))}")
    try:
        return made(document)
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]} is missing") from None
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"{path}: damaged: {' '.join(str(error).split())}") from None


def spec_of(document: Mapping[str, Any]) -> Any:
    """Return the spec of a saved result."""
    from qmodels.systems.spec.text.toml import spec_from_toml

    return None if document["spec"] is None else spec_from_toml(document["spec"])


def _plain(value: Any) -> Any:
    """Return a value in JSON's types; numbers that JSON has not are words, estimates are tables."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if hasattr(value, "best"):
        parts = ("low", "best", "high", "confidence", "doubt")
        return {"estimate": {name: _plain(getattr(value, name)) for name in parts}}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def numbers(value: Any) -> Any:
    """Restore numbers, words and arrays that `write` made plain.

    >>> numbers({"read_latency": [1.0, "inf"]})
    {'read_latency': array([ 1., inf])}
    """
    if isinstance(value, dict):
        if set(value) == {"estimate"}:
            return Estimate(**numbers(value["estimate"]))
        return {name: numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        found = [numbers(one) for one in value]
        return np.array(found)
    return float(value) if value in ("inf", "-inf", "nan") else None if value == UNDECIDED else value


APPLICATION_ID = 0x716D6F70
"""Marks a file as such a store (SQLite's ``application_id``, bytes 68-71 of the file)."""

VERSION = 2
_IN_A_QUERY = 500
_LAST = "\U0010ffff"  # no character sorts after it


class ResultStore:
    """Records under keys, each commit on disk at once; several processes may write one file.

    A record is anything JSON can write. Use it as a context manager, in the thread that made it.

    Parameters
    ----------
    path : path
        The file; it is made if it does not exist.

    Raises
    ------
    ValueError
        If the file is damaged or is no such store; it is left as it is.

    Notes
    -----
    The file is in write-ahead mode: a process that is killed loses nothing it has committed. Every
    record carries a checksum of itself and its key.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, ResultStore(Path(folder) / "a.sqlite") as store:
    ...     store.put({"one": {"latency": 1.5}, "two": {"latency": float("inf")}})
    ...     store.get(["two", "three"])
    {'two': {'latency': inf}}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and self.path.stat().st_size:
            self._require_ours()
        try:
            self._connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        except sqlite3.Error as error:
            raise self._refusal(f"cannot be opened ({error})") from error
        run = self._connection.execute
        try:
            damage = run("PRAGMA quick_check").fetchone()[0]
            if damage == "ok":
                if run("SELECT 1 FROM sqlite_master").fetchone() is None:
                    self._create()
                run("PRAGMA journal_mode = WAL")
                run("PRAGMA synchronous = NORMAL")  # of this connection, not of the file
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise self._refusal(f"cannot be opened ({error})") from error
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
            "CREATE TABLE IF NOT EXISTS records"
            " (key TEXT PRIMARY KEY, record TEXT NOT NULL, crc INTEGER NOT NULL)"
        )
        run("COMMIT")

    def _require_ours(self) -> None:
        with self.path.open("rb") as file:
            header = file.read(100)
        if (header[:16], header[68:72]) != (b"SQLite format 3\0", APPLICATION_ID.to_bytes(4, "big")):
            raise self._refusal("is not a store of finished results")
        version = int.from_bytes(header[60:64], "big")
        if version != VERSION:
            raise self._refusal(f"is of format {version}, not {VERSION}")

    def _refusal(self, reason: str) -> ValueError:
        return ValueError(
            f"store {str(self.path)!r} {reason}; it is left as it is: give another path or remove it"
        )

    def get(self, keys: Iterable[str]) -> dict[str, Any]:
        """Return the records of those keys that have one."""
        wanted = list(keys)
        found: dict[str, Any] = {}
        for start in range(0, len(wanted), _IN_A_QUERY):
            part = wanted[start : start + _IN_A_QUERY]
            found.update(self._read(f"key IN ({','.join('?' * len(part))})", part))
        return found

    def scan(self, prefix: str) -> Iterator[tuple[str, Any]]:
        """Yield the keys that begin with a text, in their order, with their records."""
        yield from self._read("key >= ? AND key < ? ORDER BY key", [prefix, prefix + _LAST])

    def _read(self, where: str, values: list[Any]) -> Iterator[tuple[str, Any]]:
        try:
            for key, text, crc in self._connection.execute(
                f"SELECT key, record, crc FROM records WHERE {where}", values
            ):
                if _checksum(key, text) != crc:
                    raise self._refusal("is damaged")
                yield key, json.loads(text)
        except (sqlite3.Error, UnicodeError) as error:
            raise self._refusal(f"is damaged ({error})") from error

    def put(self, records: Mapping[str, Any]) -> None:
        """Commit records, all or none; a record replaces the one its key had.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        rows = []
        for key, record in records.items():
            text = json.dumps(record)
            rows.append((key, text, _checksum(key, text)))
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", rows)
            self._connection.execute("COMMIT")
        except BaseException as error:  # an interruption, too, leaves the connection fit for use
            if self._connection.in_transaction:
                self._connection.rollback()
            if isinstance(error, sqlite3.Error):
                raise OSError(f"store {str(self.path)!r} cannot be written: {error}") from error
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()


def _checksum(key: str, text: str) -> int:
    return zlib.crc32(f"{key}{text}".encode())
