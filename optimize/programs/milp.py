"""Choosing one option per group under budgets, proven optimal by integer programming."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from optimize import checks
from optimize.programs._certificate import overlooked
from optimize.programs.components import Groups
from optimize.programs.grid import RESOLUTION
from optimize.programs.linear import solver_name
from optimize.programs.outcome import ProgramOutcome, gap_of
from optimize.programs.program import Program, Solution


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
        No choice has an objective better than this; None if nothing was proven.
    resolution : float
        Differences in the objective that were not told apart; 0 if proven.
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
    left out first. Solved by HiGHS without a gap tolerance, all coefficients scaled to about 1.
    Budgets hold for the correctly rounded sums exactly: a choice that exceeds one within the
    tolerance of the solver (1e-9) is cut off and the model solved again. The solver tells
    objectives apart down to some 1e-9 of the largest range within a group. Where their values lie
    on no grid of at most 1e5 steps, what beats its choice is enumerated in whole numbers; if that
    takes more than 300,000 partial choices in one step, the status is "resolved", with 1e-6 of
    that range as the resolution.

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
    solution, resolution = _certified(program, program.solve({0: 1.0}, deadline=deadline), deadline)
    totals = program.totals(solution.choice) if solution.choice else {}
    value = totals.get(objective)
    bound = None
    if solution.bound is not None:
        bound = program.floors[0] + program.scales[0] * solution.bound
    if value is not None and bound is not None:
        bound = sign * value - resolution if solution.status == "optimal" else min(bound, sign * value)
    return Choice(
        status="resolved" if resolution else solution.status,
        chosen=solution.choice,
        objective=value,
        bound=None if bound is None else sign * bound + 0.0,
        gap=gap_of(None if value is None else sign * value, bound),
        totals=totals,
        seconds=time.perf_counter() - start,
        solver=solver_name(),
        message=solution.message,
        resolution=resolution,
    )


def _certified(program: Program, solution: Solution, deadline: float) -> tuple[Solution, float]:
    """Return the best choice, and by how much another may be better that the solver overlooked."""
    if solution.status != "optimal" or program.step(0) is not None:
        return solution, 0.0
    better = overlooked(program, [solution.choice], deadline)
    if better is None:
        return solution, RESOLUTION * program.scales[0]
    choices = [solution.choice, *better]
    best = min(choices, key=lambda choice: program.objectives[0].total(program.cells_of(choice)))
    return replace(solution, choice=best), 0.0


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
