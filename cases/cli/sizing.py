"""The answer of ``qmodels size``: the value of a field that meets conditions, and why not another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cases.cli.inputs import choices_of
from cases.study.details import rescaled
from cases.study.goals import traffic_of
from optimize.analysis.inverse import Size
from optimize.analysis.sizing import size as size_spec
from optimize.checks import Range, size_of
from optimize.spaces.evaluation import STABLE
from qmodels.systems.spec.conditions import conditions, plain, quantity
from qmodels.systems.spec.fields import find_field, get_field, replace_fields, takes_array
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.spec.result import table_html
from qmodels.systems.traffic.arrivals import Workload

REACH = 16
"""Times a real value, and its part, up to which is looked by default; whole numbers from 1 to 4 times it."""

FULL = "load of the fullest resource"


@dataclass(frozen=True, kw_only=True)
class Sized:
    """A field sized: shown, it is its answer in words.

    ``found``: the value, the spec with it, and what misses, see `optimize.size`; ``lines``: the words.
    """

    found: Size
    lines: tuple[str, ...]

    @property
    def value(self) -> Any:
        """The value; None if no value meets the conditions."""
        return self.found.value

    @property
    def spec(self) -> Any:
        """The system with the value, or with the nearest one if none meets the conditions."""
        return self.found.spec

    def text(self) -> str:
        """Return it for a terminal."""
        return "\n".join(self.lines)

    __repr__ = text

    def _repr_html_(self) -> str:
        return table_html("", (), self.lines)

    def data(self) -> dict[str, Any]:
        """Return it for a program."""
        names = ("status", "field", "value", "metrics", "misses", "best", "message")
        return {name: getattr(self.found, name) for name in names} | {"answer": list(self.lines)}


def sized(
    spec: Any,
    field: str,
    until: Iterable[str] | str,
    *,
    within: str | tuple[Any, Any] | None = None,
    which: str = "smallest",
) -> Sized:
    """Return the smallest or largest value of a field with which the model meets conditions, in words.

    Raises ValueError for an unknown field, no condition, or a range that is none.
    """
    from qmodels import solve

    def metrics(one: Any) -> dict[str, Any]:
        answer: Any = solve(one)
        return answer.to_dict() | {FULL: np.nan_to_num(answer.bottleneck_load, nan=0.0)}

    path = find_field(spec, field)
    limits = conditions(spec, until)
    if not limits:
        raise ValueError('--until must state a condition, such as "packet_latency_p99 < 2us", got none')
    found = size_spec(
        spec,
        metrics,
        path,
        subject_to={**limits, STABLE: (1.0, None), FULL: (None, 1.0)},
        within=_range(field, get_field(spec, path), within),
        which=which,
        vectorized=takes_array(spec, path),
    )
    found = replace(found, metrics={name: value for name, value in found.metrics.items() if name in limits})
    return Sized(found=found, lines=tuple(_lines(spec, found, limits, which)))


def _range(field: str, own: Any, within: str | tuple[Any, Any] | None) -> tuple[Any, Any]:
    if isinstance(within, tuple):
        return within
    if within is not None:
        ends = choices_of(f"{field}={within}")[1]
        if len(ends) != 2 or not all(isinstance(end, (int, float)) for end in ends):
            raise ValueError(f"--within must be LOW,HIGH, got {within!r}")
        return ends[0], ends[1]
    if isinstance(own, bool) or not isinstance(own, (int, float)) or own <= 0:
        raise ValueError(f"{field} must be a number > 0 to be sized without --within, got {own!r}")
    return (1, max(4 * REACH, REACH * own)) if isinstance(own, int) else (own / REACH, own * REACH)


def _lines(spec: Any, found: Size, limits: dict[str, Range], which: str) -> list[str]:
    name, met = _words(found.field), found.value is not None
    asked = " and ".join(_limit(spec, metric, limits[metric]) for metric in limits)
    answer = _answer(spec, found, found.best)
    shown = {found.best: answer}
    if met and found.misses is not None:
        shown[found.misses] = _answer(spec, found, found.misses)
    return [
        f"{name.capitalize()} {found.value:.6g} is the {which} that meets {asked}."
        if met
        else f"No {name} meets {asked}; the nearest is {found.best:.6g}.",
        *_traffic(spec, found.field),
        *(_at(spec, one, value, limits) for value, one in shown.items()),
        *_trusted(answer, found, limits),
        *_range_words(found, limits),
    ]


def _traffic(spec: Any, sized_field: str) -> list[str]:
    """Return what a system is offered, unless that is the field."""
    workload = getattr(spec, "workload", None)
    if isinstance(workload, Workload):
        offered = float(workload.offered_gbps * workload.load_factor)
        bytes_each = f"packets of {plain(workload.sizes.mean_bytes)} bytes on average"
        varies = sized_field in ("workload.offered_gbps", "workload.load_factor")
        rate = bytes_each.capitalize() if varies else f"{plain(offered)} Gb/s of {bytes_each}"
        return [f"Traffic: {rate}{'' if varies else rescaled(spec)}."]
    path = traffic_of(spec)
    if path is None or path == sized_field:
        return []
    return [f"Traffic: {path.replace('_', ' ')} {plain(get_field(spec, path))}."]


def _answer(spec: Any, found: Size, value: Any) -> Any:
    from qmodels import solve

    return solve(replace_fields(spec, {found.field: value}))


def _range_words(found: Size, limits: Iterable[str]) -> list[str]:
    """Return where a metric turns, and how far the spec takes the field."""
    end = found.message.find("the spec takes")
    kept = found.message if found.value is not None else found.message[end:] if end >= 0 else ""
    for metric in limits:
        kept = kept.replace(metric, _words(metric))
    return [f"{kept[0].upper()}{kept[1:]}."] if kept else []


def _limit(spec: Any, metric: str, ends: Range) -> str:
    said = (
        f"{word} {quantity(spec, metric, bound)}"
        for word, bound in zip(("at least", "at most"), ends, strict=True)
        if bound is not None
    )
    return f"{_words(metric)} {' and '.join(said)}"


def _at(spec: Any, answer: Any, value: Any, limits: dict[str, Range]) -> str:
    """Return the limited metrics at a value with their intervals, the room of each, and what is fullest."""
    parts = []
    for metric, ends in limits.items():
        number = float(answer.to_dict()[metric])
        room, bound = _room(number, ends)
        said = [f"{plain(100 * abs(room))} % {'inside' if room >= 0 else 'beyond'} the limit"]
        low, high = answer.ends(metric) or (number, number)
        spread = [f"90 % interval {quantity(spec, metric, low)} to {quantity(spec, metric, high)}"]
        beside = [*(said if bound and np.isfinite(room) else []), *(spread if low < high < np.inf else [])]
        more = f" ({'; '.join(beside)})" if beside else ""
        parts.append(f"{_words(metric)} {quantity(spec, metric, number)}{more}")
    full = (
        f"; bottleneck: {answer.bottleneck} at {100 * answer.bottleneck_load:.0f} %"
        if answer.bottleneck
        else ""
    )
    return f"With {value:.6g}: {', '.join(parts)}{full}{'' if answer.stable else ': overloaded'}."


def _room(value: float, ends: Range) -> tuple[float, float]:
    """Return by which share of the tighter limit a value keeps it, and that limit."""
    sides = [((bound - value) * way / size_of(bound), bound) for way, bound in zip((-1, 1), ends, strict=True)
             if bound is not None and np.isfinite(bound)]  # fmt: skip
    return min(sides, default=(np.inf, 0.0))


def _trusted(answer: Any, found: Size, limits: dict[str, Range]) -> list[str]:
    """Compare the room that is left, or lacks, with the error that the model states of itself."""
    lines = []
    for metric, ends in limits.items():
        error = answer.error.get(metric)
        if error is None or not np.isfinite(error.mean):
            continue
        room, bound = _room(found.metrics[metric], ends)
        unit = "%"
        if not is_relative(metric):
            unit, room = "points", room * size_of(bound)
        verdict = "more" if 100 * abs(room) > error.mean else "less: simulate it before you build on it"
        lines.append(
            f"The model is off by {plain(error.mean)} {unit} on average in the {_words(metric)} at such "
            f"loads ({error.bias:+.3g} signed): the {'room' if room >= 0 else 'miss'} is {verdict}."
        )
    return lines


def _words(name: str) -> str:
    """Return the name of a metric, or of a field without the parts it is in, as words."""
    return name.rpartition(".")[2].replace("_", " ")
