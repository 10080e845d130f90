"""Every design of a space in constant memory: boxes of its grid, of each of which only the front is kept."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from optimize.search.exploration import Exploration, of_kept
from optimize.search.feasibility import Goals, Reduction, from_record, judged, to_record, union
from optimize.search.pareto import BoolArray
from optimize.spaces.evaluation import digest_of, model_text
from optimize.spaces.numbering import Cuts, Designs, Found, MisuseError, holes_of
from optimize.spaces.running import PROBES, Plan, joined_found, results, spread
from optimize.spaces.structure import cell_numbers
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import stable_text

if TYPE_CHECKING:
    from qmodels.systems.spec.store import ResultStore

PENDING = 4096
"""Rows of fronts that wait to be joined with the front of all before: joining each by itself costs more."""

WAITING = 256  # boxes that wait for it, at most
SECONDS = 5.0
"""Time between two commits of what is finished: a run that is killed loses no more. [s]"""

SPOT_CHECKS = 4096  # designs by whose verdict a constraint that has no table is told from another


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """Arguments with which a worker reduces boxes of a grid."""

    plan: Plan  # how designs are evaluated
    goals: Goals  # what is kept of them
    chunk: int  # most designs of a box

    @cached_property
    def _axes(self) -> list[int]:
        """The axes as they are cut: first what cannot be an array, then what constraints tie."""
        names, space = list(self.plan.space.choices), self.plan.space
        free = [name not in space.coupled for name in names]
        inside = [name in self.plan.arrays for name in names]
        return sorted(range(len(names)), key=lambda axis: inside[axis] + (inside[axis] and free[axis]))

    @cached_property
    def cuts(self) -> Cuts:
        """The boxes."""
        return Cuts(tuple(self.plan.space.shape[axis] for axis in self._axes), self.chunk)

    def digits(self, k: int) -> dict[str, Designs]:
        """Return the digits of every field in a box."""
        ends = dict(zip(self._axes, self.cuts[k], strict=True))
        return {name: np.arange(*ends[axis]) for axis, name in enumerate(self.plan.space.choices)}

    def reduce(self, k: int) -> Reduction:
        """Evaluate the designs of a box and return what is kept of them."""
        space, digits = self.plan.space, self.digits(k)
        admitted, outside = self._designs(digits)
        whole = admitted.size == math.prod(map(len, digits.values()))
        numbers, columns, errors = self._found(admitted, digits, whole=whole)
        if "ties" in {*columns, *space.choices}:
            raise MisuseError("metric or field 'ties' has the name of a column that says what is kept")
        seen = {"design": numbers, **columns, **self.plan.compared(columns)}
        names = [name for name in (*self.goals.objectives, *self.goals.subject_to) if name in space.choices]
        axes = [list(space.choices).index(name) for name in names]
        seen |= {n: space.column(n)[d] for n, d in zip(names, space.all_digits(numbers, axes), strict=True)}
        one = judged(self.goals, {"design": numbers, **columns}, seen, outside, holes_of(errors))[0]
        kept = one.table["design"]
        return replace(one, table={"design": kept, **space.columns(kept), **one.table})

    def _designs(self, digits: dict[str, Designs]) -> tuple[Designs, tuple[int, ...]]:
        """Return the designs of a box, and how many of its points each constraint excludes."""
        space = self.plan.space
        numbers = cell_numbers(tuple(digits.values()), space.strides)
        if space.structure.order:
            numbers = numbers[space.numbers(numbers) == numbers]
        return space.sifted(numbers)

    def _found(self, numbers: Designs, digits: dict[str, Designs], *, whole: bool) -> Found:
        plan = self.plan
        arrays = [name for name in digits if name in plan.arrays]
        if plan.vectorized == "grid" and whole and math.prod(len(digits[n]) for n in arrays) == numbers.size:
            shape = tuple(len(digits[name]) for name in arrays)
            spec = partial(plan.space.span, digits, numbers, arrays)
            return plan.of_arrays(numbers, lambda: plan.called(spec(), shape, numbers))
        found = joined_found([plan.found(part) for part in plan.parts(numbers, self.chunk)], plan)
        order = np.argsort(found.designs)
        columns = {name: column[order] for name, column in found.columns.items()}
        return Found(found.designs[order], columns, found.errors)

    def key(self, identity: str) -> str:
        """Return the key of this question in a store."""
        plan, space = self.plan, self.plan.space
        points = math.prod(space.shape)
        few = min(points, SPOT_CHECKS)
        sample = space.numbers(np.arange(few) * (points // few))
        ruled = {
            name: [list(known[0]), known[1]] if known else space.violations(sample)[name]
            for name, (_, known) in space.tables.items()
        }
        question = [
            [(path, space.choices[name]) for name, path in space.paths.items()],
            space.structure.parents,
            ruled,
            vars(self.goals),
            [plan.digits, plan.vectorized, self.chunk],
        ]
        return f"front:{digest_of(model_text(space, identity) + stable_text(question))}"


class _Progress:
    """Finished parts of a survey, joined, and committed now and then."""

    def __init__(self, survey: Survey, store: ResultStore | None, identity: str) -> None:
        self._survey, self._store = survey, store
        self.done = np.zeros(len(survey.cuts), dtype=bool)
        self._parts: list[Reduction] = []
        self._saved = time.monotonic()
        self.restored = 0
        if store is None:
            return
        self._key = survey.key(identity)
        for record in store.get([self._key]).values():
            done = np.unpackbits(np.frombuffer(base64.b64decode(record["done"]), np.uint8))[: self.done.size]
            self.done = done.astype(bool)
            self._parts = [from_record(record["found"], len(survey.goals.objectives))]
            self.restored = self._parts[0].looked

    def add(self, k: int, part: Reduction) -> None:
        """Take what is kept of a box."""
        self.done[k] = True
        self._parts.append(part)
        waiting = self._parts[1:]
        if len(waiting) >= WAITING or sum(len(one.ties) for one in waiting) > max(
            PENDING, len(self._parts[0].ties)
        ):
            self.total()
        if self._store is not None and time.monotonic() - self._saved > SECONDS:
            self.save()

    def total(self) -> Reduction:
        """Return the reduction of all that is finished."""
        self._parts = [union(self._parts, self._survey.plan.space)]
        return self._parts[0]

    def save(self) -> None:
        """Commit what is finished."""
        if self._store is not None and self._parts:
            done = base64.b64encode(np.packbits(self.done).tobytes()).decode("ascii")
            self._store.put({self._key: {"done": done, "found": to_record(self.total())}})
            self._saved = time.monotonic()


def surveyed(
    survey: Survey,
    *,
    executor: Executor | None,
    store: ResultStore | None,
    identity: str,
    progress: Callable[[int, int], None],
) -> Exploration:
    """Reduce every box of a grid and conclude from what is kept."""
    space, goals, points = survey.plan.space, survey.goals, math.prod(survey.plan.space.shape)
    if space.strides:  # refuses what cannot be numbered
        afford(
            f"chunk of {survey.chunk} for {points} designs", len(survey.cuts), bytes=9.0 * len(survey.cuts)
        )
    state = _Progress(survey, store, identity)
    if not state.restored:
        probes = space.admitted(np.unique(space.numbers(spread(range(points)))))
        if probes.size >= min(points, PROBES // 2):  # few say nothing of the others
            survey = replace(survey, plan=replace(survey.plan, probes=probes))
    progress(_points(state.done, points), points)
    todo = map(int, np.flatnonzero(~state.done))
    sent = survey if executor is None else replace(survey, plan=survey.plan.portable(constrained=True))
    try:
        with closing(results(sent, Survey.reduce, todo, executor)) as found:
            for k, part in found:
                state.add(k, part)
                progress(_points(state.done, points), points)
    finally:
        state.save()
    total = state.total()
    evaluations = total.looked - state.restored
    return of_kept(goals, total, space=space, method="exhaustive", evaluations=evaluations)


def _points(done: BoolArray, points: int) -> int:
    """Return about how many points of a grid the finished ones of its boxes hold."""
    return int(done.sum()) * points // done.size
