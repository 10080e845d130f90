"""Placing parts that talk to each other onto nodes: quadratic assignment by branch and bound."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import fsum, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.programs.linear import ProgramOutcome, gap_of, seconds_of
from optimize.search.pareto import BoolArray, FloatArray, IntArray

STARTS = 4
BLOCK = 65536  # partial placements extended at once: bounds the memory
SYMMETRIES = 512
ROUNDING = 1e-12  # by which costs must differ, relative to the largest, to be different


@dataclass(frozen=True, kw_only=True, eq=False)
class Placement(ProgramOutcome):
    """The outcome of `place`."""

    nodes: tuple[int, ...]  #: The node of every part; empty without a placement
    cost: float | None  #: Traffic times distance plus node costs
    bound: float | None  #: No placement costs less than this


def place(
    flows: npt.ArrayLike,
    distances: npt.ArrayLike,
    *,
    node_costs: npt.ArrayLike | None = None,
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
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Placement
        Status, nodes, bound and gap. Where the time is over, the best found so far.

    Raises
    ------
    ValueError
        If a shape does not fit, there are more parts than nodes, or a number is negative or NaN.

    Notes
    -----
    The search begins at constructed placements that no move or exchange improves.
    A partial placement is bounded by its own cost, the cheapest free node for every other part beside those
    placed, and the largest remaining flows times the smallest distances. Of placements that symmetries of
    the nodes or exchanges of equal parts turn into each other one is looked at. HiGHS takes longer for the
    integer program of Adams and Johnson: 6 and 96 s for the two eight parts on sixteen nodes of
    ``tests/benchmarks``. Much beyond ten parts the gap says what is known.

    Examples
    --------
    Two processors and one memory on a line of four nodes; the second is busier:

    >>> flows = [[0, 0, 1], [0, 0, 4], [0, 0, 0]]
    >>> line = [[abs(a - b) for b in range(4)] for a in range(4)]
    >>> placement = place(flows, line)
    >>> placement.status, placement.cost, placement.nodes
    ('optimal', 5.0, (1, 3, 2))
    """
    start = time.perf_counter()
    deadline = start + seconds_of(time_limit)
    problem = _Problem(flows, distances, node_costs)
    best, bound, finished = problem.proven(problem.greedy(deadline), deadline)
    cost = None if best is None else problem.cost(best)
    if cost is None:
        status, known = ("infeasible", None) if finished else ("time limit", bound)
    else:
        status, known = ("optimal", cost) if finished else ("feasible", min(bound, cost))
    return Placement(
        status=status,
        nodes=() if best is None else tuple(best.tolist()),
        cost=cost,
        bound=known,
        gap=gap_of(cost, known),
        solver="optimize, branch and bound",
        seconds=time.perf_counter() - start,
    )


