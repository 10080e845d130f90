"""Greedy and coordinate search along the fields of a space, for several weightings at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize.search.pareto import FloatArray
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import get_field

Look = Callable[[list[int]], tuple[FloatArray, FloatArray]]
"""Evaluates designs: their costs (all minimised) and how far they violate the constraints."""

_Seen = tuple[FloatArray, float, bool]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One design that a search looked at.

    Parameters
    ----------
    path : int
        Which weighting.
    weights : tuple of float
        Its weights, one per objective.
    start : int
        Which start: 0 is the base design, the others are random.
    sweep : int
        Which pass over the fields, from 1.
    field : str or None
        The field that is scanned; None for the start.
    value : object
        The value tried.
    design : int
        Number of the design.
    costs : tuple of float
        Its objectives, maximised ones negated.
    better : bool
        Whether it was better than everything before it in this scan.
    kept : bool
        Whether the field keeps this value when the scan ends.
    evaluated : bool
        Whether it had to be evaluated, rather than having been looked at before.
    """

    path: int
    weights: tuple[float, ...]
    start: int
    sweep: int
    field: str | None
    value: Any
    design: int
    costs: tuple[float, ...]
    better: bool
    kept: bool
    evaluated: bool


def simplex_weights(objectives: int, divisions: int = 4) -> list[tuple[float, ...]]:
    """Return all weightings in steps of ``1 / divisions`` that sum to 1.

    Examples
    --------
    >>> simplex_weights(2, 2)
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    """
    grid = itertools.product(range(divisions + 1), repeat=objectives)
    return [tuple(part / divisions for part in parts) for parts in grid if sum(parts) == divisions]


