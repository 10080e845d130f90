"""The answer of the packet processor's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from qmodels.answer import Answer


class Later(Mapping[str, Any]):
    """Values by name; those given as functions are computed when they are first read.

    >>> squares = Later({"two": 4, "three": lambda: 9})
    >>> squares["three"], squares
    (9, {'two': 4, 'three': 9})
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        value = self._values[name]
        if callable(value):
            value = self._values[name] = value()
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

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

    Parameters
    ----------
    resources : mapping of str to float
        Traffic intensity of every single resource; only for a spec without array fields.
    """

    saved: ClassVar[tuple[str, ...]] = (*Answer.saved, "resources")

    resources: Mapping[str, float]
