"""The one place that compiles kernels: Numba with its disk cache where a disk can be written.

Numba checks a cached kernel against the file it stands in, not against the functions it calls,
which may stand in others. So the kernels of a file have a cache directory of their own for each
state of that file and of all of ours that it imports, named by their hash: an edit of any of them
compiles anew what it may change, and nothing else.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from qmodels.systems.lowering import compile_part

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parent
OURS = r"((?:validate|qmodels\.systems)[\w.]*)"
IMPORT = re.compile(rf"^ *(?:from {OURS} import (\([^)]*\)|.*)|import {OURS})", re.MULTILINE)


def sources(path: Path) -> tuple[Path, ...]:
    """Return the files a kernel's numbers depend on: its own, and what that imports of ours."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += _imported(source)
    return tuple(sorted(found))


@cache
def _imported(source: Path) -> tuple[Path, ...]:
    modules = set()
    for module, names, plain in IMPORT.findall(source.read_text(encoding="utf-8")):
        modules |= {plain or module, *(f"{module}.{name}" for name in re.findall(r"\w+", names))}
    paths = (ROOT.joinpath(*module.split(".")).with_suffix(".py") for module in modules)
    return tuple(path for path in paths if path.is_file())


def cache_name(path: Path) -> str:
    """Return the name of the cache directory for the kernels of a file: its module and a hash."""
    digest = hashlib.sha256()
    for source in sources(path):
        digest.update(source.read_bytes())
    try:
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    except ValueError:
        module = path.stem
    return f"qmodels-numba-{module}-{digest.hexdigest()[:16]}"


def _writable(places: Iterable[Path]) -> Path:
    """Return the first of the places that can be written, otherwise a directory of this process."""
    for place in places:
        nearest = next((folder for folder in (place, *place.parents) if folder.exists()), None)
        if nearest is not None and os.access(nearest, os.W_OK):
            return place
    # Not a fixed name: cached code is executed, so nobody else may be able to leave some there.
    directory = tempfile.mkdtemp(prefix="qmodels-numba-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _remove_outdated(current: Path) -> None:
    """Remove the directories of earlier states of the same sources; one still in use is made again."""
    module = current.name.rpartition("-")[0]
    for directory in current.parent.glob(f"{module}-*"):
        if directory != current:
            shutil.rmtree(directory, ignore_errors=True)


PLACE = _writable(
    [Path(numba.config.CACHE_DIR)]
    if numba.config.CACHE_DIR
    else [PACKAGE / "__pycache__", Path.home() / ".cache"]
)


@cache
def _cache_directory(path: Path) -> Path:
    directory = PLACE / cache_name(path)
    if PLACE == PACKAGE / "__pycache__":
        # Elsewhere another installation may keep its own.
        _remove_outdated(directory)
    return directory


def _part(function: Function, **options: Any) -> Any:
    """Compile a function that makes no arrays within kernels."""
    return compile_part(function, _nrt=False, **options)


def _compile(function: Function, within: dict[str, Any] | None = None, **options: Any) -> Function:
    # Numba looks up its directory when it is given the function; other users' functions keep theirs.
    others, numba.config.CACHE_DIR = (
        numba.config.CACHE_DIR,
        str(_cache_directory(Path(function.__code__.co_filename))),
    )
    try:
        kernel = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    finally:
        numba.config.CACHE_DIR = others
    if kernel is not function:
        # Kernels that call it take it as a part.
        inside = compile_part(function) if within is None else _part(function, **within)
        kernel.get_call_template, kernel.get_overload = inside.get_call_template, inside.get_overload
    return cast(Function, kernel)


def jit(function: Function) -> Function:
    """Compile a kernel: cached on disk, outside the interpreter lock, divisions unchecked."""
    return _compile(function)


def part(function: Function) -> Function:
    """Compile a function that only kernels call, within the kernel, see `qmodels.systems.lowering`."""
    return cast(Function, compile_part(function))


def inlined(function: Function) -> Function:
    """Compile a function that makes no arrays and is copied into the kernels that call it.

    A call hands over every field of a tuple of arrays: with many arrays that takes ten times as long
    as what our small functions do.
    """
    return cast(Function, _part(function, forceinline=True))


def lean(function: Function) -> Function:
    """Compile a function that makes no arrays and is called from Python or from other kernels.

    Compiled code counts the references to each array a function is handed, in atomic operations:
    some 10 ns per array and call, more than most small functions work. A function that makes no
    arrays does not need the counts. Measured: an exponential draw takes 6 ns instead of 24.
    """
    return _compile(function, {}, _nrt=False)


def quick(function: Function) -> Function:
    """Compile a short function that makes no arrays: called from Python, or copied into other kernels."""
    return _compile(function, {"forceinline": True}, _nrt=False)


def apart(function: Function) -> Function:
    """Compile a function that makes no arrays and is seldom called, from many places: never copied there."""
    return cast(Function, _part(function, apart=True))


def lean_part(function: Function) -> Function:
    """Compile a function that makes no arrays and that only kernels call."""
    return cast(Function, _part(function))
