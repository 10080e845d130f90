"""The decorator of the compiled kernels. Numba is slow to load: import kernel modules inside functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call and cache the machine code where a cache can be written."""
    from numba import njit

    try:
        return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:  # an installation that may not be written to has no place for the cache
        return cast(Function, njit(nogil=True, error_model="numpy")(function))
