"""Exploring a space of designs with any model."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.programs.linear import seconds_of
from optimize.search.bounds import Derived, Directions
from optimize.search.exploration import Exploration, conclude
from optimize.search.feasibility import Goals, objective_values, violation
from optimize.search.greedy import search, simplex_weights
from optimize.search.milp import Milp
from optimize.search.pareto import FloatArray
from optimize.search.survey import Survey, surveyed
from optimize.spaces.evaluation import ChunkStore, model_text
from optimize.spaces.numbering import Columns, Designs, Found, holes_of
from optimize.spaces.running import Plan, Runner, joined_found
from optimize.spaces.space import Space

if TYPE_CHECKING:
    from qmodels.systems.spec.store import ResultStore


SECONDS = 1.0
"""Time between two lines. [s]"""

LONG = 10.0
"""What takes less is not announced. [s]"""


def shown_progress() -> Callable[[int, int], None]:
    """Return a writer of the progress of an exploration to standard error, at most once a second."""
    begun: list[float] = []
    said = 0.0

    def show(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        begun[:] = begun or [now, done]
        if now - said >= SECONDS or done >= total:
            said = now
            print(words(done, total, done - begun[1], now - begun[0]), file=sys.stderr, flush=True)

    return show


def shown_steps(*, always: bool) -> Callable[[object], None]:
    """Return a writer of steps to standard error, at most once a second; silent in a pipe unless `always`."""
    shown = always or sys.stderr.isatty()
    last = time.monotonic() - SECONDS * always

    def show(step: object) -> None:
        nonlocal last
        if shown and time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            print(step, file=sys.stderr, flush=True)

    return show


def announced(show: Callable[[int, int], None], *, then: str = "") -> Callable[[int, int], None]:
    """Return a function that says once, on a terminal, how long designs take in all, then shows progress.

    It is told by the first that are done, a second after the begin: none is evaluated twice for it.
    """
    begun: list[float] = []
    told = not sys.stderr.isatty()

    def show_and_tell(done: int, total: int) -> None:
        nonlocal told
        now = time.monotonic()
        begun[:] = begun or [now, done]
        if not told and now - begun[0] >= SECONDS and done > begun[1]:
            told, seconds = True, (total - begun[1]) * (now - begun[0]) / (done - begun[1])
            if seconds >= LONG:
                text = f"{total} designs: at most about {span(math.ceil(seconds))}{then}"
                print(text, file=sys.stderr, flush=True)
        show(done, total)

    return show_and_tell


def span(seconds: float) -> str:
    """Return a time in words.

    >>> span(7.2), span(125), span(7265)
    ('7 s', '2 min 5 s', '2 h 1 min')
    """
    left = round(seconds)
    hours, minutes, rest = left // 3600, left // 60 % 60, left % 60
    parts = [(hours, "h"), (minutes, "min"), (rest, "s")]
    first = next((k for k, (amount, _) in enumerate(parts) if amount), 2)
    return " ".join(f"{amount} {unit}" for amount, unit in parts[first : first + 2])


def words(done: int, total: int, new: float, seconds: float) -> str:
    """Return the share that is done and the time left, from the seconds that `new` designs took."""
    text = f"{100 * done / max(total, 1):.1f} % of {total:,} designs"
    return text if not new or done >= total else f"{text}, {span((total - done) * seconds / new)} left"


METHODS = ("exhaustive", "greedy", "milp")

KEPT_TOGETHER = 256
"""Designs of a task of which the front alone is kept, where the model takes them one by one."""


class Evaluator:
    """Evaluates what a method asks for and keeps all rows for the table."""

    def __init__(self, runner: Runner, goals: Goals, progress: Callable[[int, int], None]) -> None:
        self.runner, self.goals, self._progress = runner, goals, progress
        self._parts: list[Found] = []
        self._evaluations = self._looked = 0

    def columns(self, numbers: Designs) -> Columns:
        """Return varied fields and metrics of designs not asked for before."""
        metrics, evaluations = self.runner.run(numbers)
        self._evaluations += evaluations
        self._looked += numbers.size
        self._parts.append(Found(numbers, metrics, {}))
        self._progress(self._looked, self._looked)
        plan = self.runner.plan
        return {**plan.space.columns(numbers), **metrics, **plan.compared(metrics)}

    def numbers(self, designs: Designs) -> Columns:
        """Return the same columns; words are neither objectives nor limited."""
        columns = self.columns(designs)
        objective_values(columns, tuple({demand.metric for demand in self.goals.demands()}))
        return columns

    def costs(self, designs: list[int]) -> tuple[FloatArray, FloatArray]:
        """Return the costs of designs and how far they violate the constraints, for a search."""
        table = self.columns(np.array(designs, dtype=np.int64))
        return self.goals.costs(table), violation(table, self.goals.subject_to)

    def found(self) -> tuple[Designs, Columns, int]:
        """Return all designs looked at in ascending order, their metrics, and the evaluations spent."""
        every = joined_found(self._parts, self.runner.plan)
        rows = np.argsort(every.designs)
        metrics = {name: column[rows] for name, column in every.columns.items()}
        return every.designs[rows], metrics, self._evaluations


def explore(
    space: Space,
    evaluate: Callable[[Any], object],
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
    method: str = "exhaustive",
    designs: npt.ArrayLike | None = None,
    order: Sequence[str] | None = None,
    weights: Sequence[Sequence[float]] | None = None,
    restarts: int = 0,
    coordinate: bool = False,
    bounds: Directions | Derived | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    digits: int | None = None,
    vectorized: bool | str | Sequence[str] = False,
    chunk: int | None = None,
    executor: Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    identity: str = "",
    progress: Callable[[int, int], None] | bool | None = None,
    keep: str = "all",
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
        ``{metric: (low, high)}``, inclusive; None leaves a side open. Designs that the model calls
        not ``stable`` (a truth value) and those infinitely bad in an objective are never feasible;
        ``{"stable": (None, None)}`` admits the former.
    method : {"exhaustive", "greedy", "milp"}
        Every design (the oracle); a search along the fields (see `optimize.search.greedy.search`), whose
        front is that of the designs it looked at; or the exact method, an integer program solved by HiGHS
        (see `optimize.search.milp`), which finds one design for each distinct point of the front of all
        designs, and solves only those that bounds and sums do not exclude.
    designs : sequence of int, optional
        Only these designs, for example the front of an earlier exploration; exhaustive only.
    order : sequence of str, optional
        Fields in the order in which a search scans them, the most influential first; by
        default the order of the space.
    weights : sequence of sequence of float, optional
        Weights of the objectives (minimised ones first), one search path each; by default all
        in steps of 1/4 that sum to 1.
    restarts : int
        Random designs from which a search starts again, besides the base design.
    coordinate : bool
        Whether the greedy search goes on by coordinate moves: each scan looks at every choice, and passes
        are repeated until no change of a single field improves the result.
    bounds : mapping, optional
        Of the exact method: ``{metric: {field: "increasing" | "decreasing" | "constant"}}`` says how metrics
        move when the field grows, with everything else held (they may also stay); with a field that is not
        named they may do anything. Or bounds that a model derives from its formulas
        (``qmodels.bounds(spec)``). Of a metric without bounds the method finds out whether it is a sum of
        choices or of pairs of them; else it is solved wherever the other ones leave it open.
    time_limit : float, optional
        Seconds after which the exact method ends with what it has; ``gap`` says what may be missing.
    seed : int
        Of random designs: those of `restarts`, and those that the exact method solves.
    digits : int, optional
        Compare objectives and limited metrics in so many significant digits, so that differences
        within the tolerance of a model's solver are ties; the table has them as the model gave
        them. By default nothing is rounded.
    vectorized : bool, "grid" or sequence of str
        Whether `evaluate` broadcasts over specs with arrays in their fields: over all numeric
        fields, or over the named ones only. Other fields stay scalars. With "grid" every numeric
        field lies along an axis of its own where the designs are a full grid (`Space.grid`), so
        that what depends on few fields is computed once for all others; metrics then have as
        many axes.
    chunk : int, optional
        Designs per call (vectorized) or per task of the executor.
    executor : concurrent.futures.Executor, optional
        Runs the evaluations; it is not shut down. The result does not depend on it. The model and the
        base spec travel once to every process of a pool, or worker of a Dask cluster.
    store : path, optional
        An SQLite file where finished designs are committed as they come: an exploration that
        was killed resumes from it and evaluates no finished design again. Of one that keeps the front
        alone the file has the front so far, committed every few seconds: it resumes for the same goals and
        the same chunk (which depends on the number of workers, unless it is given).
    identity : str
        Names the model and its arguments in the store; required with one. Change it whenever
        the model changes. The base spec is part of the key by itself.
    progress : callable or True, optional
        Called with (designs finished, designs in all) after every chunk; a search knows no
        total and reports what it has as both. If the front alone is kept, those that constraints exclude
        count. True writes it to standard error, with the time left, or with bound and gap. Without a
        callable, a terminal is told how long all designs take as soon as the first are done, if that is 10 s
        or more, and the steps of the exact method.
    keep : {"all", "front"}
        Which designs the table has: all; or one for each distinct point of the front, with the number of
        those that tie in ``ties``: memory then does not grow with the space, and workers send no more than
        fronts. Other than "all" for the method exhaustive only.

    Returns
    -------
    Exploration
        Table, front, knee and what the constraints excluded. With nothing feasible the front
        is empty, ``excluded`` says by how much each constraint is missed (of designs that are not
        stable: which ``bottleneck`` fills up, and by what ``bottleneck_load``, if the model returns
        them), and ``closest`` which row violates them least. ``bound``, ``gap`` and ``proof`` are
        those of the exact method.

    Raises
    ------
    ValueError
        For an argument that makes no sense, a metric that does not exist (with the nearest
        names), a store that cannot be used, or a model without an answer anywhere.

    Notes
    -----
    A design at which the model raises or returns NaN is passed over by the method exhaustive: a hole (see
    `Exploration`), which a store keeps like an answer. Of designs as arrays that raise together halves are
    tried, down to one. When the model first raises, up to 32 designs spread over the space are tried; if it
    answers at none of them, that is the error. Other methods need every answer and raise what the model
    raises, and all end when memory, a file or a module is missing (``MemoryError``, ``OSError``,
    ``ImportError``): nothing finished is lost.

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

    The same front without looking at every design, as latency never grows with either field:

    >>> falls, grows = ({"channels": word, "width": word} for word in ("decreasing", "increasing"))
    >>> proven = explore(space, model, minimize=["latency", "cost"], method="milp",
    ...                  bounds={"latency": falls, "cost": grows}, vectorized=True)
    >>> proven.proof.proven, proven.compare(result).missed.size
    (True, 0)
    """
    if not isinstance(space, Space):
        raise ValueError(f"space must be a Space, got {space!r}")
    if not callable(evaluate):
        raise ValueError(f"evaluate must be a callable on a spec, got {evaluate!r}")
    down, up = checks.objectives(minimize, maximize)
    if not down + up:
        raise ValueError("explore needs at least one objective in minimize or maximize")
    goals = Goals(minimize=down, maximize=up, subject_to=checks.ranges("subject_to", subject_to))
    checks.choice("keep", keep, ("all", "front"))
    if keep != "all" and (method != "exhaustive" or designs is not None):
        raise ValueError(
            f"keep must be 'all' for other methods than exhaustive and for designs, got {keep!r}"
        )
    searching = order is not None or weights is not None or bool(restarts) or coordinate
    _check_method(method, searching=searching, designs=designs, bounds=bounds, time_limit=time_limit)
    counts = {"chunk": (chunk, 1), "restarts": (restarts, 0), "seed": (seed, 0), "digits": (digits, 1)}
    for name, (number, least) in counts.items():
        if number is not None:
            checks.whole(name, number, least=least)
    report = shown_progress() if progress is True else progress or (lambda finished, total: None)
    if method == "exhaustive" and not callable(progress):
        report = announced(report)
    plan = Plan(
        space=space,
        evaluate=evaluate,
        required=(*goals.objectives, *goals.subject_to, *(bounds if isinstance(bounds, Mapping) else ())),
        vectorized=vectorized,
        digits=digits,
    )
    if keep != "all":
        size = plan.chunk(chunk or (None if vectorized else KEPT_TOGETHER), math.prod(space.shape), executor)
        survey = Survey(plan=plan, goals=goals, chunk=size)
        with _records(store, space, identity) as records:
            return surveyed(survey, executor=executor, store=records, identity=identity, progress=report)
    facts: dict[str, Any] = {"space": space, "method": method}
    with _records(store, space, identity) as records:
        opened = None if records is None else ChunkStore(records, space, identity)
        quiet = report if method == "exhaustive" else lambda finished, total: None
        runner = Runner(plan=plan, chunk=chunk, executor=executor, store=opened, progress=quiet)
        if method == "exhaustive":
            admitted, facts["outside"] = space.sifted(_numbers(space, designs))
            (numbers, metrics, errors), evaluations = runner.found(admitted)
            facts["holes"] = holes_of(errors)
        else:
            evaluator = Evaluator(runner, goals, report)
            if method == "milp":
                facts["proof"] = Milp(
                    space, evaluator.numbers, demands=goals.demands(), bounds=bounds,
                    limited=goals.subject_to, digits=digits, time_limit=seconds_of(time_limit),
                    watch=shown_steps(always=progress is True), seed=seed,
                ).run()  # fmt: skip
            else:
                facts["history"] = search(
                    space,
                    evaluator.costs,
                    weights=_weights(weights, len(goals.objectives)),
                    order=_order(order, space),
                    exhaustive_scans=coordinate,
                    starts=space.sample(min(restarts, space.count()), seed=seed).tolist() if restarts else (),
                )
            numbers, metrics, evaluations = evaluator.found()
    table = {"design": numbers, **space.columns(numbers), **metrics}
    for name in (*goals.objectives, *goals.subject_to):
        table.setdefault(name, np.zeros(0))
    return conclude(goals, table, seen=table | plan.compared(metrics), evaluations=evaluations, **facts)


