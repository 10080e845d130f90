"""Regions: what grows, against a search written out block by block."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels.systems.programs.work_queues import Cube, Drawn, Growth, Uneven, body_blocks, grow


def reachable(image, seed, side):
    """Return the superblocks reached from a seed, by a search over pairs of touching blocks."""
    found = {tuple(s // side for s in seed)}
    waiting = deque(found)
    pairs = {}
    for x, y, z in np.argwhere(image).tolist():
        for dx, dy, dz in ((1, 0, 0), (0, 1, 0), (0, 0, 1)):
            u, v, w = x + dx, y + dy, z + dz
            if u < image.shape[0] and v < image.shape[1] and w < image.shape[2] and image[u, v, w]:
                one, two = (x // side, y // side, z // side), (u // side, v // side, w // side)
                if one != two:
                    pairs.setdefault(one, set()).add(two)
                    pairs.setdefault(two, set()).add(one)
    while waiting:
        for other in pairs.get(waiting.popleft(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found, pairs


@given(
    data=st.lists(st.booleans(), min_size=6 * 4 * 4, max_size=6 * 4 * 4).filter(any),
)
def test_a_region_is_what_a_search_over_blocks_reaches(data):
    picture = np.array(data).reshape(6, 4, 4)
    layers = tuple(
        tuple("".join("#" if picture[x, y, z] else "." for x in range(6)) for y in range(4)) for z in range(4)
    )
    tasks = Growth(grid=(3, 2, 2), block_side=2, body=Drawn(layers=layers))
    image = body_blocks(tasks)
    assert np.array_equal(image, picture)
    graph = grow(tasks)
    where = np.argwhere(image)
    found, pairs = reachable(image, (graph.place[0] * 2).tolist(), 2)
    places = [tuple(place) for place in graph.place.tolist()]
    assert set(places) == found and len(places) == len(found)
    # The seed is one of the blocks nearest to the middle.
    far = ((where - where.mean(axis=0)) ** 2).sum(axis=1)
    nearest = {tuple(block // 2) for block in where[np.isclose(far, far.min())]}
    assert places[0] in nearest
    for k, place in enumerate(places):
        low = np.array(place) * 2
        inside = image[low[0] : low[0] + 2, low[1] : low[1] + 2, low[2] : low[2] + 2]
        assert graph.blocks[k] == inside.sum()
        mine = graph.neighbours[graph.first[k] : graph.first[k + 1]]
        assert {places[other] for other in mine} == pairs.get(place, set())
        if k:
            assert graph.depth[k] == graph.depth[graph.parent[k]] + 1
            assert k in graph.neighbours[graph.first[graph.parent[k]] : graph.first[graph.parent[k] + 1]]


def test_bodies():
    cube = grow(Growth(grid=(7, 7, 7), block_side=2, body=Cube(side=3)))
    assert cube.blocks.size == 27 and set(cube.blocks) == {8}
    assert cube.depth.max() == 3
    # A cube between superblocks touches one more layer, half of it.
    between = grow(Growth(grid=(7, 7, 7), block_side=2, body=Cube(side=2)))
    assert between.blocks.size == 27 and between.blocks.sum() == 64
    ball = grow(Growth(grid=(15, 15, 15), block_side=4, body=Uneven(radius=5, roughness=0)))
    assert ball.blocks.sum() == pytest.approx(4 / 3 * np.pi * 20**3, rel=0.01)
    moved = grow(Growth(grid=(15, 15, 15), block_side=4, body=Uneven(radius=3, roughness=0, shift=(4, 0, 0))))
    assert moved.place[:, 0].min() >= 8 and moved.place[0].tolist() == [11, 7, 7]
    rough = Uneven(radius=5, roughness=0.6, waves=9)
    other = Uneven(radius=5, roughness=0.6, waves=9, form=1)
    one, two = (grow(Growth(grid=(15, 15, 15), body=body)).blocks for body in (rough, other))
    assert one.size != two.size


def test_a_grid_whose_blocks_no_int64_counts_is_refused():
    with pytest.raises(ValueError, match="tasks.grid must hold at most 20000000 blocks"):
        Growth(grid=(10**9, 10**9, 10**9))
