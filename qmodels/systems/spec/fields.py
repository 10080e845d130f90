"""The one walker of specs: fields of nested dataclasses by dotted name, read, replaced and swept.

It knows no device: anything that is a dataclass instance is a spec; tuples and `Named` may hold specs.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np

from qmodels.checks import Numeric
from qmodels.systems.spec.named import Named

Spec = TypeVar("Spec")
Made = TypeVar("Made")

CUTOFF = 0.6
"""Likeness from which a known name is suggested."""

WORD_CUTOFF = 0.8
"""Likeness from which one word of a field's name suggests it."""


def of_a_class(function: Callable[[Any], Made]) -> Callable[[Any], Made]:
    """Cache what a function says about a class."""
    return cache(function)


def is_spec(value: object) -> bool:
    """Return whether a value is a dataclass instance."""
    return hasattr(type(value), "__dataclass_fields__")


@of_a_class
def field_names(cls: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields that the constructor of a dataclass takes."""
    return tuple(field.name for field in dataclasses.fields(cls) if field.init)


@of_a_class
def numeric_names(cls: type[Any]) -> frozenset[str]:
    """Return the names of the fields that may hold arrays: those annotated with ``Numeric``."""
    annotations = {field.name: field.type for field in dataclasses.fields(cls)}
    return frozenset(
        name for name, hint in annotations.items() if hint == Numeric or str(hint).split(".")[-1] == "Numeric"
    )


def parts(value: Any) -> dict[str, Any]:
    """Return the parts of a spec, a tuple or a `Named` by name; nothing else has any.

    A part of a tuple goes by its own ``name``, or else by its number.
    """
    if is_spec(value):
        return {name: getattr(value, name) for name in field_names(type(value))}
    if type(value) is Named:
        return dict(value)
    if type(value) is not tuple:
        return {}
    names = [str(getattr(part, "name", k)) if is_spec(part) else str(k) for k, part in enumerate(value)]
    return dict(
        zip(names if len(set(names)) == len(names) else map(str, range(len(names))), value, strict=True)
    )


def is_branch(value: Any) -> bool:
    """Return whether a value is a spec, or a tuple or `Named` with one in it; anything else is a leaf."""
    if type(value) is Named:
        return any(map(is_branch, value.values()))
    if type(value) is not tuple:
        return is_spec(value)
    kinds = set(map(type, value))
    return any(hasattr(kind, "__dataclass_fields__") for kind in kinds) or (
        tuple in kinds and any(map(is_branch, value))
    )


def walk(value: Any, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield all fields of a spec, branches before what is in them: path, value, and if it may be an array."""
    numeric = numeric_names(type(value)) if is_spec(value) else ()
    for name, part in parts(value).items():
        yield prefix + name, part, name in numeric
        if is_branch(part):
            yield from walk(part, f"{prefix}{name}.")


def field_paths(spec: object) -> dict[str, Any]:
    """Return the leaf fields of a spec, ``{dotted path: value}``, in order of declaration.

    A field that holds a dataclass instance, or a tuple of them, is a branch; everything else
    (numbers, words, tuples of these, None) is a leaf. Fields that the constructor does not take are
    left out.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass(frozen=True)
    ... class Dram:
    ...     channels: int = 4
    ...     banks: int = 8
    >>> @dataclass(frozen=True)
    ... class Chip:
    ...     dram: Dram = Dram()
    ...     link_width: int = 16
    >>> field_paths(Chip())
    {'dram.channels': 4, 'dram.banks': 8, 'link_width': 16}
    """
    _require_spec(spec)
    return {path: value for path, value, _ in walk(spec) if not is_branch(value)}


def _require_spec(spec: object) -> None:
    if not is_spec(spec):
        raise ValueError(f"spec must be a dataclass instance, got {spec!r}")


def find_field(spec: object, name: str) -> str:
    """Return the dotted path that a name means.

    Parameters
    ----------
    spec : dataclass instance
        The (nested) spec.
    name : str
        A dotted path (``"dram.channels"``) or the end of one, if only one leaf field ends
        that way (``"channels"``); words in between may be left out (``"dram.channels"`` for
        ``parts.dram.geometry.channels``). A path or a unique end may also name a whole sub-spec. Parts of
        tuples go by their name, or else their number: ``stations.disk.servers``.

    Raises
    ------
    ValueError
        If no field or more than one has that name; the message lists the candidates.
    """
    _require_spec(spec)
    if name and _at(spec, name) is not None:
        return name
    for outer, part in parts(spec).items():  # names that users gave come before those of fields deeper inside
        if name and type(part) is Named and is_branch(part) and _at(part, name) is not None:
            return f"{outer}.{name}"
    walked = [(path, is_branch(value)) for path, value, _ in walk(spec)]
    leaves = [path for path, branch in walked if not branch]
    for paths in (leaves, [path for path, _ in walked]):
        ends = [path for path in paths if path.endswith(f".{name}")] or [
            path for path in paths if _leads_to(name, path)
        ]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise ValueError(f"field {name!r} is ambiguous: it may be {' or '.join(ends)}")
    raise ValueError(f"{type(spec).__name__} has no field {name!r}{_suggestion(name, leaves)}")


def _leads_to(name: str, path: str) -> bool:
    """Return whether a path ends with the last word of a name and has the others before it, in order."""
    words = iter(path.split("."))
    return path.rpartition(".")[2] == name.rpartition(".")[2] and all(
        word in words for word in name.split(".")
    )


def find_fields(spec: object, names: Iterable[str], what: str = "fields") -> dict[str, str]:
    """Return the dotted path of each of some names; ValueError if one is in another, or the same."""
    paths: dict[str, str] = {}
    for name in names:
        path = find_field(spec, name)
        for other, taken in paths.items():
            if f"{path}.".startswith(f"{taken}.") or f"{taken}.".startswith(f"{path}."):
                raise ValueError(f"{what} {other!r} and {name!r} overlap: {taken} and {path}")
        paths[name] = path
    return paths


def _at(value: Any, path: str) -> tuple[Any] | None:
    """Return the part of a value at a full path, in a tuple; None if there is none."""
    while path:
        inside = parts(value)
        name = _first(inside, path)
        if name is None or path == f"{name}.":
            return None
        value, path = inside[name], path[len(name) + 1 :]
    return (value,)


def _first(names: Mapping[str, Any], path: str) -> str | None:
    """Return the name that a path begins with; the names of parts may have dots in them."""
    head = path.partition(".")[0]
    return head if head in names else next((n for n in names if f"{path}.".startswith(f"{n}.")), None)


def _suggestion(name: str, paths: list[str]) -> str:
    """Return which fields may be meant: those spelt alike, and those of which one word is spelt alike."""
    ends = {path: path if "." in name else path.rpartition(".")[2] for path in paths}

    def likeness(path: str) -> float:
        words = [] if "." in name else ends[path].split("_")
        return max(
            _alike(name, ends[path]), *(_alike(name, word) - WORD_CUTOFF + CUTOFF for word in words), 0
        )

    close = sorted((path for path in paths if likeness(path) >= CUTOFF), key=likeness, reverse=True)
    if not close:
        return f"; known are {', '.join(dict.fromkeys(ends.values()))}" if ends else ""
    # Of several, the end alone may be a field of another part, or say too little of what it is.
    shown = [ends[close[0]]] if len(close) == 1 else close[:3]
    return f"; did you mean {' or '.join(map(repr, shown))}?"


def _alike(word: str, other: str) -> float:
    return difflib.SequenceMatcher(None, word, other).ratio()


def get_field(spec: object, name: str) -> Any:
    """Return the value of the field that `find_field` finds under that name."""
    found = _at(spec, find_field(spec, name))
    assert found is not None
    return found[0]


def replace_fields(spec: Spec, values: Mapping[str, Any]) -> Spec:
    """Return a copy of a spec with some fields replaced, however deep they are.

    Each dataclass on the way is rebuilt once with all its new values, so that its own
    validation sees the final combination. Values are not converted.

    Parameters
    ----------
    spec : dataclass instance
        The spec; it is not changed.
    values : mapping
        ``{name: value}`` with names as `find_field` takes them.

    Raises
    ------
    ValueError
        For an unknown or ambiguous name, two names of one field, or a value that the spec
        itself refuses.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Dram:
    ...     channels: int = 4
    >>> @dataclass(frozen=True)
    ... class Chip:
    ...     dram: Dram = Dram()
    ...     link_width: int = 16
    >>> replace_fields(Chip(), {"channels": 8, "link_width": 32})
    Chip(dram=Dram(channels=8), link_width=32)
    """
    paths = find_fields(spec, values)
    changed: Spec = replace_paths(spec, {paths[name]: value for name, value in values.items()})
    return changed


def replace_paths(spec: Any, values: Mapping[str, Any]) -> Any:
    """Do the work of `replace_fields` for full dotted paths that do not overlap."""
    if "" in values:
        return values[""]
    inside = parts(spec)
    inner: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        name = _first(inside, path)
        if name is None:
            raise ValueError(f"{type(spec).__name__} has no field {path!r}")
        inner.setdefault(name, {})[path[len(name) + 1 :]] = value
    changed = {name: replace_paths(inside[name], deeper) for name, deeper in inner.items()}
    if is_spec(spec):
        return dataclasses.replace(spec, **changed)
    together = {**inside, **changed}
    return Named(together) if type(spec) is Named else tuple(together.values())


def takes_array(spec: Any, name: str) -> bool:
    """Return whether a field, by the name that `find_field` takes, may hold an array."""
    path = find_field(spec, name)
    return any(numeric for one, _, numeric in walk(spec) if one == path)


def array_fields(spec: Any) -> dict[str, Any]:
    """Return the fields of a spec that hold arrays where one number is usual, as they are."""
    return {path: np.asarray(value) for path, value, numeric in walk(spec) if numeric and np.ndim(value)}


def swept_fields(spec: Any) -> dict[str, Any]:
    """Return the fields of a spec that hold arrays where one number is usual, broadcast to one shape."""
    found = array_fields(spec)
    shape = np.broadcast_shapes(*(value.shape for value in found.values()))
    return {path: np.broadcast_to(value, shape) for path, value in found.items()}


def points_of(spec: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the settings and the spec of each point of a spec with array fields."""
    columns = {path: value.ravel().tolist() for path, value in swept_fields(spec).items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, [replace_paths(spec, row) for row in rows]


def varied_fields(specs: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the plain values in which specs differ, by dotted name; None where a spec has no such field."""
    flat = [dict(_plain_values(spec, "")) for spec in specs]
    names = dict.fromkeys(name for values in flat for name in values)
    columns = {name: [values.get(name) for values in flat] for name in names}
    return {name: values for name, values in columns.items() if any(v != values[0] for v in values[1:])}


def _plain_values(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bool | int | float | str | np.number):
        yield path, value
    for name, part in parts(tuple(value) if isinstance(value, list) else value).items():
        yield from _plain_values(part, f"{path}.{name}" if path else name)


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
