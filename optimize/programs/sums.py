"""Designs whose metrics are sums over independent parts: the exact front by dynamic programming."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from optimize import checks
from optimize.programs.components import Groups
from optimize.programs.milp import budgets_of
from optimize.programs.program import Program
from optimize.search.pareto import FloatArray, IntArray, nondominated


@dataclass(frozen=True, kw_only=True, eq=False)
class SumFront:
    """The front of all combinations of one option per group.

    Parameters
    ----------
    objectives : tuple of str
        The minimised ones first.
    values : ndarray of shape (points, objectives)
        The correctly rounded sums of the distinct points of the front, in ascending order of the first
        objective's cost.
    chosen : dict of str to ndarray of int
        The option of every group, one entry per point: one of the combinations that reach it.
    combinations : ndarray of float
        How many combinations reach each point: those whose sums are equal before rounding. Of those that
        differ in limited metrics, only the ones that no other beats in these count.
    states : int
        Most partial sums kept at a time.
    """

    objectives: tuple[str, ...]
    values: FloatArray
    chosen: dict[str, IntArray]
    combinations: FloatArray
    states: int

    def __len__(self) -> int:
        return len(self.values)


def sum_front(
    groups: Groups,
    *,
    minimize: str | Iterable[str] = (),
    maximize: str | Iterable[str] = (),
    subject_to: Mapping[str, checks.Range] | None = None,
) -> SumFront:
    r"""Find the exact front of metrics that are sums over groups, by dynamic programming.

    Parameters
    ----------
    groups : mapping of str to table
        ``{group: {metric: values}}`` with one value per option, as for `optimize.choose`.
    minimize, maximize : str or sequence of str
        The objectives: their sums over the chosen options.
    subject_to : mapping, optional
        Ranges of sums ``{metric: (low, high)}``, inclusive.

    Returns
    -------
    SumFront
        All distinct nondominated sums. Options that are infinitely bad are never chosen; without
        a combination in the ranges the front is empty.

    Raises
    ------
    ValueError
        If there is no objective or no group, or a column is missing, NaN, infinitely good or of
        another length.

    Notes
    -----
    Groups are added one after the other:
    :math:`F_{k} = \min \{ f + a : f \in F_{k-1}, a \in A_k \}`, where :math:`\min` keeps the
    nondominated vectors. That is exact, as what dominates a partial sum also dominates it with
    the same options added [1]_. A limited metric counts as one more objective on the way. The
    work grows with the size of the partial fronts: for integer values at most with the range of
    the sums, for arbitrary numbers in many objectives possibly with the number of combinations. It is
    `optimize.exact_front` without its limits of time and size, for groups that share no field.

    References
    ----------
    .. [1] G. L. Nemhauser and Z. Ullmann, "Discrete dynamic programming and capital allocation",
       Management Science 15(9), 1969.

    Examples
    --------
    >>> links = {"latency": [40, 24, 16], "cost": [2, 4, 8]}
    >>> memory = {"latency": [90, 50, 30], "cost": [5, 10, 20]}
    >>> front = sum_front({"link": links, "memory": memory}, minimize=["latency", "cost"])
    >>> front.values.tolist()
    [[46.0, 28.0], [54.0, 24.0], [66.0, 18.0], [74.0, 14.0], [90.0, 12.0], [114.0, 9.0], [130.0, 7.0]]
    >>> front.chosen["link"]
    array([2, 1, 2, 1, 0, 1, 0])
    """
    minimize, maximize = checks.objectives(minimize, maximize)
    objectives = minimize + maximize
    if not objectives:
        raise ValueError("sum_front needs at least one objective in minimize or maximize")
    signs = [1.0] * len(minimize) + [-1.0] * len(maximize)
    program = Program(groups, list(zip(objectives, signs, strict=True)), budgets_of(subject_to))
    if any(count > 1 for count in program.tables.owners.values()):
        raise ValueError("groups must share no field, as their sums are independent; see exact_front")
    reached = None if program.message else program.enumerate()
    if reached is None or not len(reached.cells):
        empty = {name: np.zeros(0, dtype=np.int64) for name in groups}
        none = np.zeros((0, len(signs)))
        return SumFront(objectives=objectives, values=none, chosen=empty, combinations=none[:, 0], states=0)
    costs = program.costs(reached.cells)
    kept = np.flatnonzero(nondominated(costs))  # before rounding all are on the front
    values, first, place = np.unique(costs[kept], axis=0, return_index=True, return_inverse=True)
    return SumFront(
        objectives=objectives,
        values=values * signs + 0.0,
        chosen=dict(zip(groups, reached.cells[kept[first]].T, strict=True)),
        combinations=np.bincount(place.reshape(-1), weights=reached.counts[kept]).astype(float),
        states=reached.states,
    )
