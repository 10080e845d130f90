"""Metrics that are computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Lazy(Mapping[str, Any]):
    """Attributes of an object by name; each is computed when it is asked for.

    Parameters
    ----------
    source : object
        Has them as (cached) properties.
    names : tuple of str
        Which.

    Examples
    --------
    >>> parts = Lazy(3 + 4j, ("real", "imag"))
    >>> list(parts), parts["imag"]
    (['real', 'imag'], 4.0)
    """

    def __init__(self, source: Any, names: tuple[str, ...]) -> None:
        self._source, self._names = source, names

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return getattr(self._source, name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
