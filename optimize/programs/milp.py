"""Choosing one option per group under budgets, proven by integer programming."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from optimize import checks
from optimize.programs.components import OVER_BUDGET, Groups, Program, budgets_of
from optimize.programs.front import joined
from optimize.programs.linear import (
    RESOLUTION,
    SUMS,
    Model,
    ProgramOutcome,
    gap_of,
    seconds_of,
    solver_name,
)

FEW = 100_000
"""Pairs of partial choices in a join up to which all are looked at, and no solver is asked."""

TRIES = 50
"""Choices that exceed a budget by less than the solver's tolerance that are cut off one after another."""


@dataclass(frozen=True, kw_only=True)
class Choice(ProgramOutcome):
    """The outcome of `choose`.

    Parameters
    ----------
    status, gap, seconds, solver, message
        See `optimize.programs.linear.ProgramOutcome`; "optimal" is proven up to the resolution.
    chosen : dict of str to int
        The row of the chosen option of every group, for components that of every field;
        empty without a solution.
    objective, bound : float or None
        Sum of the objective over the chosen options, and the bound that no choice is better than.
    resolution : float
        By how much a choice may be better that HiGHS does not tell apart: 0 of whole numbers, else 1e-6 of
        the objective's largest range within a group. 0 if it was not asked. [unit of the objective]
    totals : dict of str to float
        Correctly rounded sums over the chosen options: the objective and every metric with a budget.
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
        ``{group: {metric: values}}`` with one value per option: components with their variants, or one
        group whose options are whole designs, such as ``{"design": exploration.table}``. A `Component`
        depends on several fields, which others may share: one row of every field is chosen.
    minimize, maximize : str
        The objective, one of the two: its sum over the chosen options.
    subject_to : mapping, optional
        Budgets ``{metric: (low, high)}`` on sums over the chosen options, inclusive; None leaves a side open.
    time_limit : float, optional
        Seconds for the solver.

    Returns
    -------
    Choice
        Status, choice, bound and gap. An option that is infinitely bad in the objective or in a budget is
        never chosen.

    Raises
    ------
    ValueError
        If there is no option, a column is missing, NaN, infinitely good or of another length, a field has
        another number of choices in another component, or the objective is not one of the two.

    Notes
    -----
    With one binary :math:`x_{kc}` per cell of the tables and :math:`y_{fv}` for the choices of fields that
    several components share,

    .. math:: \min \sum a_{0kc} x_{kc}, \quad \sum_c x_{kc} = 1, \quad
       \sum_{c : c_f = v} x_{kc} = y_{fv}, \quad \sum a_{ikc} x_{kc} \le b_i,

    the multiple-choice knapsack problem where nothing is shared. Options that another one with the same
    shared fields beats or equals are left out first. HiGHS proves the choice to its gap, see ``resolution``;
    budgets hold without rounding, as a choice that exceeds one by less than its tolerance is cut off. Where
    few partial choices are not beaten, all are looked at instead, see `optimize.exact_front`.

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
    program = Program(groups, [(objective, sign, inf), *budgets_of(subject_to)])
    status, cells, bound, message, resolution, solver = "infeasible", None, -inf, program.message, 0.0, SUMS
    if not message:
        few, exact, _ = joined(program, most=FEW, thin=False)
        if exact:
            totals = program.totals(few)
            within = np.flatnonzero((totals <= program.bounds).all(axis=1))
            if within.size:
                status, cells = "optimal", few[within[totals[within, 0].argmin()]].tolist()
            message = "" if within.size else OVER_BUDGET
        else:
            status, cells, bound, message, resolution = _solved(program, deadline)
            solver = solver_name()
    sums = None if cells is None else program.totals(cells)[0].tolist()
    value = None if sums is None else sums[0]
    if status == "optimal" and value is not None:
        bound = value - resolution
    known = min(bound, inf if value is None else value) if -inf < bound < inf else None
    return Choice(
        status=status,
        chosen={} if cells is None else program.choice(cells),
        objective=None if value is None else sign * value + 0.0,
        bound=None if known is None else sign * known + 0.0,
        gap=gap_of(value, known),
        totals={}
        if sums is None
        else {
            metric: side * total + 0.0 for (metric, side, _), total in zip(program.rows, sums, strict=True)
        },
        resolution=resolution,
        seconds=time.perf_counter() - start,
        solver=solver,
        message=message,
    )


def _solved(program: Program, deadline: float) -> tuple[str, list[int] | None, float, str, float]:
    """Return the status, the cells, the bound, the message and the resolution of the integer program."""
    kept = [values[cells] for values, cells in zip(program.values, program.cells, strict=True)]
    least = np.array([values.min(axis=0) for values in kept])
    above = [values - low for values, low in zip(kept, least, strict=True)]
    largest = np.max([values.max(axis=0) for values in above], axis=0)
    scale = float(largest[0]) or 1.0
    model = Model()
    cells = [[model.binary(float(cost)) for cost in values[:, 0] / scale] for values in above]
    shared = {field: program.sizes[field] for fields in program.shared for field in fields}
    rows = {field: [model.continuous(0.0, 1.0) for _ in range(size)] for field, size in shared.items()}
    for k, variables in enumerate(cells):
        model.equal(dict.fromkeys(variables, 1.0), 1.0)
        keys = program.keys(k, program.cells[k])
        for field, column in zip(program.shared[k], keys.T.tolist(), strict=True):
            terms: list[dict[int, float]] = [{row: -1.0} for row in rows[field]]
            for variable, row in zip(variables, column, strict=True):
                terms[row][variable] = 1.0
            for one in terms:
                model.equal(one, 0.0)
    for i in range(1, len(program.rows)):
        size = float(largest[i]) or 1.0
        weights = {
            x: w / size for xs, v in zip(cells, above, strict=True) for x, w in zip(xs, v[:, i], strict=True)
        }
        model.at_most(weights, min(program.room[i] / size, float(len(cells))))
    for _ in range(TRIES):
        left = None if deadline == inf else max(deadline - time.perf_counter(), 0.0)
        outcome = model.solve(left)
        bound = least[:, 0].sum() + scale * outcome.bound
        if outcome.status == "infeasible":
            return "infeasible", None, -inf, OVER_BUDGET, 0.0
        if not outcome.values:
            return outcome.status, None, bound, "the time limit came before the first solution", inf
        taken = [max(xs, key=outcome.values.__getitem__) for xs in cells]
        found = [int(program.cells[k][x - cells[k][0]]) for k, x in enumerate(taken)]
        if (program.totals(found)[0] <= program.bounds).all():
            whole = all((values[:, 0] % 1 == 0).all() for values in kept) and RESOLUTION * scale < 1
            return outcome.status, found, bound, "", 0.0 if whole else RESOLUTION * float(largest[0])
        model.at_most(dict.fromkeys(taken, 1.0), len(taken) - 1.0)
    return "time limit", None, bound, f"{TRIES} choices within the solver's tolerance exceed a budget", inf
