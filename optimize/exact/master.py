"""The integer program over the choices: tables to prefer by, exact sums, and what is excluded so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from optimize.exact.relations import Bools
from optimize.exact.tables import Tables
from optimize.programs.linear import DROPPED, Model
from optimize.search.pareto import FloatArray
from optimize.spaces.numbering import Designs


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """Designs that are excluded: a cell of the first group that is ``bad``, and all other fields in ``rest``.

    ``goal`` is the one they miss and ``origin`` the digits of the other fields where that was seen; -1
    marks cells that were evaluated themselves.
    """

    bad: Bools
    rest: list[Bools]
    goal: int = -1
    origin: tuple[int, ...] = ()

    def holds(self, rest: Sequence[int]) -> bool:
        """Whether the other fields are in it."""
        return all(allowed[digit] for allowed, digit in zip(self.rest, rest, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sum:
    """An exact sum of tables with the largest value allowed."""

    tables: Tables
    limit: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Wish:
    """Tables to prefer small: all of it, or what exceeds a level."""

    tables: Tables
    level: float | None = None
    weight: float = 1.0


class Master:
    """The choices of fields and groups as a program; the first group is the one that cuts speak of."""

    def __init__(self, shape: Sequence[int], first: tuple[int, ...]) -> None:
        self._shape, self._first = tuple(shape), first
        self._rest = [axis for axis in range(len(shape)) if axis not in first]
        self.solves = 0

    def solve(
        self,
        sums: Sequence[Sum],
        cuts: Sequence[Cut],
        wishes: Sequence[Wish] = (),
        gap: float = 0.0,
        seconds: float = inf,
    ) -> tuple[str, Designs | None]:
        """Return the status, as in `optimize.programs.linear.Outcome`, and the digits of an open design."""
        model = Model()
        choice = [[model.binary() for _ in range(size)] for size in self._shape]
        cells: dict[tuple[int, ...], list[int]] = {(a,): choice[a] for a in range(len(self._shape))}
        for binaries in choice:
            model.equal(dict.fromkeys(binaries, 1.0), 1.0)
        every = [wish.tables for wish in wishes] + [one.tables for one in sums]
        for group in {self._first, *(g for tables in every for g in tables.groups)}:
            if group not in cells:
                cells[group] = self._joint(model, group, choice)
        weights: dict[int, float] = {}
        for wish in wishes:
            self._wish(model, wish, cells, weights)
        scale = max(map(abs, weights.values()), default=1.0) or 1.0
        total = model.continuous(None, None, 1.0)
        model.at_most({**{k: w / scale for k, w in weights.items()}, total: -1.0}, 0.0)
        for one in sums:
            terms, low = _terms(one.tables, cells)
            size = max(map(abs, terms.values()), default=1.0) or 1.0
            # What the solver leaves out as too small must exclude nothing.
            room = len(one.tables.groups) * DROPPED
            model.at_most({k: w / size for k, w in terms.items()}, (one.limit - low) / size + room)
        for cut in cuts:
            number = cells[self._first]
            row = {number[int(c)]: 1.0 for c in np.flatnonzero(cut.bad)}
            wide = 0
            for axis, allowed in zip(self._rest, cut.rest, strict=True):
                if not allowed.all():
                    wide += 1
                    row |= {choice[axis][int(v)]: 1.0 for v in np.flatnonzero(allowed)}
            model.at_most(row, float(wide))
        outcome = model.solve(None if seconds == inf else max(seconds, 0.05), gap)
        self.solves += 1
        digits = None
        if outcome.values:
            digits = np.array([int(np.argmax([outcome.values[b] for b in one])) for one in choice])
        return outcome.status, digits

    def _joint(self, model: Model, group: tuple[int, ...], choice: list[list[int]]) -> list[int]:
        """Return one variable per cell of a group: those that agree with a choice sum to it."""
        sizes = [self._shape[axis] for axis in group]
        numbers = np.array([model.continuous(0.0, 1.0) for _ in range(int(np.prod(sizes)))]).reshape(sizes)
        for place, axis in enumerate(group):
            for digit, binary in enumerate(choice[axis]):
                along = np.take(numbers, digit, axis=place).ravel()
                model.equal({**dict.fromkeys(along.tolist(), 1.0), binary: -1.0}, 0.0)
        return [int(number) for number in numbers.ravel()]

    def _wish(
        self, model: Model, wish: Wish, cells: dict[tuple[int, ...], list[int]], weights: dict[int, float]
    ) -> None:
        terms, low = _terms(wish.tables, cells)
        if wish.level is None:
            for k, weight in terms.items():
                weights[k] = weights.get(k, 0.0) + wish.weight * weight
            return
        over = model.continuous(0.0, None)
        model.at_most({**terms, over: -1.0}, wish.level - low)
        weights[over] = wish.weight


def _terms(tables: Tables, cells: dict[tuple[int, ...], list[int]]) -> tuple[dict[int, float], float]:
    """Return tables as a linear form and its constant; infinite values are as bad as twice the worst."""
    terms: dict[int, float] = {}
    for group, part in zip(tables.groups, tables.parts, strict=True):
        for number, value in zip(cells[group], finite(part).tolist(), strict=True):
            terms[number] = terms.get(number, 0.0) + value
    return terms, tables.base if np.isfinite(tables.base) else 0.0


def finite(part: FloatArray) -> FloatArray:
    """Return a table with what is infinite replaced by a value beyond the range of the others."""
    known = part[np.isfinite(part)]
    span = max(float(np.ptp(known)) if known.size else 0.0, 1.0)
    high, low = (known.max(), known.min()) if known.size else (0.0, 0.0)
    return np.clip(part, low - span, high + span)
