"""Designs whose metrics are sums over independent parts: the exact front by dynamic programming."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from optimize import checks
from optimize.programs.components import Groups, Tables
from optimize.programs.program import Row
from optimize.search.pareto import FloatArray, IntArray, nondominated

GRID = 1 << 22
"""Range of whole numbers up to which the sums of two objectives are kept in an array by the first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SumFront:
    """The front of all combinations of one option per group.

    Parameters
    ----------
    objectives : tuple of str
        The minimised ones first.
    values : ndarray of shape (points, objectives)
        The sums of the distinct points of the front, in ascending order of the first objective's
        cost.
    chosen : dict of str to ndarray of int
        The option of every group, one entry per point: one of the combinations that reach it.
    combinations : ndarray of float
        How many combinations reach each point. Of those that reach it with different sums of
        limited metrics, only the ones that no other beats in these count.
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
    the sums, for arbitrary numbers in many objectives possibly with the number of combinations.
    Sums are those of floating-point numbers in the order of the groups: two combinations whose
    exact sums are equal may differ in the last digit, unless the values are integers.

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
    limits: list[tuple[str, int, float]] = []
    for name, (low, high) in checks.ranges("subject_to", subject_to).items():
        limits += [] if low is None else [(name, -1, -low)]
        limits += [] if high is None else [(name, 1, high)]
    signs = [(name, 1) for name in minimize] + [(name, -1) for name in maximize]
    wanted = signs + [(name, sign) for name, sign, _ in limits]
    tables = cost_tables(groups, wanted)
    bound = np.array([math.inf] * len(signs) + [limit for _, _, limit in limits])
    # What the groups still to come add at least: partial sums that cannot meet a limit are dropped.
    least = [costs.min(axis=0) if len(costs) else np.zeros(len(wanted)) for costs, _ in tables.values()]
    rest = np.cumsum([np.zeros(len(wanted)), *least[::-1]], axis=0)[-2::-1]
    sums, combinations = np.zeros((1, len(wanted))), np.ones(1)
    links: list[tuple[IntArray, IntArray]] = []
    states = 1
    for k, ((costs, options), ahead) in enumerate(zip(tables.values(), rest, strict=True), start=1):
        room = bound - ahead
        if k < len(tables):  # rounding of what is still to come drops nothing; the last group decides
            room = room + 4 * len(tables) * np.finfo(float).eps * (np.abs(bound) + np.abs(ahead))
        parents, rows, sums, combinations = _grow(sums, combinations, costs, room)
        links.append((parents, options[rows]))
        states = max(states, len(sums))
    if limits:
        own, counts = _front(sums[:, : len(signs)], combinations)
        sums, combinations = sums[own], counts
        links.append((own, np.zeros(len(own), dtype=np.int64)))
    place = np.arange(len(sums))
    chosen: dict[str, IntArray] = {}
    if limits:
        place = links.pop()[0]
    for name, (parent, option) in zip(reversed(list(tables)), reversed(links), strict=True):
        chosen[name] = option[place]
        place = parent[place]
    return SumFront(
        objectives=objectives,
        values=sums[:, : len(signs)] * np.array([sign for _, sign in signs]),
        chosen={name: chosen[name] for name in tables},
        combinations=combinations,
        states=states,
    )


_Grown = tuple[IntArray, IntArray, FloatArray, FloatArray]


def _grow(sums: FloatArray, combinations: FloatArray, costs: FloatArray, bound: FloatArray) -> _Grown:
    """Add a group: the partial sum and option behind each new sum, the sums, their combinations."""
    if not len(sums) or not len(costs):
        none = np.zeros(0, dtype=np.int64)
        return none, none, sums[:0], combinations[:0]
    span = np.ptp(sums[:, 0]) + np.ptp(costs[:, 0])
    whole = all((np.rint(column) == column).all() for column in (sums[:, 0], costs[:, 0]))
    if sums.shape[1] == 2 and whole and span < GRID:
        return _grow_on_grid(sums, combinations, costs, bound)
    grown = (sums[:, None, :] + costs[None, :, :]).reshape(-1, sums.shape[1])
    rows = np.flatnonzero((grown <= bound).all(axis=1))
    kept, counts = _front(grown[rows], combinations[rows // len(costs)])
    parents, options = np.divmod(rows[kept], len(costs))
    return parents, options, grown[rows[kept]], counts


def _grow_on_grid(sums: FloatArray, combinations: FloatArray, costs: FloatArray, bound: FloatArray) -> _Grown:
    """Do the same for two costs of which the first is whole: the best second one for each first."""
    base = sums[:, 0].min() + costs[:, 0].min()
    size = int(np.ptp(sums[:, 0]) + np.ptp(costs[:, 0])) + 1
    best, counts = np.full(size, math.inf), np.zeros(size)
    parents, options = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for option, (first, second) in enumerate(costs):
        place = (sums[:, 0] + first - base).astype(np.int64)  # distinct, as partial sums are
        value = sums[:, 1] + second
        better, equal = value < best[place], value == best[place]
        counts[place[equal]] += combinations[equal]
        won = place[better]
        best[won], counts[won] = value[better], combinations[better]
        parents[won], options[won] = np.flatnonzero(better), option
    before = np.concatenate([[math.inf], np.minimum.accumulate(best)[:-1]])
    kept = np.flatnonzero((best < before) & (best <= bound[1]) & (base + np.arange(size) <= bound[0]))
    return parents[kept], options[kept], np.stack([base + kept, best[kept]], axis=1), counts[kept]


def _front(costs: FloatArray, combinations: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the rows of the distinct nondominated costs, sorted, and the combinations of each."""
    if not len(costs):
        return np.zeros(0, dtype=np.int64), combinations
    order = np.flatnonzero(nondominated(costs))
    order = order[np.lexsort(costs[order].T[::-1])]
    new = np.concatenate([[True], (costs[order[1:]] != costs[order[:-1]]).any(axis=1)])
    return order[new], np.add.reduceat(combinations[order], np.flatnonzero(new))


def cost_tables(groups: Groups, wanted: list[tuple[str, int]]) -> dict[str, tuple[FloatArray, IntArray]]:
    """Return for every group the costs of its usable options, all minimised, and their rows."""
    tables = Tables(groups)
    rows = [Row(tables, name, sign) for name, sign in wanted]
    if any(count > 1 for count in tables.owners.values()):
        raise ValueError("groups must share no field, as their sums are independent; see exact_front")
    result = {}
    for k, group in enumerate(tables.names):
        costs = np.stack([row.values[k] for row in rows], axis=1)
        usable = np.flatnonzero(np.isfinite(costs).all(axis=1))
        result[group] = costs[usable], usable
    return result
