"""A model everywhere, then simulation only where its error leaves the front open."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.search.allocation import Known, allocate
from optimize.search.demands import Demand, demands_of
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.pareto import FloatArray, IntArray, nondominated
from optimize.search.uncertain import Membership, front_probability
from optimize.spaces.evaluation import metric_columns
from optimize.spaces.numbering import Columns
from optimize.spaces.space import Space
from optimize.spaces.stability import STABLE, saturated

KEEPS_UP = Demand(metric=STABLE, sign=-1, limit=-1.0)
"""A design must be stable, unless the user limits ``stable`` himself."""

ErrorBand = Callable[[Columns], tuple[npt.ArrayLike, npt.ArrayLike]]
"""Takes the table of the exploration and returns the lowest and highest true value of a metric."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TwoStage:
    """The front after model and simulation, and how sure it is.

    Parameters
    ----------
    exploration : Exploration
        Every design by the model.
    rows : ndarray of int
        Rows of its table that the error of the model does not exclude; all else refers to these.
    best, low, high : ndarray of shape (rows, objectives)
        The objectives with their intervals: of the simulation where there is one, else the model's
        value with its error.
    replications : ndarray of int
        Replications of each; 0 is not simulated.
    membership : Membership
        Which of them are on the front for sure within the intervals, which not.
    probability : ndarray of float
        Probability that each is on the front, see `optimize.front_probability`.
    front : ndarray of int
        Rows of the table that are on the front of the best values.
    results : dict of int to object
        What the simulation returned, by row of the table.
    rounds : int
        Rounds of simulations.
    budget : int
        Replications that were allowed.
    """

    exploration: Exploration
    rows: IntArray
    best: FloatArray
    low: FloatArray
    high: FloatArray
    replications: IntArray
    membership: Membership
    probability: FloatArray
    front: IntArray
    results: dict[int, Any]
    rounds: int
    budget: int

    @property
    def spent(self) -> int:
        """Replications in all."""
        return int(self.replications.sum())

    def __str__(self) -> str:
        member = self.membership
        return (
            f"two stages: {len(self.exploration.feasible)} designs by the model,"
            f" {len(self.rows)} of them not excluded by its error,"
            f" {int((self.replications > 0).sum())} simulated with {self.spent} of {self.budget} replications"
            f" in {self.rounds} rounds\n"
            f"front: {len(self.front)} designs; {int(member.on.sum())} are on it for sure,"
            f" {int(member.undecided.sum())} undecided"
        )

    __repr__ = __str__


