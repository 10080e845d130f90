"""How compiled functions hold the memory of a network: one pointer instead of a tuple of arrays.

A tuple of two dozen arrays costs every function that is handed it over a hundred arguments: the
kernel then compiles for minutes and runs four times slower. Compiled code therefore sees a `World`
as a pointer to a table of addresses and shapes; its attributes are the arrays, as in Python.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.cgutils import intp_t
from numba.core.extending import intrinsic, lower_getattr_generic, models, register_model
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from validate.network.state import LAYOUT, World

_WORDS = 4  # of an array in the table: its address and up to three sizes


def table_of(w: World) -> Any:
    """Return addresses and shapes of a world's arrays; valid as long as it keeps them."""
    table = np.zeros((len(LAYOUT), _WORDS), dtype=np.int64)
    for row, array in zip(table, w, strict=False):
        row[0] = array.__array_interface__["data"][0]
        row[1 : 1 + array.ndim] = array.shape
    return table


class WorldType(types.Type):
    """What compiled code holds instead of a `World`."""

    def __init__(self) -> None:
        super().__init__(name="NetworkWorld")


WORLD = WorldType()


@register_model(WorldType)
class _WorldModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, intp_t.as_pointer())


_ARRAYS = {
    name: (place, types.Array(from_dtype(np.dtype(kind)), dimensions, "C"))
    for place, (name, (kind, dimensions)) in enumerate(LAYOUT.items())
}


@infer_getattr
class _WorldAttributes(AttributeTemplate):  # type: ignore[misc]
    key = WorldType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        return _ARRAYS[name][1] if name in _ARRAYS else None


@lower_getattr_generic(WorldType)  # type: ignore[untyped-decorator, unused-ignore]
def _attribute(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    place, array_type = _ARRAYS[name]
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


@intrinsic
def _world_at(typing_context: Any, table: Any) -> Any:

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return make_array(signature.args[0])(context, builder, arguments[0]).data

    return WORLD(table), generate


world_at: Any = _world_at
"""In compiled code: return the world of a table."""


def compiled() -> bool:
    """Return whether kernels are compiled, and not run as plain Python."""
    return not numba.config.DISABLE_JIT
