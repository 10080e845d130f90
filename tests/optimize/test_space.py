import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import Space, get_field


@dataclass(frozen=True, kw_only=True)
class Dram:
    channels: Any = 4
    policy: str = "open"

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.channels) < 1):
            raise ValueError(f"channels must be >= 1, got {self.channels!r}")
        if self.policy not in ("open", "closed"):
            raise ValueError(f"policy must be open or closed, got {self.policy!r}")


@dataclass(frozen=True, kw_only=True)
class Chip:
    dram: Dram = Dram()
    link_width: Any = 16
    nodes: int = 8
    mapping: object = None

    def __post_init__(self) -> None:
        if not self.nodes > 0:
            raise ValueError(f"nodes must be > 0, got {self.nodes!r}")


def small() -> Space:
    return Space(Chip(), {"dram.channels": [1, 2, 4]}, link_width=(8, 16), policy=["open", "closed"])


def test_designs_are_in_row_major_order():
    space = small()
    assert space.size == 12 and space.shape == (3, 2, 2)
    expected = list(itertools.product([1, 2, 4], [8, 16], ["open", "closed"]))
    assert [tuple(point.values()) for point in space.points()] == expected
    assert [space.point(i) for i in range(12)] == list(space.points())
    assert space.point(5) == {"dram.channels": 2, "link_width": 8, "policy": "closed"}
    assert space.spec(5) == Chip(dram=Dram(channels=2, policy="closed"), link_width=8)
    assert space.label(5) == "design 5 (dram.channels=2, link_width=8, policy='closed')"
    assert repr(space) == "Space(Chip: dram.channels[3] x link_width[2] x policy[2] = 12 designs)"


def test_columns_agree_with_points():
    space = small()
    columns = space.columns()
    for i, point in enumerate(space.points()):
        assert {name: column[i] for name, column in columns.items()} == point
    assert [column.dtype.kind for column in columns.values()] == ["i", "i", "U"]
    assert {name: column.tolist() for name, column in space.columns([7, 2]).items()} == {
        "dram.channels": [2, 1],
        "link_width": [16, 16],
        "policy": ["closed", "open"],
    }


@given(
    shape=st.lists(st.integers(1, 5), min_size=2, max_size=2),
    data=st.data(),
)
def test_a_batch_holds_the_specs_of_its_designs(shape, data):
    space = Space(Chip(), channels=range(1, shape[0] + 1), link_width=np.arange(shape[1]) * 8)
    designs = data.draw(st.lists(st.integers(0, space.size - 1), min_size=1, max_size=10))
    batch = space.batch(designs)
    for k, design in enumerate(designs):
        spec = space.spec(design)
        assert batch.dram.channels[k] == spec.dram.channels
        assert batch.link_width[k] == spec.link_width


def test_a_batch_needs_one_value_for_what_is_no_array():
    space = small()
    assert space.numeric == ("dram.channels", "link_width")
    batch = space.batch([0, 4, 8])
    assert batch.dram.policy == "open" and batch.dram.channels.tolist() == [1, 2, 4]
    with pytest.raises(ValueError, match="policy must have one value in a batch, as it cannot be an array"):
        space.batch()
    with pytest.raises(ValueError, match="link_width must have one value in a batch"):
        space.batch([0, 2], arrays=["dram.channels"])


def test_groups_split_by_what_is_no_array():
    space = small()
    groups = space.groups(range(12), ["dram.channels", "link_width"])
    assert [group.tolist() for group in groups] == [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]
    assert [group.tolist() for group in space.groups([9, 1, 5], ["dram.channels"])] == [[9, 1, 5]]
    assert [group.tolist() for group in space.groups([3, 0, 2], [])] == [[0], [2], [3]]
    assert space.groups([], []) == []


def test_size_needs_no_enumeration():
    numbers = range(1, 10**5 + 1)
    space = Space(Chip(), link_width=numbers, nodes=numbers, mapping=numbers, channels=numbers)
    assert space.size == 10**20
    assert set(space.point(space.size - 1).values()) == {10**5}


def test_constraints_exclude_designs():
    def narrow(point):
        return point["channels"] * point["link_width"] <= 32

    space = Space(
        Chip(), channels=[1, 2, 4], link_width=[8, 16], constraints=[narrow, lambda p: p["channels"] > 1]
    )
    assert space.size == 6
    assert space.designs().tolist() == [2, 3, 4]
    assert [point["channels"] for point in space.points()] == [2, 2, 4]
    violations = space.violations()
    assert {name: bad.tolist() for name, bad in violations.items()} == {
        "narrow": [False, False, False, False, False, True],
        "<lambda> #2": [True, True, False, False, False, False],
    }


def test_choices_may_be_anything():
    values = [None, (1, 2), (3, 4), Dram(channels=2), [5]]
    space = Space(Chip(), mapping=values)
    assert [space.spec(i).mapping for i in range(5)] == values
    assert space.columns()["mapping"].tolist() == values
    assert Space(Chip(), link_width=np.array([8, 16])).choices == {"link_width": (8, 16)}
    assert type(Space(Chip(), link_width=np.array([8, 16])).point(0)["link_width"]) is int
    assert Space(Chip(), mapping=[True, False]).columns()["mapping"].dtype == bool
    assert Space(Chip(), mapping=[True, False]).numeric == ()
    assert Space(Chip(), dram=[Dram(), Dram(channels=1)]).spec(1).dram.channels == 1


@pytest.mark.parametrize("design", [-1, 12])
def test_design_numbers_are_checked(design):
    space = small()
    with pytest.raises(ValueError, match=f"design must be a number from 0 to 11, got {design}"):
        space.point(design)
    with pytest.raises(ValueError, match=f"designs must be numbers from 0 to 11, got {design}"):
        space.columns([3, design])


def test_designs_and_constraints_have_the_right_type():
    with pytest.raises(ValueError, match=r"designs must be a list of whole numbers, got \[1.5\]"):
        small().columns([1.5])
    with pytest.raises(ValueError, match="constraints must be callables on a point, got 'x < 1'"):
        Space(Chip(), channels=[1], constraints=["x < 1"])


def test_dotted_and_short_names_mean_the_same_field():
    for name in ("channels", "dram.channels"):
        assert get_field(Space(Chip(), {name: [7]}).spec(0), "channels") == 7


def test_words_of_a_design_show_plain_numbers():
    @dataclass(frozen=True)
    class Link:
        width: int = 8

    assert Space(Link(), width=[np.int64(8), np.int64(16)]).label(1) == "design 1 (width=16)"
