"""Inverse design: values of several continuous fields that are best among those that meet conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize.analysis.sensitivity import continuous
from optimize.checks import SIGNS, Range, ranges, sides, size_of
from optimize.search.pareto import FloatArray
from optimize.spaces.evaluation import Model
from qmodels.systems.spec.fields import find_fields, get_field, replace_fields


@dataclass(frozen=True, kw_only=True, eq=False)
class Size:
    """The outcome of `size`."""

    status: str  #: "met" or "unreachable"
    field: Any  #: the field, or several
    value: Any  #: the value asked for, of several ``{field: value}``; None if unreachable
    spec: Any  #: with it, or with the best value seen if unreachable
    metrics: dict[str, float]  #: those with targets at that spec; the goal as well, of several fields
    #: The value nearest to the answer that misses a target: the answer is proven up to between the two if the
    #: metrics are monotone. None if the end of the range is met.
    misses: Any
    best: Any  #: the value of least miss; the answer itself if met
    #: False if a metric turned between the values evaluated, True if all values of the range were evaluated
    #: and none did; None if none did, and there are values in between that nobody looked at.
    monotone: bool | None
    evaluations: int  #: values solved
    #: what is missed by how much, where a metric turns, or which end the spec refuses and why
    message: str = ""
    binding: tuple[str, ...] = ()  #: of several fields: what keeps the goal from being better


def ends_of(within: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the ends of a range."""
    try:
        low, high = within
        good = -np.inf < low <= high < np.inf
    except (TypeError, ValueError):
        good = False
    if not good:
        raise ValueError(f"within must be a pair (low, high) of finite numbers, low <= high, got {within!r}")
    return low, high


LOOKED_AT = 64, 16  # points of the first look for each field: of a model that takes arrays, of another
STARTS, APART = 3, 0.2  # local searches, and the distance of their starts, in widths of the ranges
REACH, ROUNDS, SOLVES = 0.02, 5, 100
"""First step of searches around the best point, in widths; how many; solves of each, for each field."""

MARGIN, BETTER, BINDS = 1e-9, 1e-7, 1e-6
"""Relative room that the search leaves for rounding, gain of a better point, and room that is none."""

CONFIRMED = 20  # best points that are solved once more, until one keeps the limits alone as well
DECADE = 10  # from this ratio of its ends on a range of positive numbers is looked at on a logarithmic scale


def several(
    made: Callable[..., Model],
    within: Mapping[str, tuple[Any, Any]],
    goal: str,
    sign: float,
    subject_to: Mapping[str, Range] | None,
) -> Size:
    """Return the best values of several fields, solved once more."""
    limits = ranges("subject_to", subject_to)
    if goal in within and not limits:
        raise ValueError(f"subject_to must have at least one target where the goal is a field, got {goal!r}")
    names = [goal, *limits]
    model = made([name for k, name in enumerate(names) if k or goal not in within])
    spec = model.spec
    box = {name: ends_of(ends) for name, ends in within.items()}
    for name, path in find_fields(spec, box).items():
        value = get_field(spec, path)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not continuous(spec, path):
            raise ValueError(
                f"within must name fields that take any number, got {name} = {value!r}; see explore"
            )
        if box[name][0] == box[name][1]:
            raise ValueError(f"within[{name!r}] must have low < high, got {within[name]!r}")
    search = Search(model, box, limits, goal, sign)
    search.run()
    ranked = search.ranked()
    if not ranked:
        model({})  # says what is wrong with all of them
        raise ValueError(f"within must hold values that the spec and the model take, got {dict(within)!r}")
    for miss, _, x, _ in ranked[:CONFIRMED]:
        alone = search.solved(x[None], forgiving=False)[0]
        if miss > 0 or search.missed(alone) == 0:
            break
    met, value = bool(search.missed(alone) == 0), dict(zip(box, search.values(x).tolist(), strict=True))
    words = [
        f"{words} is {alone[k]:.6g}, off by {abs(alone[k] - bound):.4g}"
        for (k, way, bound), words in zip(search.bounds, search.words, strict=True)
        if not way * alone[k] <= way * bound
    ]
    return Size(
        status="met" if met else "unreachable",
        field=tuple(box),
        value=value if met else None,
        spec=replace_fields(spec, value),
        metrics=dict(zip(names, alone.tolist(), strict=True)),
        misses=None,
        best=value,
        monotone=None,
        evaluations=model.evaluations,
        message=""
        if met
        else "no values within the ranges were found that keep the limits; nearest: " + "; ".join(words),
        binding=search.binding(x, alone) if met else (),
    )


