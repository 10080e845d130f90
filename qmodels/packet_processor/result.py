"""The answer of the packet processor's model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from qmodels.answer import Answer


class Later(Mapping[str, Any]):
    """Values by name, each of which a function returns when it is first read.

    >>> squares = Later(("one", "two"), {"one": 1, "two": 4}.get)
    >>> squares["two"], squares
    (4, {'one': 1, 'two': 4})
    """

    def __init__(self, names: Iterable[str], value: Callable[[str], Any]) -> None:
        self._found: dict[str, Any] = dict.fromkeys(names, self)
        self._value: Callable[[str], Any] | None = value

    def __getitem__(self, name: str) -> Any:
        if self._found[name] is self and self._value is not None:
            self._found[name] = self._value(name)
            if not any(found is self for found in self._found.values()):
                self._value = None  # nor what it needs
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PacketAnswer(Answer):
    """An answer with every single resource beside the groups of them.

    Of each group ``utilization`` and ``traffic_intensity`` are those of its most loaded member; the
    bottleneck is the group that fills up first. Networks fill up before their links are busy all the
    time, and DRAM is not there while it is refreshed: the intensity is the load over what can be carried.
    Metrics, and errors, are computed when they are first read.

    Parameters
    ----------
    resources : mapping of str to float
        Traffic intensity of every single resource; only for a spec without array fields.
    """

    saved: ClassVar[tuple[str, ...]] = (*Answer.saved, "resources")

    resources: Mapping[str, float]
