"""The answer of ``qmodels size``: the value of a field that meets conditions, and why not another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from cases.cli.console import Forms
from cases.cli.inputs import choices_of
from optimize.analysis.inverse import Size
from optimize.analysis.sizing import size as size_spec
from optimize.checks import Range, size_of
from optimize.spaces.stability import STABLE
from qmodels.systems.spec.conditions import conditions, plain, quantity
from qmodels.systems.spec.fields import find_field, get_field, replace_fields, takes_array
from qmodels.systems.spec.metrics import is_relative

REACH = 16
"""Times a real value, and its part, up to which is looked by default; whole numbers from 1 to 4 times it."""


FULL = "load of the fullest resource"


def sized(
    spec: Any, field: str, until: Iterable[str], *, within: str | None = None, which: str = "smallest"
) -> Forms:
    """Return the smallest or largest value of a field with which the model meets conditions, in words.

    Raises
    ------
    ValueError
        For an unknown field, no condition, or a range that is none.
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
    lines = _lines(spec, found, limits, which)
    names = ("status", "field", "value", "metrics", "misses", "best", "message")
    return Forms(
        text=lambda: "\n".join(lines),
        data=lambda: {name: getattr(found, name) for name in names} | {"answer": lines},
    )


def _range(field: str, own: Any, within: str | None) -> tuple[Any, Any]:
    if within is not None:
        ends = choices_of(f"{field}={within}")[1]
        if len(ends) != 2 or not all(isinstance(end, (int, float)) for end in ends):
            raise ValueError(f"--within must be LOW,HIGH, got {within!r}")
        return ends[0], ends[1]
    if isinstance(own, bool) or not isinstance(own, (int, float)) or own <= 0:
        raise ValueError(f"{field} must be a number > 0 to be sized without --within, got {own!r}")
    return (1, max(4 * REACH, REACH * own)) if isinstance(own, int) else (own / REACH, own * REACH)


def _lines(spec: Any, found: Size, limits: dict[str, Range], which: str) -> list[str]:
    name = _words(found.field)
    asked = " and ".join(_limit(spec, metric, limits[metric]) for metric in limits)
    if found.value is None:
        lines = [
            f"No {name} meets {asked}; the nearest is {found.best:.6g}.",
            _at(spec, found, found.best, limits),
        ]
        return lines + _range_words(found)
    lines = [f"{name.capitalize()} {found.value:.6g} is the {which} that meets {asked}."]
    lines.append(_at(spec, found, found.value, limits))
    if found.misses is not None:
        lines.append(_at(spec, found, found.misses, limits))
    lines += _trusted(spec, found, limits)
    return lines + _range_words(found)


def _range_words(found: Size) -> list[str]:
    """Return where a metric turns, and how far the spec takes the field."""
    end = found.message.find("the spec takes")
    kept = found.message if found.value is not None else found.message[end:] if end >= 0 else ""
    return [f"{kept[0].upper()}{kept[1:]}."] if kept else []


def _limit(spec: Any, metric: str, ends: Range) -> str:
    said = (
        f"{word} {quantity(spec, metric, bound)}"
        for word, bound in zip(("at least", "at most"), ends, strict=True)
        if bound is not None
    )
    return f"{_words(metric)} {' and '.join(said)}"


def _at(spec: Any, found: Size, value: Any, limits: dict[str, Range]) -> str:
    """Return the limited metrics at a value, how each keeps or misses its limit, and what is fullest."""
    from qmodels import solve

    answer: Any = solve(replace_fields(spec, {found.field: value}))
    parts = []
    for metric, ends in limits.items():
        number = float(answer.to_dict()[metric])
        room, bound = _room(number, ends)
        way = "of room" if room >= 0 else "beyond the limit"
        share = f" ({plain(100 * abs(room))} % {way})" if bound and np.isfinite(room) else ""
        parts.append(f"{_words(metric)} {quantity(spec, metric, number)}{share}")
    load = f"{100 * answer.bottleneck_load:.0f} %"
    full = f"; fullest: {answer.bottleneck} at {load}" if answer.bottleneck else ""
    full += "" if answer.stable else ": it does not keep up"
    return f"With {value:.6g}: {', '.join(parts)}{full}."


def _room(value: float, ends: Range) -> tuple[float, float]:
    """Return by which share of the tighter limit a value keeps it, and that limit."""
    low, high = ends
    sides = [((bound - value) * way / size_of(bound), bound) for way, bound in ((-1, low), (1, high))
             if bound is not None and np.isfinite(bound)]  # fmt: skip
    return min(sides, default=(np.inf, 0.0))


def _trusted(spec: Any, found: Size, limits: dict[str, Range]) -> list[str]:
    """Compare the room that is left with the error that the model states of itself."""
    from qmodels import solve

    answer: Any = solve(replace_fields(spec, {found.field: found.value}))
    lines = []
    for metric, ends in limits.items():
        error = answer.error.get(metric)
        if error is None or not np.isfinite(error.mean):
            continue
        room, bound = _room(found.metrics[metric], ends)
        mean, bias = error.mean, error.bias
        unit = "%"
        if not is_relative(metric):
            unit, room = "points", room * size_of(bound)
        word = "more" if 100 * room > mean else "less: simulate it before you build on it"
        lines.append(
            f"The model is off by {plain(mean)} {unit} on average in the {_words(metric)} at such loads "
            f"({bias:+.3g} signed): the room is {word}."
        )
    return lines


def _words(name: str) -> str:
    """Return the name of a metric, or of a field without the parts it is in, as words."""
    return name.rpartition(".")[2].replace("_", " ")