class Search:
    """Points of the unit cube, one axis a field, and the metrics there, which are remembered.

    The goal, maximised if the sign is -1, is the first column of metrics: a metric, or a field.
    """

    def __init__(
        self,
        model: Model,
        box: Mapping[str, tuple[float, float]],
        limits: Mapping[str, Range],
        goal: str,
        sign: float,
    ) -> None:
        self.model, self.box, self.sign = model, box, sign
        self.low, self.high = np.array(list(box.values()), dtype=float).T
        positive = self.low > 0
        self.log = positive & (self.high >= DECADE * np.where(positive, self.low, 1.0))
        self.seen: dict[bytes, tuple[FloatArray, FloatArray]] = {}
        self.own = list(box).index(goal) if goal in box else None
        names = [goal, *limits]
        self.bounds = [
            (names.index(name, 1), way, bound) for name, way, bound in sides(limits) if way * bound < np.inf
        ]
        self.words = [f"{names[k]} {SIGNS[way]} {bound:g}" for k, way, bound in self.bounds]

    def values(self, x: FloatArray) -> FloatArray:
        """Return the fields at points (rows) of the cube."""
        x = np.clip(x, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            powers = self.low * (self.high / self.low) ** x
        inside = np.where(self.log, powers, self.low + (self.high - self.low) * x)
        return np.clip(inside, self.low, self.high)

    def look(self, xs: FloatArray) -> FloatArray:
        """Return the metrics at points (rows); those that the spec refuses are NaN."""
        fresh = [x for x in {x.tobytes(): x for x in xs}.values() if x.tobytes() not in self.seen]
        if fresh:
            found = self.solved(np.array(fresh), forgiving=True)
            self.seen |= {x.tobytes(): (x, row) for x, row in zip(fresh, found, strict=True)}
        return np.array([self.seen[x.tobytes()][1] for x in xs])

    def solved(self, xs: FloatArray, *, forgiving: bool) -> FloatArray:
        """Solve points, seen before or not."""
        values = self.values(xs)
        found = self.model(dict(zip(self.box, values.T.tolist(), strict=True)), forgiving=forgiving)
        return found if self.own is None else np.concatenate([values[:, [self.own]], found], axis=1)

    def room(self, metrics: FloatArray) -> FloatArray:
        """Return by how much metrics keep each limit, relative to it; NaN counts as infinitely bad."""
        columns = [way * (bound - metrics[..., k]) / size_of(bound) for k, way, bound in self.bounds]
        kept = np.stack(columns, axis=-1) if columns else np.zeros((*metrics.shape[:-1], 0))
        return np.where(np.isnan(kept), -np.inf, kept)

    def steered(self) -> list[int]:
        """Return which limits a search can follow: not those of truth values."""
        known = np.array([row for _, row in self.seen.values()])
        return [i for i, (k, _, _) in enumerate(self.bounds) if not np.isin(known[:, k], (0.0, 1.0)).all()]

    def missed(self, metrics: FloatArray) -> FloatArray:
        """Return the sum of the relative misses, each at most 1; infinity where the goal is not known."""
        sums = _bounded(np.maximum(-self.room(metrics), 0.0)).sum(axis=-1)
        return np.where(np.isnan(metrics[..., 0]), np.inf, sums)

    def ranked(self) -> list[tuple[float, float, FloatArray, FloatArray]]:
        """List the points evaluated, the best first: miss, goal, point, metrics."""
        rows = [(float(self.missed(m)), self.sign * float(m[0]), x, m) for x, m in self.seen.values()]
        return sorted((row for row in rows if row[0] < np.inf), key=lambda row: row[:2])

    def binding(self, x: FloatArray, metrics: FloatArray) -> tuple[str, ...]:
        """Return the limits and ends of ranges that hold a point where it is."""
        kept = self.room(metrics)
        words = [self.words[i] for i in self.steered() if kept[i] < BINDS]
        for k, (name, ends) in enumerate(self.box.items()):
            words += [f"{name} = {ends[end]:g}" for end in (0, 1) if abs(x[k] - end) < BINDS]
        return tuple(words)

    def run(self) -> None:
        """Look all over, and search locally from the best points seen until that finds nothing better."""
        from scipy.stats import qmc

        axes = len(self.box)
        count = LOOKED_AT[not all(map(self.model.many, self.box))] * axes
        points = qmc.Sobol(axes, seed=0).random(2 ** int(np.ceil(np.log2(count))))
        self.look(np.concatenate([np.zeros((1, axes)), np.ones((1, axes)), points]))
        starts: list[FloatArray] = []
        for _, _, x, _ in self.ranked():
            if all(np.abs(x - other).max() > APART for other in starts):
                starts.append(x)
        for start in starts[:STARTS]:
            self._descend(start, 0.1, 1e-3)
        for _ in range(ROUNDS if starts else 0):
            miss, goal, best, _ = self.ranked()[0]
            self._descend(best, REACH, 1e-9)
            if self.ranked()[0][:2] >= (miss, goal - BETTER * abs(goal)):
                return

    def _descend(self, start: FloatArray, reach: float, end: float) -> None:
        """Search locally from a point, without derivatives: for the goal within the limits."""
        from scipy.optimize import NonlinearConstraint, minimize

        here = float(self.look(start[None])[0, 0])
        middle, size = (here, abs(here) or 1.0) if np.isfinite(here) else (0.0, 1.0)
        followed = self.steered()

        def change(x: FloatArray) -> float:
            u = self.sign * (self.look(x[None])[0, 0] - middle) / size
            return 1.0 if np.isnan(u) else float(_bounded(u))

        def room(x: FloatArray) -> FloatArray:
            return _bounded(self.room(self.look(x[None])[0])[followed]) - MARGIN

        minimize(
            change,
            start,
            method="COBYQA",
            bounds=[(0.0, 1.0)] * start.size,
            constraints=[NonlinearConstraint(room, 0.0, np.inf)] if followed else (),
            options={"initial_tr_radius": reach, "final_tr_radius": end, "maxfev": SOLVES * start.size},
        )


def _bounded(u: Any) -> FloatArray:
    """Return a number between -1 and 1 that grows with u, and is u where that is small.

    Infinity is a number then, and a wait that grows like one over what is spare is nearly a straight line.
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(u), np.sign(u), u / (1.0 + np.abs(u)))
