"""Which choices of a field are at least as bad as which, for every goal: declared, or learned from lines.

A box of designs cannot be excluded by one evaluation unless something is known of the model. What is
asked for here is the least that does: that changing the choice u of a field to v never improves a goal,
whatever the other fields hold. Fields in which a metric only rises give a total order, those it does not
depend on relate all choices, those in which it goes up and down relate few or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.exact.oracle import Goal
from optimize.search.bounds import DIRECTIONS
from optimize.search.pareto import FloatArray
from optimize.spaces.space import Space
from optimize.spaces.stability import STABLE
from qmodels.systems.spec.fields import find_field

Bools = npt.NDArray[np.bool_]


class Relations:
    """For every goal and field a matrix: [u, v] tells that v is at least as bad as u.

    Parameters
    ----------
    space : Space
        The designs.
    goals : sequence of Goal
        What is wanted small.
    bounds : mapping
        ``{metric: {field: "increasing" | "decreasing" | "constant"}}`` as for `optimize.explore`: a
        field that is not named there may do anything. Metrics that are not named are learned.
    slack : float
        A pair whose goal improves by at most this, relative to its size, still counts as related. How
        much was seen counts against what is shown.
    """

    def __init__(
        self, space: Space, goals: Sequence[Goal], bounds: Mapping[str, Mapping[str, str]], slack: float
    ) -> None:
        self.slack, self.goals = [slack] * len(goals), list(goals)
        self.shape, self.compared, self.dropped, self.version = space.shape, 0, 0, 0
        self.worst = [[np.zeros((n, n)) for n in space.shape] for _ in goals]
        self.learned = [goal.metric not in bounds for goal in goals]
        names = {path: axis for axis, path in enumerate(space.paths.values())}
        for g, goal in enumerate(goals):
            if self.learned[g]:
                continue
            checks_of = {find_field(space.base, name): word for name, word in bounds[goal.metric].items()}
            for path, axis in names.items():
                word = checks_of.get(path)
                self.worst[g][axis] = np.where(_declared(space, axis, goal.sign, word), 0.0, inf)

    @property
    def learns(self) -> bool:
        """Whether any goal's relations are learned; those of ``stable`` follow the others."""
        return any(yes and goal.metric != STABLE for yes, goal in zip(self.learned, self.goals, strict=True))

    def related(self, goal: int, axis: int) -> Bools:
        """Return the matrix of a goal and a field."""
        return np.asarray(self.worst[goal][axis] <= self.slack[goal])

    def total(self, goal: int) -> float:
        """Return by how much, relative to its size, a goal may improve over all fields together."""
        seen = [worst[worst <= self.slack[goal]].max(initial=0.0) for worst in self.worst[goal]]
        return float(np.prod(1.0 + np.array(seen)) - 1.0)

    def widen(self, goal: int, most: float, least: float) -> None:
        """Relate what improves a goal by so little that all fields together improve it by at most that."""
        self.slack[goal] = max(most, least)
        while self.slack[goal] > least and self.total(goal) > most:
            self.slack[goal] = max(self.slack[goal] / 2.0, least)

    def lowered(self, goal: int, values: FloatArray) -> FloatArray:
        """Return the least that a goal may be where all choices are at least as bad as at these values."""
        size = np.where(np.isfinite(values), np.abs(values), 0.0)
        return values - self.total(goal) * size

    def check(self, axis: int, values: FloatArray, digits: npt.ArrayLike | None = None) -> bool:
        """Learn from lines along a field and return whether a relation was given up or loosened.

        Parameters
        ----------
        axis : int
            The field.
        values : ndarray, (lines, choices, goals)
            Signed values; NaN where a design was not evaluated.
        digits : sequence of int, optional
            The choices along the lines; by default all.
        """
        chosen = np.arange(self.shape[axis]) if digits is None else np.asarray(digits)
        lost = False
        for g in range(len(self.goals)):
            here = values[:, :, g]
            first, second = here[:, :, None], here[:, None, :]
            with np.errstate(invalid="ignore", over="ignore"):
                fall = np.where(first == second, 0.0, first - second)
                size = np.where(np.isfinite(first), np.abs(first), 1.0)
                fall = np.where(fall > 0, fall / np.where(size > 0, size, 1e-300), np.minimum(fall, 0.0))
            known = ~np.isnan(first - 0 * np.where(np.isinf(second), 0, second))
            self.compared += int(known.sum()) - int((~np.isnan(here)).sum()) if g == 0 else 0
            worst = np.where(known, fall, -inf).max(axis=0, initial=-inf)
            place = np.ix_(chosen, chosen)
            known_worst = self.worst[g][axis][place]
            more = worst > known_worst  # an improvement greater than any seen
            bad = more & (known_worst <= self.slack[g]) & (worst > self.slack[g])
            if bad.any() and not self.learned[g]:
                u, v = np.argwhere(bad)[0]
                raise ValueError(
                    f"bounds[{self.goals[g].metric!r}] do not hold: choice {chosen[v]} of field {axis} is"
                    f" better than choice {chosen[u]} by {worst[u, v]:.3g} of its size"
                )
            self.dropped += int(bad.sum())
            lost |= bool((more & (known_worst <= self.slack[g])).any())
            self.worst[g][axis][place] = np.where(more, worst, known_worst)
        self.version += lost
        return lost


def _declared(space: Space, axis: int, sign: float, word: str | None) -> Bools:
    """Return the relation that a word about a metric gives for a goal of that sign."""
    count = space.shape[axis]
    if word is None:
        return np.eye(count, dtype=bool)
    checks.choice("bounds", word, DIRECTIONS)
    name = list(space.choices)[axis]
    values = space.column(name) if name in space.numeric else np.arange(count)
    step = (
        sign
        * DIRECTIONS[word]
        * (np.argsort(np.argsort(values))[None, :] - np.argsort(np.argsort(values))[:, None])
    )
    return np.asarray(step >= 0)
