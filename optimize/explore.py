"""Exploring a space of designs with any model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from optimize import _check
from optimize.evaluation import Runner, stack
from optimize.exploration import Exclusion, Exploration, conclude, misses, objective_values
from optimize.greedy import Step, search, simplex_weights
from optimize.pareto import FloatArray, as_costs
from optimize.space import Columns, Designs, Space

if TYPE_CHECKING:
    from optimize.store import Store

METHODS = ("exhaustive", "greedy", "coordinate")


def explore(
    space: Space,
    evaluate: Callable[[Any], object],
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, _check.Range] | None = None,
    method: str = "exhaustive",
    designs: npt.ArrayLike | None = None,
    order: Sequence[str] | None = None,
    weights: Sequence[Sequence[float]] | None = None,
    vectorized: bool | Sequence[str] = False,
    chunk: int | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    identity: str = "",
    progress: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Evaluate designs of a space and find the exact Pareto front of those evaluated.

    Parameters
    ----------
    space : Space
        The designs.
    evaluate : callable
        Takes a spec and returns metrics: a mapping ``{metric: value}``, or an object whose
        attributes are metrics, those in a mapping ``metrics`` included. A value is a number
        (infinite is allowed: a saturated design), a truth value, a word, or an estimate with
        ``best`` (which ranks) and ``low`` and ``high``.
    minimize, maximize : str or sequence of str
        The objectives: numeric metrics or varied fields, at least one in all.
    subject_to : mapping, optional
        ``{metric: (low, high)}``, inclusive; None leaves a side open.
    method : {"exhaustive", "greedy", "coordinate"}
        Every design (the oracle), or a search along the fields (see `optimize.greedy.search`), whose
        front is that of the designs it looked at.
    designs : sequence of int, optional
        Only these designs, for example the front of an earlier exploration; exhaustive only.
    order : sequence of str, optional
        Fields in the order in which a search scans them, the most influential first; by
        default the order of the space.
    weights : sequence of sequence of float, optional
        Weights of the objectives (minimised ones first), one search path each; by default all
        in steps of 1/4 that sum to 1.
    vectorized : bool or sequence of str
        Whether `evaluate` broadcasts over specs with arrays in their fields: over all numeric
        fields, or over the named ones only. Other fields stay scalars.
    chunk : int, optional
        Designs per call (vectorized) or per task of the executor.
    executor : concurrent.futures.Executor, optional
        Runs the evaluations; it is not shut down. The result does not depend on it.
    store : path, optional
        An SQLite file where finished designs are committed as they come: an exploration that
        was killed resumes from it and evaluates no finished design again.
    identity : str
        Names the model and its arguments in the store; required with one. Change it whenever
        the model changes. The base spec is part of the key by itself.
    progress : callable, optional
        Called with (designs finished, designs in all) after every chunk; a search knows no
        total and reports what it has as both.

    Returns
    -------
    Exploration
        Table, front, knee and what the constraints excluded. With nothing feasible the front
        is empty and ``excluded`` says by how much each constraint is missed.

    Raises
    ------
    ValueError
        For an argument that makes no sense, a metric that does not exist (with the nearest
        names), NaN from the model (with the design), or a store that cannot be used.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 1
    ...     width: int = 8
    >>> def model(memory):
    ...     rate = memory.channels * memory.width
    ...     return {"latency": 640 / rate, "cost": 3 * memory.channels + memory.width / 4}
    >>> space = Space(Memory(), channels=[1, 2, 4, 8], width=[8, 16, 32])
    >>> result = explore(space, model, minimize=["latency", "cost"], vectorized=True)
    >>> result.table["design"][result.front]
    array([ 0,  1,  4,  5,  8, 11])
    >>> result.spec(result.knee)
    Memory(channels=2, width=16)
    """
    if not isinstance(space, Space):
        raise ValueError(f"space must be a Space, got {space!r}")
    if not callable(evaluate):
        raise ValueError(f"evaluate must be a callable on a spec, got {evaluate!r}")
    minimize, maximize = _check.names("minimize", minimize), _check.names("maximize", maximize)
    objectives = minimize + maximize
    if not objectives:
        raise ValueError("explore needs at least one objective in minimize or maximize")
    for name in set(minimize) & set(maximize):
        raise ValueError(f"objective {name!r} must be minimised or maximised, not both")
    ranges = _check.ranges("subject_to", subject_to)
    _check.choice("method", method, METHODS)
    if method == "exhaustive" and (order is not None or weights is not None):
        raise ValueError("order and weights belong to the methods greedy and coordinate")
    if method != "exhaustive" and designs is not None:
        raise ValueError(f"designs belongs to the method exhaustive, got method {method!r}")
    if chunk is not None and not (isinstance(chunk, int) and chunk >= 1):
        raise ValueError(f"chunk must be a whole number >= 1, got {chunk!r}")
    with _open(store, space, identity) as opened:
        runner = Runner(
            space=space,
            evaluate=evaluate,
            required=(*objectives, *ranges),
            vectorized=vectorized,
            chunk=chunk,
            executor=executor,
            store=opened,
            progress=progress if method == "exhaustive" else None,
        )
        if method == "exhaustive":
            numbers, excluded = _admitted(space, designs)
            metrics, evaluations = runner.run(numbers)
            history: tuple[Step, ...] = ()
        else:
            excluded = ()
            searcher = _Searcher(runner, minimize, maximize, ranges, progress)
            history = search(
                space,
                searcher.look,
                weights=_weights(weights, len(objectives)),
                order=_order(order, space),
                exhaustive_scans=method == "coordinate",
            )
            numbers, metrics, evaluations = searcher.found()
    table = {"design": numbers, **space.columns(numbers), **metrics}
    for name in (*objectives, *ranges):
        table.setdefault(name, np.zeros(0))
    return conclude(
        space=space,
        method=method,
        minimize=minimize,
        maximize=maximize,
        subject_to=ranges,
        table=table,
        excluded=excluded,
        evaluations=evaluations,
        restored=len(numbers) - evaluations,
        history=history,
    )


