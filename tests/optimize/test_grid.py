"""Arrays that span a grid give what flat arrays and single specs give."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from optimize import Space, explore


@dataclass(frozen=True)
class Chip:
    a: Any = 1
    b: Any = 1
    policy: str = "open"
    c: Any = 1


CALLS: list[tuple[int, ...]] = []


def model(chip):
    CALLS.append(np.shape(chip.a + chip.b + chip.c))
    factor = 2 if chip.policy == "open" else 3
    return {
        "latency": factor * chip.c / chip.a + chip.b,
        "cost": chip.a * chip.c,
        "simple": chip.b > 2,  # has the axes of one field only
        "bottleneck": np.where(chip.a > chip.c, "a", "c"),
        "constant": 4.0,
    }


def grid(**options: Any) -> Space:
    return Space(
        Chip(), {"a": [3, 1, 2], "b": range(1, 6), "policy": ["open", "closed"], "c": [1, 2, 4, 8]}, **options
    )


GOALS: dict[str, Any] = {"minimize": ["latency", "cost"]}


def test_each_field_has_an_axis():
    spec = Space(Chip(), a=[3, 1, 2], b=range(5), c=[1, 2]).grid()
    assert [np.shape(x) for x in (spec.a, spec.b, spec.c)] == [(3, 1, 1), (1, 5, 1), (1, 1, 2)]
    assert spec.a.ravel().tolist() == [3, 1, 2]
    part = grid().grid([0, 2, 8, 10], arrays=["b", "c"])
    assert (part.a, part.policy, part.b.tolist(), part.c.tolist()) == (3, "open", [[1], [2]], [[1, 4]])


OPTIONS = [
    {},
    {"constraints": [lambda p: p["a"] * p["c"] <= 8]},
    {"constraints": [lambda p: p["a"] + p["b"] + p["c"] != 9]},
    {"conditions": {"b": {"policy": ["closed"]}}},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("chunk", [None, 1, 7, 20])
@pytest.mark.parametrize("small", [1, 64])
def test_a_grid_gives_the_same_answer(options, chunk, small, monkeypatch):
    monkeypatch.setattr("optimize.spaces.numbering.SMALL", small)
    space = grid(**options)
    CALLS.clear()
    result = explore(space, model, vectorized="grid", chunk=chunk, **GOALS)
    assert all(np.prod(shape) <= (chunk or 120) for shape in CALLS)
    plain = explore(space, model, **GOALS)
    assert list(result.table) == list(plain.table)
    for name, column in plain.table.items():
        assert_array_equal(result.table[name], column)
    assert_array_equal(result.front, plain.front)


def test_a_full_space_takes_one_call_per_word():
    CALLS.clear()
    explore(grid(), model, vectorized="grid", **GOALS)
    assert CALLS == [(3, 5, 4), (3, 5, 4)]
    CALLS.clear()
    explore(grid(), model, vectorized="grid", chunk=20, **GOALS)
    assert CALLS == [(1, 5, 4)] * 6


@given(
    designs=st.sets(st.integers(0, 119), min_size=1), chunk=st.integers(1, 130), small=st.sampled_from([1, 8])
)
def test_any_designs_are_split_into_grids_and_the_rest(designs, chunk, small):
    space = grid(constraints=[lambda p: p["a"] * p["c"] != 16])
    wanted = np.array(sorted(designs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optimize.spaces.numbering.SMALL", small)
        parts = list(space.boxes(wanted, space.numeric, chunk))
    assert sorted(np.concatenate([part for part, _ in parts]).tolist()) == wanted.tolist()
    for part, shape in parts:
        assert part.size <= chunk
        if shape is not None:
            spec = space.grid(part)
            assert np.broadcast_shapes(*(np.shape(x) for x in (spec.a, spec.b, spec.c))) == shape


def test_metrics_of_a_grid_need_its_axes():
    space = Space(Chip(), a=[1, 2], c=[1, 2, 3])
    for bad in ([1.0, 2.0, 3.0], np.ones((3, 2)), np.ones((2, 2))):
        with pytest.raises(ValueError, match="metric 'x' must be a number, word or estimate, or 6 of them"):
            explore(space, lambda chip, bad=bad: {"x": bad}, minimize="x", vectorized="grid")
    result = explore(space, lambda chip: {"x": np.array([[1.0, 2, 3]])}, minimize="x", vectorized="grid")
    assert result.table["x"].tolist() == [1, 2, 3, 1, 2, 3]
