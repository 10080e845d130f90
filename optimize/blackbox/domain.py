"""What may be varied: continuous, whole and listed fields; some matter only where others have a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.checks import nearest
from optimize.search.pareto import FloatArray
from optimize.spaces.choices import choice_column, choice_values
from optimize.spaces.constraints import Constraint, Point
from optimize.spaces.space import Space
from optimize.spaces.structure import Conditions, Structure

LISTED = 10_000
"""Domains of at most so many designs are listed; of larger ones designs are drawn."""

DRAWS = 200
"""Rounds of drawing until as many designs as wanted satisfy the constraints."""

UNIFORM = math.sqrt(12)
"""One over the standard deviation of a uniform variable on [0, 1]."""


@dataclass(frozen=True, kw_only=True)
class Between:
    """A number between two ends, both included.

    Parameters
    ----------
    low, high : float or int
        The ends; ``low < high``.
    whole : bool
        Whether only whole numbers are meant.
    log : bool
        Whether equal ratios are equal distances; then ``low > 0``.
    """

    low: float
    high: float
    whole: bool = False
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number, got {value!r}")
            if self.whole and value != int(value):
                raise ValueError(f"{name} must be a whole number, got {value!r}")
        if self.low >= self.high:
            raise ValueError(f"low must be below high, got {self.low!r} and {self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"low must be > 0 with log, got {self.low!r}")


class _Field:
    """A field as numbers: a code (the place on the scale, or which choice), features, and back."""

    def __init__(self, name: str, given: Between | Iterable[object]) -> None:
        self.name = name
        self.between = given if isinstance(given, Between) else None
        self.continuous = self.between is not None and not self.between.whole
        self.ordered = True
        if self.between is not None:
            self.count = 0 if self.continuous else int(self.between.high) - int(self.between.low) + 1
        else:
            self.values = choice_values(name, given)  # type: ignore[arg-type]
            column = choice_column(self.values)
            self.count = len(self.values)
            self.ordered = column.dtype.kind in "iuf"
            places = column.astype(float) if self.ordered else np.zeros(self.count)
            if self.ordered and (places >= 0).all():
                places = np.log(places + (places.min() == 0))
            self._places = (places - places.min()) / (float(np.ptp(places)) or 1.0)

    def place(self, codes: FloatArray) -> FloatArray:
        """Return where codes lie between 0 and 1 on the scale on which distances are meant."""
        if self.between is None:
            return np.asarray(self._places[codes.astype(int)])
        if self.continuous:
            return codes
        low, high = self.between.low, self.between.high
        if self.between.log:
            return np.asarray(np.log1p(codes / low) / math.log(high / low))
        return codes / (high - low)

    def features(self, codes: FloatArray) -> list[FloatArray]:
        if self.ordered:
            return [(self.place(codes) - 0.5) * UNIFORM]
        share = 1 / self.count
        scale = math.sqrt(share * (1 - share)) or 1.0
        return [((codes == k) - share) / scale for k in range(1 if self.count > 1 else 0, self.count)]

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        return self._at(rng.random(count))

    def _at(self, places: FloatArray) -> FloatArray:
        """Return the codes at places between 0 and 1: of a list, each choice has an equal share."""
        if self.continuous:
            return places
        if self.between is None or not self.between.log:
            return np.minimum(np.floor(places * self.count), self.count - 1)
        low, high = self.between.low, self.between.high
        return np.rint(low * (high / low) ** places - low)

    def move(self, codes: FloatArray, step: float, rng: np.random.Generator) -> FloatArray:
        """Return codes near others: at about a step's share of the scale; of words, any."""
        if not self.ordered:
            return self.draw(len(codes), rng)
        even = self.between is None or not self.between.log
        place = (codes + 0.5) / self.count if even and not self.continuous else self.place(codes)
        moved = self._at(np.clip(place + step * rng.standard_normal(len(codes)), 0.0, 1.0))
        if self.continuous:
            return moved
        aside = codes + rng.choice((-1.0, 1.0), len(codes))
        return np.clip(np.where(moved == codes, aside, moved), 0, self.count - 1)

    def value(self, code: float) -> Any:
        if self.between is None:
            return self.values[int(code)]
        low, high = self.between.low, self.between.high
        if not self.continuous:
            return int(low) + int(code)
        value = low * (high / low) ** code if self.between.log else low + code * (high - low)
        return min(max(float(value), float(low)), float(high))

    def code(self, value: Any) -> float:
        """Return the code of a value, checked."""
        if self.between is None:
            if value not in self.values:
                known = ", ".join(map(repr, self.values))
                raise ValueError(f"{self.name} must be one of {known}, got {value!r}")
            return float(self.values.index(value))
        low, high, log = self.between.low, self.between.high, self.between.log
        good = isinstance(value, (int, float, np.number)) and low <= value <= high
        if not good or (self.between.whole and value != int(value)):
            kind = "a whole number" if self.between.whole else "a number"
            raise ValueError(f"{self.name} must be {kind} from {low} to {high}, got {value!r}")
        if not self.continuous:
            return float(value - low)
        return float(math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low))


