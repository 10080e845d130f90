"""Search of a black box by Optuna, with a cheap model as prior: ask what to simulate, tell what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.decisions.correction import Correction, standardised
from optimize.decisions.decision import LEVEL
from optimize.search.pareto import FloatArray, hypervolume, nondominated
from optimize.spaces.numbering import choice_values
from optimize.spaces.space import Space
from optimize.spaces.structure import Conditions, Constraint, Point, Structure

POOL, TRIES = 3000, 20  # designs that the model is asked about; proposals for one that is new and admitted


@dataclass(frozen=True, kw_only=True)
class Between:
    """A number from ``low`` to ``high``, whole or not; with ``log`` equal ratios are equal distances."""

    low: float
    high: float
    whole: bool = False
    log: bool = False

    def __post_init__(self) -> None:
        if not (-math.inf < self.low < self.high < math.inf) or (self.log and self.low <= 0):
            raise ValueError(f"low and high must be finite, low < high, low > 0 with log, got {self!r}")


class Domain:
    """Fields ``{name: Between(...) or choices}``, with conditions and constraints as those of `Space`."""

    def __init__(
        self,
        fields: Mapping[str, Between | Iterable[object]],
        *,
        conditions: Conditions | None = None,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        if not fields:
            raise ValueError("a domain needs at least one field")
        self.fields: dict[str, Any] = {
            name: one if isinstance(one, Between) else choice_values(name, one)
            for name, one in fields.items()
        }
        listed = {name: (0,) if isinstance(one, Between) else one for name, one in self.fields.items()}
        structure, names = Structure(listed, conditions or {}), list(fields)
        self.conditions, self.constraints = structure.conditions, tuple(constraints)
        self._order = [n for n in names if n not in self.conditions] + [names[k] for k in structure.order]

    @classmethod
    def of(cls, space: Space) -> Domain:
        """Return the choices, conditions and constraints of a space of specs."""
        return cls(space.choices, conditions=space.structure.conditions, constraints=space.constraints)

    def point(self, pick: Callable[[str, Any], Any]) -> Point:
        """Return a point with picked values of the fields that matter, and the first values of the others."""
        point: dict[str, Any] = {}
        for name in self._order:
            field, parents = self.fields[name], self.conditions.get(name, {})
            matters = all(point[other] in values for other, values in parents.items())
            point[name] = (
                pick(name, field) if matters else field.low if isinstance(field, Between) else field[0]
            )
        return {name: point[name] for name in self.fields}

    def admits(self, point: Point) -> bool:
        """Return whether a point satisfies the constraints."""
        return all(constraint(point) for constraint in self.constraints)

    def draw(self, count: int, rng: np.random.Generator) -> list[Point]:
        """Return up to so many different points drawn at random."""

        def pick(name: str, field: Any) -> Any:
            if not isinstance(field, Between):
                return field[int(rng.integers(len(field)))]
            low, high = (math.log(end) if field.log else end for end in (field.low, field.high))
            value = rng.uniform(low, high)
            value = min(max(math.exp(value) if field.log else value, field.low), field.high)
            return round(value) if field.whole else float(value)

        found: dict[tuple[Any, ...], Point] = {}
        for _ in range(200 + 4 * count):
            point = self.point(pick)
            if len(found) < count and self.admits(point):
                found.setdefault(tuple(point.values()), point)
        return list(found.values())

    def features(self, points: Sequence[Point]) -> FloatArray:
        """Return standardised places on scales and in ordered lists, one column for each word."""
        columns: list[Any] = []
        for name, field in self.fields.items():
            values = [point[name] for point in points]
            if isinstance(field, Between):
                columns.append(np.log(values) if field.log else values)
            elif all(isinstance(one, (int, float)) for one in field):
                columns.append([field.index(value) for value in values])
            else:
                columns += [[value == word for value in values] for word in field[1:]]
        return standardised(columns, len(points))


class Search:
    """Bayesian optimization of an expensive simulation, with the analytic model as prior.

    Parameters
    ----------
    domain : Domain or Space
        What may be varied.
    minimize, maximize : str or sequence of str
        The objectives, names of metrics.
    subject_to : mapping, optional
        ``{metric: (low, high)}``, both ends included, None for an open end.
    low : callable, optional
        A cheap model: takes a list of points and returns ``{metric: values}``.
    storage : str, optional
        Where Optuna keeps what was told, such as ``"sqlite:///search.db"``: the same search resumes there.
    seed : int
        Of all that is drawn.

    Notes
    -----
    Optuna's tree-structured Parzen estimator proposes. With a model, three of four designs are enqueued
    instead: those that add most to the volume dominated by what was measured, by the model times what
    simulations say near by of the ratio simulated / model (a Gaussian process, as in `optimize.decide`);
    at first, the model's front.

    Examples
    --------
    >>> domain = Domain({"mark": Between(low=0, high=1), "queue": [8, 16, 32, 64]})
    >>> search = Search(domain, minimize=["reads", "writes"], seed=1)
    >>> for _ in range(10):
    ...     points = search.ask(2)
    ...     reads = [(1 - p["mark"]) ** 2 + 8 / p["queue"] for p in points]
    ...     writes = [p["mark"] ** 2 + 8 / p["queue"] for p in points]
    ...     search.tell(points, {"reads": reads, "writes": writes})
    >>> len(search.table["reads"]), len(search.front()) > 0
    (20, True)
    """

    def __init__(
        self,
        domain: Domain | Space,
        *,
        minimize: str | Sequence[str] = (),
        maximize: str | Sequence[str] = (),
        subject_to: Mapping[str, checks.Range] | None = None,
        low: Callable[[list[Point]], Mapping[str, npt.ArrayLike]] | None = None,
        storage: str | None = None,
        seed: int = 0,
    ) -> None:
        try:
            import optuna
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                'Search needs Optuna: pip install "qmodels-toolkit[blackbox]"', name="optuna"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.domain = Domain.of(domain) if isinstance(domain, Space) else domain
        down, up = checks.objectives(minimize, maximize)
        self._signs = dict.fromkeys(down, 1.0) | dict.fromkeys(up, -1.0)
        if not self._signs:
            raise ValueError("a search needs at least one objective to minimize or maximize")
        self.subject_to = checks.ranges("subject_to", subject_to)
        self.metrics = tuple(dict.fromkeys([*self._signs, *self.subject_to]))
        self._rng, self._low = np.random.default_rng(seed), low
        drawn = 2 * len(self.domain.fields) + 2
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=drawn)
        self.study = optuna.create_study(
            directions=["minimize"] * len(self._signs),
            sampler=sampler,
            storage=storage,
            study_name="search" if storage else None,
            load_if_exists=storage is not None,
        )
        self._asked: dict[tuple[Any, ...], Any] = {}  # trials by the values of their points
        told = [trial.user_attrs["told"] for trial in self.study.trials if "told" in trial.user_attrs]
        self._points: list[Point] = [point for point, _ in told]
        self._told = [[float(values[name]) for name in self.metrics] for _, values in told]
        self._pool = self.domain.draw(POOL, self._rng) if low is not None else []
        self._prior = self._model(self._pool)

    def ask(self, count: int = 1) -> list[Point]:
        """Return points to simulate next, none of them asked or told before; fewer if no more are found."""
        from optuna.trial import TrialState

        checks.whole("count", count, least=1)
        asked = len(self._points) + len(self._asked)
        others = sum(k % 4 == 3 for k in range(asked, asked + count)) if asked >= 4 else 0
        found = self._best(count - others) if self._low is not None else []
        for point in found:
            self._enqueue(point)
        for _ in range(TRIES + count):
            if len(found) == count:
                break
            trial, point = self._suggested()
            if self._new(point) and self.domain.admits(point):
                found.append(point)
                self._asked[tuple(point.values())] = trial
            else:
                self.study.tell(trial, state=TrialState.FAIL)
        for point in filter(self._new, self.domain.draw(POOL, self._rng) if len(found) < count else ()):
            if len(found) < count:
                self._enqueue(point)
                found.append(point)
        if not found:
            raise ValueError(
                f"no design is left to ask for: all {len(self._points) + len(self._asked)} are known"
            )
        return found

    def tell(self, points: Sequence[Mapping[str, Any]], values: Mapping[str, npt.ArrayLike]) -> None:
        """Take what was measured of points, asked for or not.

        ``values``: ``{metric: one value for each point}``; one that is not finite says that a design does not
        work. Metrics that are no objective and no constraint are left out.
        """
        columns = []
        for name in self.metrics:
            if name not in values:
                raise ValueError(f"values must have {name!r}{checks.nearest(name, values)}")
            columns.append(checks.reals(f"values[{name!r}]", values[name]))
            if columns[-1].shape != (len(points),):
                raise ValueError(f"values[{name!r}] must be one for each of {len(points)} points")
        for point, row in zip(points, np.array(columns).T.tolist(), strict=True):
            if set(point) != set(self.domain.fields):
                raise ValueError(f"point must have the fields {', '.join(self.domain.fields)}, got {point!r}")
            kept = {name: point[name] for name in self.domain.fields}
            if tuple(kept.values()) not in self._asked:
                self._enqueue(kept)
            trial = self._asked.pop(tuple(kept.values()))
            self._points.append(kept)
            self._told.append(row)
            costs, over = self._costs(self._values)
            worst = np.where(np.isfinite(costs), costs, -np.inf).max(axis=0)
            cost = np.where(np.isfinite(costs[-1]), costs[-1], np.where(np.isfinite(worst), worst, 0.0))
            for k, miss in enumerate(np.minimum(over[-1], 1e9).tolist()):
                trial.set_constraint(str(k), miss)
            trial.set_user_attr("told", (kept, dict(zip(self.metrics, row, strict=True))))
            self.study.tell(trial, cost.tolist())

    @property
    def table(self) -> dict[str, npt.NDArray[Any]]:
        """Table of evaluations in their order: a column for every field and metric."""
        fields = {name: np.array([point[name] for point in self._points]) for name in self.domain.fields}
        return fields | dict(zip(self.metrics, self._values.T, strict=True))

    def front(self) -> list[dict[str, Any]]:
        """Return the feasible designs told that no other one dominates, with fields and metrics."""
        costs, over = self._costs(self._values)
        rows = np.flatnonzero((over <= 0).all(axis=1))
        rows = rows[nondominated(costs[rows])] if rows.size else rows
        return [self._points[k] | dict(zip(self.metrics, self._told[k], strict=True)) for k in rows.tolist()]

    @property
    def _values(self) -> FloatArray:
        return np.array(self._told).reshape(-1, len(self.metrics))

    def _costs(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the objectives, all minimised, and by how much constraints are missed, and being finite."""
        costs = np.stack([sign * values[:, self.metrics.index(n)] for n, sign in self._signs.items()], axis=1)
        over = [np.where(np.isfinite(values).all(axis=1), 0.0, np.inf)]
        for name, sign, bound in checks.sides(self.subject_to):
            miss = sign * (values[:, self.metrics.index(name)] - bound)
            over.append(np.where(np.isfinite(miss), miss, np.inf))
        return costs, np.stack(over, axis=1)

    def _new(self, point: Point) -> bool:
        return tuple(point.values()) not in self._asked and point not in self._points

    def _suggested(self) -> tuple[Any, Point]:
        trial = self.study.ask()

        def pick(name: str, field: Any) -> Any:
            if not isinstance(field, Between):
                if all(isinstance(one, (int, float)) for one in field):
                    return field[trial.suggest_int(name, 0, len(field) - 1)]
                return field[trial.suggest_categorical(name, range(len(field)))]
            suggest = trial.suggest_int if field.whole else trial.suggest_float
            return suggest(name, field.low, field.high, log=field.log)

        return trial, self.domain.point(pick)

    def _enqueue(self, point: Point) -> None:
        """Enqueue a point and take it as asked."""
        codes = {
            n: point[n] if isinstance(f, Between) else f.index(point[n])
            for n, f in self.domain.fields.items()
        }
        self.study.enqueue_trial(codes)
        self._asked[tuple(point.values())] = self._suggested()[0]

    def _model(self, points: list[Point]) -> dict[str, FloatArray]:
        """Return the model's answers by metric; NaN of what it does not know."""
        found = self._low(points) if self._low is not None and points else {}
        unknown = np.full(len(points), np.nan)
        return {n: checks.reals(f"low[{n!r}]", found[n]) if n in found else unknown for n in self.metrics}

    def _corrected(self) -> FloatArray:
        """Return the model's answers at the pool, corrected by what was told, a column for each metric."""
        every, own = [*self._pool, *self._points], self._model(self._points)
        prior = {name: np.concatenate([known, own[name]]) for name, known in self._prior.items()}
        if len(self._points) > 2:
            correction = Correction(prior, self.domain.features(every), dict.fromkeys(prior), level=LEVEL)
            rows = np.arange(len(self._pool), len(every))
            for name, told in zip(self.metrics, self._values.T, strict=True):
                prior[name] = correction.columns(name, rows, told, calibrated=False)[1]
        return np.stack(list(prior.values()), axis=1)[: len(self._pool)]

    def _best(self, count: int) -> list[Point]:
        """Return designs of the pool that add most to the volume, by the corrected model."""
        costs, over = self._costs(self._corrected())
        able = np.flatnonzero((over <= 0).all(axis=1))
        able = able[[self._new(self._pool[k]) for k in able]]
        measured, beyond = self._costs(self._values)
        measured = measured[(beyond <= 0).all(axis=1)]
        found: list[Point] = []
        while able.size and len(found) < count:
            front = able[nondominated(costs[able])]
            front = front[:: max(len(front) // 100, 1)]
            every = np.concatenate([measured, costs[able]])
            low, size = every.min(axis=0), np.ptp(every, axis=0) + 1e-300
            corner = np.full(len(low), 1.1)
            gains = [
                hypervolume((np.concatenate([measured, costs[[k]]]) - low) / size, reference=corner)
                for k in front
            ]
            best = front[int(np.argmax(gains))]
            found.append(self._pool[best])
            measured, able = np.concatenate([measured, costs[[best]]]), able[able != best]
        return found
