"""The quadratic assignment behind `place`: its data, its symmetries, search by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import frexp, inf

import numpy as np
import numpy.typing as npt

from optimize.programs.whole import whole_row
from optimize.search.pareto import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

BLOCK = 65536
"""Partial placements extended at once by the enumeration: bounds its memory."""

SYMMETRIES = 512
"""Symmetries of the nodes looked for; any subset of all of them may be used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Flows between parts, distances between nodes, links on the routes; see `place`."""

    flows: FloatArray
    distances: FloatArray
    node_costs: FloatArray
    routes: FloatArray
    capacity: FloatArray

    @property
    def parts(self) -> int:
        """Number of parts."""
        return len(self.flows)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.distances)

    @property
    def order(self) -> list[int]:
        """The parts, the one with the most traffic first."""
        traffic = self.flows.sum(axis=0) + self.flows.sum(axis=1)
        return [int(part) for part in np.argsort(-traffic, kind="stable")]

    def costs(self, places: IntArray) -> FloatArray:
        """Return the cost of placements of shape (placements, parts)."""
        total: FloatArray = self.node_costs[np.arange(self.parts), places].sum(axis=1)
        for i, j in np.argwhere(self.flows):
            total = total + self.flows[i, j] * self.distances[places[:, i], places[:, j]]
        return total

    def exact_cost(self, places: IntArray) -> Fraction:
        """Return the cost of one placement without rounding."""
        total = sum(map(Fraction, self.node_costs[np.arange(self.parts), places].tolist()), Fraction(0))
        for i, j in np.argwhere(self.flows):
            total += Fraction(float(self.flows[i, j])) * Fraction(float(self.distances[places[i], places[j]]))
        return total

    @property
    def rounding(self) -> float:
        """By how much a sum of costs may be off: nothing where all are whole multiples of one number."""
        costs = self.node_costs[np.isfinite(self.node_costs)]
        sizes = (np.abs(costs).max(initial=0.0), self.flows.sum() * self.distances.max(initial=0.0))
        largest = 2.0 * (self.parts * float(sizes[0]) + float(sizes[1]))
        unit = sum(whole_row([values.ravel()]).exponent for values in (self.flows, self.distances))
        units = [unit] if self.flows.any() and self.distances.any() else []
        units += [whole_row([costs]).exponent] if costs.any() else []
        if not units or frexp(largest)[1] <= 53 + min(units):
            return 0.0
        return (self.parts + 1) ** 2 * float(np.finfo(float).eps) * largest

    def loads(self, places: IntArray) -> FloatArray:
        """Return the load of every link, of shape (placements, links); parts at node -1 cause none."""
        total = np.zeros((len(places), len(self.capacity)))
        placed = np.asarray((places >= 0).all(axis=0))
        for i, j in np.argwhere(self.flows) if len(self.capacity) else ():
            if placed[i] and placed[j]:
                total += self.flows[i, j] * self.routes[places[:, i], places[:, j]]
        return total

    def excess(self, places: IntArray) -> FloatArray:
        """Return by how much the links are overloaded in all, 0 within rounding."""
        over = self.loads(places) - self.capacity * (1 + 1e-12)
        return np.asarray(np.maximum(over, 0.0).sum(axis=1))


def symmetries(problem: Problem) -> IntArray:
    """Return permutations of the nodes that change no cost and no load, the identity first.

    Found by extending a partial map node by node; as many for every image of the first node.
    """
    distances, count = problem.distances, problem.nodes
    found: list[list[int]] = [list(range(count))]
    for root in range(count):
        quota, steps = max(SYMMETRIES // count, 2), 200 * count
        stack = [[root]]
        while stack and quota and steps:
            steps -= 1
            images = stack.pop()
            k = len(images)
            if k == count:
                if images != found[0] and _keeps_the_rest(problem, images):
                    found.append(images)
                    quota -= 1
                continue
            same = (distances[:, images] == distances[k, :k]).all(axis=1)
            same &= (distances[images].T == distances[:k, k]).all(axis=1)
            same &= distances.diagonal() == distances[k, k]
            same[images] = False
            stack.extend([*images, int(node)] for node in np.flatnonzero(same)[::-1])
    return np.array(found, dtype=np.int64)


def _keeps_the_rest(problem: Problem, images: list[int]) -> bool:
    if not (problem.node_costs[:, images] == problem.node_costs).all():
        return False
    if not problem.distances[images[0], images[0]] == problem.distances[0, 0]:
        return False
    if not len(problem.capacity):
        return True
    # Links correspond if the same node pairs use them, up to the map, with the same capacity.
    keys = []
    for routes in (problem.routes, problem.routes[np.ix_(images, images)]):
        uses = np.concatenate([routes.reshape(-1, len(problem.capacity)), problem.capacity[None]])
        keys.append(uses[:, np.lexsort(uses)])
    return bool((keys[0] == keys[1]).all())


def interchangeable(problem: Problem) -> list[tuple[int, int]]:
    """Return pairs of parts, in their order, whose exchange changes nothing."""
    pairs = []
    order = problem.order
    for a, i in enumerate(order):
        for j in order[a + 1 :]:
            swap = np.arange(problem.parts)
            swap[[i, j]] = j, i
            same = (problem.flows[np.ix_(swap, swap)] == problem.flows).all()
            if same and (problem.node_costs[i] == problem.node_costs[j]).all():
                pairs.append((i, j))
    return pairs


def excluded(problem: Problem, maps: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return which nodes of the first part, and of first and second, symmetry makes redundant.

    Of all images of a placement only the lexicographically least one is needed: a symmetry
    must not move the first part to a smaller node nor, if it leaves that, the second part.
    """
    nodes = np.arange(problem.nodes)
    first = np.asarray((maps < nodes).any(axis=0))
    both = np.array([((maps < nodes) & (maps[:, [node]] == node)).any(axis=0) for node in nodes])
    return first, both