class _Searcher:
    """Evaluates what a search asks for and ranks it; keeps all rows for the table."""

    def __init__(
        self,
        runner: Runner,
        minimize: tuple[str, ...],
        maximize: tuple[str, ...],
        ranges: dict[str, _check.Range],
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self._runner, self._ranges, self._progress = runner, ranges, progress
        self._objectives = minimize + maximize
        self._mask = [False] * len(minimize) + [True] * len(maximize)
        self._designs: list[Designs] = []
        self._blocks: list[Columns] = []
        self._evaluations = 0

    def look(self, designs: list[int]) -> tuple[FloatArray, FloatArray]:
        numbers = np.array(designs, dtype=np.int64)
        metrics, evaluations = self._runner.run(numbers)
        self._evaluations += evaluations
        self._designs.append(numbers)
        self._blocks.append(metrics)
        table = {**self._runner.space.columns(numbers), **metrics}
        costs = as_costs(objective_values(table, self._objectives), self._mask)
        violation = np.zeros(len(designs))
        for (_, _, bound), miss in misses(table, self._ranges).items():
            violation += miss / (abs(bound) or 1.0)
        if self._progress:
            looked = sum(map(len, self._designs))
            self._progress(looked, looked)
        return costs, violation

    def found(self) -> tuple[Designs, Columns, int]:
        """Return all designs looked at in ascending order, their metrics, and the evaluations spent."""
        if not self._designs:
            return np.zeros(0, dtype=np.int64), {}, 0
        numbers = np.concatenate(self._designs)
        metrics = stack(self._blocks, numbers, self._runner.space)
        rows = np.argsort(numbers)
        return numbers[rows], {name: column[rows] for name, column in metrics.items()}, self._evaluations


def _open(
    store: str | os.PathLike[str] | None, space: Space, identity: str
) -> AbstractContextManager[Store | None]:
    if store is None:
        return nullcontext()
    from optimize.store import Store

    return Store(store, space, identity)


def _admitted(space: Space, designs: npt.ArrayLike | None) -> tuple[Designs, tuple[Exclusion, ...]]:
    numbers = np.unique(space.numbers(designs))
    allowed = np.ones(numbers.size, dtype=bool)
    excluded = []
    for name, bad in space.violations(numbers).items():
        allowed &= ~bad
        excluded.append(Exclusion(constraint=name, designs=int(bad.sum())))
    return numbers[allowed], tuple(excluded)


def _weights(weights: Sequence[Sequence[float]] | None, objectives: int) -> list[tuple[float, ...]]:
    if weights is None:
        return simplex_weights(objectives)
    result = [tuple(map(float, one)) for one in weights]
    for one in result:
        if len(one) != objectives or not all(0 <= weight < np.inf for weight in one) or not sum(one):
            raise ValueError(
                f"weights must be {objectives} numbers >= 0, not all 0, for every path, got {one!r}"
            )
    if not result:
        raise ValueError("weights must have at least one path, got none")
    return result


def _order(order: Sequence[str] | None, space: Space) -> tuple[str, ...]:
    result = tuple(space.choices if order is None else order)
    for name in result:
        if name not in space.choices or result.count(name) > 1:
            raise ValueError(
                f"order must name fields of the space once, got {name!r}{_check.nearest(name, space.choices)}"
            )
    return result
