"""Conditional fields and constraints: counted, numbered and sampled against plain enumeration."""

import itertools
from dataclasses import dataclass, make_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import Space, explore
from optimize.spaces.structure import answer, tabulate


@dataclass(frozen=True)
class Chip:
    a: Any = 0
    b: Any = 0
    c: Any = 0
    d: Any = 0
    e: Any = 0


FIELDS = "abcde"


def matters(name: str, point: dict[str, int], conditions: dict[str, dict[str, list[int]]]) -> bool:
    return all(
        point[other] in values and matters(other, point, conditions)
        for other, values in conditions.get(name, {}).items()
    )


@st.composite
def conditional_spaces(draw):
    sizes = {name: draw(st.integers(1, 3)) for name in FIELDS}
    order = draw(st.permutations(FIELDS))
    conditions = {}
    for k, name in enumerate(order):
        parents = [other for other in order[:k] if draw(st.integers(0, 3)) == 0]
        conditions[name] = {
            other: draw(st.lists(st.integers(0, sizes[other] - 1), unique=True)) for other in parents
        }
    return {name: list(range(size)) for name, size in sizes.items()}, {
        k: v for k, v in conditions.items() if v
    }


def distinct_designs(choices, conditions):
    """Return the designs as points with None where a field does not matter, with their smallest number."""
    seen: dict[tuple[Any, ...], int] = {}
    for number, values in enumerate(itertools.product(*choices.values())):
        point = dict(zip(choices, values, strict=True))
        key = tuple(point[name] if matters(name, point, conditions) else None for name in choices)
        seen.setdefault(key, number)
    return seen


@given(conditional_spaces())
def test_designs_that_differ_in_what_does_not_matter_are_one(drawn):
    choices, conditions = drawn
    space = Space(Chip(), choices, conditions=conditions)
    expected = distinct_designs(choices, conditions)
    # Irrelevant fields have their first choice, which may itself switch others: those count as off, too.
    assert space.size == len(expected) == space.count()
    assert space.designs().tolist() == sorted(expected.values())
    for number, values in enumerate(itertools.product(*choices.values())):
        point = dict(zip(choices, values, strict=True))
        key = tuple(point[name] if matters(name, point, conditions) else None for name in choices)
        assert space.numbers([number]).tolist() == [expected[key]]
        assert space.point(number) == space.point(expected[key])


@given(conditional_spaces(), st.integers(0, 8), st.integers(0, 2))
def test_constraints_and_conditions_together(drawn, limit, kind):
    choices, conditions = drawn
    rules = [
        lambda p: p["a"] + p["b"] <= limit % 4,
        lambda p: p["c"] == 0 or p["d"] >= p["e"] or limit > 6,
        lambda p: sum(p.values()) <= limit,
    ]
    rules = rules[: kind + 1]
    space = Space(Chip(), choices, conditions=conditions, constraints=rules)
    free = Space(Chip(), choices, conditions=conditions)
    expected = [n for n in free.designs().tolist() if all(rule(free.point(n)) for rule in rules)]
    assert space.designs().tolist() == expected
    assert space.count() == len(expected)
    assert space.size == free.size
    assert space.first() == (expected[0] if expected else None)
    drawn_designs = space.sample(min(3, len(expected)), seed=limit)
    assert set(drawn_designs.tolist()) <= set(expected) and len(set(drawn_designs.tolist())) == min(
        3, len(expected)
    )


def test_an_irrelevant_field_is_evaluated_once():
    seen = []

    def model(chip):
        seen.append((chip.a, chip.b))
        return {"x": chip.a + chip.b}

    space = Space(Chip(), a=[0, 1], b=[1, 2, 3], conditions={"b": {"a": [1]}})
    for options in ({}, {"method": "greedy"}, {"method": "greedy", "coordinate": True}):
        seen.clear()
        explore(space, model, minimize="x", **options)
        assert len(seen) == len(set(seen)) <= 4 and {b for a, b in seen if a == 0} <= {1}


def test_a_large_space_is_counted_and_sampled_without_enumeration():
    numbers = range(1, 1001)
    space = Space(
        Chip(),
        {name: numbers for name in FIELDS},
        conditions={"b": {"a": range(1, 501)}, "c": {"b": [7]}},
        constraints=[lambda p: p["d"] <= 10, lambda p: p["a"] > 1 or p["e"] == 1],
    )
    # b matters for a <= 500; c for those with b = 7: 500 * (999 + 1000) + 500 choices of (a, b, c).
    assert space.size == (500 * 1999 + 500) * 10**6
    assert space.count() == (499 * 1999 + 500) * 10 * 1000 + 1999 * 10
    draws = space.sample(50, seed=3)
    assert draws.tolist() == space.sample(50, seed=3).tolist() == sorted(set(draws.tolist()))
    assert draws.tolist() != space.sample(50, seed=4).tolist()
    for point in map(space.point, draws):
        assert point["d"] <= 10 and (point["a"] > 1 or point["e"] == 1)
        assert (point["a"] <= 500 or point["b"] == 1) and (point["b"] == 7 or point["c"] == 1)


