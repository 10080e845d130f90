"""Choosing one option per group under budgets, proven optimal by integer programming."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, inf, nextafter

import numpy as np
import numpy.typing as npt

from optimize import _check
from optimize._pulp import Model, solver_name
from optimize.pareto import FloatArray

Table = Mapping[str, npt.ArrayLike]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The outcome of `choose`.

    Parameters
    ----------
    status : {"optimal", "feasible", "infeasible", "time limit"}
        "feasible" is a solution that was not proven optimal in time; "time limit" is none.
    chosen : dict of str to int
        The row of the chosen option of every group; empty without a solution.
    objective : float or None
        Sum of the objective over the chosen options.
    bound : float or None
        No choice has an objective better than this; None if nothing was proven.
    gap : float or None
        ``|objective - bound| / |objective|``, 0 if proven; None without both.
    totals : dict of str to float
        Sums over the chosen options: the objective and every metric with a budget.
    seconds : float
        Wall time, model building included.
    solver : str
        What solved it.
    message : str
        Why nothing was chosen, or empty.
    """

    status: str
    chosen: dict[str, int]
    objective: float | None
    bound: float | None
    gap: float | None
    totals: dict[str, float]
    seconds: float
    solver: str
    message: str = ""

    @property
    def proven(self) -> bool:
        """Whether the status is proven: the choice is optimal, or there is none."""
        return self.status in ("optimal", "infeasible")


def choose(
    groups: Mapping[str, Table],
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: Mapping[str, _check.Range] | None = None,
    time_limit: float | None = None,
) -> Choice:
    r"""Choose one option of every group so that a sum of their values is best within budgets.

    Parameters
    ----------
    groups : mapping of str to table
        ``{group: {metric: values}}`` with one value per option: components with their
        variants, or one group whose options are whole designs, such as
        ``{"design": exploration.table}``. Columns that are not needed are ignored.
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
        length, or the objective is not one of the two.

    Notes
    -----
    The multiple-choice knapsack problem with any number of budgets: binary :math:`x_{go}`,

    .. math:: \min \sum c_{go} x_{go}, \quad \sum_o x_{go} = 1, \quad
       \sum a_{kgo} x_{go} \le b_k,

    solved by HiGHS without a gap tolerance, all coefficients scaled to about 1. Budgets hold
    for the correctly rounded sums exactly: a choice that exceeds one within the tolerance of
    the solver (1e-9) is cut off and the model solved again. The objective is optimal up to
    1e-9 of its largest range within a group.

    Examples
    --------
    >>> links = {"latency": [40, 24, 16], "cost": [2, 4, 8]}
    >>> memory = {"latency": [90, 50, 30], "cost": [5, 10, 20]}
    >>> choice = choose({"link": links, "memory": memory}, minimize="latency",
    ...                 subject_to={"cost": (None, 14)})
    >>> choice.status, choice.chosen, choice.totals
    ('optimal', {'link': 1, 'memory': 1}, {'latency': 74.0, 'cost': 14.0})
    """
    start = time.perf_counter()
    if (minimize is None) == (maximize is None):
        raise ValueError(f"give one of minimize and maximize, got {minimize!r} and {maximize!r}")
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be > 0 seconds, got {time_limit!r}")
    if not groups:
        raise ValueError("groups must have at least one group, got none")
    objective = minimize or maximize or ""
    sign = 1.0 if minimize else -1.0
    ranges = _check.ranges("subject_to", subject_to)
    costs = _Row(groups, objective, sign, np.inf)
    budgets = [
        _Row(groups, metric, side, side * bound)
        for metric, sides in ranges.items()
        for side, bound in zip((-1.0, 1.0), sides, strict=True)
        if bound is not None and side * bound < np.inf
    ]
    status, chosen, bound, message = _solve(list(groups), costs, budgets, start, time_limit)
    totals = {}
    if chosen:
        for row in (costs, *budgets):
            totals[row.metric] = row.sign * row.total(chosen) + 0.0
    value = totals.get(objective)
    gap = None
    if value is not None and bound is not None:
        bound = min(bound, sign * value) if status != "optimal" else sign * value
        gap = abs(sign * value - bound) / abs(value) if value else float(bound != value)
    return Choice(
        status=status,
        chosen=dict(zip(groups, chosen, strict=True)) if chosen else {},
        objective=value,
        bound=None if bound is None else sign * bound + 0.0,
        gap=gap,
        totals=totals,
        seconds=time.perf_counter() - start,
        solver=solver_name(),
        message=message,
    )


