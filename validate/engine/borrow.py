"""Arrays without an owner, for kernels that hand many arrays to small functions.

Compiled code counts references: each function that is handed a tuple of n arrays adds and
subtracts n of them, atomically. That costs more than the work of most of our functions. An array
without an owner is not counted; it must not outlive the one it was borrowed from.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils
from numba.core.extending import intrinsic, overload
from numba.np.arrayobj import make_array


def borrow(array: Any) -> Any:
    """Return the array; in compiled code the same memory without its owner."""
    return array


@intrinsic
def _without_owner(typing_context: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = make_array(signature.return_type)(context, builder, arguments[0])
        for member in ("meminfo", "parent"):
            setattr(view, member, cgutils.get_null_value(getattr(view, member).type))
        return view._getvalue()

    return array(array), generate


@overload(borrow)
def _borrow(array: Any) -> Any:
    def compiled(array: Any) -> Any:
        return _without_owner(array)  # type: ignore[call-arg]

    return compiled
