"""Shared functions of all readers: files, text, numbers in words, and errors."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from qmodels import checks
from validate.readers.run_set import Setting

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def find_files(paths: Paths) -> list[Path]:
    """Return the files that paths or patterns name: each pattern's in the order of their numbers."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Path] = []
    for one in given:
        text = os.fspath(one)
        exact = os.path.isfile(text)
        matches = (
            [text] if exact else sorted(filter(os.path.isfile, glob.glob(text, recursive=True)), key=_natural)
        )
        if not matches:
            raise ValueError(f"no file matches {text!r}")
        found += map(Path, matches)
    if not found:
        raise ValueError("paths must name at least one file, got none")
    return list(dict.fromkeys(found))


def _natural(text: str) -> list[tuple[float, str]]:
    """Return a sorting key that puts rate_0.05 before rate_0.1 and run2 before run10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if k % 2 else (0.0, part) for k, part in enumerate(parts)]


def read_text(path: Path, expected: str) -> str:
    """Return the text of a file that should be what is expected."""
    try:
        text = path.read_text(encoding="utf-8", errors="strict")
    except UnicodeDecodeError:
        raise wrong(path, expected, "it is not text") from None
    if not text.strip():
        raise wrong(path, expected, "it is empty")
    return text


def wrong(path: Path, expected: str, found: str) -> ValueError:
    """Return the error for a file that is not what was expected."""
    return ValueError(f"{path} must be {expected}: {found}")


def number(text: str) -> Setting:
    """Return a number where the text is one, otherwise the text.

    >>> number("16"), number("1e3"), number("run_2"), number("1_000")
    (16, 1000.0, 'run_2', '1_000')
    """
    if "_" in text:  # Python reads 1_000 as a number; no simulator writes one so
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def settings_of(path: Path, pattern: str | None) -> dict[str, Setting]:
    """Return the settings that a pattern with named groups finds in a path."""
    if pattern is None:
        return {}
    match = re.search(pattern, path.as_posix())
    if match is None or not match.groupdict():
        raise ValueError(f"settings must be a pattern with named groups found in {path}, got {pattern!r}")
    return {name: number(value) for name, value in match.groupdict().items() if value is not None}


def select(names: Iterable[str], patterns: str | Iterable[str], path: Path, what: str) -> list[str]:
    """Return the names that match shell-style patterns (``*`` and ``?``), each at most once."""
    known = list(names)
    chosen: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        rule = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
        matches = [name for name in known if rule.fullmatch(name)]
        if not matches:
            raise ValueError(f"{path} has no {what} {pattern!r}{checks.nearest(pattern, known)}")
        chosen.update(dict.fromkeys(matches))
    return list(chosen)
