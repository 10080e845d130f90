"""Finished results in an SQLite file, so that work that was killed resumes."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

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
