"""Choosing one option per group under budgets, proven by integer programming."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import NamedTuple

import numpy as np

from optimize import checks
from optimize.programs import linear
from optimize.programs.components import OVER_BUDGET, ROUNDING, Groups, Program, budgets_of, pareto
from optimize.programs.linear import RESOLUTION, SUMS, Model, ProgramOutcome
from optimize.search.pareto import FloatArray, IntArray

MOST, HASTE = 2_000_000, 2_000  # pairs of partial choices looked at in one join, and after the time limit


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactFront(ProgramOutcome):
    """The outcome of `exact_front`.

    "optimal": the front is complete, and the gap 0. "feasible": the time limit came first, or there were too
    many partial choices; all points are feasible then and do not dominate each other, others may be missing,
    and the gap is None.
    """

    objectives: tuple[str, ...]  #: The minimised ones first
    #: One choice per point, as `Choice.chosen`; designs with equal objectives are one point
    chosen: tuple[dict[str, int], ...]
    #: Correctly rounded sums over the chosen options, (points, objectives), sorted by the first objective
    values: FloatArray
    #: No design has an objective better than this, per objective; empty if there is no design
    bound: tuple[float, ...]
    states: int  #: Most partial sums kept at a time


def exact_front(
    groups: Groups,
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
    time_limit: float | None = None,
) -> ExactFront:
    r"""Find every nondominated sum of objectives over components, with proof.

    Parameters
    ----------
    groups : mapping of str to table or Component
        As for `optimize.choose`.
    minimize, maximize : str or sequence of str
        Objectives, at least two in all: sums over the chosen options.
    subject_to : mapping, optional
        Budgets ``{metric: (low, high)}`` on sums over the chosen options, inclusive.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    ExactFront
        One design per nondominated vector of objectives.

    Raises
    ------
    ValueError
        For fewer than two objectives, and as `optimize.choose`.

    Notes
    -----
    Components are joined, those that share fields first, and of the partial sums with equal open fields the
    nondominated ones go on (dynamic programming [1]_, bucket elimination [2]_); a budget counts as one more
    objective as long as it may bind. Sums are told apart by 13 digits of their own, so that 1e-9 counts
    beside 1e-1. Where a join looks at more than 2,000,000 pairs, the closest are left out.

    References
    ----------
    .. [1] G. L. Nemhauser and Z. Ullmann, "Discrete dynamic programming and capital allocation",
       Management Science 15(9), 1969.
    .. [2] R. Dechter, "Bucket elimination: a unifying framework for reasoning", Artificial Intelligence
       113, 1999.

    Examples
    --------
    >>> links = {"latency": [40, 24, 16], "cost": [2, 4, 8]}
    >>> memory = {"latency": [90, 50, 30], "cost": [5, 10, 20]}
    >>> front = exact_front({"link": links, "memory": memory}, minimize=["latency", "cost"])
    >>> front.values.tolist()
    [[46.0, 28.0], [54.0, 24.0], [66.0, 18.0], [74.0, 14.0], [90.0, 12.0], [114.0, 9.0], [130.0, 7.0]]
    >>> front.status, front.chosen[0]
    ('optimal', {'link': 2, 'memory': 2})
    """
    start = time.perf_counter()
    down, up = checks.objectives(minimize, maximize)
    objectives, count = down + up, len(down) + len(up)
    if count < 2:
        raise ValueError(f"exact_front needs at least two objectives, got {list(objectives)}; see choose")
    signs = np.array([1.0] * len(down) + [-1.0] * len(up))
    goals = [(name, sign, inf) for name, sign in zip(objectives, signs.tolist(), strict=True)]
    program = Program(groups, [*goals, *budgets_of(subject_to)])
    cells, exact, states, message = np.zeros((0, len(groups)), dtype=np.int64), True, 0, program.message
    if not message:
        cells, exact, states = joined(program, start + linear.seconds_of(time_limit))
        message = OVER_BUDGET if exact else "no choice was found; that there is none is not proven"
    costs = program.totals(cells)
    within = np.flatnonzero((costs <= program.bounds).all(axis=1))
    cells, costs = cells[within], costs[within, :count]
    kept = pareto(cells[:, :0], costs, count)
    kept = kept[np.lexsort(costs[kept].T[::-1])]
    cells, costs = cells[kept], costs[kept]
    known = costs
    if not exact:
        least = np.array([values[:, :count].min(axis=0) for values in program.values])
        known = np.array([[fsum(column) for column in least.T]])
    found = "optimal" if exact else "feasible"
    return ExactFront(
        status=found if len(cells) else "infeasible" if exact else "time limit",
        objectives=objectives,
        chosen=tuple(map(program.choice, cells)),
        values=costs * signs + 0.0,
        bound=tuple((signs * known.min(axis=0) + 0.0).tolist()) if len(cells) else (),
        gap=0.0 if exact and len(cells) else None,
        states=states,
        seconds=time.perf_counter() - start,
        solver=SUMS,
        message="" if len(cells) else message,
    )


class _Part(NamedTuple):
    """Partial choices: the rows of open fields, the sums, and the cells of the components in it, else -1."""

    fields: tuple[str, ...]
    keys: IntArray
    sums: FloatArray
    cells: IntArray

    def take(self, rows: IntArray) -> _Part:
        return _Part(self.fields, self.keys[rows], self.sums[rows], self.cells[rows])

    def thinner(self) -> _Part:
        """Return about half of the rows, spread over the first sum, with the least of every sum."""
        order = np.argsort(self.sums[:, 0], kind="stable")
        few = len(order) <= 2 * self.sums.shape[1]
        return self.take(order[:1] if few else np.union1d(order[::2], self.sums.argmin(axis=0)))


def joined(
    program: Program, deadline: float = inf, most: int = MOST, *, thin: bool = True
) -> tuple[IntArray, bool, int]:
    """Return the cells of all that goes on to the end, whether that is all there is, and the most kept.

    ``thin``: whether some go on where there are too many; else none.
    """
    parts, exact, states = [], True, 0
    for k, cells in enumerate(program.cells):
        columns = np.full((len(cells), len(program.cells)), -1, dtype=np.int64)
        columns[:, k] = cells
        parts.append(_Part(program.shared[k], program.keys(k, cells), program.values[k][cells], columns))
    while len(parts) > 1:
        every = [field for part in parts for field in part.fields]
        field = min(every, key=every.count, default=None)
        two = sorted((p for p in parts if field is None or field in p.fields), key=lambda p: len(p.sums))[:2]
        parts = [part for part in parts if not any(part is one for one in two)]
        one, other = two
        while len(one.sums) * len(other.sums) > (most if time.perf_counter() < deadline else HASTE):
            exact = False
            if not thin:
                return one.cells[:0], exact, states
            one, other = (one.thinner(), other) if len(one.sums) > len(other.sums) else (one, other.thinner())
        parts.append(_best(program, parts, one, other))
        states = max(states, len(parts[-1].sums))
        if not states:
            return parts[-1].cells, exact, states
    return parts[0].cells, exact, max(states, len(parts[0].cells))


def _best(program: Program, rest: list[_Part], one: _Part, other: _Part) -> _Part:
    """Return the sums of two parts that no other beats; a budget is a goal as long as it may bind."""
    left, right = (x.ravel() for x in np.indices((len(one.sums), len(other.sums))))
    for field in set(one.fields) & set(other.fields):
        same = one.keys[left, one.fields.index(field)] == other.keys[right, other.fields.index(field)]
        left, right = left[same], right[same]
    sums = one.sums[left] + other.sums[right]
    least, most, size = (
        sum((how(part.sums, axis=0) for part in rest), np.zeros(sums.shape[1]))
        for how in (np.min, np.max, lambda x, axis: np.abs(x).max(axis=axis))
    )
    slack = ROUNDING * (size + np.abs(sums).max(axis=0, initial=0.0))
    rows = np.flatnonzero((sums + least <= program.bounds + slack).all(axis=1))
    left, right, sums = left[rows], right[rows], sums[rows]
    columns = {field: one.keys[left, k] for k, field in enumerate(one.fields)}
    columns |= {field: other.keys[right, k] for k, field in enumerate(other.fields)}
    fields = tuple(field for field in columns if any(field in part.fields for part in rest))
    keys = np.array([columns[field] for field in fields], dtype=np.int64).reshape(len(fields), len(rows)).T
    goals = np.where(program.bounds < inf, np.maximum(sums, program.bounds - most), sums)
    cells = np.maximum(one.cells[left], other.cells[right])
    return _Part(fields, keys, sums, cells).take(pareto(keys, goals, program.objectives))


FEW = 100_000  # pairs of partial choices in a join up to which all are looked at, and no solver is asked
TRIES = 50
"""Choices that exceed a budget by less than the solver's tolerance that are cut off one after another."""


