"""Choosing and assigning under congestion: costs that bend with the load they cause."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from optimize import checks
from optimize.programs.components import Groups
from optimize.programs.linear import TOLERANCE, Model, Terms, solver_name
from optimize.programs.milp import budgets_of, seconds_of
from optimize.programs.outcome import ProgramOutcome, gap_of
from optimize.programs.piecewise import Curve, PiecewiseLinear
from optimize.programs.program import OVER_BUDGET, Build, Program

PIECES = 16
"""Pieces of every curve at first; every round adds one where the last choice is."""

CHOICES = 5_000
"""Choices up to which all are looked at instead."""


@dataclass(frozen=True, kw_only=True)
class CongestedChoice(ProgramOutcome):
    """The outcome of `choose_congested`.

    Parameters
    ----------
    status, gap, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`.
    chosen : dict of str to int
        As `optimize.programs.milp.Choice.chosen`.
    cost : float or None
        Linear cost plus the curves themselves at the chosen loads.
    bound : float or None
        No choice costs less: the optimum with the curves replaced from below, less what the solver may be
        off by, 1e-9 of the height of the highest curve for every option and piece.
    loads : dict of str to float
        The totals that the curves bend.
    rounds : int
        Integer programs solved, each with knots at the loads of the one before; 0 where there are so few
        choices that all are looked at.
    """

    chosen: dict[str, int]
    cost: float | None
    bound: float | None
    loads: dict[str, float]
    rounds: int


def choose_congested(
    groups: Groups,
    *,
    curves: Mapping[str, Curve],
    minimize: str | None = None,
    subject_to: Mapping[str, checks.Range] | None = None,
    tolerance: float = 1e-3,
    time_limit: float | None = None,
) -> CongestedChoice:
    r"""Choose options so that a sum of values plus curves of other sums is least.

    Parameters
    ----------
    groups : mapping of str to table or Component
        As for `optimize.choose`.
    curves : mapping of str to Curve
        ``{metric: curve}``: a cost that depends on the total of the metric, such as the number
        waiting at a memory on its load. Totals outside the domain of the curve are infeasible.
    minimize : str, optional
        A metric whose total is added to the cost.
    subject_to : mapping, optional
        Budgets ``{metric: (low, high)}`` on totals.
    tolerance : float
        Relative gap at which the search stops.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    CongestedChoice
        The best choice with its real cost, and the bound that proves it.

    Raises
    ------
    ValueError
        If there is no curve or the tolerance is not positive, and as `optimize.choose`.

    Notes
    -----
    .. math:: \min \sum c_o x_o + \sum_r f_r(L_r), \quad L_r = \sum a_{ro} x_o.

    Each :math:`f_r` is replaced by a piecewise-linear function below it (`Curve.bracket`): of
    a convex curve by the maximum of its pieces, otherwise with one binary per piece. The
    optimum then is a bound; the real cost of its choice is an upper end, tighter than an
    optimum with functions above the curves. Knots are added at the loads of that choice, where the
    replacement meets the curve, until both ends agree. There are finitely many choices, so that
    ends for any tolerance; what the solver may be off by leaves a gap, and the status "resolved" where that
    is more than the tolerance. Up to 5,000 choices are all looked at.

    Examples
    --------
    Two requesters of a load of 0.4 each; the near memory is cheap until it saturates:

    >>> table = {"cost": [0.0, 1.0], "near": [0.4, 0.0], "far": [0.0, 0.4]}
    >>> waiting = Curve(lambda load: load**2 / (1 - load), 0.0, 0.99)
    >>> choice = choose_congested({"cpu": table, "dma": table}, minimize="cost",
    ...                           curves={"near": waiting, "far": waiting})
    >>> choice.status, sorted(choice.chosen.values()), round(choice.cost, 4)
    ('optimal', [0, 1], 1.5333)
    """
    start = time.perf_counter()
    if not curves:
        raise ValueError("curves must have at least one metric, got none; see choose")
    if not 0 < tolerance < inf:
        raise ValueError(f"tolerance must be finite and > 0, got {tolerance!r}")
    deadline = start + seconds_of(time_limit)
    ranges = budgets_of({metric: (curve.low, curve.high) for metric, curve in curves.items()})
    objectives = [(minimize, 1.0)] if minimize is not None else []
    program = Program(groups, objectives, ranges + budgets_of(subject_to))
    search = _Search(program, curves)
    status, message = search.run(tolerance, deadline)
    cost = search.cost if search.chosen else None
    bound = search.bound if -inf < search.bound < inf else None
    return CongestedChoice(
        status=status,
        chosen=search.chosen,
        cost=cost,
        bound=bound,
        gap=gap_of(cost, bound),
        loads=search.loads(search.chosen) if search.chosen else {},
        rounds=program.solves,
        seconds=time.perf_counter() - start,
        solver=solver_name() if program.solves else "optimize, enumeration",
        message=message,
    )


class _Search:
    """Refines the functions below the curves at the loads of every optimum with them."""

    def __init__(self, program: Program, curves: Mapping[str, Curve]) -> None:
        self._program, self._curves = program, curves
        self.chosen: dict[str, int] = {}
        self.cost, self.bound = inf, -inf

    def run(self, tolerance: float, deadline: float) -> tuple[str, str]:
        """Search, and return status and message."""
        program = self._program
        knots: dict[str, list[float]] = {metric: [] for metric in self._curves}
        seen = set()
        if program.message:
            return "infeasible", program.message
        if time.perf_counter() < deadline and prod(program.tables.sizes.values()) <= CHOICES:
            return self._look_at_all()
        brackets = {metric: curve.bracket(pieces=PIECES) for metric, curve in self._curves.items()}
        own = program.scales[0] if program.objectives else 0.0
        heights = [float(np.ptp(bracket.upper[1])) for bracket in brackets.values()]
        self._scale = max([own, *heights]) or 1.0
        margin = TOLERANCE * (sum(map(len, program.cells)) + PIECES * len(brackets))
        self._offset = program.floors[0] if program.objectives else 0.0
        while True:
            self._brackets = brackets
            weights = {0: own / self._scale} if program.objectives else {}
            solution = program.solve(weights, deadline=deadline, extend=self._extend)
            if solution.status == "infeasible":
                return "infeasible", solution.message
            if solution.bound is not None:
                self.bound = max(self.bound, self._offset + self._scale * (solution.bound - margin))
            if not solution.choice:
                return ("feasible", "") if self.chosen else (solution.status, solution.message)
            loads = self.loads(solution.choice)
            cost = self._cost(solution.choice, loads)
            if cost < self.cost:
                self.chosen, self.cost = solution.choice, cost
            self.bound = min(self.bound, self.cost)
            again = tuple(solution.choice.values()) in seen
            seen.add(tuple(solution.choice.values()))
            if self.cost - self.bound <= tolerance * abs(self.cost):
                return "optimal", ""
            if solution.status != "optimal" or again:
                return "resolved" if again else "feasible", ""
            for metric, load in loads.items():
                curve = self._curves[metric]
                knots[metric].append(min(max(load, curve.low), curve.high))
                brackets[metric] = curve.bracket(pieces=PIECES + len(knots[metric]), knots=knots[metric])

    def _look_at_all(self) -> tuple[str, str]:
        """Compare all choices by their cost, and return status and message."""
        sizes = self._program.tables.sizes
        for rows in itertools.product(*map(range, sizes.values())):
            choice = dict(zip(sizes, rows, strict=True))
            if self._program.within(choice):
                cost = self._cost(choice, self.loads(choice))
                if cost < self.cost:
                    self.chosen, self.cost = choice, cost
        self.bound = self.cost
        return ("optimal", "") if self.chosen else ("infeasible", OVER_BUDGET)

    def loads(self, choice: Mapping[str, int]) -> dict[str, float]:
        """Return the totals that the curves bend."""
        totals = self._program.totals(choice)
        return {metric: totals[metric] for metric in self._curves}

    def _cost(self, choice: Mapping[str, int], loads: Mapping[str, float]) -> float:
        linear = (
            self._program.totals(choice)[self._program.objectives[0].metric]
            if self._program.objectives
            else 0.0
        )
        return linear + sum(float(curve(loads[metric])) for metric, curve in self._curves.items())

    def _extend(self, build: Build) -> None:
        """Add the functions below the curves to the model and its objective."""
        program = self._program
        for metric, bracket in self._brackets.items():
            row = [one.metric for one in program.budgets].index(metric) + len(program.objectives)
            sign, width = program.rows[row].sign, float(np.ptp(bracket.knots))
            # The load over the domain of the curve is 0 to 1: the signed total without its floor.
            factor = sign * program.scales[row] / width
            load = {x: factor * value for x, value in build.terms(program.weights_of(row)).items()}
            shift = (sign * program.floors[row] - float(bracket.knots[0])) / width
            _add_function(build.model, load, shift, bracket, self._scale)


def _add_function(model: Model, load: Terms, shift: float, bracket: PiecewiseLinear, scale: float) -> None:
    """Add the function below a curve, divided by the scale, of ``load + shift`` to the objective."""
    x, y = bracket.lower[0] - bracket.knots[0], bracket.lower[1] / scale
    x = x / x[-1]
    if bracket.convex:
        value = model.continuous(None, None, cost=1.0)
        slopes, heights = bracket.lines()
        heights = (heights + slopes * bracket.knots[0]) / scale
        slopes = slopes * np.ptp(bracket.knots) / scale
        for slope, height in zip(slopes.tolist(), heights.tolist(), strict=True):
            size = max(1.0, abs(slope))
            terms = {number: slope * part / size for number, part in load.items()}
            model.at_most({**terms, value: -1.0 / size}, -(height + slope * shift) / size)
        return
    # One binary per piece, with the part of the load within it.
    pieces = [k for k in range(len(x) - 1) if x[k + 1] > x[k]]
    chosen = [model.binary(float(y[k])) for k in pieces]
    total = dict(load)
    for k, piece in zip(pieces, chosen, strict=True):
        width = float(x[k + 1] - x[k])
        part = model.continuous(0.0, width, cost=float((y[k + 1] - y[k]) / width))
        model.at_most({part: 1.0, piece: -width}, 0.0)
        total |= {part: -1.0, piece: -float(x[k])}
    model.equal(total, -shift)
    model.equal(dict.fromkeys(chosen, 1.0), 1.0)