class _Problem:
    """Checked flows between parts and distances between nodes."""

    def __init__(self, flows: Any, distances: Any, node_costs: Any) -> None:
        self.flows, self.distances = _square("flows", flows), _square("distances", distances)
        self.parts, self.nodes = parts, nodes = len(self.flows), len(self.distances)
        if parts > nodes:
            raise ValueError(f"there must be a node for every part, got {parts} parts and {nodes} nodes")
        costs = np.zeros((parts, nodes)) if node_costs is None else np.array(node_costs, dtype=float)
        if costs.shape != (parts, nodes) or not (costs > -inf).all():
            raise ValueError(
                f"node_costs must be numbers of shape ({parts}, {nodes}), not NaN or -inf,"
                f" got shape {costs.shape}"
            )
        barred = np.flatnonzero(np.isinf(costs).all(axis=1))
        if barred.size:
            raise ValueError(f"node_costs must allow a node for every part, got none for part {barred[0]}")
        self.node_costs = costs + self.flows.diagonal()[:, None] * self.distances.diagonal()
        self.order = np.argsort(-self.flows.sum(axis=0) - self.flows.sum(axis=1), kind="stable").tolist()
        finite = np.abs(costs[np.isfinite(costs)]).max()
        self.slack = ROUNDING * (parts * finite + self.flows.sum() * self.distances.max())

    def cost(self, places: IntArray) -> float:
        """Return the correctly rounded cost of one placement."""
        pairs = np.argwhere(self.flows * (1 - np.eye(self.parts))).tolist()
        own = self.node_costs[np.arange(self.parts), places].tolist()
        return fsum(own + [self.flows[i, j] * self.distances[places[i], places[j]] for i, j in pairs])

    def beside(self, part: int, nodes: IntArray) -> FloatArray:
        """Return the cost of a part at every node beside the first ones, placed; infinite where occupied."""
        cost = np.tile(self.node_costs[part], (len(nodes), 1))
        for other, at in zip(self.order, nodes.T, strict=False):
            if self.flows[part, other]:
                cost += self.flows[part, other] * self.distances.T[at]
            if self.flows[other, part]:
                cost += self.flows[other, part] * self.distances[at]
            cost[np.arange(len(nodes)), at] = inf
        return cost

    def greedy(self, deadline: float) -> IntArray | None:
        """Return the best placement that no exchange at two nodes improves, from several starts."""
        found: list[tuple[float, list[int]]] = []
        for first in np.unique(np.linspace(0, self.nodes - 1, STARTS).astype(int)).tolist():
            nodes = [first]
            for part in self.order[1:]:
                cost = self.beside(part, np.array([nodes]))[0]
                free = [k for k in range(self.nodes) if k not in nodes]
                nodes.append(free[int(cost[free].argmin())])
            # All nodes in a row, those of the parts first: a move is an exchange with a free one.
            row = np.array(nodes)[np.argsort(self.order)].tolist()
            row += [node for node in range(self.nodes) if node not in nodes]
            rank = self._rank(row)
            while time.perf_counter() < deadline:
                swaps = [(i, j) for i in range(self.parts) for j in range(i + 1, self.nodes)]
                others = [[*row[:i], row[j], *row[i + 1 : j], row[i], *row[j + 1 :]] for i, j in swaps]
                ranks = [self._rank(other) for other in others]
                k = min(range(len(others)), key=ranks.__getitem__, default=None)
                if k is None or not ranks[k] < (rank[0], rank[1] - self.slack):
                    break
                row, rank = others[k], ranks[k]
            if rank[0] == 0:
                found.append((rank[1], row))
        return np.array(min(found)[1][: self.parts]) if found else None

    def _rank(self, row: list[int]) -> tuple[int, float]:
        """Return the number of parts at forbidden nodes, and the cost of the others."""
        places, parts = np.array(row[: self.parts]), np.arange(self.parts)
        own = self.node_costs[parts, places]
        traffic = self.flows * self.distances[np.ix_(places, places)] * (1 - np.eye(self.parts))
        return int(np.isinf(own).sum()), float(traffic.sum() + own[own < inf].sum())

    def _redundant(self) -> tuple[BoolArray, BoolArray]:
        """Return which nodes of the first part, and of the first two, a symmetry makes smaller."""
        nodes, maps = np.arange(self.nodes), [np.arange(self.nodes)]
        costs, own = self.node_costs.T, self.distances.diagonal()
        for root in np.flatnonzero((own == own[0]) & (costs == costs[0]).all(axis=1)).tolist():
            stack, quota, steps = [[root]], max(SYMMETRIES // self.nodes, 2), 200 * self.nodes
            while stack and quota and steps:
                images, steps = stack.pop(), steps - 1
                if len(images) == self.nodes:
                    maps.append(np.array(images))
                    quota -= 1
                    continue
                k = len(images)
                same = (self.distances[:, images] == self.distances[k, :k]).all(axis=1) & (own == own[k])
                same &= (self.distances[images].T == self.distances[:k, k]).all(axis=1)
                same &= (costs == costs[k]).all(axis=1)
                same[images] = False
                stack += [[*images, int(node)] for node in np.flatnonzero(same)[::-1]]
        every = np.array(maps)
        both = np.array([((every < nodes) & (every[:, [node]] == node)).any(axis=0) for node in nodes])
        return np.asarray((every < nodes).any(axis=0)), both

    def _earlier(self, k: int) -> list[int]:
        """Return the positions of parts before the k-th one that can be exchanged with it."""
        found, j = [], self.order[k]
        for a, i in enumerate(self.order[:k]):
            swap = np.arange(self.parts)
            swap[[i, j]] = j, i
            same = (self.flows[np.ix_(swap, swap)] == self.flows).all()
            if same and (self.node_costs[i] == self.node_costs[j]).all():
                found.append(a)
        return found

    def proven(self, best: IntArray | None, deadline: float) -> tuple[IntArray | None, float, bool]:
        """Return the best placement, a bound, and whether all were searched: depth first, by blocks."""
        limit = inf if best is None else self.cost(best) - self.slack
        first, both = self._redundant()
        earlier = [self._earlier(k) for k in range(self.parts)]
        rest = [self._traffic(self.order[k:]) for k in range(self.parts + 1)]
        blocks = [
            (np.zeros((1, 0), dtype=np.int64), np.zeros(1), rest[0] + self.node_costs.min(axis=1).sum()[None])
        ]
        while blocks:
            if time.perf_counter() > deadline:
                return best, min(float(bounds.min()) for _, _, bounds in blocks) - self.slack, False
            nodes, costs, bounds = blocks.pop()
            nodes, costs = nodes[bounds < limit], costs[bounds < limit]
            if not len(nodes):
                continue
            k = nodes.shape[1]
            cost = costs[:, None] + self.beside(self.order[k], nodes)
            if k < 2:
                cost[first[None] if k == 0 else both[nodes[:, 0]]] = inf
            for a in earlier[k]:
                cost[np.arange(self.nodes) < nodes[:, [a]]] = inf
            rows, new = np.nonzero(cost + rest[k + 1] < limit)
            for start in range(0, len(rows), BLOCK):
                row, node = rows[start : start + BLOCK], new[start : start + BLOCK]
                nodes_, costs_ = np.column_stack([nodes[row], node]), cost[row, node]
                bounds = costs_ + rest[k + 1]
                for other in self.order[k + 1 :]:
                    bounds = bounds + self.beside(other, nodes_).min(axis=1)
                good = bounds < limit
                if good.any() and k + 1 < self.parts:
                    blocks.append((nodes_[good], costs_[good], bounds[good]))
                elif good.any():
                    best = nodes_[good][costs_[good].argmin()][np.argsort(self.order)]
                    limit = self.cost(best) - self.slack
        return best, limit, True

    def _traffic(self, parts: list[int]) -> float:
        """Return a bound of the traffic among some parts: the largest flows times the least distances."""
        flows = self.flows[np.ix_(parts, parts)][~np.eye(len(parts), dtype=bool)]
        distances = self.distances[~np.eye(self.nodes, dtype=bool)]
        return float(np.sort(flows)[::-1] @ np.sort(distances)[: len(flows)])


def _square(name: str, value: Any) -> FloatArray:
    array = np.array(value, dtype=float)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not array.size:
        raise ValueError(f"{name} must be a square table, got an array of shape {array.shape}")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{name} must be finite and >= 0, got {array.min()} to {array.max()}")
    return array
