"""Conclusions of papers: a margin computed from systems, where it turns, the verdict, and kept simulations.

``python -m cases.published.conclusions [CASE]`` simulates a conclusion at the paper's value, and on both
sides of where the models turn, further and further from it until the intervals decide, and in between until
the turn is known to a tenth; where the models do not turn, at the ends of the range; and at the paper's value
in every other reading of what the text leaves open. What is kept is known by the systems it was simulated
for: another reading of a paper makes it stale, and then it is not used. All take some minutes on one core.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, product
from math import sqrt
from pathlib import Path
from typing import Any

from cases.published import CASES
from cases.published.computing import saturation
from cases.published.numbers import data_folder, write_rows
from cases.published.paper import Paper, published_case
from cases.published.tables import evaluate
from cases.tables import read_rows
from qmodels import checks
from qmodels.systems.spec.fields import replace_fields, stable_text
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml

Reading = tuple[Any, str]  # A system and the metric that is read of it
Number = tuple[float, float]  # A number that was read and half of its interval
Curve = tuple[tuple[float, float], ...]  # values of a parameter and margins there
Turn = tuple[float, float, int]
"""Values of a parameter between which margins change their sign, and how often."""

CONFIRMED, CONTRADICTED, DEPENDS = "confirmed", "contradicted", "depends"
AWAY = (0.05, 0.1, 0.2, 0.4)
"""How far from a turn both sides are looked at, as a share of the range on that side."""
NEAR = 0.1  # relative distance within which a simulated turn confirms the models', and its width
AROUND = 0.06  # share of a turn's value on either side of it in which margins may change their sign again


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """Parameter of a conclusion, and the values at which it is asked."""

    name: str  # in words
    unit: str = ""  # of the values; empty for a plain number
    value: float  # the paper's, or that of our reading where the paper has none
    # Ascending values at which the margin is computed, ``value`` among them or between them.
    values: tuple[float, ...]
    whole: bool = False  # whether there is nothing between these values
    # Between which values the text leaves it open: a conclusion that turns there depends on a reading.
    open: tuple[float, float] | None = None
    fine: int = 12  # at how many values around a turn further ones are looked for

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
    # The published numbers behind it, a key of the case's tags; empty where there is no number.
    group: str = ""
    parameter: Parameter  # what is varied
    # Returns what is read of which systems at a value of the parameter.
    readings: Callable[[float], Sequence[Reading]]
    of: Callable[..., float]  # returns the margin of the parameter's value and the numbers that were read
    # Other readings of what the text leaves open, by name: what becomes of a system.
    others: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)  # of `validate.simulate`

    def solved(self, value: float) -> float:
        """Return the margin by the models at a value of the parameter."""
        from qmodels import solve

        def number(spec: Any, metrics: Sequence[str]) -> list[Number]:
            answer = solve(spec)
            return [(float(answer[metric]), 0.0) for metric in metrics]

        numbers = (best for best, _ in read(self.readings(value), number))
        return float(checks.finite(f"margin of {self.name} at {value:g}", self.of(value, *numbers)))

    def on(self, change: Callable[[Any], Any]) -> Conclusion:
        """Return the conclusion on systems that are changed, each once."""

        def readings(value: float) -> list[Reading]:
            before = self.readings(value)
            after = {key: change(spec) for key, spec in {id(spec): spec for spec, _ in before}.items()}
            return [(after[id(spec)], metric) for spec, metric in before]

        return replace(self, readings=readings)

    @property
    def every(self) -> dict[str, Conclusion]:
        """It, without a name, and its other readings by name."""
        return {"": self, **{name: self.on(change) for name, change in self.others.items()}}

    def changed(self, changes: Mapping[str, Any]) -> Conclusion:
        """Return the conclusion on systems in which fields have other values, as ``--set`` takes them.

        Raises ValueError if a system has no such field, or the conclusion varies it or compares its values.
        """
        after = self.on(lambda spec: spec_from_toml(to_toml(spec, kind=True), changes))

        def systems(of: Conclusion) -> int:
            grid = self.parameter.grid
            return len({spec for value in grid for spec, _ in of.readings(value)})

        if systems(after) < systems(self):
            raise ValueError(f"what is set is what it varies or compares: {', '.join(changes)}")
        return after


def conclusions_of(case: str) -> tuple[Conclusion, ...]:
    """Return the conclusions of a bundled paper."""
    paper = published_case(case)
    return tuple(_stated(paper, name, one) for name, one in paper.data["conclusions"].items())


def _stated(paper: Paper, name: str, one: Mapping[str, Any]) -> Conclusion:
    """Return a conclusion of a paper's data.

    ``systems``: expressions by name, of a system or a list of them at a value ``x`` of the parameter, of
    each of which ``metric`` is read, or each of ``metrics``; ``of``: the margin, an expression over the
    numbers by these names, and ``x``; ``others``: other readings by name, values of fields or an expression
    of the changed ``spec``, or the name of such a table of the paper.
    """
    names = paper.names
    known = {key: value for key, value in one.items() if key in Conclusion.__dataclass_fields__}
    parameter = _parameter(paper, one["parameter"])
    counts: dict[str, int | None] = {}
    metrics = [one["metric"]] if "metric" in one else evaluate(one["metrics"], names)

    def readings(x: float) -> list[Reading]:
        found: list[Reading] = []
        for key, text in one["systems"].items():
            specs = evaluate(text, {**names, "x": round(x) if parameter.whole else x})
            alone = not isinstance(specs, (list, tuple))
            mine = list(product([specs] if alone else specs, metrics))
            counts[key] = None if alone and len(metrics) == 1 else len(mine)
            found += mine
        return found

    def of(x: float, *numbers: float) -> float:
        left, values = list(numbers), dict[str, Any](x=x)
        for key, count in counts.items():
            values[key] = left.pop(0) if count is None else [left.pop(0) for _ in range(count)]
        return evaluate(one["of"], {**names, **values})

    def changing(change: Any) -> Callable[[Any], Any]:
        if isinstance(change, str):
            return lambda spec: evaluate(change, {**names, "spec": spec})
        return lambda spec: replace_fields(spec, change)

    others = one.get("others", {})
    others = paper.data[others] if isinstance(others, str) else others
    made = {"name": name, "parameter": parameter, "readings": readings, "of": of}
    made["others"] = {key: changing(value) for key, value in others.items()}
    made["options"] = one.get("options", paper.data.get("conclusion_options", {}))
    return Conclusion(**{**known, **made})


def _parameter(paper: Paper, one: str | Mapping[str, Any]) -> Parameter:
    """Return a parameter; one that is ``like`` another differs in what it has itself."""
    shared = paper.data.get("parameters", {})
    values = dict(shared[one] if isinstance(one, str) else {**shared.get(one.get("like"), {}), **one})
    values.pop("like", None)
    for name in ("value", "values", "open"):
        listed = isinstance(values.get(name), list)
        if name in values:
            every = [evaluate(value, paper.names) for value in (values[name] if listed else [values[name]])]
            values[name] = tuple(every) if listed else every[0]
    return Parameter(**{**values, "open": values.get("open") or None})


def read(
    readings: Sequence[Reading], numbers: Callable[[Any, Sequence[str]], Sequence[Number]]
) -> list[Number]:
    """Return the numbers that are read, each system asked once for all metrics that are read of it."""
    wanted: dict[int, tuple[Any, dict[str, None]]] = {}
    for spec, metric in readings:
        wanted.setdefault(id(spec), (spec, {}))[1][metric] = None
    found = {
        (name, metric): number
        for name, (spec, metrics) in wanted.items()
        for metric, number in zip(metrics, numbers(spec, list(metrics)), strict=True)
    }
    return [found[id(spec), metric] for spec, metric in readings]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A simulated margin."""

    value: float  # of the parameter
    # margin, half_width: the margin and half of its interval of 95 %.
    margin: float
    half_width: float
    reading: str = ""  # the name of another reading

    @property
    def holds(self) -> bool | None:
        """Whether the conclusion holds there; None where the interval leaves it open."""
        return None if abs(self.margin) <= self.half_width else self.margin > 0


