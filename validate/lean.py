"""Compilation without reference counts, for kernels that hand many arrays to small functions.

Compiled code counts the references to each array a function is handed, in atomic operations:
some 10 ns per array and call, more than most of our functions work. A function that makes no
arrays does not need the counts. Measured: an exponential draw takes 6 ns instead of 24.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from validate.jit import _compile

Function = TypeVar("Function", bound=Callable[..., Any])


def lean(function: Function) -> Function:
    """Compile a function that makes no arrays and is called from Python or from other kernels."""
    return _compile(function, _nrt=False)


def lean_part(function: Function) -> Function:
    """Compile a function that makes no arrays and that only kernels call."""
    return _compile(function, _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
