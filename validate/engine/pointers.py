"""Pointers to structures of arrays for compiled functions: one instead of a tuple.

A tuple of two dozen arrays costs every function that is handed it over a hundred arguments: the
kernel then compiles for minutes and runs four times slower. Compiled code therefore sees the arrays
of a simulated world as a pointer to a table of addresses and shapes; its attributes are the arrays, as
those of a named tuple are in Python. What is known of a world when its kernel is compiled are facts: whatever
a fact rules out is not even compiled, see `qmodels.systems.lowering`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

import numba
import numpy as np
from numba.core import types
from numba.core.cgutils import intp_t
from numba.core.extending import intrinsic, lower_getattr_generic, models, register_model
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

_WORDS = 5  # of an array in the table: its address and up to four sizes


@cache
def layout_of(kind: Any) -> Mapping[str, tuple[Any, int]]:
    """Return types and dimensions of the arrays of a named tuple, with which its fields are annotated."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__ for name, hint in hints.items() if hasattr(hint, "__metadata__")}


def table_of(arrays: Any) -> Any:
    """Return addresses and shapes of the arrays that come first; valid as long as somebody keeps them."""
    kind: Any = type(arrays)
    table = np.zeros((len(layout_of(kind)), _WORDS), dtype=np.int64)
    for row, array in zip(table, arrays, strict=False):
        row[0] = array.__array_interface__["data"][0]
        row[1 : 1 + array.ndim] = array.shape
    return table


class PointerType(types.Type):
    """Handle of the arrays of a named tuple in compiled code."""

    def __init__(self, kind: Any, facts: Mapping[str, bool]) -> None:
        super().__init__(name=f"{kind.__module__}.{kind.__name__}{sorted(facts.items())}")
        self.facts = facts
        self.arrays = {
            array: (place, types.Array(from_dtype(np.dtype(word)), dimensions, "C"))
            for place, (array, (word, dimensions)) in enumerate(layout_of(kind).items())
        }


@register_model(PointerType)
class _PointerModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, intp_t.as_pointer())


@infer_getattr
class _PointerAttributes(AttributeTemplate):  # type: ignore[misc]
    key = PointerType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return types.boolean if name in kind.facts else kind.arrays[name][1] if name in kind.arrays else None


@lower_getattr_generic(PointerType)  # type: ignore[untyped-decorator, unused-ignore]
def _attribute(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    if name in kind.facts:
        return context.get_constant(types.boolean, kind.facts[name])
    place, array_type = kind.arrays[name]
    words = [
        builder.load(builder.gep(pointer, [intp_t(_WORDS * place + word)]))
        for word in range(1 + array_type.ndim)
    ]
    for word in words:
        # Nothing the kernel writes changes the table: what was loaded once stays good.
        word.set_metadata("invariant.load", builder.module.add_metadata([]))
    array = make_array(array_type)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    strides = [intp_t(size)]
    for length in words[:1:-1]:
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(
        array,
        data=builder.inttoptr(words[0], array.data.type),
        shape=words[1:],
        strides=strides,
        itemsize=intp_t(size),
        meminfo=None,
    )
    return array._getvalue()


def pointer_to(kind: type[Any], **facts: bool) -> Any:
    """Return a function that in compiled code turns a table, see `table_of`, into a named tuple's like."""
    pointer = PointerType(kind, facts)

    @intrinsic
    def at(typing_context: Any, table: Any) -> Any:

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return make_array(signature.args[0])(context, builder, arguments[0]).data

        return pointer(table), generate

    return at


def compiled() -> bool:
    """Return whether kernels are compiled, and not run as plain Python."""
    return not numba.config.DISABLE_JIT
