import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import place


def mesh(rows, columns):
    """Hop counts of a mesh."""
    at = np.array(list(itertools.product(range(rows), range(columns))))
    return np.abs(at[:, None] - at[None]).sum(axis=2).astype(float)


def ring(nodes):
    return np.array([[min((a - b) % nodes, (b - a) % nodes) for b in range(nodes)] for a in range(nodes)])


def by_permutations(flows, distances, node_costs=None):
    """The least cost over all placements, in plain Python; None if none fits."""
    parts, best = range(len(flows)), None
    for nodes in itertools.permutations(range(len(distances)), len(flows)):
        cost = sum(flows[i][j] * distances[nodes[i]][nodes[j]] for i in parts for j in parts)
        if node_costs is not None:
            cost += sum(node_costs[i][nodes[i]] for i in parts)
        if cost < np.inf and (best is None or cost < best):
            best = cost
    return best


flow = st.sampled_from([0, 0, 0, 1, 2, 5])


@st.composite
def instances(draw):
    parts = draw(st.integers(1, 4))
    distances = draw(st.sampled_from([mesh(2, 3), mesh(1, 5), mesh(2, 2)]))
    parts = min(parts, len(distances))
    flows = np.reshape(draw(st.lists(flow, min_size=parts**2, max_size=parts**2)), (parts, parts))
    extra = {}
    if draw(st.booleans()):
        size = parts * len(distances)
        costs = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 3.5, np.inf]), min_size=size, max_size=size))
        extra["node_costs"] = np.reshape(costs, (parts, len(distances)))
        extra["node_costs"][:, 0] = np.minimum(extra["node_costs"][:, 0], 9.0)
    return flows, distances, extra


@given(instance=instances())
def test_placements_against_all_permutations(instance):
    flows, distances, extra = instance
    best, placement = by_permutations(flows, distances, **extra), place(flows, distances, **extra)
    assert placement.proven
    assert placement.cost == (None if best is None else pytest.approx(best, abs=1e-12))
    assert placement.status == ("infeasible" if best is None else "optimal")
    if placement.cost is not None:
        assert len(set(placement.nodes)) == len(flows)
        pinned = {"node_costs": np.full((len(flows), len(distances)), np.inf)}
        own = extra.get("node_costs", np.zeros((len(flows), len(distances))))
        for part, node in enumerate(placement.nodes):
            pinned["node_costs"][part, node] = own[part, node]
        assert by_permutations(flows, distances, **{**extra, **pinned}) == pytest.approx(placement.cost)


@pytest.mark.parametrize("uniform", [True, False])
def test_symmetric_nodes_and_equal_parts(uniform):
    # A ring has 12 symmetries; with uniform flows all senders and all receivers are equal.
    flows = np.zeros((5, 5))
    flows[:3, 3:] = 1 if uniform else [[1, 2], [3, 1], [2, 2]]
    placement = place(flows, ring(6))
    assert placement.status == "optimal" and placement.gap == 0
    assert placement.cost == by_permutations(flows, ring(6))


def test_a_start_at_a_forbidden_node_is_left():
    # The last free node of the construction is forbidden to the last part, whatever the start.
    forbidden = np.zeros((4, 4))
    forbidden[3, 3] = np.inf
    placement = place(np.zeros((4, 4)), mesh(2, 2), node_costs=forbidden)
    assert sorted(placement.nodes) == [0, 1, 2, 3] and placement.cost == 0


def test_eight_parts_on_sixteen_nodes_are_proven():
    flows = np.zeros((8, 8))
    flows[:4, 4:] = np.random.default_rng(3).integers(1, 10, (4, 4))  # initiators to memory channels
    proof = place(flows, mesh(4, 4))
    assert proof.status == "optimal" and proof.gap == 0


def test_a_time_limit_leaves_a_placement_and_a_bound():
    flows = np.random.default_rng(4).integers(1, 10, (12, 12)).astype(float)
    distances = mesh(4, 4)
    placement = place(flows, distances, time_limit=0.5)
    assert placement.status == "feasible" and not placement.proven
    assert 0 < placement.bound < placement.cost
    assert placement.gap == pytest.approx((placement.cost - placement.bound) / placement.cost)


def test_one_part_with_traffic_to_itself():
    one = place([[3]], [[2.0]])
    assert (one.nodes, one.cost) == ((0,), 6.0)


LINE = [[0, 1], [1, 0]]
