"""Files that appear whole or not at all: one that is there is finished; what a kill left is taken over."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the path to write a file to, beside its place, to which it then moves."""
    target = Path(path)
    part = target.with_name(f".{target.name}.part")
    try:
        with naming(target):
            yield part
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def whole_directory(out: Path, *, last: str) -> Iterator[Path]:
    """Yield an empty directory, all files of which then move into another, that of a given name last.

    What a killed process had written there of the same is removed.
    """
    work = out / WORK
    with naming(out):
        out.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            yield work
            for file in sorted(work.iterdir(), key=lambda file: file.name == last):
                os.replace(file, out / file.name)
        finally:
            shutil.rmtree(work, ignore_errors=True)


WORK = ".writing"


def is_piece(path: Path) -> bool:
    """Return whether a file or directory is what a killed process left of one that was not finished."""
    return path.name.startswith(".") and (path.name.startswith(WORK) or path.name.endswith(".part"))


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the system that names none, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
