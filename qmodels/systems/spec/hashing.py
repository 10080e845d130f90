"""Key of a value in a store: a text that is the same in every process and on every machine."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Collection, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from qmodels.systems.spec.fields import field_names, is_spec


def stable_hash(spec: Any) -> str:
    """Return the SHA-256 of what a spec says: the same in every process and on every machine.

    Equal specs hash alike: NumPy numbers as Python ones, whole floats as integers, arrays as lists,
    a trace by its packets and not by where they were read from. Class and field names count.
    """
    return hashlib.sha256(stable_text(spec, exact=False).encode()).hexdigest()


def stable_text(value: Any, *, without: Collection[str] = (), path: str = "", exact: bool = True) -> str:
    """Return a text that is the same in every process for equal values, for hashing.

    Fields of dataclasses are named; those whose dotted paths are in `without` are left out. A class
    may say the text of its instances itself, by the method ``__stable_text__``.

    ``value``: numbers, words, bytes, paths, arrays, dataclasses, and containers of these; ``without``: dotted
    paths to leave out; ``path``: where the value stands, for messages; ``exact``: whether 1.0 and 1, and an
    array and a list, are told apart.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not exact and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return repr(value)
    if isinstance(value, PurePath):
        return f"path:{value.as_posix()}"
    if isinstance(value, (bytes, bytearray)):
        return f"bytes:{hashlib.sha256(value).hexdigest()}"
    if hasattr(type(value), "__stable_text__"):
        return f"{type(value).__qualname__}:{value.__stable_text__()}"

    def inner(part: Any, here: str = path) -> str:
        return stable_text(part, without=without, path=here, exact=exact)

    if isinstance(value, np.ndarray):
        if not exact:
            return inner(value.tolist())
        if value.dtype.hasobject:
            return f"array:{inner(value.tolist())}"
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array:{value.dtype.str}:{value.shape}:{digest}"
    if is_spec(value):
        paths = {name: f"{path}.{name}" if path else name for name in field_names(type(value))}
        texts = [
            f"{name}={inner(getattr(value, name), here)}"
            for name, here in paths.items()
            if here not in without
        ]
        return f"{type(value).__qualname__}({','.join(texts)})"
    if isinstance(value, Mapping):
        return f"{{{','.join(sorted(f'{inner(key)}:{inner(one)}' for key, one in value.items()))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(inner, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"set:[{','.join(sorted(map(inner, value)))}]"
    raise ValueError(
        f"{path or 'the value'} cannot be part of a store's key: a {type(value).__name__} has no stable text"
    )
