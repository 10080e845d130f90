"""Greedy and coordinate search along the fields of a space, for several weightings at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from optimize.search.pareto import FloatArray
from optimize.spaces.space import Space

Look = Callable[[list[int]], tuple[FloatArray, FloatArray]]
"""Evaluates designs: their costs (all minimised) and how far they violate the constraints."""

_Seen = tuple[FloatArray, float, bool]
_Rank = tuple[float, int, float]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One design that a search looked at."""

    path: int  #: Which weighting
    weights: tuple[float, ...]  #: Its weights, one per objective
    start: int  #: Which start: 0 is the base design, the others are random
    sweep: int  #: Which pass over the fields, from 1
    field: str | None  #: The field that is scanned; None for the start
    value: Any  #: The value tried
    design: int  #: Number of the design
    costs: tuple[float, ...]  #: Its objectives, maximised ones negated
    better: bool  #: Whether it was better than everything before it in this scan
    kept: bool  #: Whether the field keeps this value when the scan ends
    evaluated: bool  #: Whether it had to be evaluated, rather than having been looked at before


def simplex_weights(objectives: int, divisions: int = 4) -> list[tuple[float, ...]]:
    """Return all weightings in steps of ``1 / divisions`` that sum to 1.

    Examples
    --------
    >>> simplex_weights(2, 2)
    [(0.0, 1.0), (0.5, 0.5), (1.0, 0.0)]
    """
    grid = itertools.product(range(divisions + 1), repeat=objectives)
    return [tuple(part / divisions for part in parts) for parts in grid if sum(parts) == divisions]


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

    ``look`` evaluates a list of designs it has not seen before. Each of the ``weights`` gives one path from
    the base design and from each of the ``starts``. Paths advance together, so that what they ask for is
    evaluated in batches, and share what was evaluated. ``order``: fields in the order of scanning.

    Heuristic, without a bound: compare with the exhaustive front (`compare_fronts`). The order
    by impact and the early stop are those of [1]_, sec. 5.3, which leaves open what "better"
    means for several objectives; weightings are our reading of it.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """
    begins = [digits for digits in (space.start(), *map(space.digits, starts)) if digits is not None]
    paths = [
        _Path(space, number, tuple(map(float, one)), start)
        for number, one in enumerate(weights)
        for start in range(len(begins))
    ]
    walks = {path: path.walk(begins[path.start], order, exhaustive_scans) for path in paths}
    asked = {path: next(walk) for path, walk in walks.items()}
    known: dict[int, tuple[FloatArray, float]] = {}
    while asked:
        fresh = dict.fromkeys(design for design in asked.values() if design not in known)
        costs, violations = look(list(fresh))
        known.update((d, (c, float(v))) for d, c, v in zip(fresh, costs, violations, strict=True))
        for path, design in list(asked.items()):
            try:
                while design in known:
                    new = fresh.pop(design, 0) is None
                    design = walks[path].send((*known[design], new))
                asked[path] = design
            except StopIteration:
                del asked[path]
    return tuple(itertools.chain.from_iterable(path.steps for path in paths))


class _Path:
    """One path: its walk asks for designs, is sent what they are worth, and notes its steps."""

    def __init__(self, space: Space, number: int, weights: tuple[float, ...], start: int) -> None:
        self.space, self.weights, self.start = space, weights, start
        self._step = partial(Step, path=number, weights=weights, start=start)
        self.steps: list[Step] = []
        self._scale = np.zeros(len(weights))

    def walk(
        self, digits: tuple[int, ...], order: Sequence[str], exhaustive: bool
    ) -> Generator[int, _Seen, None]:
        design = _allowed(self.space, digits)
        assert design is not None
        seen = yield design
        self._note(0, None, None, design, seen, better=True, kept=True)
        best = self._rank(seen)
        for sweep in itertools.count(1):
            before = digits
            for field in order:
                digits, best = yield from self._scan(sweep, field, digits, best, exhaustive)
            if not exhaustive or digits == before:
                return

    def _scan(
        self, sweep: int, field: str, digits: tuple[int, ...], best: _Rank, exhaustive: bool
    ) -> Generator[int, _Seen, tuple[tuple[int, ...], _Rank]]:
        """Return the digits and their rank after one scan of a field."""
        axis = list(self.space.choices).index(field)
        choice, leader, tried = digits[axis], None, []
        for digit, value in enumerate(self.space.choices[field]):
            design = _allowed(self.space, (*digits[:axis], digit, *digits[axis + 1 :]))
            if design is None or self.space.digits(design)[axis] != digit:  # the field does not matter here
                continue
            seen = yield design
            rank = self._rank(seen)
            better = leader is None or rank < leader
            tried.append((digit, value, design, seen, better))
            if rank < best:
                best, choice = rank, digit
            if better:
                leader = rank
            elif not exhaustive and leader is not None and leader[:2] <= (0.0, 0):
                break
        for digit, value, design, seen, better in tried:
            self._note(sweep, field, value, design, seen, better=better, kept=digit == choice)
        return (*digits[:axis], choice, *digits[axis + 1 :]), best

    def _rank(self, seen: _Seen) -> _Rank:
        """Return a rank to compare with others of this path, see `search`; smaller is better."""
        costs, violation, _ = seen
        finite, weights = np.isfinite(costs), np.array(self.weights)
        fresh = finite & (self._scale == 0)
        self._scale[fresh] = np.abs(costs[fresh])
        counted = finite & (weights > 0) & (self._scale > 0)
        total = float((weights[counted] * costs[counted] / self._scale[counted]).sum())
        weighted = costs[weights > 0]
        return violation, int(np.isposinf(weighted).sum()) - int(np.isneginf(weighted).sum()), total

    def _note(
        self, sweep: int, field: str | None, value: Any, design: int, seen: _Seen, *, better: bool, kept: bool
    ) -> None:
        self.steps.append(
            self._step(
                sweep=sweep, field=field, value=value, design=design, costs=tuple(seen[0].tolist()),
                better=better, kept=kept, evaluated=seen[2],
            )
        )  # fmt: skip


def _allowed(space: Space, digits: Sequence[int]) -> int | None:
    """Return the number of a design given by its choices, if the constraints allow it."""
    admitted = space.admitted(space.numbers([int(space.number_of(digits))]))
    return int(admitted[0]) if admitted.size else None
