"""The one place that compiles kernels: Numba with its disk cache where a disk can be written.

Numba checks a cached kernel against the file it stands in, not against the functions it calls,
which may stand in others. So each state of the sources has a cache directory of its own, named by
their hash: an edit of any of them compiles everything anew.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from qmodels.systems import address_map, free_list

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parent
SOURCES = (*sorted(PACKAGE.glob("*.py")), Path(address_map.__file__), Path(free_list.__file__))
"""All files with functions or constants that are compiled into kernels."""


def _cache_directory(sources: Iterable[Path], places: Iterable[Path]) -> Path:
    """Return the directory for this state of the sources, in the first place that can be written."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    for place in places:
        nearest = next((folder for folder in (place, *place.parents) if folder.exists()), None)
        if nearest is not None and os.access(nearest, os.W_OK):
            return place / f"qmodels-numba-{digest.hexdigest()[:16]}"
    # Not a fixed name: cached code is executed, so nobody else may be able to leave some there.
    directory = tempfile.mkdtemp(prefix="qmodels-numba-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _remove_outdated(current: Path) -> None:
    """Remove the directories of earlier states of the sources; one still in use is made again."""
    for directory in current.parent.glob("qmodels-numba-*"):
        if directory != current:
            shutil.rmtree(directory, ignore_errors=True)


CACHE = _cache_directory(
    SOURCES,
    [Path(numba.config.CACHE_DIR)]
    if numba.config.CACHE_DIR
    else [PACKAGE / "__pycache__", Path.home() / ".cache"],
)
if CACHE.parent == PACKAGE / "__pycache__":
    # Elsewhere another installation may keep its own.
    _remove_outdated(CACHE)


def _compile(function: Function, **options: Any) -> Function:
    # Numba looks up its directory when it is given the function; other users' functions keep theirs.
    others, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(CACHE)
    try:
        return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
    finally:
        numba.config.CACHE_DIR = others


def jit(function: Function) -> Function:
    """Compile a kernel: cached on disk, outside the interpreter lock, divisions unchecked."""
    return _compile(function)


def part(function: Function) -> Function:
    """Compile a function that only kernels call, without the code to call it from Python."""
    return _compile(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: Function) -> Function:
    """Compile a function that is copied into the kernels that call it.

    A call hands over every field of a tuple of arrays: with many arrays that takes ten times as long
    as what our small functions do.
    """
    return _compile(function, inline="always")


def lean(function: Function) -> Function:
    """Compile a function that makes no arrays and is called from Python or from other kernels.

    Compiled code counts the references to each array a function is handed, in atomic operations:
    some 10 ns per array and call, more than most small functions work. A function that makes no
    arrays does not need the counts. Measured: an exponential draw takes 6 ns instead of 24.
    """
    return _compile(function, _nrt=False)


def lean_part(function: Function) -> Function:
    """Compile a function that makes no arrays and that only kernels call."""
    return _compile(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
