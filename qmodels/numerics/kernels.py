"""Kernels that answer at once: as plain Python while that is soon done, in machine code from then on.

Numba takes seconds to compile a kernel that plain Python runs through in some tenths of one. The first
calls of a kernel whose machine code is not on the disk yet are therefore run as they are written, while
another process compiles it, one kernel after the other; all give the same numbers to the last bit. Numba
itself is slow to load: import modules of kernels inside functions.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import IO, Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

PATIENCE = 3.0
"""Time of the processor that a program runs a kernel as plain Python before it waits for the compiler. [s]"""
ABANDONED = 300.0
"""Age at which the request of a process that compiles is taken to be left over. [s]"""
LOOK = 0.01
"""Time between looks whether a kernel is compiled. [s]"""

INLINE = {"forceinline": True}
"""How parts are compiled: as calls, which pass on all that describes an array, they take twice as long."""

_parts: set[Any] = set()
_array_parts: set[Any] = set()
_compiler: subprocess.Popen[bytes] | None = None


def compiled(function: Function) -> Function:
    """Compile a function on its first call and cache the machine code where a cache can be written."""
    from numba import njit

    try:
        return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # an installation that may not be written to has no place for the cache
        return cast(Function, njit(nogil=True, error_model="numpy")(function))


def part(function: Function) -> Function:
    """Mark a function that kernels call and that makes no arrays; it stays plain Python for others.

    It does not count the references to the arrays it is handed, which most small functions would spend
    more time on than on their work: packets are followed in 71 to 85 % of the time.
    """
    _parts.add(function)
    return function


def array_part(function: Function) -> Function:
    """Mark a function that kernels call and that makes or returns arrays."""
    _array_parts.add(function)
    return part(function)


def _called(function: Any) -> dict[str, Any]:
    """Return the parts that a function calls, by their names in it."""
    values = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    return {name: one for name, one in values.items() if isinstance(one, FunctionType) and one in _parts}


def _content(function: Any) -> str:
    """Return a digest of what a function does with the parts that it calls: code, and numbers of modules."""
    digest, functions = sha256(repr(INLINE).encode()), [function]
    for each in functions:
        code = each.__code__
        numbers = [one for one in code.co_consts if one is not each.__doc__]
        digest.update(repr((code.co_code, numbers, code.co_names, each in _array_parts)).encode())
        for name in code.co_names:
            value = each.__globals__.get(name)
            if isinstance(value, int | float | tuple | np.ndarray):
                digest.update(repr(value.tolist() if isinstance(value, np.ndarray) else value).encode())
        functions += [one for one in _called(each).values() if one not in functions]
    return digest.hexdigest()


def _compiled(function: Any, compiler: Callable[..., Any]) -> Any:
    """Return a function's compiled twin; the parts that it calls are compiled with it."""
    names = dict(function.__globals__)
    names |= {name: _compiled_part(each, _content(each)) for name, each in _called(function).items()}
    twin = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    twin.__qualname__, twin.__module__ = function.__qualname__, function.__module__
    return compiler(twin)


@cache
def _compiled_part(function: Any, content: str) -> Any:
    """Return a part's compiled twin: the same one for all kernels of this process that call it."""
    from qmodels.systems.lowering import compile_part

    return _compiled(function, partial(compile_part, _nrt=function in _array_parts, **INLINE))


class Kernel:
    """A function of arrays that is compiled when it pays, see `kernel`."""

    def __init__(self, function: Callable[..., Any], soon: Callable[..., bool]) -> None:
        self.plain, self.soon = function, soon
        self._machine: Any = None
        self._ready, self._spent = False, 0.0
        self._request: Path | None = None  # what we ask another process for

    @property
    def machine(self) -> Any:
        """The compiled function."""
        if self._machine is None:
            self._machine = _compiled(self.plain, compiled)
            # Numba looks at the kernel's own file alone: a part of another one may have changed since.
            kept = getattr(getattr(self._machine, "_cache", None), "_cache_file", None)
            if kept is not None:
                kept._source_stamp = _content(self.plain)
        return self._machine

    def __call__(self, *arguments: Any) -> Any:
        """Call the function, compiled or not."""
        if not self._ready:
            if self._spent < PATIENCE and self.soon(*arguments) and not self._on_disk(arguments):
                self._compile_elsewhere(arguments)
                begin = time.thread_time()
                with np.errstate(all="ignore"):
                    answer = self.plain(*arguments)
                self._spent += time.thread_time() - begin
                return answer
            self.wait()
        self._ready = True
        return self.machine(*arguments)

    def expect_many(self) -> None:
        """Have the next call compile it: plain Python would be too slow for all that are to come."""
        self._spent = PATIENCE

    def wait(self) -> None:
        """Wait until the process that we asked has compiled the kernel, or ended."""
        while self._request is not None and self._request.exists() and _compiler and _compiler.poll() is None:
            time.sleep(LOOK)
        self._request = None

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
        if self._request is not None or place is None or getattr(sys, "frozen", False):
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
            _hand_over(request)
        except OSError:
            request.unlink(missing_ok=True)
        else:
            self._request = request


def _hand_over(request: Path) -> None:
    """Ask the process that compiles for this one; the first request starts it."""
    global _compiler
    if _compiler is None or _compiler.poll() is not None:
        _compiler = another_python(f"from {__name__} import serve; serve()", stdin=subprocess.PIPE)
    asked = cast(IO[bytes], _compiler.stdin)
    asked.write(f"{request}\n".encode())
    asked.flush()


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


def serve() -> None:
    """Compile what is asked for on standard input, until nobody can ask any more."""
    if hasattr(os, "nice"):
        os.nice(10)
    for line in sys.stdin:
        with suppress(Exception):  # whoever asked compiles it then, and is told
            repeat(line.rstrip("\n"))


def repeat(request: str) -> None:
    """Compile a kernel for the call that stands in a file, and remove the file."""
    try:
        with open(request, "rb") as file:
            module, name, arguments = pickle.load(file)
        getattr(import_module(module), name).machine(*arguments)
    finally:
        Path(request).unlink(missing_ok=True)
