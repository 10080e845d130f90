"""Replications of networks and systems: stretches, warm-up, and the estimates of all of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.estimate import Estimate, exactly
from validate.engine.histogram import BINS, Histogram
from validate.estimates.batch_means import batch_means, warm_up
from validate.estimates.intervals import busy_interval, probability_interval, ratio_interval

BATCHES = 80
"""Stretches a replication is cut into, the first `WARM_UP_BATCHES` of them before measuring begins."""
WARM_UP_BATCHES = 16
MOST_JOBS_AT_ONCE = 50_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class BatchRun:
    """A replication in stretches; all but the series without the warm-up."""

    duration: float  # measured time
    # bins, counts: the bins of all histograms, flattened, that are not empty, and what they hold.
    bins: IntArray
    counts: IntArray
    times: FloatArray  # length of each batch, warm-up included
    numbers: FloatArray  # mean number of jobs at each node, or of each flow, in each of them
    # responses, departures: sum of the response times of all visits, or jobs, that ended in each of them, and
    # their number.
    responses: FloatArray
    departures: FloatArray
    events: int  # warm-up included


def job_counts(passages: int) -> list[dict[str, Any]]:
    """Return the number of jobs that have ended at the end of each batch, by the number measured."""
    measured = BATCHES - WARM_UP_BATCHES
    return [{"ended": max(1, -(-passages * (batch + 1) // measured))} for batch in range(BATCHES)]


def run_batches(
    state: Any,
    goals: Iterable[dict[str, Any]],
    *,
    advance: Callable[..., Any],
    world: Callable[[Any], Any],
    seen: Callable[[Any], dict[str, Any]],
    progress: Callable[[Any], FloatArray],
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Run a replication from goal to goal; return its end, sums after the warm-up, and fields of `BatchRun`.

    ``world``: of a state, with the histograms; ``seen``: all sums up to now, the ``time`` among them;
    ``progress``: time, sum and number of the responses, and the time integrals of the numbers of jobs.
    """
    start, counted, ends = seen(state), world(state).histograms.copy(), [progress(state)]
    for batch, goal in enumerate(goals):
        state = advance(state, **goal)
        ends.append(progress(state))
        if batch == WARM_UP_BATCHES - 1:
            start, counted = seen(state), world(state).histograms.copy()
    end = seen(state)
    times, responses, departures, *areas = np.diff(np.array(ends), axis=0).T
    rest = (world(state).histograms - counted).ravel()
    bins = np.flatnonzero(rest)
    sums = {name: end[name] - start[name] for name in end}
    return (
        state,
        sums,
        {
            "duration": sums.pop("time"),
            "bins": bins,
            "counts": rest[bins],
            "times": times,
            "numbers": np.array(areas).T / np.maximum(times, np.finfo(float).tiny)[:, None],
            "responses": responses,
            "departures": departures,
            "events": int(world(state).state["events"][0]),
        },
    )


class Replications:
    """The estimates of some runs."""

    def __init__(self, runs: Sequence[BatchRun], *, confidence: float, together: int = 1) -> None:
        """``together``: replications that are one observation."""
        self.runs, self.confidence, self.together = runs, confidence, together
        self._stacked: dict[str, FloatArray] = {}
        self.time = self.stacked("duration")

    def stacked(self, name: str) -> FloatArray:
        """Return a field of all runs with one leading axis, those that are one observation added up."""
        if name not in self._stacked:
            array = np.array([getattr(run, name) for run in self.runs], dtype=float)
            pairs = len(self.runs) // self.together, self.together
            self._stacked[name] = array.reshape(*pairs, *array.shape[1:]).sum(axis=1)
        return self._stacked[name]

    def columns(self, name: str, names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the columns of a table of all runs by their names."""
        return dict(zip(names, np.moveaxis(self.stacked(name), -1, 0), strict=True))

    def exactly(self, value: float) -> Estimate:
        """Return a value without spread."""
        return exactly(value, confidence=self.confidence)

    def ratio(self, above: Any, below: Any) -> Estimate:
        """Return the ratio of two sums; 0 where there is nothing to divide by."""
        return ratio_interval(above, below, confidence=self.confidence)

    def share(self, above: Any, below: Any, *, possible: bool = True) -> Estimate:
        """Return a probability; exactly 0 of what cannot happen."""
        if not possible:
            return self.exactly(0.0)
        return probability_interval(above, below, confidence=self.confidence)

    def busy(self, above: Any, below: Any) -> Estimate:
        """Return a busy fraction."""
        return busy_interval(above, below, confidence=self.confidence)

    def histograms(self, rows: Sequence[int], *, unit: float = 1.0) -> list[Histogram]:
        """Return some of the histograms added up, one for each replication."""
        found = []
        for run in self.runs:
            mine = np.isin(run.bins // BINS, rows)
            merged = np.bincount(run.bins[mine] % BINS, weights=run.counts[mine], minlength=BINS)
            found.append(Histogram(unit=unit, counts=merged.astype(np.int64)))
        return found

    def unsettled(self) -> bool:
        """Return whether in most runs the response times had not settled or do not average out."""
        wrong = 0
        for run in self.runs:
            seen = run.departures > 0
            if not seen[WARM_UP_BATCHES:].all():
                return True
            measured = run.responses[WARM_UP_BATCHES:], run.departures[WARM_UP_BATCHES:]
            settled = warm_up(run.responses[seen] / run.departures[seen], batch=1) <= BATCHES // 2 - 1
            wrong += not (settled and batch_means(*measured, confidence=0.95).independent)
        return 2 * wrong > len(self.runs)