def two_stage(
    space: Space,
    evaluate: Callable[[Any], object],
    simulate: Callable[..., object],
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
    errors: Mapping[str, float | ErrorBand],
    replications: int = 8,
    max_replications: int = 64,
    budget: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    vectorized: bool | str = False,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    identity: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> TwoStage:
    """Find the front with a model whose error is known, and simulate where that is not enough.

    Parameters
    ----------
    space, evaluate, minimize, maximize, subject_to, vectorized, store, identity
        As for `optimize.search.explore`, which evaluates every design with the model.
    simulate : callable
        ``simulate(spec, replications=n, seed=seed)`` returns metrics as for `explore`, with
        estimates that have ``best``, ``low`` and ``high``. It is called again with more
        replications for designs that stay undecided; the first ones of a larger number must be
        those of a smaller one, so that a store of finished replications makes them free.
    errors : mapping
        For every metric that the simulation corrects, the relative error of the model: the true
        value is taken to lie within ``model * (1 - error)`` and ``model * (1 + error)``. Or a
        function of the table that returns the ends of the range of the true value. Metrics that
        are not named, such as a cost, are exact and never taken from the simulation.
    replications, max_replications : int
        Replications of a design to begin with, at least 2, and at most.
    budget : int
        Replications in all. If it does not suffice to begin with all undecided designs, those
        whose membership is most open come first.
    level : float
        Confidence level of the intervals of the simulation.
    seed : int
        Passed on to `simulate`.
    executor : concurrent.futures.Executor, optional
        Runs the evaluations and the simulations.
    progress : callable, optional
        Called with (replications run, budget) after every round.

    Returns
    -------
    TwoStage
        The front with its certainty. A design that its simulation calls unstable (``stable`` False) is not
        on it; one that only the model calls so is simulated. Undecided designs are left if the
        budget or the largest number of replications is spent.

    Raises
    ------
    ValueError
        For an argument that makes no sense, a metric that does not exist, or NaN.

    Notes
    -----
    Intervals decide membership (`optimize.front_membership`): those of the model, replaced by those
    of the simulation where there is one. Replications are then added where they decide most (see
    `optimize.search.allocation.allocate`). Intervals hold for one design and metric at their level; the
    many comparisons of a front hold together with less.

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 1
    ...     width: int = 8
    >>> def model(memory, rate=1.0):
    ...     latency = 600 / (rate * memory.channels * memory.width) + 2 * memory.channels
    ...     return {"latency": latency, "cost": 3 * memory.channels + memory.width / 4}
    >>> def simulation(memory, *, replications, seed):
    ...     noise = np.random.default_rng([seed, memory.channels]).standard_normal(replications)
    ...     runs = model(memory, rate=0.98)["latency"] * (1 + 0.02 * noise)
    ...     half = 2 * runs.std(ddof=1) / replications**0.5
    ...     mean = runs.mean()
    ...     return {"latency": SimpleNamespace(low=mean - half, best=mean, high=mean + half)}
    >>> space = Space(Memory(), channels=[1, 2, 4, 8], width=[8, 16, 32])
    >>> answer = two_stage(space, model, simulation, minimize=["latency", "cost"], errors={"latency": 0.05})
    >>> answer.front, int(answer.membership.undecided.sum()), answer.spent
    (array([0, 1, 2, 4, 5, 8]), 0, 53)
    """
    if not callable(simulate):
        raise ValueError(f"simulate must be a callable on a spec, got {simulate!r}")
    given = {"replications": (replications, 2), "max_replications": (max_replications, 2)}
    for name, (value, least) in (given | {"budget": (budget, 0), "seed": (seed, 0)}).items():
        checks.whole(name, value, least=least)
    checks.share("level", level)
    ranges = checks.ranges("subject_to", subject_to)
    exploration = explore(
        space,
        evaluate,
        minimize=minimize,
        maximize=maximize,
        subject_to=subject_to,
        vectorized=vectorized,
        executor=executor,
        store=store,
        identity=identity,
    )
    demands = demands_of(exploration.minimize, exploration.maximize, ranges)
    known = list(dict.fromkeys(demand.metric for demand in demands))
    for name in errors:
        if name not in known:
            raise ValueError(
                f"errors must name objectives or limits, got {name!r}{checks.nearest(name, known)}"
            )
    if STABLE not in known:
        # The word of the model leaves a design open; that of the simulation decides.
        demands, errors = [*demands, KEEPS_UP], {**errors, STABLE: lambda table: (table[STABLE], 1.0)}
    state = _State(exploration, demands, _bands(exploration, demands, errors))
    rounds = 0
    wanted = _first(state, replications, budget, level, seed)
    while wanted:
        rounds += 1
        for place, result in _simulated(state, wanted, simulate, seed, executor).items():
            state.take(place, result, wanted[place], errors)
        spent = int(state.known.replications.sum())
        if progress:
            progress(spent, budget)
        wanted = allocate(
            state.known, first=replications, maximum=max_replications, left=budget - spent, level=level
        )
    return state.conclude(rounds, budget, level, seed)


def _bands(
    exploration: Exploration, demands: list[Demand], errors: Mapping[str, float | ErrorBand]
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the lowest and highest true value of every metric by the model."""
    bands = {}
    table = _read(exploration.table, demands)
    for name in {demand.metric for demand in demands}:
        column = table[name].astype(float)
        error = errors.get(name, 0.0)
        if callable(error):
            low, high = (np.broadcast_to(np.asarray(end, dtype=float), column.shape) for end in error(table))
            if not (low <= high).all():
                raise ValueError(f"errors[{name!r}] must return low <= high for every design")
        else:
            if not isinstance(error, int | float) or not 0 <= error < 1:
                raise ValueError(f"errors[{name!r}] must be >= 0 and < 1, or a function, got {error!r}")
            ends = column * (1 - error), column * (1 + error)
            low, high = np.minimum(*ends), np.maximum(*ends)
        bands[name] = low, high
    return bands


def _read(table: Columns, demands: list[Demand]) -> Columns:
    """Return the columns with whether each design keeps up; it does where nothing is said."""
    return {**table, STABLE: ~saturated(table)} if KEEPS_UP in demands else table


class _State:
    """What is known of the designs that the error of the model does not exclude, as costs."""

    def __init__(
        self, exploration: Exploration, demands: list[Demand], bands: dict[str, tuple[FloatArray, FloatArray]]
    ) -> None:
        self.exploration, self._demands = exploration, demands
        self.results: dict[int, Any] = {}
        table = _read(exploration.table, demands)

        def stacked(columns: list[FloatArray]) -> FloatArray:
            return np.stack(columns, axis=1) if columns else np.zeros((0, 0))

        known = Known(
            centre=stacked([d.sign * table[d.metric].astype(float) for d in demands]),
            low=stacked([d.sign * bands[d.metric][d.sign < 0] for d in demands]),
            high=stacked([d.sign * bands[d.metric][d.sign > 0] for d in demands]),
            limits=np.array([demand.limit for demand in demands]),
            objectives=np.array([demand.objective for demand in demands]),
            replications=np.zeros(len(exploration.feasible), dtype=np.int64),
        )
        self.rows = np.flatnonzero(~known.membership().off)
        names = ("centre", "low", "high", "replications")
        self.known = replace(known, **{name: getattr(known, name)[self.rows] for name in names})

    def take(self, place: int, result: object, replications: int, errors: Mapping[str, Any]) -> None:
        """Replace what the model says of a design by what the simulation says."""
        columns = _read(metric_columns(result), self._demands)
        for k, demand in enumerate(self._demands):
            name = demand.metric
            if name not in errors:
                continue
            if name not in columns:
                raise ValueError(f"simulate returned no metric {name!r}{checks.nearest(name, columns)}")
            values = [
                demand.sign * float(columns.get(part, columns[name])[0])
                for part in (f"{name}_low", name, f"{name}_high")
            ]
            if any(map(math.isnan, values)):
                label = self.exploration.space.label(self.exploration.table["design"][self.rows[place]])
                raise ValueError(f"simulate returned NaN for {name!r} at {label}")
            self.known.low[place, k], self.known.high[place, k] = min(values), max(values)
            self.known.centre[place, k] = values[1]
        self.known.replications[place] = replications
        self.results[int(self.rows[place])] = result

    def objectives(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return best, low and high of the objectives, as costs."""
        known = self.known
        return tuple(values[:, known.objectives] for values in (known.centre, known.low, known.high))  # type: ignore[return-value]

    def conclude(self, rounds: int, budget: int, level: float, seed: int) -> TwoStage:
        """Return the answer."""
        known = self.known
        signs = np.array([demand.sign for demand in self._demands])[known.objectives]
        best, low, high = self.objectives()
        feasible = (known.centre <= known.limits).all(axis=1)
        front = np.flatnonzero(feasible)[nondominated(best[feasible])]
        probability = np.zeros(len(best))
        probability[feasible] = front_probability(
            best[feasible], low[feasible], high[feasible], level=level, seed=seed
        )
        ends = low * signs, high * signs
        return TwoStage(
            exploration=self.exploration,
            rows=self.rows,
            best=best * signs,
            low=np.minimum(*ends),
            high=np.maximum(*ends),
            replications=known.replications,
            membership=known.membership(),
            probability=probability,
            front=self.rows[front],
            results=self.results,
            rounds=rounds,
            budget=budget,
        )


def _first(state: _State, replications: int, budget: int, level: float, seed: int) -> dict[int, int]:
    """Return the replications of the first round: all undecided designs, else the most open ones."""
    places = np.flatnonzero(state.known.membership().undecided)
    if places.size * replications > budget:
        chance = front_probability(*state.objectives(), level=level, draws=200, seed=seed)
        order = np.argsort(np.abs(chance[places] - 0.5), kind="stable")
        places = np.sort(places[order[: budget // replications]])
    return {int(place): replications for place in places}


def _simulated(
    state: _State,
    wanted: dict[int, int],
    simulate: Callable[..., object],
    seed: int,
    executor: Executor | None,
) -> dict[int, object]:
    runs = {
        place: partial(
            simulate, state.exploration.spec(int(state.rows[place])), replications=count, seed=seed
        )
        for place, count in wanted.items()
    }
    if executor is None:
        return {place: run() for place, run in runs.items()}
    futures = {place: executor.submit(run) for place, run in runs.items()}
    return {place: future.result() for place, future in futures.items()}
