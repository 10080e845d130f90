"""Names of the user's choice for parts, and the public names of a package, which import what they need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
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


def attached(
    package: str, homes: Mapping[str, str], groups: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes``: the names that each module gives; those of the package itself are its modules; ``groups``:
    packages in it where a name that it has not is looked for, to say so.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in home:
            hint = "" if name.startswith("_") or find_spec(f"{package}.{name}") else elsewhere(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        module = home[name]
        value = (
            import_module(f"{module}.{name}") if module == package else getattr(import_module(module), name)
        )
        setattr(sys.modules[package], name, value)
        return value

    def elsewhere(name: str) -> str:
        found = [group for group in groups if name in import_module(f"{package}.{group}").__all__]
        return f"; it is {package}.{found[0]}.{name}" if found else ""

    return look_up, lambda: sorted(home), sorted(home)