class Domain:
    """The fields of a black box, which of them matter where, and what is a design at all.

    Parameters
    ----------
    fields : mapping
        ``{name: Between(...)}`` for numbers, ``{name: values}`` for choices; choices that are numbers have
        an order.
    conditions : mapping, optional
        As those of `Space`: ``{name: {other: values}}``, the field matters only where the other one
        matters and has one of these values. Elsewhere it has its first choice or lowest value.
    constraints : sequence of callables, optional
        Each takes a point (``{name: value}``) and returns whether it is a design.

    Raises
    ------
    ValueError
        If there is no field, a list of choices is empty or holds a value twice, or a condition names no
        field, no choice, or a continuous one.

    Examples
    --------
    >>> domain = Domain(
    ...     {"policy": ["in-order", "reorder"], "cap": Between(low=1, high=64, whole=True, log=True)},
    ...     conditions={"cap": {"policy": ["reorder"]}},
    ... )
    >>> len(domain.listed()), domain.active({"policy": "in-order", "cap": 1})
    (65, ('policy',))
    """

    def __init__(
        self,
        fields: Mapping[str, Between | Iterable[object]],
        *,
        conditions: Conditions | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        self.fields = [_Field(name, given) for name, given in fields.items()]
        if not self.fields:
            raise ValueError("a domain needs at least one field")
        self.constraints = tuple(constraints)
        for constraint in self.constraints:
            if not callable(constraint):
                raise ValueError(f"constraints must be callables on a point, got {constraint!r}")
        asked = {other for parents in (conditions or {}).values() for other in parents}
        for field in self.fields:
            if field.continuous and field.name in asked:
                raise ValueError(f"conditions must not ask for continuous fields, got {field.name!r}")
        self._structure = Structure(
            {
                field.name: tuple(map(field.value, range(field.count))) if field.name in asked else (0,)
                for field in self.fields
            },
            conditions or {},
        )
        self.said = [[(name, str(given)) for name, given in fields.items()], str(conditions or {})]

    @classmethod
    def of(cls, space: Space) -> Domain:
        """Return the choices, conditions and constraints of a space of specs."""
        names, conditions = list(space.choices), {}
        for axis, parents in space.structure.parents.items():
            conditions[names[axis]] = {
                names[other]: [v for v, ok in zip(space.choices[names[other]], allowed, strict=True) if ok]
                for other, allowed in parents.items()
            }
        return cls(space.choices, conditions=conditions, constraints=space.constraints)

    def listed(self) -> FloatArray | None:
        """Return the codes of all designs; None if there are too many."""
        shape = [field.count for field in self.fields]
        if math.prod(count or math.inf for count in shape) > LISTED:
            return None
        every = np.indices(shape).reshape(len(shape), -1).T.astype(float)
        return self.admitted(np.unique(self.canonical(every), axis=0))

    def matters(self, codes: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell which field matters in which design."""
        result = np.ones(codes.shape, dtype=bool)
        for axis, here in self._structure.matters(list(codes.T.astype(int))).items():
            result[:, axis] = here
        return result

    def canonical(self, codes: FloatArray) -> FloatArray:
        """Return codes with 0 for every field that does not matter."""
        return np.where(self.matters(codes), codes, 0.0)

    def features(self, codes: FloatArray) -> FloatArray:
        """Return columns of mean 0 and standard deviation of about 1; 0 for fields that do not matter."""
        matters = self.matters(codes)
        columns = [
            np.where(matters[:, axis], column, 0.0)
            for axis, field in enumerate(self.fields)
            for column in field.features(codes[:, axis])
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(codes), 1))

    def admitted(self, codes: FloatArray) -> FloatArray:
        """Return the designs that satisfy the constraints."""
        if not self.constraints or not len(codes):
            return codes
        points = self.points(codes)
        return codes[[all(constraint(point) for constraint in self.constraints) for point in points]]

    def draw(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return so many designs drawn at random, each field uniformly on its scale."""
        found = np.zeros((0, len(self.fields)))
        for _ in range(DRAWS):
            codes = np.stack([field.draw(2 * count, rng) for field in self.fields], axis=1)
            found = np.concatenate([found, self.admitted(self.canonical(codes))])
            if len(found) >= count:
                return found[:count]
        raise ValueError(f"constraints leave hardly a design: {len(found)} of {2 * count * DRAWS} drawn")

    def near(self, codes: FloatArray, step: float, rng: np.random.Generator) -> FloatArray:
        """Return designs near others: about one field in each is moved, by a step's share of its scale."""
        chosen = rng.random(codes.shape) < 1.5 / len(self.fields)
        chosen[np.arange(len(codes)), rng.integers(len(self.fields), size=len(codes))] = True
        columns = [field.move(codes[:, axis], step, rng) for axis, field in enumerate(self.fields)]
        return self.admitted(self.canonical(np.where(chosen, np.stack(columns, axis=1), codes)))

    def points(self, codes: FloatArray) -> list[Point]:
        """Return designs as ``{name: value}``."""
        return [
            {field.name: field.value(code) for field, code in zip(self.fields, row, strict=True)}
            for row in codes
        ]

    def codes(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Return the codes of points, checked; fields that do not matter may be left out."""
        names = [field.name for field in self.fields]
        rows = []
        for point in points:
            for name in point:
                if name not in names:
                    raise ValueError(f"point has no field {name!r}{nearest(name, names)}")
            row = [f.code(point[f.name]) if f.name in point else math.nan for f in self.fields]
            known = np.array([row])
            missing = np.isnan(known)
            codes = np.where(missing, 0.0, known)
            needed = (missing & self.matters(codes))[0]
            if needed.any():
                raise ValueError(f"point must have a value of {names[int(needed.argmax())]!r}, got {point!r}")
            rows.append(self.canonical(codes)[0])
        return np.array(rows).reshape(-1, len(names))

    def active(self, point: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the fields that matter in a point."""
        matters = self.matters(self.codes([point]))[0]
        return tuple(field.name for field, here in zip(self.fields, matters, strict=True) if here)


Low = Callable[[list[Point]], Mapping[str, npt.ArrayLike]]
"""A cheap model: points to ``{metric: one value for each}``."""
