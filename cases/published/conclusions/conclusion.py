"""One conclusion of a paper: its words, a margin that is computed from systems, and what it hangs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cases.published.rows import data_folder, read_toml
from qmodels import checks
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml

Reading = tuple[Any, str] | float
"""A system and the metric that is read of it, or a number that is known."""
Number = tuple[float, float]
"""A number that was read and half of its interval."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """What a conclusion hangs on, and the values at which it is asked."""

    name: str  # in words
    unit: str = ""  # of the values; empty for a plain number
    value: float  # the paper's, or that of our reading where the paper has none
    # Ascending values at which the margin is computed, ``value`` among them or between them.
    values: tuple[float, ...]
    whole: bool = False  # whether there is nothing between these values
    # Between which values the text leaves it open: a conclusion that turns there depends on a reading.
    open: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if list(self.values) != sorted(set(self.values)) or len(self.values) < 2:
            raise ValueError(f"values of {self.name} must be at least two, ascending, got {self.values}")
        if self.whole and self.value not in self.values:
            raise ValueError(f"value of {self.name} must be one of {self.values}, got {self.value!r}")
        if not self.values[0] <= self.value <= self.values[-1]:
            ends = f"{self.values[0]:g} to {self.values[-1]:g}"
            raise ValueError(f"value of {self.name} must be from {ends}, got {self.value!r}")

    @property
    def grid(self) -> tuple[float, ...]:
        """All values at which the margin is computed."""
        return tuple(sorted({*self.values, self.value}))


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """A conclusion of a paper as a question that is computed."""

    name: str  # key of its kept simulations
    words: str  # the paper's
    section: str  # where they stand
    margin: str  # what is computed, with its unit; positive where the conclusion holds
    assumption: str  # what it hangs on beside the parameter, or why
    # The published numbers behind it, a key of the case's tags (`cases.published.tags`); empty where there is
    # no number.
    group: str = ""
    parameter: Parameter  # what is varied
    # Returns what is read of which systems at a value of the parameter.
    readings: Callable[[float], Sequence[Reading]]
    of: Callable[..., float]  # returns the margin of the numbers that were read, in their order
    options: Mapping[str, Any] = field(default_factory=dict)  # of `validate.simulate`

    def solved(self, value: float) -> float:
        """Return the margin by the models at a value of the parameter."""
        from qmodels import solve

        def number(spec: Any, metrics: Sequence[str]) -> list[Number]:
            answer = solve(spec)
            return [(float(answer[metric]), 0.0) for metric in metrics]

        numbers = (best for best, _ in read(self.readings(value), number))
        return float(checks.finite(f"margin of {self.name} at {value:g}", self.of(*numbers)))

    def changed(self, changes: Mapping[str, Any]) -> Conclusion:
        """Return the conclusion on systems in which fields have other values, as ``--set`` takes them.

        Raises
        ------
        ValueError
            If a system has no such field, or the conclusion varies it or compares its values.
        """

        def readings(value: float) -> list[Reading]:
            before = self.readings(value)
            specs = {id(one[0]): one[0] for one in before if isinstance(one, tuple)}
            after = {key: with_fields(spec, changes) for key, spec in specs.items()}
            return [(after[id(one[0])], one[1]) if isinstance(one, tuple) else one for one in before]

        def systems(of: Callable[[float], Sequence[Reading]]) -> int:
            grid = self.parameter.grid
            return len({one[0] for value in grid for one in of(value) if isinstance(one, tuple)})

        if systems(readings) < systems(self.readings):
            raise ValueError(f"what is set is what it varies or compares: {', '.join(changes)}")
        return replace(self, readings=readings)


def with_fields(spec: Any, changes: Mapping[str, Any]) -> Any:
    """Return a system in which fields have other values, as ``--set`` takes them."""
    return spec_from_toml(to_toml(spec, kind=True), changes)


def stated(case: str, **usual: Any) -> Callable[..., Conclusion]:
    """Return what makes the conclusions of a paper by name, whose words stand beside its numbers."""
    words = read_toml(data_folder(case) / "conclusions.toml")
    return lambda name, **computed: Conclusion(name=name, **{**usual, **words[name], **computed})


def read(
    readings: Sequence[Reading], numbers: Callable[[Any, Sequence[str]], Sequence[Number]]
) -> list[Number]:
    """Return the numbers that are read, each system asked once for all metrics that are read of it."""
    wanted: dict[int, tuple[Any, dict[str, None]]] = {}
    for one in readings:
        if isinstance(one, tuple):
            wanted.setdefault(id(one[0]), (one[0], {}))[1][one[1]] = None
    found = {
        (name, metric): number
        for name, (spec, metrics) in wanted.items()
        for metric, number in zip(metrics, numbers(spec, list(metrics)), strict=True)
    }
    return [found[id(one[0]), one[1]] if isinstance(one, tuple) else (one, 0.0) for one in readings]


def same(values: Sequence[Any], metric: str) -> list[Reading]:
    """Return the same metric of several systems."""
    return [(spec, metric) for spec in values]


def saved(after: float, before: float) -> float:
    """Return the share that is saved, in percent.

    >>> saved(2.0, 8.0)
    75.0
    """
    return 100 * (1 - after / before)


def gained(after: float, before: float) -> float:
    """Return the share that is gained, in percent.

    >>> gained(9.0, 8.0)
    12.5
    """
    return 100 * (after / before - 1)