class Scalarization:
    """Ranks designs on one path by a weighted sum; see `search` for the rule."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights = np.asarray(weights, dtype=float)
        self._scale = np.zeros(len(self._weights))

    def __call__(self, costs: FloatArray, violation: float) -> tuple[float, int, float]:
        """Return a rank to compare with others of this path; smaller is better."""
        finite = np.isfinite(costs)
        fresh = finite & (self._scale == 0)
        self._scale[fresh] = np.abs(costs[fresh])
        counted = finite & (self._weights > 0) & (self._scale > 0)
        total = float((self._weights[counted] * costs[counted] / self._scale[counted]).sum())
        weighted = costs[self._weights > 0]
        return violation, int(np.isposinf(weighted).sum()) - int(np.isneginf(weighted).sum()), total


def search(
    space: Space,
    look: Look,
    *,
    weights: Sequence[Sequence[float]],
    order: Sequence[str],
    exhaustive_scans: bool,
    starts: Sequence[int] = (),
) -> tuple[Step, ...]:
    """Search from the base design (and other starts) for every weighting and return all steps.

    The start has the values of the base spec where they are among the choices (and the
    constraints of the space allow them), otherwise first choices. The fields are scanned one
    after the other, each over its choices in order with all other fields held; a field keeps
    the best value seen, its current one included.

    A scan ends at the first value that is no better than the best before it, unless even that
    one violates a constraint or has an infinite objective of positive weight: with nothing
    usable found yet the scan goes on. This is the greedy exploration of the papers, the most
    influential field first. With ``exhaustive_scans`` a scan looks at every choice and passes
    are repeated until one changes nothing: no change of a single field improves the result.

    Of two designs the better one violates ``subject_to`` less (relative excess, summed); then
    has fewer infinite objectives of positive weight; then has the smaller weighted sum of
    objectives, each divided by its magnitude at the first design of the path where it is
    finite and not 0, maximised objectives counted negative.

    ``space``: the designs; those that its constraints exclude are not looked at; ``look``: evaluates a list
    of designs it has not seen before; ``weights``: the weightings; each gives one path. Paths advance
    together, so that what they ask for is evaluated in batches, and share what was evaluated; ``order``:
    fields in the order of scanning; ``exhaustive_scans``: coordinate search instead of greedy; ``starts``:
    designs to start from besides the base design.

    Heuristic, without a bound: compare with the exhaustive front (`compare_fronts`). The order
    by impact and the early stop are those of [1]_, sec. 5.3, which leaves open what "better"
    means for several objectives; weightings are our reading of it.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """
    start = _start(space)
    if start is None:
        return ()
    begins = [start, *(space.digits(design) for design in starts)]
    pairs = [(k, one, begin) for k, one in enumerate(weights) for begin in range(len(begins))]
    walks = [_Walk(space, k, one, begin, order, exhaustive_scans) for k, one, begin in pairs]
    running = [walk.run(begins[begin]) for walk, (_, _, begin) in zip(walks, pairs, strict=True)]
    asked = {k: next(walk) for k, walk in enumerate(running)}
    known: dict[int, tuple[FloatArray, float]] = {}
    while asked:
        new = list(dict.fromkeys(design for design in asked.values() if design not in known))
        costs, violations = look(new)
        known.update((d, (c, float(v))) for d, c, v in zip(new, costs, violations, strict=True))
        fresh = set(new)
        for k, design in list(asked.items()):
            try:
                while design in known:
                    seen = (*known[design], design in fresh)
                    fresh.discard(design)
                    design = running[k].send(seen)
                asked[k] = design
            except StopIteration:
                del asked[k]
    return tuple(itertools.chain.from_iterable(walk.steps for walk in walks))


class _Walk:
    """One path: a generator that asks for designs, is sent what they are worth, and notes its steps."""

    def __init__(
        self, space: Space, path: int, weights: Sequence[float], start: int, order: Sequence[str], full: bool
    ) -> None:
        self._space, self._order, self._full, self._start = space, order, full, start
        self._path, self._weights = path, tuple(float(weight) for weight in weights)
        self._rank = Scalarization(self._weights)
        self.steps: list[Step] = []

    def run(self, start: Sequence[int]) -> Generator[int, _Seen, None]:
        self._digits = list(start)
        design = _allowed(self._space, start)
        assert design is not None
        seen = yield design
        self._best = self._rank(seen[0], seen[1])
        self._note(0, None, None, design, seen, better=True, kept=True)
        for sweep in itertools.count(1):
            before = list(self._digits)
            for field in self._order:
                yield from self._scan(sweep, field)
            if not self._full or self._digits == before:
                return

    def _scan(self, sweep: int, field: str) -> Generator[int, _Seen, None]:
        axis = list(self._space.choices).index(field)
        best = self._best
        choice = self._digits[axis]
        leader = None
        tried: list[tuple[int, int, _Seen, bool]] = []
        for digit in range(self._space.shape[axis]):
            design = _allowed(self._space, [*self._digits[:axis], digit, *self._digits[axis + 1 :]])
            if design is None or self._space.digits(design)[axis] != digit:  # the field does not matter here
                continue
            seen = yield design
            rank = self._rank(seen[0], seen[1])
            better = leader is None or rank < leader
            tried.append((digit, design, seen, better))
            if rank < best:
                best, choice = rank, digit
            if better:
                leader = rank
            elif not self._full and leader is not None and leader[:2] <= (0.0, 0):
                break
        self._best, self._digits[axis] = best, choice
        for digit, design, seen, better in tried:
            value = self._space.choices[field][digit]
            self._note(sweep, field, value, design, seen, better=better, kept=digit == choice)

    def _note(
        self, sweep: int, field: str | None, value: Any, design: int, seen: _Seen, *, better: bool, kept: bool
    ) -> None:
        self.steps.append(
            Step(
                path=self._path,
                weights=self._weights,
                start=self._start,
                sweep=sweep,
                field=field,
                value=value,
                design=design,
                costs=tuple(seen[0].tolist()),
                better=better,
                kept=kept,
                evaluated=seen[2],
            )
        )


def _allowed(space: Space, digits: Sequence[int]) -> int | None:
    """Return the number of a design given as one choice number per field, if the constraints allow it."""
    admitted = space.admitted(space.numbers([int(space.number_of(digits))]))
    return int(admitted[0]) if admitted.size else None


def _start(space: Space) -> tuple[int, ...] | None:
    values = [(get_field(space.base, space.paths[name]), choices) for name, choices in space.choices.items()]
    based = tuple(choices.index(value) if value in choices else 0 for value, choices in values)
    if _allowed(space, based) is not None:
        return based
    first = space.first()
    return None if first is None else space.digits(first)
