"""The one place that compiles kernels: Numba with its disk cache where a disk can be written."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def _cache_directory(package: Path, home: Path) -> str | None:
    """Return a private directory for the cache where neither place Numba would use can be written."""
    for place in (package / "__pycache__", home):
        nearest = next((folder for folder in (place, *place.parents) if folder.exists()), None)
        if nearest is not None and os.access(nearest, os.W_OK):
            return None
    # Not a fixed name: cached code is executed, so nobody else may be able to leave some there.
    directory = tempfile.mkdtemp(prefix="qmodels-numba-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


if not numba.config.CACHE_DIR:
    numba.config.CACHE_DIR = _cache_directory(Path(__file__).parent, Path.home()) or ""


def jit(function: Function) -> Function:
    """Compile a kernel: cached on disk, outside the interpreter lock, divisions unchecked."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def part(function: Function) -> Function:
    """Compile a function that only kernels call, without the code to call it from Python."""
    compiled = numba.njit(
        cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    return cast(Function, compiled)
