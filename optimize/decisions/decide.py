"""From a model of all designs and simulations of some to a decision that one can defend."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from optimize import checks
from optimize.decisions.decision import Decision, Interrupted
from optimize.decisions.state import State
from optimize.search.exploration import Exploration

FIRST = 8
"""Designs of the second batch; the first is the one that would be chosen, each later one half of all before,
at least as many."""

TRIES = 8  # designs that are simulated beyond the limit if none of those simulated is feasible
SURE = 10  # times enough designs that are simulated at most because others could still lead the choice
LAST = 2
"""Designs that are simulated beyond a limit of time so that the one that would be chosen is simulated."""

Simulate = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class _Limit:
    """Simulation budget."""

    seconds: float
    points: float
    started: float

    def more(self, done: int, each: float, batch: int) -> int:
        """Return the number of a batch that fits if one takes ``each``; at least one while time is left."""
        left = self.seconds - (time.perf_counter() - self.started)
        batch = int(min(batch, self.points - done))
        if left <= 0 or batch <= 0:
            return 0
        return batch if math.isinf(left) or each <= 0 else max(1, min(batch, int(left / each)))


def decide(
    model: Exploration,
    simulate: Simulate,
    *,
    stated: Mapping[str, npt.ArrayLike | None],
    bounded: Collection[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
    budget_seconds: float | None = 60.0,
    points: int | None = None,
    also: Iterable[int] = (),
    after: Decision | None = None,
    enough: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Decision:
    """Simulate where it can change the decision, correct the model by it, and choose a simulated design.

    Parameters
    ----------
    model : Exploration
        Every design by the model. If it keeps the front alone, no other design is looked at, so that the
        decision is one among the first designs of the model's distinct points.
    simulate : callable
        Takes a list of specs and returns their results in that order: metrics as for `explore`, of the same
        traffic as the model's, all of it; with estimates that have ``best``, ``low`` and ``high``. Raised
        for one spec, an error makes this a design that could not be simulated. On Ctrl-C it may raise
        `Interrupted` with what it has.
    stated : mapping of str to array_like or None
        The metrics that the simulation corrects, with the mean error that the model states (relative, or
        a difference for those in `bounded`), a number or one for each row; None where it states nothing.
        All others, such as a cost, are exact.
    bounded : collection of str
        Metrics between 0 and 1.
    subject_to : mapping, optional
        The constraints of the exploration.
    budget_seconds : float, optional
        Time for all but those of `also` and the first simulation, which may have to compile; 0 simulates
        nothing, None does not limit. [s]
    points : int, optional
        Most designs to simulate. If that alone limits, the answer depends on the seed alone.
    also : iterable of int
        Rows to simulate whatever they decide, if anything is simulated.
    after : Decision, optional
        A decision on the same model to go on from: what it simulated counts and is not simulated again.
    enough : int, optional
        Designs after which it ends as soon as a simulated one is the choice, or tied with it, and no other
        could lead it within calibrated intervals; or ten times as many.
    seed : int
        Of all that is drawn.
    progress : callable, optional
        Called with (done, in all) after each batch: seconds, or designs if only they are limited.

    Returns
    -------
    Decision
        With what is done if the user interrupts it.

    Raises
    ------
    ValueError
        For an argument that makes no sense, a metric that does not exist, or NaN from the simulation.

    Notes
    -----
    The chosen design is the knee of the front (with one objective its best) of designs that satisfy the
    constraints, a simulated one with its whole intervals: the best of many would else be one that its
    interval flatters. Only if no simulated design does, best values decide. First the knee by the model
    is simulated, then batches: the knee by the corrected values, designs likely to be it, designs whose
    place on the front is open, and a third drawn from all so that the intervals hold for all. It ends when
    the limit is reached, nothing is open and the knee is simulated, or enough designs were simulated, one
    of them on the front is no farther from the ideal than the knee by more than 1 % of the front's ranges,
    and `Decision.rivals` would be none: those that are left are simulated first. Beyond
    a limit of time up to two more are simulated, each the knee by then. If the knee is still not simulated,
    the simulated point of the front that is nearest to the ideal is chosen; if no simulated design is
    feasible, up to eight more are tried, each the knee of what is left.

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> from optimize import Space, explore
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 1
    ...     width: int = 8
    >>> def model(memory):
    ...     rate = memory.channels * memory.width
    ...     return {"latency": 640 / rate, "cost": 3 * memory.channels + memory.width / 4}
    >>> def simulation(memories):
    ...     return [{"latency": 1.1 * model(memory)["latency"]} for memory in memories]
    >>> space = Space(Memory(), channels=[1, 2, 4, 8], width=[8, 16, 32])
    >>> goals = {"minimize": ["latency", "cost"]}
    >>> solved = explore(space, model, **goals)
    >>> decide(solved, simulation, stated={"latency": 0.2}, budget_seconds=None).settled
    True
    """
    if not callable(simulate):
        raise ValueError(f"simulate must be a callable on a list of specs, got {simulate!r}")
    if budget_seconds is not None and not 0 <= budget_seconds < math.inf:
        raise ValueError(f"budget_seconds must be finite and >= 0, got {budget_seconds!r}")
    if points is not None:
        checks.whole("points", points, least=0)
    if enough is not None:
        checks.whole("enough", enough, least=1)
    checks.whole("seed", seed, least=0)
    started = time.perf_counter()
    limit = _Limit(
        seconds=math.inf if budget_seconds is None else budget_seconds,
        points=math.inf if points is None else points,
        started=started,
    )
    state = State(model, stated, bounded, checks.ranges("subject_to", subject_to), seed)
    if after is not None:
        state.go_on(after)
    interrupted = False
    if limit.seconds > 0 and limit.points > 0:
        try:
            _run(state, [row for row in dict.fromkeys(also) if row not in state.tried], simulate)
            limit = replace(limit, started=time.perf_counter())
            _spend(state, simulate, limit, enough, _reporter(progress, limit, state))
        except KeyboardInterrupt:
            interrupted = True
    spent = time.perf_counter() - started + (after.seconds if after else 0.0)
    return state.conclude(
        budget=after.budget if after else limit.seconds, seconds=spent, interrupted=interrupted
    )


def _reporter(progress: Callable[[int, int], None] | None, limit: _Limit, state: State) -> Callable[[], None]:
    def report() -> None:
        if progress is None:
            return
        if math.isfinite(limit.seconds):
            spent = min(time.perf_counter() - limit.started, limit.seconds)
            progress(round(spent), round(limit.seconds))
        else:
            progress(len(state.results), int(min(limit.points, len(state.model.feasible))))

    return report


def _spend(
    state: State, simulate: Simulate, limit: _Limit, enough: int | None, report: Callable[[], None]
) -> None:
    """Simulate until the limit is reached or the decision stands."""
    each, batch, first = 0.0, 1, True
    report()
    while True:
        count = limit.more(len(state.tried), each, batch)
        rivals = None
        if enough is not None and len(state.results) >= enough and state.tied:
            rivals = state.rivals()
            if not rivals.size or len(state.results) >= SURE * enough:
                return
        if not count or state.settled:
            break
        rows = state.next_rows(count, rivals)
        if not len(rows):
            break
        each = _run(state, rows.tolist(), simulate) / len(rows)
        report()
        if first:
            # What a first simulation prepares, such as compiling, is not the budget's; two tell the time,
            # or one where two may break it.
            batch = 2 if enough is None else max(1, enough - len(state.tried))
            first, each, batch = False, 0.0, batch if batch * each < limit.seconds else 1
            limit = replace(limit, started=time.perf_counter())
            continue
        batch = max(FIRST, len(state.tried) // 2) if enough is None else max(2, enough - len(state.tried))
    for tried in range(TRIES):
        best = state.best
        if best is None or best in state.tried:
            break
        last = LAST if LAST * each <= limit.seconds else 0
        if state.simulated_feasible and (tried >= last or math.isinf(limit.seconds)):
            break
        _run(state, [best], simulate)
        report()


def _run(state: State, rows: list[int], simulate: Simulate) -> float:
    """Simulate rows, and each by itself if one of them cannot be; return the time it took."""
    started = time.perf_counter()
    if not rows:
        return 0.0
    specs = [state.model.spec(row) for row in rows]
    try:
        results = list(simulate(specs))
    except Interrupted as stop:
        state.take({rows[place]: result for place, result in stop.results.items()})
        raise
    except Exception as error:
        if len(rows) == 1:
            state.fail(rows[0], error)
        else:
            for row in rows:
                _run(state, [row], simulate)
    else:
        if len(results) != len(rows):
            raise ValueError(f"simulate must return one result per spec, got {len(results)} for {len(rows)}")
        state.take(dict(zip(rows, results, strict=True)))
    return time.perf_counter() - started
