"""Choosing one option per group under budgets, proven optimal by integer programming."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from optimize import checks
from optimize.programs.components import Groups
from optimize.programs.linear import solver_name
from optimize.programs.outcome import EXACT_SUMS, ProgramOutcome, gap_of
from optimize.programs.program import OVER_BUDGET, Program
from optimize.programs.whole import WholeRow

FEW, MANY = 30_000, 1_000_000
"""Pairs of partial choices looked at in one step before and after the integer program."""

SHARE = 0.2
"""Part of the time left that an enumeration before the integer program may take."""

TRIES = 50
"""Choices beyond a budget that the integer program may return; then the enumeration goes on alone."""


@dataclass(frozen=True, kw_only=True)
class Choice(ProgramOutcome):
    """The outcome of `choose`.

    Parameters
    ----------
    status, gap, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`.
    chosen : dict of str to int
        The row of the chosen option of every group, for components that of every field;
        empty without a solution.
    objective : float or None
        Sum of the objective over the chosen options.
    bound : float or None
        No choice has an objective better than this, whatever the solver rounds; None if nothing was proven.
    resolution : float
        By how much another choice may be better that was not found; 0 if proven.
    totals : dict of str to float
        Sums over the chosen options: the objective and every metric with a budget.
    """

    chosen: dict[str, int]
    objective: float | None
    bound: float | None
    totals: dict[str, float]
    resolution: float = 0.0


def choose(
    groups: Groups,
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: Mapping[str, checks.Range] | None = None,
    time_limit: float | None = None,
) -> Choice:
    r"""Choose one option of every group so that a sum of their values is best within budgets.

    Parameters
    ----------
    groups : mapping of str to table or Component
        ``{group: {metric: values}}`` with one value per option: components with their
        variants, or one group whose options are whole designs, such as
        ``{"design": exploration.table}``. A `Component` instead of a table depends on several
        fields, which other components may share: one row of every field is chosen. Columns
        that are not needed are ignored.
    minimize, maximize : str
        The objective, one of the two: its sum over the chosen options.
    subject_to : mapping, optional
        Budgets ``{metric: (low, high)}`` on sums over the chosen options, inclusive; None
        leaves a side open.
    time_limit : float, optional
        Seconds for the solver.

    Returns
    -------
    Choice
        Status, choice, bound and gap. An option that is infinitely bad in the objective or in
        a budget is never chosen.

    Raises
    ------
    ValueError
        If there is no option, a column is missing, NaN, infinitely good or of another
        length, a field has another number of choices in another component, or the objective
        is not one of the two.

    Notes
    -----
    With binary :math:`y_{fv}` for the choices of the fields and one :math:`x_{kc}` per cell of
    the tables,

    .. math:: \min \sum a_{0kc} x_{kc}, \quad \sum_{c : c_f = v} x_{kc} = y_{fv}, \quad
       \sum_v y_{fv} = 1, \quad \sum a_{ikc} x_{kc} \le b_i;

    groups of their own are the multiple-choice knapsack problem. Options that another of the
    same group (or with the same shared fields) beats or equals in objective and budgets are
    left out first. What is left is enumerated by dynamic programming over nondominated partial sums in
    whole numbers (a floating-point number is one, times a power of two), so that losses of 1e-1 and 1e-15
    count alike. Where that is too much, HiGHS solves the program, which tells sums apart down to some 1e-9
    of the largest value only: its choice is summed up without rounding, and the rest is enumerated once
    more, less what the prices of the budgets in the relaxed program exclude [1]_. If it is still too
    much, the status is "resolved" and not "optimal", and `bound` is what enumeration and prices show.
    Totals are correctly rounded, and budgets hold for these exactly.

    References
    ----------
    .. [1] A. M. Geoffrion, "Lagrangean relaxation for integer programming", Mathematical Programming
       Study 2, 1974.

    Examples
    --------
    >>> links = {"latency": [40, 24, 16], "cost": [2, 4, 8]}
    >>> memory = {"latency": [90, 50, 30], "cost": [5, 10, 20]}
    >>> choice = choose({"link": links, "memory": memory}, minimize="latency",
    ...                 subject_to={"cost": (None, 14)})
    >>> choice.status, choice.chosen, choice.totals
    ('optimal', {'link': 1, 'memory': 1}, {'latency': 74.0, 'cost': 14.0})

    Two components that share the number of channels:

    >>> from optimize.programs.components import Component
    >>> noc = Component(fields=("channels", "width"),
    ...                 table={"latency": [[60, 40], [30, 20]], "cost": [[1, 2], [2, 4]]})
    >>> dram = Component(fields=("channels", "step"),
    ...                  table={"latency": [[80, 70], [50, 55]], "cost": [[4, 4], [8, 8]]})
    >>> choose({"noc": noc, "dram": dram}, minimize="latency", subject_to={"cost": (None, 10)}).chosen
    {'channels': 1, 'width': 0, 'step': 0}
    """
    start = time.perf_counter()
    if (minimize is None) == (maximize is None):
        raise ValueError(f"give one of minimize and maximize, got {minimize!r} and {maximize!r}")
    deadline = start + seconds_of(time_limit)
    objective, sign = (minimize, 1.0) if minimize is not None else (str(maximize), -1.0)
    program = Program(groups, [(objective, sign)], budgets_of(subject_to))
    search = _Search(program, deadline)
    status, message = search.run()
    totals = program.totals(search.chosen) if search.chosen else {}
    value = sign * totals[objective] if search.chosen else None
    bound = value if status == "optimal" else search.bound if search.bound > -inf else None
    if value is not None and bound is not None:
        bound = min(bound, value)
    return Choice(
        status=status,
        chosen=search.chosen,
        objective=totals.get(objective),
        bound=None if bound is None or status == "infeasible" else sign * bound + 0.0,
        gap=gap_of(value, bound),
        totals=totals,
        seconds=time.perf_counter() - start,
        solver=solver_name() if program.solves else EXACT_SUMS,
        message=message,
        resolution=0.0 if value is None else value - bound if bound is not None else inf,
    )


class _Search:
    """Enumerates without rounding, with a choice of the integer program to beat where that is too much."""

    def __init__(self, program: Program, deadline: float) -> None:
        self._program, self._deadline = program, deadline
        self.chosen: dict[str, int] = {}
        self.bound = -inf

    def run(self) -> tuple[str, str]:
        """Search, and return status and message."""
        program = self._program
        if program.message:
            return "infeasible", program.message
        if self._enumerate([], FEW, SHARE):
            return self._proven()
        prices = program.surrogate(self._deadline)
        alone = program.enumerate([prices], most=FEW, deadline=self._deadline)
        if alone is not None:
            self.bound = max(self.bound, min(least for (least,) in alone.least))
        if self._enumerate([prices], FEW, SHARE):
            return self._proven()
        solution = program.solve({0: 1.0}, self._deadline, tries=TRIES)
        if solution.choice and (not self.chosen or self._sum(solution.choice) < self._sum(self.chosen)):
            self.chosen = solution.choice
        if self._enumerate([prices], MANY, 1.0):
            return self._proven()
        if time.perf_counter() > self._deadline:
            message = "" if self.chosen else "the time limit came before the first solution"
            return "feasible" if self.chosen else "time limit", message
        return "resolved", "" if self.chosen else "no choice was found; that there is none is not proven"

    def _proven(self) -> tuple[str, str]:
        return ("optimal", "") if self.chosen else ("infeasible", OVER_BUDGET)

    def _sum(self, choice: Mapping[str, int]) -> int:
        """Return the objective in whole numbers."""
        program = self._program
        cells = enumerate(program.cells_of(choice))
        return sum(program.whole[0].parts[k][program.cells[k].searchsorted(cell)] for k, cell in cells)

    def _enumerate(self, extra: list[WholeRow], most: int, share: float) -> bool:
        """Look for better choices for a share of the time left; return whether none can be missing."""
        program, now = self._program, time.perf_counter()
        rows = [*program.whole, *extra]
        if self.chosen:
            better = self._sum(self.chosen) - 1  # in the unit of all sums: less is at least one less
            rows[0] = replace(rows[0], ceiling=better)
            for k, row in enumerate(extra, start=len(program.whole)):
                rows[k] = replace(row, ceiling=better << (rows[0].exponent - row.exponent))
        reached = program.enumerate(rows, most=most, deadline=now + share * (self._deadline - now))
        if reached is None:
            return False
        if len(reached.cells):
            self.chosen = program.choice_of(reached.cells[0].tolist())
        # The first objective, and what prices make of it, are both at most that of any choice.
        ends = [max([least[0], *least[len(program.whole) :]]) for least in reached.least]
        self.bound = max(self.bound, min(ends, default=inf))
        value = program.objectives[0].total(program.cells_of(self.chosen)) if self.chosen else inf
        return not reached.merged or not ends or self.bound >= value


def seconds_of(time_limit: float | None) -> float:
    """Return a time limit in seconds, infinite if there is none."""
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be > 0 seconds, got {time_limit!r}")
    return inf if time_limit is None else float(time_limit)


def budgets_of(subject_to: Mapping[str, checks.Range] | None) -> list[tuple[str, float, float]]:
    """Return the sides of budgets that bind, as (metric, sign, bound of the signed total)."""
    return [
        (metric, side, side * bound)
        for metric, sides in checks.ranges("subject_to", subject_to).items()
        for side, bound in zip((-1.0, 1.0), sides, strict=True)
        if bound is not None and side * bound < inf
    ]