def _check_method(
    method: str, *, searching: bool, designs: object, bounds: object, time_limit: float | None
) -> None:
    """Refuse an unknown method, and arguments that belong to another one."""
    if method == "coordinate":
        raise ValueError("method 'coordinate' is now method='greedy' with coordinate=True")
    if method == "branch_and_bound":
        raise ValueError("method 'branch_and_bound' is now method='milp'")
    checks.choice("method", method, METHODS)
    if method != "greedy" and searching:
        raise ValueError("order, weights, restarts and coordinate belong to the method greedy")
    if method != "exhaustive" and designs is not None:
        raise ValueError(f"designs belongs to the method exhaustive, got method {method!r}")
    if method != "milp" and (bounds is not None or time_limit is not None):
        raise ValueError(f"bounds and time_limit belong to the method milp, got method {method!r}")
    if bounds is not None and not isinstance(bounds, Mapping) and not hasattr(bounds, "stages"):
        raise ValueError(
            f"bounds must be {{metric: {{field: direction}}}} or what a model derives, got {bounds!r}"
        )
    seconds_of(time_limit)


def _records(
    store: str | os.PathLike[str] | None, space: Space, identity: str
) -> AbstractContextManager[ResultStore | None]:
    if store is None:
        return nullcontext()
    from qmodels.systems.spec.store import ResultStore  # and SQLite, where it is asked for

    model_text(space, identity)  # what cannot be a key makes no file
    return ResultStore(store)


def _numbers(space: Space, designs: npt.ArrayLike | None) -> Designs:
    """Return the designs to look at, checked."""
    try:
        return space.numbers(None) if designs is None else np.unique(space.numbers(designs))
    except ValueError as error:
        large = designs is None and math.prod(space.shape) < 2**63
        hint = "; keep='front' has no such limit" if large else ""
        raise ValueError(f"{error}{hint}") from None


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
                f"order must name fields of the space once, got {name!r}{checks.nearest(name, space.choices)}"
            )
    return result
