"""Parts of the exact search: tables, the orders of choices, and the program over both."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from optimize import Space, exact_design
from optimize.exact.master import Cut, Master, Sum, Wish, finite
from optimize.exact.oracle import Goal, Oracle, digits_of, goals_of
from optimize.exact.relations import Relations
from optimize.exact.search import _largest
from optimize.exact.tables import FLOOR, Tables, scale_of


@dataclass(frozen=True)
class Point:
    a: int = 0
    b: int = 0
    c: int = 0


SHAPE = (2, 3, 4)
SPACE = Space(Point(), {name: range(n) for name, n in zip("abc", SHAPE, strict=True)})
ALL = np.array(list(product(*(range(n) for n in SHAPE))))
PAIRS = [(0, 1), (1, 2)]


def values(point):
    """Return a sum over (a, b) and (b, c), one that is not, and one that is no number somewhere."""
    a, b, c = (np.asarray(getattr(point, name), dtype=float) for name in "abc")
    return {
        "sum": 1.0 + a * (b - 1) ** 2 + 3 * b * c,
        "product": (1.0 + a) * (2.0 + b) * (1.5 + c) * 1e3,
        "other": a * c + b,
        "holes": np.where((a == 1) & (b == 2), np.inf, 1.0 + a + b + c),
    }


def oracle(*metrics, sign=1.0):
    return Oracle(SPACE, values, [Goal(metric=name, sign=sign) for name in metrics], True)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("anchor", [[0, 0, 0], [1, 2, 1]])
@pytest.mark.parametrize(("metric", "groups", "log"), [
    ("sum", PAIRS, False), ("product", [(0,), (1,), (2,)], True), ("product", [(0, 1), (0, 2)], True),
])  # fmt: skip
def test_tables_are_exact_where_the_metric_is_such_a_sum_or_product(metric, groups, log, sign, anchor):
    model = oracle(metric, sign=sign)
    tables = Tables(model, 0, groups, np.array(anchor), log=log)
    true = sign * values(Point(*ALL.T))[metric]
    found = tables.total(ALL)
    assert_allclose(sign * np.exp(sign * found) if log else found, true, rtol=1e-12)
    error = tables.error(model, 0, metric, np.arange(SPACE.size))
    assert (error.designs, error.missed) == (SPACE.size, 0) and error.largest < 1e-12
    assert 0 < tables.rounding < 1e-10


def test_what_tables_are_off_by_is_measured():
    """a c is no sum over a and c: off by a c, at the anchor nowhere; without limit where that is."""
    model = oracle("other", "holes")
    tables = Tables(model, 0, [(0,), (1,), (2,)], np.array([0, 1, 0]), log=False)
    a, b, c = ALL.T
    assert_allclose(tables.total(ALL), b)
    off = (a * c / np.maximum(a * c + b, 1e-300))[a * c + b > 0]
    error = tables.error(model, 0, "other", SPACE.number_of(ALL[a * c + b > 0].T))
    assert_allclose([error.mean, error.largest], [off.mean(), off.max()])
    holes = Tables(model, 1, PAIRS, np.array([0, 0, 0]), log=False)
    bad = holes.error(model, 1, "holes", np.arange(SPACE.size))
    assert (bad.designs, bad.missed) == (SPACE.size - 4, 0) and bad.largest == 0.0


def test_logarithms_are_for_one_sign_and_have_a_floor():
    assert scale_of(np.array([1.0, 2.0, 9.0]), np.inf) == (True, 2.0 * FLOOR)
    assert scale_of(-np.array([1.0, 2.0, 9.0]), np.inf) == (True, 2.0 * FLOOR)
    assert scale_of(np.array([1.0, np.inf, 0.0]), 50.0) == (True, 50.0 * FLOOR)
    assert scale_of(np.array([1.0, 0.0, 0.0]), 0.0) == (True, FLOOR)
    for mixed in ([1.0, -2.0], [0.0, 0.0], [np.inf]):
        assert scale_of(np.array(mixed), 1.0) == (False, 0.0)
    low = oracle("product")
    tables = Tables(low, 0, [(0,), (1,), (2,)], np.array([0, 0, 0]), log=True, floor=6e3)
    assert tables.scaled(np.array([1.0, 6e3, 12e3])) == pytest.approx(np.log([6e3, 6e3, 12e3]))


def test_what_is_infinite_lies_beyond_the_rest_by_their_range():
    part = np.array([-np.inf, 2.0, 7.0, np.inf])
    assert finite(part).tolist() == [-3.0, 2.0, 7.0, 12.0]
    assert finite(np.array([3.0, np.inf])).tolist() == [3.0, 4.0]
    assert finite(np.array([np.inf])).tolist() == [1.0]


def test_goals_are_sides_that_bind():
    goals = goals_of("time", None, {"cost": (None, 3.0), "rate": (2.0, 9.0), "size": (None, None)})
    assert [(one.metric, one.sign, one.limit) for one in goals] == [
        ("time", 1.0, np.inf), ("cost", 1.0, 3.0), ("rate", -1.0, -2.0), ("rate", 1.0, 9.0),
        ("stable", -1.0, -1.0),
    ]  # fmt: skip
    any_state = goals_of(None, "time", {"stable": (None, None)})
    assert [(one.metric, one.sign) for one in any_state] == [("time", -1.0)]


def test_no_design_is_evaluated_twice_and_values_have_their_signs():
    asked = []

    def model(point):
        asked.append(np.size(point.a))
        return values(point)

    seen = Oracle(SPACE, model, goals_of(None, "sum", {"other": (None, 2.0)}), True)
    found = seen.look(np.array([[3, 5], [5, 23]]))
    assert found.shape == (2, 2, 3) and seen.evaluations == 3
    true = values(Point(*SPACE.all_digits(np.array([3, 5, 5, 23]))))
    assert_allclose(found[..., 0].reshape(-1), -true["sum"])
    assert_allclose(found[..., 2], -1.0)  # stable
    assert seen.feasible(found.reshape(4, 3)).tolist() == (true["other"] <= 2).tolist()
    seen.look(np.array([23, 0]))
    assert seen.evaluations == 4 and not seen.unstable
    assert digits_of(SPACE, np.array([0, 23])).tolist() == [[0, 0, 0], [1, 2, 3]]


def relations(bounds=None, slack=0.0, sign=1.0):
    return Relations(SPACE, [Goal(metric="sum", sign=sign)], bounds or {}, slack)


def line(*choices):
    """Return lines along a field, of one goal."""
    return np.array(choices, dtype=float)[..., None]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_declared_orders(sign):
    found = relations({"sum": {"b": "increasing", "c": "constant"}}, sign=sign)
    assert not found.learns and relations().learns
    rising = np.triu(np.ones((3, 3), dtype=bool))
    assert (found.related(0, 1) == (rising if sign > 0 else rising.T)).all()
    assert found.related(0, 2).all() and (found.related(0, 0) == np.eye(2, dtype=bool)).all()
    metric, better, worse = ([2.0, 2.0, 1.0], 2, 0) if sign > 0 else ([3.0, 2.0, 2.0], 0, 1)
    with pytest.raises(
        ValueError, match=f"choice {better} of field 1 is better than choice {worse} by 0.5 of"
    ):
        found.check(1, sign * line(metric))


def test_orders_are_learned_from_lines_and_given_up():
    found = relations(slack=0.1)
    assert found.related(0, 1).all() and found.total(0) == 0.0
    found.check(1, line([4.0, 5.0, 6.0]))
    assert (found.related(0, 1) == np.triu(np.ones((3, 3), dtype=bool))).all()
    assert found.compared == 6 and found.dropped == 3
    # Within the slack an order stands, but what was seen counts.
    version = found.version
    assert found.check(1, line([4.0, 3.8, 7.0]))
    assert found.version == version + 1 and found.related(0, 1)[0, 1] and found.dropped == 3
    assert found.total(0) == pytest.approx(0.05)
    assert found.lowered(0, np.array([100.0, -100.0, np.inf])) == pytest.approx([95.0, -105.0, np.inf])
    assert not found.check(1, line([4.0, 3.8, 7.0]))
    # Two fields together improve a goal by the product of both.
    found.check(0, line([1.0, 0.9]))
    assert found.total(0) == pytest.approx(1.05 * 1.1 - 1)
    # Part of a line, with a design that was not evaluated.
    found.check(2, line([1.0, np.nan, 0.5]), [3, 1, 0])
    assert not found.related(0, 2)[3, 0] and found.related(0, 2)[3, 1] and found.related(0, 2)[0, 3]


def test_orders_count_as_far_as_a_gap_has_room():
    found = relations(slack=1e-4)
    found.check(1, line([1.0, 0.97, 2.0]))
    found.check(0, line([1.0, 0.98]))
    assert found.total(0) == 0.0
    found.widen(0, 0.1, 1e-4)  # both: 1.03 * 1.02 - 1 = 0.0506
    assert found.total(0) == pytest.approx(1.03 * 1.02 - 1)
    found.widen(0, 0.05, 1e-4)
    assert found.total(0) == pytest.approx(0.02)  # half as much: one of the two
    found.widen(0, 1e-5, 1e-4)
    assert found.slack == [1e-4] and found.total(0) == 0.0


def test_infinite_values_have_an_order_too():
    found = relations()
    found.check(1, line([1.0, np.inf, np.inf]))
    assert found.related(0, 1).tolist() == [[True, True, True], [False, True, True], [False, True, True]]


class Sums:
    """Tables written by hand."""

    def __init__(self, groups, parts, base=0.0):
        self.groups, self.parts, self.base = groups, [np.array(part, dtype=float) for part in parts], base


def test_the_program_prefers_the_least_of_what_is_left():
    """Every design in its turn, each excluded once it was shown; the order is that of the wish."""
    wish = Sums([(0, 1), (2,)], [[5, 1, 4, 2, 6, 3], [0, 10, 20, 30]])
    cost = Sums([(0,), (2,)], [[0, 2], [0, 1, 1, 5]], base=1.0)
    total = {tuple(d): wish.parts[0][d[0] * 3 + d[1]] + wish.parts[1][d[2]] for d in ALL.tolist()}
    price = {tuple(d): 1 + cost.parts[0][d[0]] + cost.parts[1][d[2]] for d in ALL.tolist()}
    allowed = sorted((value, design) for design, value in total.items() if price[design] <= 3.0)
    master, cuts = Master(SHAPE, (0, 1)), []
    for _, design in allowed:
        status, digits = master.solve([Sum(tables=cost, limit=3.0)], cuts, [Wish(tables=wish)])
        assert status == "optimal" and tuple(digits.tolist()) == design
        bad = np.arange(6) == design[0] * 3 + design[1]
        cuts.append(Cut(bad=bad, rest=[np.arange(4) == design[2]]))
        assert cuts[-1].holds([design[2]]) and not cuts[-1].holds([(design[2] + 1) % 4])
    status, digits = master.solve([Sum(tables=cost, limit=3.0)], cuts, [Wish(tables=wish)])
    assert (status, digits, master.solves) == ("infeasible", None, len(allowed) + 1)


def test_what_exceeds_a_level_is_weighed_against_the_rest():
    """Choices of c cost 0, 1, 2, 3 and are late by 8, 4, 1, 0 beyond 2: where a level is dear it is met."""
    cheap = Wish(tables=Sums([(2,)], [[0, 1, 2, 3]]))
    late = Sums([(2,)], [[10, 6, 3, 2]])
    for weight, choice in ((0.2, 0), (0.3, 1), (0.5, 2), (5.0, 3)):
        wishes = [cheap, Wish(tables=late, level=2.0, weight=weight)]
        _, digits = Master(SHAPE, (0,)).solve([], [], wishes)
        assert digits[2] == choice
    late.base = -8.0  # now no choice is late
    _, digits = Master(SHAPE, (0,)).solve([], [], [cheap, Wish(tables=late, level=2.0, weight=5.0)])
    assert digits[2] == 0


def test_a_cut_in_another_one_is_left_out():
    def cut(bad, rest):
        return Cut(bad=np.array(bad, dtype=bool), rest=[np.array(rest, dtype=bool)])

    small, wide, aside = cut([1, 0, 0], [0, 1]), cut([1, 1, 0], [0, 1]), cut([0, 0, 1], [1, 0])
    assert _largest([small, wide, aside]) == [wide, aside]
    assert _largest([wide, small]) == [wide] and _largest([small]) == [small]
    again = cut([1, 1, 0], [0, 1])
    assert _largest([wide, again, small]) == [wide]


def chip(point):
    a, b, c = (np.asarray(getattr(point, name), dtype=float) for name in "abc")
    return {"time": 10 + (a - b) ** 2 + 20 / (1 + c) + b / 10, "cost": a + b + 2 * c}


LARGE = Space(Point(), a=range(15), b=range(15), c=range(10))
EVERY = chip(Point(*LARGE.all_digits(np.arange(LARGE.size))))


def search(limit, *, sign=1.0, **options):
    """Look for the least time, or the largest of its negative, within a cost."""
    order = "decreasing" if sign > 0 else "increasing"
    return exact_design(
        LARGE,
        lambda point: chip(point) | {"time": sign * chip(point)["time"]},
        **{"minimize" if sign > 0 else "maximize": "time"},
        subject_to={"cost": (None, limit)},
        groups=[("a", "b")],
        sums={"cost": [("a",), ("b",), ("c",)]},
        bounds={"time": {"c": order}},
        vectorized=True,
        lines=2,
        draws=20,
        **options,
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_search_needs_few_designs_and_its_bound_is_one(sign):
    """2,250 designs, all but a few of which are excluded without having been evaluated."""
    found, best = search(20, sign=sign), sign * EVERY["time"][EVERY["cost"] <= 20].min()
    assert found.status == "optimal" and found.objective == found.bound == pytest.approx(best)
    assert found.gap == 0.0 and found.proposed == found.design and found.proposed_objective == found.objective
    assert found.evaluations < 700 and found.solves < 12 and found.message == ""
    assert 0.0 < found.errors[0].largest < 0.1 and found.rests_on.startswith("declared bounds")


def test_a_search_that_begins_with_designs_that_are_all_too_dear():
    """One to three designs of 2,250 are cheap enough; none is where there is not."""
    for limit in (0, 1):
        found = search(limit)
        assert found.status == "optimal" and found.evaluations < 700
        assert found.objective == pytest.approx(EVERY["time"][EVERY["cost"] <= limit].min())
    nothing = search(-1)
    assert (nothing.status, nothing.message) == ("infeasible", "no design meets all limits")
    assert nothing.design is nothing.objective is nothing.bound is nothing.gap is None