@dataclass(frozen=True, kw_only=True)
class Found:
    """Margins of a conclusion by the models and by simulation."""

    conclusion: Conclusion  # what was asked
    curve: Curve  # margins by the models over the parameter
    margin: float  # the one at the paper's value
    # All places where the models turn, the nearest to the paper's value first: the values between which they
    # do, and how many times; twice the same value for one turn of a parameter that is continuous.
    turns: tuple[Turn, ...] = ()
    checks: tuple[Check, ...] = ()  # simulated margins of the very same systems
    # Margins at the paper's value in other readings, by name: by the models, and simulated as far as kept.
    others: Mapping[str, tuple[float, Check | None]] = field(default_factory=dict)
    stale: int = 0  # how many kept simulations are of other systems than those of today, and were left out

    @property
    def flip(self) -> tuple[float, float] | None:
        """The nearest place where the models turn; None if nowhere in the range."""
        return self.turns[0][:2] if self.turns else None

    @property
    def simulated(self) -> Check | None:
        """The simulated margin at the paper's value."""
        value = self.conclusion.parameter.value
        return next((check for check in self.checks if check.value == value), None)

    @property
    def turns_in_what_is_open(self) -> bool:
        """Whether the models turn at a value that the text allows."""
        parameter = self.conclusion.parameter
        if parameter.open is None or self.flip is None:
            return False
        low, high = parameter.open
        if parameter.whole:
            return any((margin > 0) != (self.margin > 0) for x, margin in self.curve if low <= x <= high)
        return low <= self.flip[0] <= high

    @property
    def verdict(self) -> str:
        """The models and the simulation together, over all readings.

        "depends" where they differ, where the simulated interval has 0 in it, where the conclusion turns at a
        value that the text leaves open, or where another reading decides otherwise.
        """
        model = self.margin > 0
        simulated = model if self.simulated is None else self.simulated.holds
        otherwise = any(
            (margin > 0) is not model and (one is None or one.holds is not model)
            for margin, one in self.others.values()
        )
        if simulated != model or self.turns_in_what_is_open or otherwise:
            return DEPENDS
        return CONFIRMED if model else CONTRADICTED

    @property
    def simulated_flip(self) -> tuple[float, float] | None:
        """Between which values of the parameter the simulation turns, nearest to the models' turn.

        Neighbouring values that are decided otherwise; of a continuous parameter the ends of where the
        intervals of the margins, interpolated between all simulated values, have 0 in them.
        """
        decided = [(c.value, c.holds) for c in self.checks if c.holds is not None]
        turns = [(a, b) for (a, here), (b, there) in pairwise(decided) if here is not there]
        near = self.flip[0] if self.flip else self.conclusion.parameter.value
        ends = min(turns, key=lambda ends: abs(sum(ends) / 2 - near), default=None)
        if ends is None or self.conclusion.parameter.whole:
            return ends
        inside = [c for c in self.checks if ends[0] <= c.value <= ends[1]]
        sign = 1 if inside[0].margin > 0 else -1

        def zero(side: int) -> float:
            ends = [(c.value, sign * c.margin + side * c.half_width) for c in inside]
            return next(
                a + (b - a) * here / (here - there)
                for (a, here), (b, there) in pairwise(ends)
                if here > 0 >= there
            )

        return zero(-1), zero(1)

    @property
    def flip_confirmed(self) -> bool | None:
        """Whether the simulation turns within a tenth of where the models do, or nowhere as they.

        None if it is not simulated.
        """
        if len(self.checks) < 2:
            return None
        simulated = self.simulated_flip
        if self.flip is None or simulated is None:
            return self.flip is None and simulated is None
        apart = max(self.flip[0] - simulated[1], simulated[0] - self.flip[1])
        return apart <= NEAR * abs(self.flip[0])


