"""The search itself: ask what to simulate, tell what came out, see the front and the volume grow."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.blackbox.beliefs import Beliefs, Seen, believe
from optimize.blackbox.cheap import WORKS, Cheap
from optimize.blackbox.domain import Domain, Low
from optimize.blackbox.progress import Progress, progress_of
from optimize.checks import Range
from optimize.search.pareto import FloatArray, nondominated
from optimize.spaces.constraints import Point
from optimize.spaces.space import Space
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.spec.whole import whole

SAMPLE = 512
"""Designs of a domain that is not listed, by whose model answers these are scaled."""

SPREAD = 50
"""Designs drawn for each of the first ones, which are chosen far from each other."""


class Search:
    """What to simulate next, where a simulation is dear and a cheap model of it may be at hand.

    Parameters
    ----------
    domain : Domain or Space
        What may be varied.
    minimize, maximize : str or sequence of str
        The objectives, names of metrics.
    subject_to : mapping, optional
        ``{metric: (low, high)}``, both ends included, None for an open end.
    low : callable, optional
        A cheap model: takes a list of points and returns ``{metric: values}``. What the simulator says
        is learned as a deviation from it, or without it, whichever explains the values better.
    reference : mapping, optional
        ``{objective: value}``: the corner of the volume. By default it follows the front.
    start : int, optional
        Designs asked for, far from each other, before anything is learned: by default none with
        a model of all objectives and constraints, else two for each field and two more.
    seed : int
        Of all that is drawn; the same seed and the same values give the same questions.

    Raises
    ------
    ValueError
        If there is no objective, or a value is out of range.

    Notes
    -----
    Every metric is a Gaussian process over the fields [1]_, of its value or logarithm and about the model
    or a constant, whichever makes the values most probable. The next design is that of the largest
    expected hypervolume improvement (see `optimize.blackbox.improvement`) times the probability that it
    satisfies the constraints and gives finite values; those of a batch follow one another as if the ones
    before had been measured as expected.

    References
    ----------
    .. [1] C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, MIT Press, 2006.

    Examples
    --------
    Two answers of a memory whose reads wait for writes, by the watermark and the size of its queue:

    >>> from optimize.blackbox.domain import Between, Domain
    >>> domain = Domain({"mark": Between(low=0, high=1), "queue": [8, 16, 32, 64]})
    >>> search = Search(domain, minimize=["reads", "writes"], seed=1)
    >>> for _ in range(6):
    ...     points = search.ask(2)
    ...     reads = [(1 - p["mark"]) ** 2 + 8 / p["queue"] for p in points]
    ...     writes = [p["mark"] ** 2 + 8 / p["queue"] for p in points]
    ...     search.tell(points, {"reads": reads, "writes": writes})
    >>> len(search.table["reads"]), {row["queue"] for row in search.front()}
    (12, {64})
    """

    def __init__(
        self,
        domain: Domain | Space,
        *,
        minimize: str | Sequence[str] = (),
        maximize: str | Sequence[str] = (),
        subject_to: Mapping[str, Range] | None = None,
        low: Low | None = None,
        reference: Mapping[str, float] | None = None,
        start: int | None = None,
        seed: int = 0,
    ) -> None:
        self.domain = Domain.of(domain) if isinstance(domain, Space) else domain
        self.minimize, self.maximize = checks.objectives(minimize, maximize)
        self._signs = dict.fromkeys(self.minimize, 1) | dict.fromkeys(self.maximize, -1)
        if not self._signs:
            raise ValueError("a search needs at least one objective to minimize or maximize")
        self.subject_to = checks.ranges("subject_to", subject_to)
        self.metrics = tuple(dict.fromkeys([*self._signs, *self.subject_to]))
        for name in (*self.metrics, *(reference or {})):
            if name == WORKS or name in [field.name for field in self.domain.fields]:
                raise ValueError(f"a metric must not have the name of a field or {WORKS!r}, got {name!r}")
        self.reference = _corner(self._signs, reference)
        if start is not None:
            checks.whole("start", start, least=0)
        checks.whole("seed", seed, least=0)
        self._low, self._start, self._seed = low, start, seed
        self._codes = self._pending = np.zeros((0, len(self.domain.fields)))
        self._values: dict[str, list[float]] = {name: [] for name in self.metrics}
        self._noise: dict[str, list[float]] = {name: [] for name in self.metrics}
        self._seconds: list[float] = []
        self._begun = time.monotonic()
        self._pool: FloatArray | None = None  # all designs, where they can be listed

    def ask(self, count: int = 1) -> list[Point]:
        """Return points to simulate next, none of them asked or told before; fewer if no more are left."""
        checks.whole("count", count, least=1)
        beliefs, before = None, len(self._pending)
        rng = np.random.default_rng([self._seed, len(self._codes), before])
        while len(self._pending) < before + count:
            if self._ready():
                beliefs = beliefs or self._beliefs().imagine(self._pending)
                code = beliefs.best(self._pool, rng)
            else:
                code = self._far(rng)
            if code is None:
                break
            self._pending = np.concatenate([self._pending, code[None]])
            beliefs = beliefs and beliefs.imagine(code[None])
        if len(self._pending) == before:
            raise ValueError(f"no design is left to ask for: all {len(self._codes) + before} are known")
        return self.domain.points(self._pending[before:])

    def tell(
        self,
        points: Sequence[Mapping[str, Any]],
        values: Mapping[str, npt.ArrayLike],
        *,
        noise: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        """Take what was measured of points, asked for or not.

        Parameters
        ----------
        points : sequence of mapping
            ``{field: value}``.
        values : mapping
            ``{metric: one value for each point}``; a value that is not finite says that the design does not
            work. Metrics that are no objective and no constraint are left out.
        noise : mapping, optional
            ``{metric: standard deviation of each value}``; half a 95 % interval over 1.96. What is not
            given is learned, as one for all designs.
        """
        codes = self.domain.codes(points)
        columns = {name: _column("values", name, values, len(codes)) for name in self.metrics}
        own = {
            name: _column("noise", name, noise, len(codes))
            if noise and name in noise
            else np.zeros(len(codes))
            for name in self.metrics
        }
        for name, column in own.items():
            if not (np.isfinite(column) & (column >= 0)).all():
                raise ValueError(f"noise[{name!r}] must be finite and >= 0, got {noise and noise[name]!r}")
        for name in self.metrics:
            self._values[name] += columns[name].tolist()
            self._noise[name] += own[name].tolist()
        self._codes = np.concatenate([self._codes, codes])
        told = set(map(bytes, codes + 0.0))
        self._pending = self._pending[[bytes(row) not in told for row in self._pending + 0.0]]
        self._seconds += [time.monotonic() - self._begun] * len(codes)

    @property
    def table(self) -> dict[str, npt.NDArray[Any]]:
        """What was told: a column for every field and metric, and `seconds`, in the order it was told."""
        points = self.domain.points(self._codes)
        fields = {
            field.name: np.array([point[field.name] for point in points]) for field in self.domain.fields
        }
        return (
            fields
            | {n: np.array(v, dtype=float) for n, v in self._values.items()}
            | {"seconds": np.array(self._seconds)}
        )

    def feasible(self) -> npt.NDArray[np.bool_]:
        """Tell which of the told designs work and satisfy the constraints, as measured."""
        able = np.ones(len(self._codes), dtype=bool)
        for name in self.metrics:
            column = np.array(self._values[name], dtype=float)
            low, high = self.subject_to.get(name, (None, None))
            able &= np.isfinite(column)
            able &= (column >= (-np.inf if low is None else low)) & (
                column <= (np.inf if high is None else high)
            )
        return able

    def front(self) -> list[dict[str, Any]]:
        """Return the designs told that no other one dominates, as measured, with fields and metrics."""
        rows = np.flatnonzero(self.feasible())
        kept = rows[nondominated(self._costs()[rows])] if rows.size else rows
        points = self.domain.points(self._codes[kept])
        return [
            point | {n: self._values[n][k] for n in self.metrics}
            for k, point in zip(kept, points, strict=True)
        ]

    def progress(self, reference: Mapping[str, float] | None = None) -> Progress:
        """Return the volume dominated after each evaluation, as measured, and when: `plot` draws it.

        The reference is the search's, or by default the worst of all that is feasible so far.
        """
        corner = self.reference if reference is None else _corner(self._signs, reference)
        return progress_of(self._costs(), self.feasible(), np.array(self._seconds), corner)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write what was asked and told to a file, whole or not at all, and return its path."""
        state = {
            "question": self._question(),
            "codes": self._codes.tolist(),
            "pending": self._pending.tolist(),
            "values": self._values,
            "noise": self._noise,
            "seconds": self._seconds,
            "elapsed": time.monotonic() - self._begun,
        }
        with whole(path) as part:
            part.write_text(json.dumps(state), encoding="utf-8")
        return Path(path)

    def resume(self, path: str | os.PathLike[str]) -> Search:
        """Take what `save` wrote of the same search: it goes on as if it had never stopped."""
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
            question = state["question"]
        except (ValueError, TypeError, KeyError):
            raise ValueError(f"path must be a file that Search.save wrote, got {str(path)!r}") from None
        if question != self._question():
            raise ValueError(
                f"path must be of a search of the same fields, goals and seed, got {str(path)!r}"
            )
        shape = (-1, len(self.domain.fields))
        self._codes = np.array(state["codes"], dtype=float).reshape(shape)
        self._pending = np.array(state["pending"], dtype=float).reshape(shape)
        self._values, self._noise = state["values"], state["noise"]
        self._seconds = state["seconds"]
        self._begun = time.monotonic() - state["elapsed"]
        return self

    @cached_property
    def _cheap(self) -> Cheap:
        """The model, asked all over the domain by the way: by these answers others are scaled."""
        self._pool = self.domain.listed()
        if self._pool is not None and not len(self._pool):
            raise ValueError("constraints leave no design")
        rng = np.random.default_rng(self._seed)
        everywhere = self.domain.draw(SAMPLE, rng) if self._pool is None else self._pool
        worse = {name: -1 if high is None else 1 for name, (_, high) in self.subject_to.items()}
        return Cheap(self._low, self.domain, worse | self._signs, everywhere)

    def _ready(self) -> bool:
        """Tell whether enough is known to learn from: a model's answers, or some values, of every metric."""
        least = 0 if self._cheap.complete else 2 * len(self.domain.fields) + 2
        counts = {name: int(np.isfinite(column).sum()) for name, column in self._values.items()}
        enough = all(counts[name] >= 2 or name in self._cheap.scale for name in self.metrics)
        return enough and len(self._codes) + len(self._pending) >= (
            least if self._start is None else self._start
        )

    def _far(self, rng: np.random.Generator) -> FloatArray | None:
        """Return the design of some drawn ones that is farthest from those asked and told."""
        drawn = self.domain.draw(SPREAD, rng) if self._pool is None else self._pool
        taken = np.concatenate([self._codes, self._pending])
        known = set(map(bytes, taken + 0.0))
        drawn = drawn[[bytes(row) not in known for row in drawn + 0.0]]
        if not len(drawn):
            return None
        drawn = drawn[rng.permutation(len(drawn))[:SPREAD]]
        apart = self.domain.features(drawn)[:, None] - self.domain.features(taken)
        return drawn[(apart**2).sum(axis=2).min(axis=1, initial=np.inf).argmax()]

    def _beliefs(self) -> Beliefs:
        values = {name: np.array(column, dtype=float) for name, column in self._values.items()}
        works = np.isfinite(np.stack(list(values.values()))).all(axis=0)
        ranges = dict(self.subject_to)
        if not works.all():
            values[WORKS], ranges[WORKS] = works.astype(float), (0.5, None)
        noise = {name: np.array(column, dtype=float) for name, column in self._noise.items()}
        nothing = np.zeros((0, len(self.domain.fields)))
        empty = Beliefs(
            domain=self.domain, signs=self._signs, ranges=ranges, model=self._cheap, learned={},
            seen=Seen(codes=nothing, features=nothing, low={}), corner=self.reference,
        )  # fmt: skip
        return believe(empty, self._codes, values, noise)

    def _question(self) -> str:
        goals = [self.minimize, self.maximize, str(self.subject_to), str(self.reference)]
        return stable_hash([self.domain.said, goals, self._start, self._seed, self._low is not None])

    def _costs(self) -> FloatArray:
        return np.stack([sign * np.array(self._values[n], dtype=float) for n, sign in self._signs.items()], 1)


def _corner(signs: Mapping[str, int], reference: Mapping[str, float] | None) -> FloatArray | None:
    if reference is None:
        return None
    if set(reference) != set(signs):
        raise ValueError(
            f"reference must have a value of each of {', '.join(signs)}, got {dict(reference)!r}"
        )
    corner = np.array([sign * float(reference[name]) for name, sign in signs.items()])
    if not np.isfinite(corner).all():
        raise ValueError(f"reference must be finite, got {dict(reference)!r}")
    return corner


def _column(what: str, name: str, values: Mapping[str, npt.ArrayLike], count: int) -> FloatArray:
    if name not in values:
        raise ValueError(f"{what} must have a column {name!r}, got {', '.join(map(str, values)) or 'none'}")
    column = np.atleast_1d(checks.reals(f"{what}[{name!r}]", values[name]))
    if column.shape != (count,):
        raise ValueError(
            f"{what}[{name!r}] must have one value for each of {count} points, got {column.size}"
        )
    return column
