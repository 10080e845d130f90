"""Parts that go by names of the user's choice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

Value = TypeVar("Value")


class Named(Mapping[str, Value]):
    """A mapping that does not change, for fields of frozen specs.

    The walker of fields goes into it as into a spec: its parts go by their names.

    Parameters
    ----------
    values : mapping
        ``{name: value}``; names are words without a dot.

    Raises
    ------
    ValueError
        If a name is none.

    Examples
    --------
    >>> named = Named({"near": 1, "far": 2})
    >>> named["far"], list(named), named == {"near": 1, "far": 2}
    (2, ['near', 'far'], True)
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        for name in values:
            if not isinstance(name, str) or not name or not name.isprintable() or "." in name:
                raise ValueError(f"a name must be a text without a dot and not empty, got {name!r}")
        self._values = dict(values)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == dict(other)

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Named, (self._values,)