def find(conclusion: Conclusion, checks: Iterable[Check] = (), stale: int = 0) -> Found:
    """Return the margins of a conclusion and of its other readings, modelled beside simulated."""
    parameter, every = conclusion.parameter, sorted(checks, key=lambda check: check.value)
    curve = tuple((value, conclusion.solved(value)) for value in parameter.grid)
    known = {check.reading: check for check in every}
    others = {
        name: (of.solved(parameter.value), known.get(name)) for name, of in conclusion.every.items() if name
    }
    return Found(
        conclusion=conclusion,
        curve=curve,
        margin=dict(curve)[parameter.value],
        turns=turns_of(conclusion.solved, curve, parameter),
        checks=tuple(check for check in every if not check.reading),
        others=others,
        stale=stale,
    )


def turns_of(margin: Callable[[float], float], curve: Curve, parameter: Parameter) -> tuple[Turn, ...]:
    """Return where a margin turns that is known at some values, see `Found.turns`."""
    from scipy.optimize import brentq

    found = [(low, high, 1) for low, high in signs_change(curve)]
    if not parameter.whole:
        known = dict(curve)
        roots = {(a, b): float(brentq(margin, a, b, xtol=1e-4 * (b - a), rtol=1e-6)) for a, b, _ in found}
        for root in roots.values():
            near = (
                root * (1 - AROUND + 2 * AROUND * k / (parameter.fine - 1)) for k in range(parameter.fine)
            )
            known |= {x: margin(x) for x in near if curve[0][0] < x < curve[-1][0]}
        found = []
        for low, high in signs_change(sorted(known.items())):
            if found and low - found[-1][1] <= 2 * AROUND * abs(low):
                found[-1] = (found[-1][0], high, found[-1][2] + 1)
            else:
                found.append((low, high, 1))
        for k, (low, high, times) in enumerate(found):
            inside = [root for root in roots.values() if low <= root <= high]
            found[k] = (inside[0], inside[0], 1) if times == 1 and inside else (low, high, times)
    # A place that begins or ends at the paper's value is at no distance from it.
    return tuple(sorted(found, key=lambda one: max(one[0] - parameter.value, parameter.value - one[1])))


