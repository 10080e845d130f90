"""Choosing one option per group under a budget by marginal gains, with a bound on what is lost."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping

import numpy as np

from optimize import checks
from optimize.programs.components import Groups
from optimize.programs.milp import Choice
from optimize.programs.outcome import gap_of
from optimize.programs.program import Program
from optimize.search.pareto import FloatArray

EXCHANGED = 4
"""Greedy choices that are improved by exchanges; the others lose more to begin with."""


def choose_by_gain(
    groups: Groups,
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: Mapping[str, checks.Range],
) -> Choice:
    r"""Choose one option per group within one budget by marginal gains, with a bound on what is lost.

    Parameters
    ----------
    groups : mapping of str to table
        ``{group: {metric: values}}`` with one value per option, as for `optimize.choose`.
    minimize, maximize : str
        The objective, one of the two: its sum over the chosen options.
    subject_to : mapping
        One budget ``{metric: (None, high)}``.

    Returns
    -------
    Choice
        A feasible choice with its bound and gap ("optimal" if the gap is 0), or "infeasible".

    Raises
    ------
    ValueError
        If the objective is not one of the two, there is another number of budgets, or a table is
        not fit (see `sum_front`).

    Notes
    -----
    All groups start at their cheapest option. The steps along the lower convex hull of every
    group (loss over cost) are taken in the order of their gain per cost. Where the budget first
    fails for the step of slope :math:`s` with :math:`b` left, :math:`\text{loss} - s b` bounds
    the optimum: it is the value of the linear relaxation [1]_, taken as :math:`\sum \min (\text{loss} + s
    \, \text{cost})` less s times the budget, without rounding. The same
    is done with each group held at its cheapest option; in the best few of these choices the options
    of one group or two are exchanged while that gains anything. The loss against the bound is less
    than the gain of one step, whatever the number of groups.

    References
    ----------
    .. [1] P. Sinha and A. A. Zoltners, "The multiple-choice knapsack problem", Operations Research
       27(3), 1979.

    Examples
    --------
    >>> links = {"latency": [40, 24, 16], "cost": [2, 4, 8]}
    >>> memory = {"latency": [90, 50, 30], "cost": [5, 10, 20]}
    >>> choice = choose_by_gain({"link": links, "memory": memory}, minimize="latency",
    ...                         subject_to={"cost": (None, 15)})
    >>> choice.chosen, choice.objective, choice.bound
    ({'link': 1, 'memory': 1}, 74.0, 72.0)
    """
    started = time.perf_counter()
    if (minimize is None) == (maximize is None):
        raise ValueError(f"one of minimize and maximize must be given, got {minimize!r} and {maximize!r}")
    budgets = checks.ranges("subject_to", subject_to)
    if len(budgets) != 1 or any(low is not None or high is None for low, high in budgets.values()):
        raise ValueError(f"subject_to must be one budget {{metric: (None, high)}}, got {subject_to!r}")
    (metric, (_, limit)), sign = next(iter(budgets.items())), 1 if maximize is None else -1
    assert limit is not None
    name = minimize if maximize is None else maximize
    assert name is not None
    program = Program(groups, [(name, float(sign))], [(metric, 1.0, limit)])
    if any(count > 1 for count in program.tables.owners.values()):
        raise ValueError("groups must share no field, as their sums are independent; see choose")
    chosen: dict[str, int] = {}
    totals: dict[str, float] = {}
    loss = bound = None
    if not program.message:
        kept = [
            np.stack([row.values[k][cells] for row in program.rows], axis=1)
            for k, cells in enumerate(program.cells)
        ]
        start = [int(np.lexsort((costs[:, 0], costs[:, 1]))[0]) for costs in kept]
        rows, price = _best_rows(kept, start, limit)
        chosen = program.choice_of([cells[row] for cells, row in zip(program.cells, rows, strict=True)])
        totals = program.totals(chosen)
        loss, priced = sign * totals[name], program.priced([price])
        bound = min(priced.value(sum(min(part.tolist()) for part in priced.parts)), loss)
    return Choice(
        status="infeasible" if loss is None else "optimal" if loss == bound else "feasible",
        chosen=chosen,
        objective=totals.get(name),
        bound=None if bound is None else sign * bound + 0.0,
        gap=gap_of(loss, bound),
        totals=totals,
        seconds=time.perf_counter() - started,
        solver="marginal gains on convex hulls",
        message=program.message,
        resolution=0.0 if loss is None or bound is None else loss - bound,
    )


def _best_rows(tables: list[FloatArray], start: list[int], limit: float) -> tuple[list[int], float]:
    """Return the best choice found within the limit, and the price of the limit."""
    climbed, price = _climb(tables, start, limit)
    choices = [climbed]
    for k, row in enumerate(start):  # one group held at its cheapest option leaves room for the others
        held = [costs[[row]] if other == k else costs for other, costs in enumerate(tables)]
        choices.append(_climb(held, [*start[:k], 0, *start[k + 1 :]], limit)[0])
        choices[-1][k] = row
    choices = sorted(choices, key=lambda rows: _total(tables, rows, 0))[:EXCHANGED]
    for rows in choices:
        _exchange(tables, rows, limit)
    return min(choices, key=lambda rows: _total(tables, rows, 0)), price


def _total(tables: list[FloatArray], rows: list[int], column: int) -> float:
    return math.fsum(costs[row, column] for costs, row in zip(tables, rows, strict=True))


def _hull(costs: FloatArray, start: int) -> list[int]:
    """Return the options on the lower convex hull of loss over cost, from the cheapest to the best."""
    hull = [start]
    for row in np.lexsort((costs[:, 0], costs[:, 1])).tolist():
        if costs[row, 0] >= costs[hull[-1], 0]:
            continue
        while len(hull) > 1 and _slope(costs, hull[-2], hull[-1]) <= _slope(costs, hull[-2], row):
            hull.pop()
        hull.append(row)
    return hull


def _slope(costs: FloatArray, here: int, there: int) -> float:
    """Return the gain per cost of a step."""
    return float((costs[here, 0] - costs[there, 0]) / (costs[there, 1] - costs[here, 1]))


def _climb(tables: list[FloatArray], start: list[int], limit: float) -> tuple[list[int], float]:
    """Take the steps of all hulls by gain per cost while they fit; return the choice and the limit's price.

    That is the gain per cost of the first step that does not fit, 0 if all do.
    """
    steps = []
    for group, (costs, first) in enumerate(zip(tables, start, strict=True)):
        hull = _hull(costs, first)
        steps += [(-_slope(costs, a, b), group, a, b) for a, b in zip(hull[:-1], hull[1:], strict=True)]
    chosen = list(start)
    stuck: set[int] = set()
    price = 0.0
    for slope, group, _, there in sorted(steps):
        if group in stuck:
            continue
        before, chosen[group] = chosen[group], there
        if _total(tables, chosen, 1) <= limit:
            continue
        chosen[group] = before
        price = price or -slope
        stuck.add(group)
    return chosen, price


def _exchange(tables: list[FloatArray], chosen: list[int], limit: float) -> None:
    """Exchange options of one group or of two while that lowers the loss within the limit."""
    while True:
        left = limit - _total(tables, chosen, 1)
        moves = [costs - costs[row] for costs, row in zip(tables, chosen, strict=True)]
        best: tuple[float, list[tuple[int, int]]] = (0.0, [])
        for a, first in enumerate(moves):
            fits = np.where(first[:, 1] <= left, first[:, 0], math.inf)
            k = int(fits.argmin())
            best = min(best, (float(fits[k]), [(a, k)]))
            for b in range(a + 1, len(moves)):
                second = moves[b]
                loss = first[:, None, 0] + second[None, :, 0]
                loss = np.where(first[:, None, 1] + second[None, :, 1] <= left, loss, math.inf)
                i, j = divmod(int(loss.argmin()), loss.shape[1])
                best = min(best, (float(loss[i, j]), [(a, i), (b, j)]))
        proposal = list(chosen)
        for group, row in best[1]:
            proposal[group] = row
        losses = [_total(tables, rows, 0) for rows in (chosen, proposal)]
        total = _total(tables, proposal, 1)
        if not best[1] or losses[1] >= losses[0] or total > limit:
            return
        chosen[:] = proposal
