"""Functions that are copied into the kernel that calls them, before it is compiled.

A call hands over every field of a tuple of arrays: with many arrays that takes ten times as long
as what our small functions do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from validate.jit import _compile

Function = TypeVar("Function", bound=Callable[..., Any])


def inlined(function: Function) -> Function:
    """Return a function that kernels take up where they call it."""
    return _compile(function, inline="always")