def greedy(problem: Problem, deadline: float) -> IntArray | None:
    """Return a placement that no move and no exchange of two parts improves, None if none fits.

    The part with the most traffic to those placed goes to the cheapest free node, from
    several starts; every result is improved by the best move or exchange as long as there is one.
    """
    best: tuple[float, float] = (inf, inf)
    result = None
    starts = np.unique(np.linspace(0, problem.nodes - 1, 8).astype(int))
    for start in starts:
        places = _construct(problem, int(start))
        value = _rank(problem, places[None])[0]
        while time.perf_counter() < deadline:
            others = _neighbours(problem, places)
            ranks = _rank(problem, others)
            k = min(range(len(others)), key=ranks.__getitem__)
            if not ranks[k] < (value[0], value[1] - 1e-12 * abs(value[1])):
                break
            places, value = others[k], ranks[k]
        if value < best:
            best, result = value, places
    return result if best[0] == 0 and best[1] < inf else None


def _rank(problem: Problem, places: IntArray) -> list[tuple[float, float]]:
    return list(zip(problem.excess(places).tolist(), problem.costs(places).tolist(), strict=True))


def _construct(problem: Problem, start: int) -> IntArray:
    flows = problem.flows + problem.flows.T
    places = np.full(problem.parts, -1, dtype=np.int64)
    places[problem.order[0]] = start
    while (places < 0).any():
        done, left = np.flatnonzero(places >= 0), np.flatnonzero(places < 0)
        part = left[flows[np.ix_(left, done)].sum(axis=1).argmax()]
        free = np.setdiff1d(np.arange(problem.nodes), places)
        cost = problem.node_costs[part, free]
        for other in done:
            cost = cost + problem.flows[part, other] * problem.distances[free, places[other]]
            cost = cost + problem.flows[other, part] * problem.distances[places[other], free]
        places[part] = free[cost.argmin()]
    return places


def _neighbours(problem: Problem, places: IntArray) -> IntArray:
    free = np.setdiff1d(np.arange(problem.nodes), places)
    moves = [(i, node) for i in range(problem.parts) for node in free]
    swaps = [(i, j) for i in range(problem.parts) for j in range(i)]
    others = np.tile(places, (len(moves) + len(swaps) + 1, 1))
    for row, (i, node) in enumerate(moves):
        others[row, i] = node
    for row, (i, j) in enumerate(swaps, start=len(moves)):
        others[row, [i, j]] = places[[j, i]]
    return others


