"""Addressing and replacing the fields of nested dataclasses by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from optimize.checks import CUTOFF, alike, nearest

Spec = TypeVar("Spec")

WORD_CUTOFF = 0.8
"""Likeness from which one word of a field's name suggests it."""


def _is_spec(value: object) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _walk(spec: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    for field in dataclasses.fields(spec):  # type: ignore[arg-type]
        if field.init:
            value = getattr(spec, field.name)
            yield prefix + field.name, value
            if _is_spec(value):
                yield from _walk(value, f"{prefix}{field.name}.")


def field_paths(spec: object) -> dict[str, object]:
    """Return the leaf fields of a spec, ``{dotted path: value}``, in order of declaration.

    A field that holds a dataclass instance is a branch; everything else (numbers, words,
    tuples, None) is a leaf. Fields that the constructor does not take are left out.

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
    if not _is_spec(spec):
        raise ValueError(f"spec must be a dataclass instance, got {spec!r}")
    return {path: value for path, value in _walk(spec) if not _is_spec(value)}


def find_field(spec: object, name: str) -> str:
    """Return the dotted path that a name means.

    Parameters
    ----------
    spec : dataclass instance
        The (nested) spec.
    name : str
        A dotted path (``"dram.channels"``) or the end of one, if only one leaf field ends
        that way (``"channels"``). A path or a unique end may also name a whole sub-spec.

    Raises
    ------
    ValueError
        If no field or more than one has that name; the message lists the candidates.
    """
    leaves = field_paths(spec)
    everything = [path for path, _ in _walk(spec)]
    if name in everything:
        return name
    for paths in (list(leaves), everything):
        ends = [path for path in paths if path.endswith(f".{name}")]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise ValueError(f"field {name!r} is ambiguous: it may be {' or '.join(ends)}")
    raise ValueError(f"{type(spec).__name__} has no field {name!r}{_suggestion(name, list(leaves))}")


def _suggestion(name: str, paths: list[str]) -> str:
    """Return which fields may be meant: those spelt alike, and those of which one word is spelt alike."""
    if "." in name:
        return nearest(name, paths)
    ends = {path: path.rpartition(".")[2] for path in paths}
    likeness = {
        path: max(
            alike(name, end), *(alike(name, word) - WORD_CUTOFF + CUTOFF for word in end.split("_")), 0.0
        )
        for path, end in ends.items()
    }
    close = sorted((path for path in paths if likeness[path] >= CUTOFF), key=lambda path: -likeness[path])
    if len(close) == 1:
        return nearest(ends[close[0]], [ends[close[0]]])
    # The end alone may be a field of another part, or say too little of what it is.
    return f"; did you mean {' or '.join(map(repr, close[:3]))}?" if close else nearest(name, ends.values())


def get_field(spec: object, name: str) -> Any:
    """Return the value of the field that `find_field` finds under that name."""
    value = spec
    for part in find_field(spec, name).split("."):
        value = getattr(value, part)
    return value


def replace_fields(spec: Spec, values: Mapping[str, object]) -> Spec:
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
    paths: dict[str, str] = {}
    for name in values:
        path = find_field(spec, name)
        for other, taken in paths.items():
            if f"{path}.".startswith(f"{taken}.") or f"{taken}.".startswith(f"{path}."):
                raise ValueError(f"fields {other!r} and {name!r} overlap: {taken} and {path}")
        paths[name] = path
    return replace_paths(spec, {paths[name]: value for name, value in values.items()})


def replace_paths(spec: Spec, values: Mapping[str, object]) -> Spec:
    """Do the work of `replace_fields` for full dotted paths that do not overlap."""
    own: dict[str, object] = {}
    nested: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        head, _, rest = path.partition(".")
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            own[head] = value
    for head, inner in nested.items():
        own[head] = replace_paths(getattr(spec, head), inner)
    return dataclasses.replace(spec, **own)  # type: ignore[type-var]