def test_a_sample_is_uniform():
    space = Space(Chip(), a=[0, 1], b=range(9), conditions={"b": {"a": [1]}})
    assert space.size == 10
    counts = np.zeros(18)
    for seed in range(2000):
        counts[space.sample(1, seed=seed)] += 1
    hits = counts[space.designs()]
    assert hits.sum() == 2000 and (np.abs(hits - 200) < 5 * np.sqrt(200 * 0.9)).all()


def test_a_constraint_is_called_once_per_combination_of_what_it_reads():
    calls = []

    def narrow(point):
        calls.append(1)
        return point["a"] == 0 or point["b"] < 2

    space = Space(Chip(), {name: range(10) for name in FIELDS}, constraints=[narrow])
    assert space.count() == 10**3 * (10 + 9 * 2)
    assert len(calls) == 1 + 10 + 9 * 10  # nothing read, a read, then b where a is not 0
    assert len(space.designs()) == 28000 and len(calls) == 101
    assert space.coupled == ("a", "b")


def test_a_constraint_that_reads_everything_is_asked_with_arrays():
    calls = []

    def light(point):
        calls.append(1)
        return sum(point.values()) <= 12

    space = Space(Chip(), {name: range(12) for name in FIELDS}, constraints=[light])
    sums = np.add.outer(np.add.outer(np.arange(12), np.arange(12)), np.arange(12))
    assert space.count() == (np.add.outer(np.add.outer(sums, np.arange(12)), np.arange(12)) <= 12).sum()
    assert len(calls) < 12**5 / 2


@pytest.mark.parametrize(
    "rule",
    [
        lambda p: all(v < 2 for v in p.values()),  # fails for arrays
        lambda p: p["a"] is not None,  # one answer for all
        lambda p: np.size(p["a"]) > 1 or p["a"] == 1,  # another answer for arrays
        lambda p: p["a"] % 2 == 0,
    ],
)
def test_an_array_answer_is_not_trusted_blindly(rule):
    points = [{"a": a, "b": b} for a in range(3) for b in range(40)]
    columns = {name: np.array([point[name] for point in points]) for name in "ab"}
    result = answer(rule, columns, points.__getitem__, len(points))
    assert result.tolist() == [bool(rule(point)) for point in points]


def test_a_constraint_that_wants_a_dict_gets_one():
    space = Space(Chip(), a=[0, 1], b=[0, 1], constraints=[lambda p: (p | {"x": 1})["a"] == 1])
    assert space.designs().tolist() == [2, 3]
    assert tabulate(lambda p: (p | {"x": 1})["a"] == 1, space.choices) is None
    with pytest.raises(KeyError, match="z"):
        Space(Chip(), a=[0, 1], constraints=[lambda p: p["z"] == 1]).designs()
    assert Space(Chip(), a=[0, 1], constraints=[lambda p: False]).count() == 0
    assert Space(Chip(), a=[0, 1], constraints=[lambda p: True]).designs().tolist() == [0, 1]


def test_a_sample_larger_than_the_space_is_refused():
    space = Space(Chip(), a=[0, 1], b=[0, 1])
    assert space.sample(4, seed=0).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"count must be at most the number of designs found \(4\), got 5"):
        space.sample(5, seed=0)
    with pytest.raises(ValueError, match="count must be a whole number >= 0, got -1"):
        space.sample(-1, seed=0)
    huge = Space(Chip(), {name: range(10**4) for name in FIELDS})
    with pytest.raises(ValueError, match=r"a space must have less than 2\^63 combinations to be numbered"):
        huge.sample(5, seed=0)


def test_independent_conditions_multiply():
    """Forty fields in twenty pairs: the designs are counted pair by pair."""

    names = [f"{kind}{k}" for k in range(20) for kind in ("on", "level")]
    many = make_dataclass("Many", [(name, Any, 0) for name in names], frozen=True)
    space = Space(
        many(),
        {name: [0, 1] if name.startswith("on") else range(5) for name in names},
        conditions={f"level{k}": {f"on{k}": [1]} for k in range(20)},
        constraints=[lambda point: point["level3"] != 2],
    )
    assert space.size == 6**20 and space.count() == 5 * 6**19
