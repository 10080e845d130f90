"""Ranges of the numbers and words of a spec: declared with its fields, checked by one walker.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Memory(Declared, prefix="memory."):
...     channels: int = count(4, maximum=64)
...     mapping: str = choice("row", ("row", "random"))
>>> Memory(channels=0)
Traceback (most recent call last):
    ...
ValueError: memory.channels must be a whole number from 1 to 64, got 0.0
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, field, fields
from functools import partial
from typing import Any, TypeVar

import numpy as np

from qmodels import checks
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.fields import of_a_class
from qmodels.systems.spec.nested import check_parts

T = TypeVar("T")


def count(default: Any = MISSING, *, minimum: int = 1, maximum: int = checks.LARGEST_COUNT) -> Any:
    """Return a field of whole numbers in [minimum, maximum]; here as below it is required without default."""
    return _declared(default, partial(checks.count, minimum=minimum, maximum=maximum))


def positive(default: Any = MISSING) -> Any:
    """Return a field of finite numbers > 0; what is below 1e-100 counts as 0 and is refused."""
    return _declared(default, _positive)


def nonnegative(default: Any = MISSING, *, maximum: float = checks.LARGEST) -> Any:
    """Return a field of finite numbers >= 0 up to a largest; what is below 1e-100 is kept as 0."""
    return _declared(default, partial(_nonnegative, maximum=maximum), kept=_without_dust)


def at_least(default: T, minimum: float) -> T:
    """Return a field of numbers >= minimum, infinity among them."""
    return _declared(default, partial(checks.at_least, minimum=minimum))


def probability(default: T) -> T:
    """Return a field of numbers in [0, 1]."""
    return _declared(default, checks.probability)


def choice(default: Any = MISSING, allowed: Iterable[str] = ()) -> Any:
    """Return a field of one of the allowed words."""
    return _declared(default, partial(checks.choice, allowed=allowed))


class Declared(Documented):
    """A spec that checks its fields when it is made: annotations, then ranges, then what relates them.

    ``prefix``: what the names of the fields start with in messages, such as ``"workload."``.
    """

    _prefix = ""

    def __init_subclass__(cls, prefix: str = "", **named: Any) -> None:
        super().__init_subclass__(**named)
        cls._prefix = prefix or cls._prefix

    def __post_init__(self) -> None:
        check_parts(self, self._prefix)
        for name, check, kept in _ranges(type(self)):
            value = getattr(self, name)
            check(self._prefix + name, value)
            if kept is not None:
                object.__setattr__(self, name, kept(value))
        self._check_relations()

    def _check_relations(self) -> None:
        """Require what the fields demand of one another."""


def _declared(
    default: Any, check: Callable[[str, Any], Any], kept: Callable[[Any], Any] | None = None
) -> Any:
    return field(default=default, metadata={"check": check, "kept": kept})


def _positive(name: str, value: Any) -> None:
    checks.positive(name, value)
    checks.at_least(name, value, 1 / checks.LARGEST)


def _nonnegative(name: str, value: Any, *, maximum: float) -> None:
    array = checks.nonnegative(name, value)
    if np.any(array > maximum):
        raise ValueError(f"{name} must be from 0 to {maximum:g}, got {checks.shown(array.max())}")


def _without_dust(value: Any) -> Any:
    """Return numbers >= 0 without those whose inverses and products would leave the range of a float."""
    array = np.asarray(value)
    small = (array > 0) & (array < 1 / checks.LARGEST)
    if not small.any():
        return value
    return np.where(small, 0.0, array) if array.ndim else 0.0


@of_a_class
def _ranges(spec_type: Any) -> tuple[tuple[str, Callable[[str, Any], Any], Callable[[Any], Any] | None], ...]:
    """Return the fields that declare a range, its check, and what is kept of a value if not all of it."""
    declared = [one for one in fields(spec_type) if "check" in one.metadata]
    return tuple((one.name, one.metadata["check"], one.metadata["kept"]) for one in declared)
