"""The smallest or largest value of a field that meets a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from optimize import checks
from optimize.analysis.inverse import Size, ends_of, several
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import Model
from qmodels.systems.spec.fields import get_field, replace_fields

WHICH = ("smallest", "largest")

POINTS = 9  # values of the first bracket
ENDLESS = 1e9  # relative miss that counts for an infinite one, so that what else is missed still ranks


def size(
    spec: Any,
    evaluate: Callable[[Any], object],
    field: str | None = None,
    *,
    subject_to: Mapping[str, checks.Range] | None = None,
    within: tuple[Any, Any] | Mapping[str, tuple[Any, Any]],
    which: str = "smallest",
    minimize: str | None = None,
    maximize: str | None = None,
    tolerance: float = 1e-6,
    vectorized: bool = False,
) -> Size:
    """Find the smallest or the largest value of a field that meets targets, or the best values of several.

    Parameters
    ----------
    spec : dataclass instance
        The design.
    evaluate : callable
        Takes a spec and returns metrics, as for `optimize.search.explore`.
    field : str, optional
        A whole-numbered or real field, as `optimize.find_field` takes it; None for several.
    subject_to : mapping
        Targets ``{metric: (low, high)}``, inclusive; None leaves a side open.
    within : tuple
        The range of the field. Two ints look among whole numbers, otherwise among reals. Values
        that the spec refuses with a ValueError are left out. Of several, continuous fields
        ``{field: (low, high)}``.
    which : {"smallest", "largest"}
        Which end of the values that meet the targets.
    minimize, maximize : str, optional
        Of several fields: the metric, or one of the fields, that is to be as good as can be; one of the two.
    tolerance : float
        Width at which the bisection of a real field stops, in widths of the range.
    vectorized : bool
        Whether `evaluate` broadcasts over a spec with an array in the field: then all whole
        numbers are evaluated if there are at most 65, and the first bracket is one call.

    Returns
    -------
    Size
        The value, or the best one seen where the targets are unreachable.

    Raises
    ------
    ValueError
        For an unknown field or metric, no target, an empty range, NaN from the model, or a spec
        that refuses every value looked at.

    Notes
    -----
    Nine values over the range are looked at first, then the interval between the outermost one
    that meets all targets and its neighbour that does not is bisected. That is the answer if
    every metric is monotone in the field. Whether it is not is said; that it is, only of values that were
    all evaluated.
    If none of the nine meets the targets, the interval around the least miss (the sum of the
    relative misses) is divided again, which finds a target met only inside the range if the
    miss has no other valley. Where the spec refuses an end of the range, the range ends at the
    last value that it takes, which bisection finds before any of them is evaluated.

    Of several fields, searches without derivatives (COBYQA [1]_) begin at the best of points all over the
    ranges, and again at the best found until nothing better is. The answer is solved once more alone. It is
    the best one seen and keeps all limits; that there is no better one elsewhere is not proven.

    References
    ----------
    .. [1] T. M. Ragonneau, "Model-based derivative-free optimization methods and software", thesis, Hong Kong
       Polytechnic University, 2022; ``scipy.optimize.minimize(method="COBYQA")``.

    Examples
    --------
    >>> from dataclasses import dataclass, field
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 4
    ...     rate: float = 0.25
    >>> def model(memory):
    ...     load = 2.0 / (memory.channels * memory.rate)
    ...     return {"wait": load / (1 - load) if load < 1 else float("inf")}
    >>> answer = size(Memory(), model, "channels", subject_to={"wait": (None, 1.5)}, within=(1, 64))
    >>> answer.value, answer.misses, answer.metrics, answer.evaluations
    (14, 13, {'wait': 1.3333333333333333}, 12)

    The cheapest capacities of two links with a mean delay of 1, one of them four times as dear:

    >>> @dataclass(frozen=True)
    ... class Path:
    ...     first: float = 10.0
    ...     second: float = 10.0
    >>> def delay(path):
    ...     delay = 1 / (path.first - 1) + 1 / (path.second - 1)
    ...     return {"delay": delay, "cost": path.first + 4 * path.second}
    >>> best = size(Path(), delay, within={"first": (2.0, 20.0), "second": (2.0, 20.0)}, minimize="cost",
    ...             subject_to={"delay": (None, 1.0)}, vectorized=True)
    >>> {name: round(value, 4) for name, value in best.value.items()}, best.binding
    ({'first': 4.0, 'second': 2.5}, ('delay <= 1',))
    """
    if isinstance(within, Mapping):
        if not within or field is not None or (minimize is None) == (maximize is None):
            raise ValueError(
                "size of several fields needs within={field: (low, high)}, no field, and minimize or"
                f" maximize, got {field=}, {minimize=}, {maximize=}"
            )
        made = partial(Model, spec, evaluate, vectorized=vectorized)
        return several(made, within, minimize or maximize or "", 1.0 if minimize else -1.0, subject_to)
    if field is None or minimize or maximize:
        raise ValueError("size of one field needs its name, and neither minimize nor maximize")
    ranges = checks.ranges("subject_to", subject_to)
    if not checks.sides(ranges):
        raise ValueError("subject_to must have at least one target, got none")
    checks.choice("which", which, WHICH)
    checks.share("tolerance", tolerance)
    model = Model(spec, evaluate, list(ranges), vectorized=vectorized)
    return _Search(model, field, ranges, which, within, tolerance).run(every=vectorized)


class _Search:
    """Evaluates values of a field and remembers their misses; the arguments are those of `size`."""

    def __init__(
        self,
        model: Model,
        name: str,
        ranges: dict[str, checks.Range],
        which: str,
        within: tuple[Any, Any],
        tolerance: float,
    ) -> None:
        self.model, self.name, self.ranges, self.which = model, name, ranges, which
        self.own = get_field(model.spec, name)
        self.metrics: dict[Any, dict[str, float]] = {}
        self.missed: dict[Any, float] = {}
        self.refusals: dict[Any, str] = {}
        self.ends_at: dict[Any, str] = {}
        self.low, self.high = ends_of(within)
        self.whole = all(isinstance(end, (int, np.integer)) for end in within)
        self.width = 1 if self.whole else tolerance * (self.high - self.low)

    def run(self, *, every: bool) -> Size:
        """Search; ``every``: whether all of few whole numbers may be evaluated at once."""
        self._narrow()
        few = self.whole and every and self.high - self.low <= 64
        self._look(np.arange(self.low, self.high + 1) if few else self._between(self.low, self.high))
        while not any(miss == 0 for miss in self.missed.values()):
            values = sorted(self.missed)
            k = min(range(len(values)), key=lambda k: self.missed[values[k]])
            left, right = values[max(k - 1, 0)], values[min(k + 1, len(values) - 1)]
            if not self._look(self._between(left, right)) or right - left <= 2 * self.width:
                break
        met, missed = self._ends()
        if met is not None and missed is not None:
            self._halved(met, missed, lambda value: self._look(np.array([value])) and not self.missed[value])
        return self._result()

    def _halved(self, good: Any, bad: Any, test: Callable[[Any], bool]) -> tuple[Any, Any]:
        """Return a value that passes a test and one near by that does not, between two such values."""
        while abs(good - bad) > self.width:
            middle = (good + bad) // 2 if self.whole else (good + bad) / 2
            if middle in (good, bad):
                break
            good, bad = (middle, bad) if test(middle) else (good, middle)
        return good, bad

    def _narrow(self) -> None:
        """Move the ends of the range to the outermost values that the spec takes."""
        values = self._between(self.low, self.high).tolist()
        own = self.own
        if isinstance(own, (int, float)) and self.low < own < self.high:
            values = sorted({*values, int(own) if self.whole else own})  # the spec has taken it
        taken = [value for value in values if self._takes(value)]
        if not taken:
            why = self.refusals[values[0]]
            raise ValueError(
                f"within must hold values of {self.name} that the spec takes, got {self.low!r} to"
                f" {self.high!r}: {why}"
            )
        ends = [taken[0], taken[-1]]
        for k, end in enumerate((values[0], values[-1])):
            if not self._takes(end):
                ends[k], refused = self._halved(ends[k], end, self._takes)
                self.ends_at[ends[k]] = self.refusals[refused]
        self.low, self.high = ends

    def _takes(self, value: Any) -> bool:
        """Return whether the spec takes a value."""
        if value not in self.refusals:
            try:
                replace_fields(self.model.spec, {self.name: value})
            except ValueError as error:
                self.refusals[value] = str(error)
            else:
                self.refusals[value] = ""
        return not self.refusals[value]

    def _between(self, low: Any, high: Any) -> FloatArray:
        values = np.linspace(low, high, POINTS)
        return np.unique(np.round(values).astype(int)) if self.whole else np.unique(values)

    def _look(self, values: FloatArray) -> bool:
        """Evaluate values that are new; return whether there was one."""
        new = [value for value in values.tolist() if value not in self.metrics and self._takes(value)]
        found = self.model.refuse_nan(self.model({self.name: new}), {self.name: new}) if new else ()
        for value, row in zip(new, found, strict=True):
            self.metrics[value] = dict(zip(self.ranges, row.tolist(), strict=True))
            self.missed[value] = sum(min(miss, ENDLESS) for _, _, _, miss in self._misses(value))
        return bool(new)

    def _misses(self, value: Any) -> list[tuple[str, str, float, float]]:
        """Return the targets that a value misses: metric, sign, bound, and by how much relative to it."""
        metrics = self.metrics[value]
        return [
            (name, checks.SIGNS[way], bound, abs(metrics[name] - bound) / checks.size_of(bound))
            for name, way, bound in checks.sides(self.ranges)
            if way * metrics[name] > way * bound
        ]

    def _ends(self) -> tuple[Any, Any]:
        """Return the outermost value that meets the targets and its neighbour that does not."""
        values = sorted(self.missed, reverse=self.which == "largest")
        met = next((value for value in values if self.missed[value] == 0), None)
        if met is None:
            return None, None
        before = values.index(met) - 1
        return met, values[before] if before >= 0 else None

    def _result(self) -> Size:
        met, missed = self._ends()
        best = met if met is not None else min(self.missed, key=self.missed.__getitem__)
        turns = self._turns()
        seen = self.low == self.high or (self.whole and len(self.metrics) == self.high - self.low + 1)
        message = ""
        if met is None:
            message = "; ".join(
                f"{name} {sign} {bound:g} is not met from {self.low!r} to {self.high!r}: the best is"
                f" {self.metrics[best][name]:.6g} at {self.name}={best!r}, off by"
                f" {abs(self.metrics[best][name] - bound):.4g}"
                for name, sign, bound, _ in self._misses(best)
            )
        elif turns:
            message = turns
        # Beyond an end that the spec set there may be more to gain, or the target.
        for end, refusal in self.ends_at.items():
            if met is None or met == end:
                message += f"{'; ' if message else ''}the spec takes {self.name} only to {end!r}: {refusal}"
        return Size(
            status="met" if met is not None else "unreachable",
            field=self.name,
            value=met,
            spec=replace_fields(self.model.spec, {self.name: best}),
            metrics=self.metrics[best],
            misses=missed,
            best=best,
            monotone=False if turns else True if seen else None,
            evaluations=len(self.metrics),
            message=message,
        )

    def _turns(self) -> str:
        """Return where a metric turns, or nothing if all are monotone over the evaluated values."""
        values = sorted(self.metrics)
        for name in self.ranges:
            column = np.array([self.metrics[value][name] for value in values])
            with np.errstate(invalid="ignore"):
                change = np.nan_to_num(np.diff(column))
            # Rounding is no turn.
            change[np.abs(change) <= 1e-12 * np.minimum(np.abs(column[1:]), np.abs(column[:-1]))] = 0.0
            moving = np.flatnonzero(change)
            turn = np.flatnonzero(np.diff(np.sign(change[moving])))
            if turn.size:
                at = values[moving[turn[0]] + 1]
                return f"{name} is not monotone: it turns near {self.name}={at!r}"
        return ""