def signs_change(curve: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the neighbouring values between which margins change their sign."""
    return [(a, b) for (a, here), (b, there) in pairwise(curve) if (here > 0) != (there > 0)]


def key(readings: Sequence[Reading]) -> str:
    """Return the key of some readings: the systems, to six digits of every number, and the metrics.

    Fitted numbers differ in their last digits from machine to machine.
    """
    text = ";".join(f"{stable_text(spec, exact=False)}:{metric}" for spec, metric in readings)
    rounded = re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()[:12]


def simulated(conclusion: Conclusion, value: float, *, store: Path | None = None) -> Check:
    """Return the simulated margin at a value of the parameter.

    Its interval takes the numbers for independent, to first order; the same random numbers in compared
    systems make the true one narrower.
    """
    from validate import simulate

    def estimates(spec: Any, metrics: Sequence[str]) -> list[Number]:
        if "saturation_rate" in metrics:  # no metric of a simulation: it is found by bisection
            rate, low, high = saturation(spec, **conclusion.options)
            return [(rate, (high - low) / 2)]
        found = simulate(spec, store=store, progress=lambda done, known: None, **conclusion.options)
        return [(found[metric].best, found[metric].half_width) for metric in metrics]

    numbers, widths = zip(*read(conclusion.readings(value), estimates), strict=True)
    margin = float(conclusion.of(value, *numbers))
    moved = (
        conclusion.of(value, *numbers[:which], number + width, *numbers[which + 1 :])
        for which, (number, width) in enumerate(zip(numbers, widths, strict=True))
    )
    return Check(value=value, margin=margin, half_width=sqrt(sum((one - margin) ** 2 for one in moved)))


def points(found: Found) -> Iterator[tuple[float, ...]]:
    """Yield sides to look at: values of the parameter to try in turn until one decides."""
    parameter = found.conclusion.parameter
    yield (parameter.value,)
    if found.flip is None:
        yield from {(end,): None for end in (parameter.grid[0], parameter.grid[-1]) if end != parameter.value}
        return
    low, high = found.flip
    if parameter.whole:
        yield tuple(value for value in reversed(parameter.values) if value <= low)[:3]
        yield tuple(value for value in parameter.values if value >= high)[:3]
        return
    yield tuple(low - share * (low - parameter.grid[0]) for share in AWAY)
    yield tuple(high + share * (parameter.grid[-1] - high) for share in AWAY)


def check(case: str, conclusion: Conclusion, *, store: Path | None = None) -> list[dict[str, Any]]:
    """Return the simulated margins of a conclusion as rows; what is kept of the same systems stays."""
    found, before = find(conclusion), {(one.reading, one.value): one for one in kept(case, conclusion)[0]}
    checks = {value: one for (reading, value), one in before.items() if not reading}
    for side in points(found) if len(checks) < 2 else ():
        for value in side:
            checks[value] = simulated(conclusion, value, store=store)
            if checks[value].holds == (conclusion.solved(value) > 0):
                break
    for _ in range(0 if conclusion.parameter.whole else len(AWAY)):
        known = tuple(checks[value] for value in sorted(checks))
        low, high = replace(found, checks=known).simulated_flip or (0.0, 0.0)
        if high - low <= NEAR * abs(low):
            break
        middle = (low + high) / 2
        checks[middle] = simulated(conclusion, middle, store=store)
    every, value = [(conclusion, one) for one in checks.values()], conclusion.parameter.value
    for name, of in conclusion.every.items():
        if name:
            one = before.get((name, value)) or replace(simulated(of, value, store=store), reading=name)
            every.append((of, one))
    return [
        {"conclusion": conclusion.name, **asdict(one), "systems": key(of.readings(one.value))}
        for of, one in every
    ]


def kept(case: str, conclusion: Conclusion) -> tuple[list[Check], int]:
    """Return the simulated margins that are kept of a conclusion's systems, and how many are of others."""
    found, stale, every = list[Check](), 0, conclusion.every
    for row in read_rows(data_folder(case) / "conclusions.csv"):
        reading = row.get("reading") or ""
        if row["conclusion"] != conclusion.name or reading not in every:
            continue
        if str(row["systems"]) == key(every[reading].readings(row["value"])):  # a key may be all digits
            numbers = {name: float(row[name]) for name in ("value", "margin", "half_width")}
            found.append(Check(**numbers, reading=reading))
        else:
            stale += 1
    return found, stale


def found_of(case: str) -> list[Found]:
    """Return the margins of all conclusions of a paper: the models now, simulations as kept."""
    return [find(one, *kept(case, one)) for one in conclusions_of(case)]


def changed(case: str, changes: Mapping[str, Any]) -> tuple[list[Found], dict[str, str]]:
    """Return the margins of conclusions with fields changed, and the reasons why others are left out.

    Raises ValueError if none is left.
    """
    found, left = [], {}
    for one in conclusions_of(case):
        try:
            found.append(find(one.changed(changes)))
        except ValueError as error:
            left[one.name] = str(error)
    if not found:
        raise ValueError(next(iter(left.values())))
    return found, left


def keep(case: str) -> None:
    """Simulate all conclusions of a paper and keep the margins."""
    store = Path(f"conclusions-{case}.sqlite")
    rows = [row for one in conclusions_of(case) for row in check(case, one, store=store)]
    write_rows(data_folder(case) / "conclusions.csv", rows)
    store.unlink(missing_ok=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        keep(name)