class _Row:
    """One metric of all groups, signed so that less is better, with its upper bound."""

    def __init__(self, groups: Mapping[str, Table], metric: str, sign: float, bound: float) -> None:
        self.metric, self.sign, self.bound = metric, sign, bound
        self.values = [sign * _column(name, table, metric) for name, table in groups.items()]
        for name, values in zip(groups, self.values, strict=True):
            if np.isneginf(values).any():
                raise ValueError(
                    f"{metric!r} of group {name!r} must not be infinitely good, got {-sign * np.inf}"
                )

    def total(self, chosen: list[int]) -> float:
        return fsum(values[option] for values, option in zip(self.values, chosen, strict=True))


def _column(group: str, table: Table, metric: str) -> FloatArray:
    if metric not in table:
        raise ValueError(f"group {group!r} has no metric {metric!r}{_check.nearest(metric, table)}")
    options = {np.shape(column)[:1] for column in table.values()}
    values = np.asarray(table[metric])
    if values.ndim != 1 or not values.size or values.dtype.kind not in "biuf" or len(options) > 1:
        raise ValueError(
            f"{metric!r} of group {group!r} must be one number per option, got {table[metric]!r}"
        )
    if np.isnan(values).any():
        raise ValueError(
            f"{metric!r} of group {group!r} must not be NaN, got NaN in option {np.isnan(values).argmax()}"
        )
    return values.astype(float)


def _solve(
    names: list[str], costs: _Row, budgets: list[_Row], start: float, time_limit: float | None
) -> tuple[str, list[int], float | None, str]:
    """Return status, chosen options, bound of the signed objective, and why there is no choice."""
    keep = [np.isfinite(values) for values in costs.values]
    reasons = [
        f"no option of group {name!r} has a finite {costs.metric!r}"
        for name, good in zip(names, keep, strict=True)
        if not good.any()
    ]
    for row in budgets:
        least = [float(values.min()) for values in row.values]
        if not fsum(least) <= row.bound:
            reasons.append(_unreachable(row, fsum(least)))
        for g, values in enumerate(row.values):
            others = least[:g] + least[g + 1 :]
            keep[g] &= np.array([fsum([value, *others]) <= row.bound for value in values.tolist()])
    options = [(g, int(o)) for g, good in enumerate(keep) for o in np.flatnonzero(good)]
    if reasons or len({g for g, _ in options}) < len(keep):
        return "infeasible", [], None, "; ".join(reasons) or "the budgets cannot be met together"

    coefficients, scale, offset = _scaled(costs, options, len(keep))
    model = Model(coefficients)
    for g in range(len(keep)):
        model.equal([float(group == g) for group, _ in options], 1.0)
    for row in budgets:
        weights, size, floor = _scaled(row, options, len(keep))
        # Rounded outwards: no choice within the budget is lost, the check below does the rest.
        model.at_most(weights, (nextafter(row.bound, inf) - nextafter(floor, -inf)) / size)
    while True:
        left = None if time_limit is None else max(time_limit - (time.perf_counter() - start), 0.0)
        outcome = model.solve(left)
        bound = outcome.bound * scale + offset if np.isfinite(outcome.bound) else None
        if outcome.status == "infeasible":
            return "infeasible", [], None, "the budgets cannot be met together"
        if not outcome.values:
            return outcome.status, [], bound, "the time limit came before the first solution"
        taken = [value > 0.5 for value in outcome.values]
        chosen = [option for (_, option), yes in zip(options, taken, strict=True) if yes]
        if all(row.total(chosen) <= row.bound for row in budgets):
            return outcome.status, chosen, bound, ""
        model.at_most([float(yes) for yes in taken], len(keep) - 1)


def _scaled(row: _Row, options: list[tuple[int, int]], groups: int) -> tuple[list[float], float, float]:
    """Return coefficients from 0 to 1, their scale, and the sum of the smallest of every group."""
    values = [float(row.values[g][o]) for g, o in options]
    least = [
        min(value for value, (g, _) in zip(values, options, strict=True) if g == k) for k in range(groups)
    ]
    above = [value - least[g] for value, (g, _) in zip(values, options, strict=True)]
    scale = max(above) or 1.0
    return [value / scale for value in above], scale, fsum(least)


def _unreachable(row: _Row, least: float) -> str:
    side = "<=" if row.sign > 0 else ">="
    return (
        f"{row.metric} {side} {row.sign * row.bound:g} cannot be met: "
        f"the best sum is {row.sign * least:.6g}, off by {least - row.bound:.4g}"
    )
