"""Placing parts that talk to each other onto nodes: quadratic assignment with link capacities."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.programs.grid import RESOLUTION, grid_step
from optimize.programs.linear import Model, solver_name
from optimize.programs.milp import seconds_of
from optimize.programs.outcome import ProgramOutcome, gap_of
from optimize.programs.quadratic import (
    Enumeration,
    Problem,
    excluded,
    greedy,
    interchangeable,
    symmetries,
    traffic_bound,
)
from optimize.search.pareto import FloatArray, IntArray

METHODS = ("branch_and_bound", "milp", "greedy")


@dataclass(frozen=True, kw_only=True, eq=False)
class Placement(ProgramOutcome):
    """The outcome of `place`.

    Parameters
    ----------
    status, gap, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`.
    nodes : tuple of int
        The node of every part; empty without a placement. Also the greedy method may find none.
    cost : float or None
        Traffic times distance plus node costs, correctly rounded. Those that differ by less than 1e-6 of the
        largest single one are not told apart by the integer program, where they lie on no grid.
    bound : float or None
        No placement costs less than this; None if nothing was proven. Branch and bound sums without
        rounding; the bound of the integer program is that of the solver, less 1e-6 of the largest cost.
    link_loads : ndarray
        Traffic on every link; empty without routes or a placement.
    method : str
        How it was found.
    """

    nodes: tuple[int, ...]
    cost: float | None
    bound: float | None
    link_loads: FloatArray
    method: str


def place(
    flows: npt.ArrayLike,
    distances: npt.ArrayLike,
    *,
    node_costs: npt.ArrayLike | None = None,
    routes: Sequence[Sequence[Sequence[int]]] | None = None,
    capacity: npt.ArrayLike | None = None,
    method: str = "branch_and_bound",
    time_limit: float | None = None,
) -> Placement:
    r"""Place every part on a node of its own so that traffic times distance is least.

    Parameters
    ----------
    flows : array_like of shape (parts, parts)
        Traffic from part to part, >= 0. [bytes / cycle, or any unit]
    distances : array_like of shape (nodes, nodes)
        Cost of a unit of traffic from node to node, >= 0: hops, cycles, energy.
    node_costs : array_like of shape (parts, nodes), optional
        Cost of a part at a node; infinite forbids it, so a part is pinned by one finite entry.
    routes : nested sequence, optional
        ``routes[a][b]`` are the numbers of the links from node a to node b.
    capacity : array_like of shape (links,), optional
        Most traffic on every link; needs `routes`. [as the flows]
    method : {"branch_and_bound", "milp", "greedy"}
        All placements up to symmetry, cut off early by a bound; an integer program; or
        construction with the best moves and exchanges, which proves nothing.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Placement
        Status, nodes, bound and gap. Where the time is over, the better of what the method and
        the greedy one found.

    Raises
    ------
    ValueError
        If a shape does not fit, there are more parts than nodes, a number is negative or
        NaN, or a route names a link without capacity.

    Notes
    -----
    Binary :math:`x_{ip}` (part i at node p) and, for pairs with traffic, continuous
    :math:`y_{ipjq} \ge 0` with the strong linearisation of Adams and Johnson [1]_

    .. math:: \sum_q y_{ipjq} = x_{ip}, \quad \sum_p y_{ipjq} = x_{jq},

    whose relaxation is much tighter than that of :math:`y \ge x_{ip} + x_{jq} - 1`. Loads of
    links are linear in y. Maps of the nodes that change neither distances nor costs nor routes
    are found, and only the lexicographically least placement of those that they (and the
    exchange of equal parts) turn into each other is looked for.

    Branch and bound takes for a partial placement its own cost, the cheapest free node for every
    other part beside those placed, and the largest remaining flows times the smallest
    distances, and drops it if a link is overloaded already. It proves eight parts on sixteen
    nodes in about a second. The program needs some ten seconds for that where four parts talk
    to four, and about a minute where all talk to all. Neither proves much more than twelve
    parts of which all talk to all; the bound and the gap then say what is known.

    References
    ----------
    .. [1] W. P. Adams, T. A. Johnson, "Improved linear programming-based lower bounds for
       the quadratic assignment problem", DIMACS Series 16, 1994.

    Examples
    --------
    Two processors and one memory on a line of four nodes; the second is busier:

    >>> flows = [[0, 0, 1], [0, 0, 4], [0, 0, 0]]
    >>> line = [[abs(a - b) for b in range(4)] for a in range(4)]
    >>> placement = place(flows, line)
    >>> placement.status, placement.cost, placement.nodes
    ('optimal', 5.0, (2, 0, 1))
    """
    start, resolution = time.perf_counter(), 0.0
    checks.choice("method", method, METHODS)
    deadline = start + seconds_of(time_limit)
    problem = _problem(flows, distances, node_costs, routes, capacity)
    best = greedy(problem, deadline)
    bound, finished = -inf, False
    if method != "greedy":
        maps, pairs = symmetries(problem), interchangeable(problem)
        if method == "branch_and_bound":
            search = Enumeration(problem, maps, pairs)
            finished = search.run(best, deadline)
            best, bound = search.best, search.bound
        else:
            found, bound, finished = _milp(problem, maps, pairs, deadline)
            resolution = _resolution(problem)
            if found is not None and (best is None or _cost(problem, found) < _cost(problem, best)):
                best = found
    cost = None if best is None else _cost(problem, best)
    if finished:
        status, bound = "infeasible", -inf
        if cost is not None:
            status, bound = "resolved" if resolution else "optimal", cost - resolution
    else:
        status = "time limit" if cost is None else "feasible"
        if method != "greedy":
            least = traffic_bound(problem, problem.order) + problem.node_costs.min(axis=1).sum()
            least -= problem.rounding
            bound = max(bound, least) if cost is None else min(max(bound, least), cost)
    known = bound if bound > -inf else None
    return Placement(
        status=status,
        nodes=() if best is None else tuple(best.tolist()),
        cost=cost,
        bound=known,
        gap=gap_of(cost, known),
        link_loads=np.zeros(0) if best is None else problem.loads(best[None])[0],
        method=method,
        solver=solver_name() if method == "milp" else f"optimize, {method}",
        seconds=time.perf_counter() - start,
    )


def _cost(problem: Problem, places: IntArray) -> float:
    return float(problem.exact_cost(places))


def _milp(
    problem: Problem, maps: IntArray, pairs: list[tuple[int, int]], deadline: float
) -> tuple[IntArray | None, float, bool]:
    """Return the placement, the proven bound, and whether it is proven optimal or infeasible."""
    parts, nodes, order = problem.parts, range(problem.nodes), problem.order
    scale = _scale(problem)
    linear = problem.node_costs + np.outer(problem.flows.diagonal(), problem.distances.diagonal())
    first, both = excluded(problem, maps)
    allowed = np.isfinite(linear)
    allowed[order[0], first] = False
    model = Model()
    x = [{p: model.binary(linear[i, p] / scale) for p in nodes if allowed[i, p]} for i in range(parts)]
    for i in range(parts):
        model.equal(dict.fromkeys(x[i].values(), 1.0), 1.0)
    for p in nodes:
        model.at_most({x[i][p]: 1.0 for i in range(parts) if p in x[i]}, 1.0)
    for i, j in pairs:  # equal parts in the order of their nodes
        model.at_most({**{x[i][p]: float(p) for p in x[i]}, **{x[j][p]: -float(p) for p in x[j]}}, -1.0)
    _add_pairs(model, problem, x, both, scale)
    while True:
        left = None if deadline == inf else max(deadline - time.perf_counter(), 0.0)
        outcome = model.solve(left)
        bound = (outcome.bound - RESOLUTION) * scale if np.isfinite(outcome.bound) else -inf
        if not outcome.values:
            return None, bound, outcome.status == "infeasible"
        found = [max(one, key=lambda p: outcome.values[one[p]]) for one in x]
        if problem.excess(np.array([found]))[0] == 0:
            return np.array(found), bound, outcome.status == "optimal"
        # Overloaded within the tolerance of the solver: cut off.
        model.at_most({x[i][p]: 1.0 for i, p in enumerate(found)}, parts - 1.0)


def _add_pairs(
    model: Model, problem: Problem, x: list[dict[int, int]], both: npt.NDArray[np.bool_], scale: float
) -> None:
    """Add the products of `x` for parts with traffic, their costs, and the loads of the links."""
    order = problem.order
    loads: list[dict[int, float]] = [{} for _ in problem.capacity]
    for i, j in itertools.combinations(order, 2):
        there, back = problem.flows[i, j], problem.flows[j, i]
        if not there and not back:
            continue
        forbidden = both if [i, j] == order[:2] else np.zeros_like(both)
        cost = there * problem.distances + back * problem.distances.T
        y = {
            (p, q): model.continuous(0.0, 1.0, cost[p, q] / scale)
            for p in x[i]
            for q in x[j]
            if p != q and not forbidden[p, q]
        }
        for p in x[i]:
            model.equal({**{y[p, q]: 1.0 for q in x[j] if (p, q) in y}, x[i][p]: -1.0}, 0.0)
        for q in x[j]:
            model.equal({**{y[p, q]: 1.0 for p in x[i] if (p, q) in y}, x[j][q]: -1.0}, 0.0)
        if loads:
            use = there * problem.routes + back * problem.routes.transpose(1, 0, 2)
            for (p, q), number in y.items():
                for link in np.flatnonzero(use[p, q]):
                    loads[link][number] = float(use[p, q, link])
    for load, room in zip(loads, problem.capacity.tolist(), strict=True):
        size = max(load.values(), default=1.0)
        if room < inf and load:
            model.at_most({number: value / size for number, value in load.items()}, room / size)


def _resolution(problem: Problem) -> float:
    """Return by how much a cost may be lower that the program does not tell apart; 0 if none."""
    costs = np.append(np.outer(problem.flows, problem.distances), np.abs(problem.node_costs))
    costs = np.unique(costs[np.isfinite(costs)])
    scale = float(costs[-1]) or 1.0
    return RESOLUTION * scale if grid_step(costs / scale, costs / scale) is None else 0.0


def _scale(problem: Problem) -> float:
    """Return the size of the costs in the program."""
    finite = np.abs(problem.node_costs[np.isfinite(problem.node_costs)])
    return max(float(problem.flows.max() * problem.distances.max()), float(finite.max(initial=0.0))) or 1.0


def _problem(
    flows: npt.ArrayLike,
    distances: npt.ArrayLike,
    node_costs: npt.ArrayLike | None,
    routes: Sequence[Sequence[Sequence[int]]] | None,
    capacity: npt.ArrayLike | None,
) -> Problem:
    traffic, hops = (_square(name, value) for name, value in (("flows", flows), ("distances", distances)))
    parts, nodes = len(traffic), len(hops)
    if parts > nodes:
        raise ValueError(f"there must be a node for every part, got {parts} parts and {nodes} nodes")
    costs = np.zeros((parts, nodes)) if node_costs is None else np.asarray(node_costs, dtype=float)
    if costs.shape != (parts, nodes) or not (costs > -inf).all():
        raise ValueError(
            f"node_costs must be numbers of shape ({parts}, {nodes}), not NaN or -inf,"
            f" got shape {costs.shape}"
        )
    for part in range(parts):
        if not np.isfinite(costs[part]).any():
            raise ValueError(f"node_costs must allow a node for every part, got none for part {part}")
    if (routes is None) != (capacity is None):
        raise ValueError("give both of routes and capacity, or neither")
    room = np.zeros(0) if capacity is None else np.asarray(capacity, dtype=float)
    if room.ndim != 1 or not (room >= 0).all():
        raise ValueError(f"capacity must be one number >= 0 per link, got {capacity!r}")
    table = np.zeros((nodes, nodes, len(room)))
    if routes is not None:
        if len(routes) != nodes or any(len(row) != nodes for row in routes):
            raise ValueError(f"routes must have {nodes} rows of {nodes} routes")
        for a, row in enumerate(routes):
            for b, route in enumerate(row):
                for link in route:
                    if not 0 <= link < len(room):
                        raise ValueError(f"routes[{a}][{b}] must name links 0 to {len(room) - 1}, got {link}")
                    table[a, b, link] += 1.0
    return Problem(flows=traffic, distances=hops, node_costs=costs, routes=table, capacity=room)


def _square(name: str, value: npt.ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=float)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"{name} must be a square table, got an array of shape {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and >= 0, got {array.min()} to {array.max()}")
    return array