class Enumeration:
    """All placements up to symmetry, those cut off early that cannot beat the best one."""

    def __init__(self, problem: Problem, maps: IntArray, pairs: list[tuple[int, int]]) -> None:
        self._problem = problem
        self._order = problem.order
        self._first, self._both = excluded(problem, maps)
        self._pairs = pairs
        self.best: IntArray | None = None
        self.cost: Fraction | float = inf
        self.bound = -inf
        self._rounding = problem.rounding
        self._rest = [traffic_bound(problem, self._order[k:]) for k in range(problem.parts + 1)]

    def run(self, start: IntArray | None, deadline: float) -> bool:
        """Search depth-first by blocks; return whether all was searched before the deadline."""
        problem = self._problem
        if start is not None:
            self.best, self.cost = start, problem.exact_cost(start)
        blocks = [(np.zeros((1, 0), dtype=np.int64), np.zeros(1), np.zeros(1))]
        while blocks:
            if time.perf_counter() > deadline:
                self.bound = min(float(bounds.min()) for _, _, bounds in blocks) - self._rounding
                return False
            nodes, costs, bounds = blocks.pop()
            alive = self._open(bounds)
            if not alive.any():
                continue
            for block in self._extend(nodes[alive], costs[alive]):
                if not len(block[0]):
                    continue
                if block[0].shape[1] == problem.parts:
                    self._finish(*block[:2])
                else:
                    blocks.append(block)
        self.bound = float(self.cost)
        return True

    def _open(self, costs: FloatArray) -> BoolArray:
        """Tell which costs, known up to rounding, may be below the best one."""
        best = float(self.cost)
        return np.asarray(costs <= best + self._rounding if self._rounding else costs < best) & (costs < inf)

    def _finish(self, nodes: IntArray, costs: FloatArray) -> None:
        """Compare placements without rounding."""
        order = np.argsort(costs, kind="stable")
        for row in order.tolist():
            if not self._open(costs[[row]])[0]:
                return
            places = self._places(nodes[[row]])[0]
            cost = self._problem.exact_cost(places)
            if cost < self.cost:
                self.best, self.cost = places, cost

    def _places(self, nodes: IntArray) -> IntArray:
        """Return the nodes in the order of the parts, -1 for those not placed yet."""
        places = np.full((len(nodes), self._problem.parts), -1, dtype=np.int64)
        places[:, self._order[: nodes.shape[1]]] = nodes
        return places

    def _cross(self, part: int, nodes: IntArray) -> FloatArray:
        """Return the cost of a part at every node beside those placed; infinite where occupied."""
        flows, distances = self._problem.flows, self._problem.distances
        cost = np.tile(self._problem.node_costs[part], (len(nodes), 1))
        cost += flows[part, part] * distances.diagonal()
        for k in range(nodes.shape[1]):
            other = self._order[k]
            if flows[part, other]:
                cost += flows[part, other] * distances.T[nodes[:, k]]
            if flows[other, part]:
                cost += flows[other, part] * distances[nodes[:, k]]
            cost[np.arange(len(nodes)), nodes[:, k]] = inf
        return cost

    def _extend(
        self, nodes: IntArray, costs: FloatArray
    ) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
        k = nodes.shape[1]
        part = self._order[k]
        cost = costs[:, None] + self._cross(part, nodes)
        if k == 0:
            cost[:, self._first] = inf
        if k == 1:
            cost[self._both[nodes[:, 0]]] = inf
        for i, j in self._pairs:
            if j == part:
                earlier = nodes[:, [self._order.index(i)]]
                cost[np.arange(self._problem.nodes) < earlier] = inf
        rows, new = np.nonzero(self._open(cost + self._rest[k + 1]))
        for start in range(0, len(rows), BLOCK):
            take = slice(start, start + BLOCK)
            children = np.column_stack([nodes[rows[take]], new[take]])
            total = cost[rows[take], new[take]]
            bounds = total + self._rest[k + 1]
            for other in self._order[k + 1 :]:
                bounds = bounds + self._cross(other, children).min(axis=1)
            good = self._open(bounds)
            if len(self._problem.capacity):
                good[good] = self._problem.excess(self._places(children[good])) == 0
            yield children[good], total[good], bounds[good]


def traffic_bound(problem: Problem, parts: list[int]) -> float:
    """Return a bound of the traffic among some parts wherever they are.

    The largest flows times the smallest distances between different nodes.
    """
    flows = problem.flows[np.ix_(parts, parts)][~np.eye(len(parts), dtype=bool)]
    distances = problem.distances[~np.eye(problem.nodes, dtype=bool)]
    return float(np.sort(flows)[::-1] @ np.sort(distances)[: len(flows)])
