"""Kernels that answer at once: as plain Python while that is soon done, in machine code from then on.

Numba takes seconds to compile a kernel that plain Python runs through in some tenths of one. The first
calls of a kernel whose machine code is not on the disk yet are therefore run as they are written, while
another process compiles it; both give the same numbers to the last bit. Numba itself is slow to load:
import modules of kernels inside functions.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

PATIENCE = 3.0
"""Time of the processor that a program runs a kernel as plain Python before it waits for the compiler. [s]"""
ABANDONED = 300.0
"""Age at which the request of a process that compiles is taken to be left over. [s]"""

INLINE = {"forceinline": True}
"""How parts are compiled: as calls, which pass on all that describes an array, they take twice as long."""

_parts: set[Any] = set()


def compiled(function: Function) -> Function:
    """Compile a function on its first call and cache the machine code where a cache can be written."""
    from numba import njit

    try:
        return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # an installation that may not be written to has no place for the cache
        return cast(Function, njit(nogil=True, error_model="numpy")(function))


def part(function: Function) -> Function:
    """Mark a function that kernels call; it stays plain Python for others."""
    _parts.add(function)
    return function


def _compiled(function: Any, compiler: Callable[..., Any], known: dict[Any, Any]) -> Any:
    """Return a function's compiled twin; the parts that it calls are compiled with it."""
    from qmodels.systems.lowering import compile_part

    if function not in known:
        names = dict(function.__globals__)
        for name in function.__code__.co_names:
            if isinstance(names.get(name), FunctionType) and names[name] in _parts:
                names[name] = _compiled(names[name], partial(compile_part, **INLINE), known)
        twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
        twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
        known[function] = compiler(twin)
    return known[function]


def _content(functions: Iterable[Any]) -> str:
    """Return a digest of what functions do: their code, and the numbers of their modules that it names."""
    found = sha256(repr(INLINE).encode())
    for function in functions:
        code = function.__code__
        numbers = [each for each in code.co_consts if each is not function.__doc__]
        found.update(repr((code.co_code, numbers, code.co_names)).encode())
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, int | float | tuple | np.ndarray):
                found.update(repr(value.tolist() if isinstance(value, np.ndarray) else value).encode())
    return found.hexdigest()


class Kernel:
    """A function of arrays that is compiled when it pays, see `kernel`."""

    def __init__(self, function: Callable[..., Any], soon: Callable[..., bool]) -> None:
        self.plain, self.soon = function, soon
        self._machine: Any = None
        self._ready, self._spent = False, 0.0
        self._compiler: subprocess.Popen[bytes] | None = None

    @property
    def machine(self) -> Any:
        """The compiled function."""
        if self._machine is None:
            known: dict[Any, Any] = {}
            self._machine = _compiled(self.plain, compiled, known)
            # Numba looks at the kernel's own file alone: a part of another one may have changed since.
            kept = getattr(getattr(self._machine, "_cache", None), "_cache_file", None)
            if kept is not None:
                kept._source_stamp = _content(known)
        return self._machine

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, compiled or not."""
        if not self._ready and self.soon(*arguments):
            if self._spent < PATIENCE and not self._on_disk(arguments):
                self._compile_elsewhere(arguments)
                begin = time.thread_time()
                with np.errstate(all="ignore"):
                    answer = self.plain(*arguments)
                self._spent += time.thread_time() - begin
                return answer
            if self._compiler is not None:
                self._compiler.wait()
        self._ready = True
        return self.machine(*arguments)

    def _on_disk(self, arguments: Any) -> bool:
        """Return whether there is machine code for arguments like these."""
        place = self._place()
        # Looking for the file first spares the first answer the start of the compiler.
        if place is None or not any(place.glob(f"*.{self.plain.__name__}-*.nbi")):
            return False
        machine = self.machine
        types = tuple(machine.typeof_pyval(each) for each in arguments)
        key = machine._cache._index_key(types, machine.targetctx.codegen())
        return key in machine._cache._cache_file._load_index()

    def _place(self) -> Path | None:
        """Return where machine code is kept, if it is kept at all."""
        place = getattr(getattr(self.machine, "stats", None), "cache_path", None)
        return None if place is None else Path(place)

    def _compile_elsewhere(self, arguments: Any) -> None:
        """Let a process of low priority compile the kernel by repeating a call, unless one is at it."""
        place = self._place()
        if self._compiler is not None or place is None or getattr(sys, "frozen", False):
            return
        request = place / f"{self.plain.__name__}.request"
        try:
            request.parent.mkdir(parents=True, exist_ok=True)
            if request.exists() and time.time() - request.stat().st_mtime > ABANDONED:
                request.unlink()
            with request.open("xb") as file:
                pickle.dump((self.plain.__module__, self.plain.__name__, arguments), file)
        except OSError:  # another process compiles it, or nobody can keep what is compiled
            return
        try:
            self._compiler = another_python(f"from {__name__} import repeat; repeat({str(request)!r})")
        except OSError:
            request.unlink(missing_ok=True)


def another_python(
    code: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a process that imports what this one does, prints nothing and does not end when this one does."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code],  # without -P it would import what stands where we were started
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kernel(*, soon: Callable[..., bool]) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function; ``soon`` says of its arguments whether plain Python is soon done.

    What is called must be marked as `part`; powers are written as products, since others round.
    """
    return lambda function: Kernel(function, soon)


def repeat(request: str) -> None:
    """Compile a kernel for the call that stands in a file, and remove the file."""
    try:
        if hasattr(os, "nice"):
            os.nice(10)
        with open(request, "rb") as file:
            module, name, arguments = pickle.load(file)
        getattr(import_module(module), name).machine(*arguments)
    finally:
        Path(request).unlink(missing_ok=True)
