"""What a search believes of designs it has not seen: every metric learned, and which design promises most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from optimize.blackbox.cheap import Cheap
from optimize.blackbox.domain import Domain
from optimize.blackbox.improvement import expected_improvement
from optimize.blackbox.learned import FEW, Learned, learn
from optimize.checks import Range
from optimize.search.pareto import FloatArray, nondominated

DRAWN, PARENTS, CHILDREN, ROUNDS = 1000, 20, 200, 12
"""Designs drawn where not all are listed, the best of them kept, designs near these, and how often."""

STEPS = 0.2, 0.004
"""How near: of the first and of the last round, as a share of a field's scale."""

MARGIN = 0.1
"""How far beyond the worst of a front the corner of its volume is, relative to the front's extent."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """Designs with what was measured, or is expected, of them."""

    codes: FloatArray
    features: FloatArray
    low: dict[str, FloatArray]  # the model's answers, finite


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """All metrics learned, and the front as it is believed to be."""

    domain: Domain
    signs: dict[str, int]  # objectives: 1 minimised, -1 maximised
    ranges: dict[str, Range]  # constraints
    model: Cheap
    learned: dict[str, Learned]
    seen: Seen
    corner: FloatArray | None  # of the volume, all minimised; None: from the front
    knees: dict[str, tuple[int, float, float]] = field(default_factory=dict)  # see `tamed`

    def look(self, codes: FloatArray) -> Seen:
        """Return features and the model's answers of designs."""
        return Seen(codes=codes, features=self.domain.features(codes), low=self.tame(self.model(codes)))

    def tame(self, columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """Return columns of which those of objectives are tamed."""
        return {n: tamed(v, *self.knees[n]) if n in self.knees else v for n, v in columns.items()}

    def about(self, name: str, seen: Seen) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation of a metric on its scale."""
        return self.learned[name].about(seen.features, seen.low.get(name))

    def allowed(self, seen: Seen) -> FloatArray:
        """Return the probability that designs satisfy the constraints."""
        total = np.ones(len(seen.codes))
        for name, (low, high) in self.ranges.items():
            total *= self.learned[name].within(*self.about(name, seen), low, high)
        return total

    def front(self) -> tuple[FloatArray, FloatArray | None]:
        """Return the front of what was seen, without its noise and all minimised, and the volume's corner."""
        values = np.stack(
            [sign * self.learned[n].value(self.about(n, self.seen)[0]) for n, sign in self.signs.items()],
            axis=1,
        )
        values = values[self.allowed(self.seen) > 0.5]
        front = values[nondominated(values)] if len(values) else values
        if self.corner is not None:
            return front, self.corner
        known = self.tame(self.model.scale)
        if not len(front) and set(self.signs) <= set(known):  # what the model hopes for
            hoped = np.stack([sign * known[name] for name, sign in self.signs.items()], axis=1)
            return front, _corner(hoped[nondominated(hoped)])
        return front, _corner(front) if len(front) else None

    def promise(self, seen: Seen) -> FloatArray:
        """Return the volume that designs are expected to add, or how likely they are allowed."""
        likely = self.allowed(seen)
        front, corner = self.front()
        if corner is None:
            return likely
        shortfalls = [self._shortfall(name, sign, seen) for name, sign in self.signs.items()]
        gain = likely * expected_improvement(front, corner, shortfalls)
        return gain if gain.any() else likely * 1e-300

    def _shortfall(self, name: str, sign: int, seen: Seen) -> Callable[[FloatArray], FloatArray]:
        mean, spread = self.about(name, seen)
        return lambda corners: self.learned[name].shortfall(mean, spread, corners, sign)

    def imagine(self, codes: FloatArray) -> Beliefs:
        """Return what is believed once designs were measured as expected."""
        new = self.look(codes)
        learned = {n: one.imagined(new.features, new.low.get(n)) for n, one in self.learned.items()}
        seen = Seen(
            codes=np.concatenate([self.seen.codes, new.codes]),
            features=np.concatenate([self.seen.features, new.features]),
            low={name: np.concatenate([column, new.low[name]]) for name, column in self.seen.low.items()},
        )
        return replace(self, learned=learned, seen=seen)

    def best(self, pool: FloatArray | None, rng: np.random.Generator) -> FloatArray | None:
        """Return the design of a pool, or of all, that promises most and was not seen; None if all were."""
        if pool is not None:
            fresh = self._fresh(pool)
            return fresh[self.promise(self.look(fresh)).argmax()] if len(fresh) else None
        near = [self.domain.near(self.seen.codes, STEPS[0], rng)] if len(self.seen.codes) else []
        found = self._fresh(np.concatenate([self.domain.draw(DRAWN, rng), *near]))
        gain = self.promise(self.look(found))
        for step in np.geomspace(*STEPS, ROUNDS):
            order = np.argsort(-gain, kind="stable")[:PARENTS]
            found, gain = found[order], gain[order]
            children = self._fresh(self.domain.near(found[np.arange(CHILDREN) % len(found)], step, rng))
            if len(children):
                found = np.concatenate([found, children])
                gain = np.concatenate([gain, self.promise(self.look(children))])
        return found[gain.argmax()]

    def _fresh(self, codes: FloatArray) -> FloatArray:
        taken = set(map(bytes, self.seen.codes + 0.0))
        return codes[[bytes(row) not in taken for row in codes + 0.0]]


def tamed(values: FloatArray, sign: int, knee: float, width: float) -> FloatArray:
    """Return values of which those worse than a knee are drawn near it, in the same order.

    How bad a bad design is says little of good ones, and a queue near saturation says it very loudly.
    """
    worse = np.maximum(sign * (values - knee), 0.0)
    return np.where(worse > 0, knee + sign * width * np.log1p(worse / width), values)


def _corner(front: FloatArray) -> FloatArray:
    """Return the corner of a front's volume by default."""
    worst, extent = front.max(axis=0), np.ptp(front, axis=0)
    return worst + MARGIN * np.where(extent > 0, extent, np.abs(worst) + (worst == 0))


def _knees(empty: Beliefs, values: dict[str, FloatArray]) -> dict[str, tuple[int, float, float]]:
    """Return for every objective where values are tamed: beyond the corner and half of them."""
    signs, corner = empty.signs, empty.corner
    costs = np.stack([sign * values[name] for name, sign in signs.items()], axis=1)
    costs = costs[np.isfinite(costs).all(axis=1)]
    if len(costs) < FEW:
        return {}
    knee = np.maximum(
        np.median(costs, axis=0), _corner(costs[nondominated(costs)]) if corner is None else corner
    )
    width = knee - costs.min(axis=0)
    return {
        name: (sign, float(sign * knee[k]), float(width[k]))
        for k, (name, sign) in enumerate(signs.items())
        if width[k] > 0 and name not in empty.ranges
    }


def believe(
    empty: Beliefs, codes: FloatArray, values: dict[str, FloatArray], noise: dict[str, FloatArray]
) -> Beliefs:
    """Return beliefs with every metric learned from the values of designs; not finite was not measured."""
    empty = replace(empty, knees=_knees(empty, values))
    seen, learned = empty.look(codes), {}
    everywhere = empty.tame(empty.model.scale)
    for name, column in empty.tame(values).items():
        known, low = np.isfinite(column), seen.low.get(name)
        own = noise.get(name, np.zeros(len(column)))[known]
        low = None if low is None else low[known]
        learned[name] = learn(seen.features[known], column[known], own, low, everywhere.get(name))
    return replace(empty, learned=learned, seen=seen)