@dataclass(frozen=True, kw_only=True)
class Choice(ProgramOutcome):
    """The outcome of `choose`; "optimal" is proven up to the resolution."""

    #: The row of the chosen option of every group, for components that of every field; empty without a
    #: solution
    chosen: dict[str, int]
    objective: float | None  #: Sum of the objective over the chosen options
    bound: float | None  #: No choice is better than this
    #: Correctly rounded sums over the chosen options: the objective and every metric with a budget
    totals: dict[str, float]
    #: By how much a choice may be better that HiGHS does not tell apart: 0 of whole numbers, else 1e-6 of the
    #: objective's largest range within a group. 0 if it was not asked. [unit of the objective]
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
    deadline = start + linear.seconds_of(time_limit)
    objective, sign = (minimize, 1.0) if minimize is not None else (str(maximize), -1.0)
    program = Program(groups, [(objective, sign, inf), *budgets_of(subject_to)])
    status, cells, bound, message, resolution, solver = "infeasible", None, -inf, program.message, 0.0, SUMS
    if not message:
        few, exact, _ = joined(program, most=FEW, thin=False)
        if exact:
            costs = program.totals(few)
            within = np.flatnonzero((costs <= program.bounds).all(axis=1))
            if within.size:
                status, cells = "optimal", few[within[costs[within, 0].argmin()]].tolist()
            message = "" if within.size else OVER_BUDGET
        else:
            status, cells, bound, message, resolution = _solved(program, deadline)
            solver = linear.solver_name()
    value, totals, chosen = None, dict[str, float](), dict[str, int]()
    if cells is not None:
        sums = program.totals(cells)[0].tolist()
        value, chosen = sums[0], program.choice(cells)
        signed = zip(program.rows, sums, strict=True)
        totals = {metric: side * total + 0.0 for (metric, side, _), total in signed}
    if status == "optimal" and value is not None:
        bound = value - resolution
    known = min(bound, inf if value is None else value) if -inf < bound < inf else None
    return Choice(
        status=status,
        chosen=chosen,
        objective=None if value is None else sign * value + 0.0,
        bound=None if known is None else sign * known + 0.0,
        gap=linear.gap_of(value, known),
        totals=totals,
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
