"""Asking for a record of an array before it is needed, so that a kernel does not wait for memory.

The next block of a chain is known one operation before it is used. Of a memory much larger than the
caches each such block is a miss; asked for at once it arrives while other ports are served.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.extending import intrinsic, overload
from numba.np.arrayobj import make_array


def prefetch(array: Any, place: int) -> None:
    """Do nothing; in compiled code, start to load ``array[place]`` (any place will do) into the caches."""


@intrinsic
def _start_to_load(typing_context: Any, array: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = make_array(signature.args[0])(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], signature.args[1], types.intp)
        pointer = builder.gep(view.data, [index])
        byte = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [byte, number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, place), generate


@overload(prefetch)
def _prefetch(array: Any, place: Any) -> Any:
    def compiled(array: Any, place: Any) -> None:
        _start_to_load(array, place)  # type: ignore[call-arg]

    return compiled
