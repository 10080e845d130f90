"""Placing parts that talk to each other onto nodes: quadratic assignment with link capacities."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from optimize import checks
from optimize.programs.milp import seconds_of
from optimize.programs.outcome import ProgramOutcome, gap_of
from optimize.programs.quadratic import (
    Enumeration,
    Problem,
    greedy,
    interchangeable,
    symmetries,
    traffic_bound,
)
from optimize.search.pareto import FloatArray, IntArray

METHODS = ("branch_and_bound", "greedy")


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
        Traffic times distance plus node costs, correctly rounded.
    bound : float or None
        No placement costs less than this, compared without rounding; None if nothing was proven.
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
    method : {"branch_and_bound", "greedy"}
        All placements up to symmetry, cut off early by a bound; or construction with the best moves
        and exchanges, which proves nothing.
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
    Maps of the nodes that change neither distances nor costs nor routes are found, and only the
    lexicographically least placement of those that they (and the exchange of equal parts) turn into each
    other is looked for.

    Branch and bound takes for a partial placement its own cost, the cheapest free node for every
    other part beside those placed, and the largest remaining flows times the smallest
    distances, and drops it if a link is overloaded already. What sums of floating-point numbers leave open
    is kept, and whole placements are compared without rounding. It proves eight parts on sixteen nodes in
    about a second, and not much more than twelve parts of which all talk to all; the bound and the gap then
    say what is known. An integer program with the linearisation of Adams and Johnson took 4 to 25 times
    as long on chains, stars and pairs of 8 to 12 parts, and tells costs apart to its tolerance only.

    Examples
    --------
    Two processors and one memory on a line of four nodes; the second is busier:

    >>> flows = [[0, 0, 1], [0, 0, 4], [0, 0, 0]]
    >>> line = [[abs(a - b) for b in range(4)] for a in range(4)]
    >>> placement = place(flows, line)
    >>> placement.status, placement.cost, placement.nodes
    ('optimal', 5.0, (2, 0, 1))
    """
    start = time.perf_counter()
    checks.choice("method", method, METHODS)
    deadline = start + seconds_of(time_limit)
    problem = _problem(flows, distances, node_costs, routes, capacity)
    best = greedy(problem, deadline)
    bound, finished = -inf, False
    if method != "greedy":
        maps, pairs = symmetries(problem), interchangeable(problem)
        search = Enumeration(problem, maps, pairs)
        finished = search.run(best, deadline)
        best, bound = search.best, search.bound
    cost = None if best is None else _cost(problem, best)
    if finished:
        status, bound = "infeasible", -inf
        if cost is not None:
            status, bound = "optimal", cost
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
        solver=f"optimize, {method}",
        seconds=time.perf_counter() - start,
    )


def _cost(problem: Problem, places: IntArray) -> float:
    return float(problem.exact_cost(places))


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
