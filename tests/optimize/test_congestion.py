from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.programs.assignment import assign
from optimize.programs.congestion import choose_congested
from optimize.programs.piecewise import Curve


def waiting(load):
    return load**2 / (1 - load)


def discount(load):  # concave: the more, the cheaper each
    return 2 * np.sqrt(load)


def wave(load):
    return np.cos(4 * load)


CURVES = {
    "convex": Curve(waiting, 0.0, 0.98),
    "concave": Curve(discount, 0.0, 2.0),
    "both": Curve(wave, 0.0, 1.5, inflections=[np.pi / 8, 3 * np.pi / 8]),
    "falling": Curve(lambda load: 1 / (0.1 + load), 0.0, 3.0),
}


def by_enumeration(costs, loads, curves):
    """The least cost over all assignments; None if none fits."""
    tasks, places = np.shape(costs)
    best = None
    for chosen in itertools.product(range(places), repeat=tasks):
        cost = sum(costs[t][p] for t, p in enumerate(chosen))
        for place, curve in enumerate(curves):
            load = sum(loads[t][p] for t, p in enumerate(chosen) if p == place)
            cost += float(curve.function(np.array(load))) if curve.low <= load <= curve.high else np.inf
        if cost < np.inf and (best is None or cost < best):
            best = cost
    return best


@st.composite
def instances(draw):
    tasks, places = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    size = tasks * places
    number = st.integers(0, 8).map(lambda n: n / 8)
    costs = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, np.inf]), min_size=size, max_size=size))
    loads = draw(st.lists(number, min_size=size, max_size=size))
    one = draw(st.booleans())
    kinds = st.sampled_from(list(CURVES))
    curves = [CURVES[draw(kinds)]] * places if one else [CURVES[draw(kinds)] for _ in range(places)]
    costs = np.reshape(costs, (tasks, places))
    if one and draw(st.booleans()):  # equal places
        costs = np.repeat(costs[:, :1], places, axis=1)
        loads = np.repeat(loads[:tasks], places)
    return costs, np.reshape(loads, (tasks, places)), curves


@pytest.mark.parametrize("few", [0, 5000])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(instance=instances())
def test_assignment_against_enumeration(few, instance):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optimize.programs.congestion.CHOICES", few)
        check_assignment(few, instance)


def check_assignment(few, instance):
    costs, loads, curves = instance
    best = by_enumeration(costs, loads, curves)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = assign(costs, loads, curves, tolerance=1e-6)
    if best is None:
        assert (result.status, result.places, result.cost, result.gap) == ("infeasible", (), None, None)
        assert result.message
        return
    # The solver leaves a gap of what it may be off by: 63 options and pieces, 48 high, of 1e-9 each.
    assert result.status == ("optimal" if few or result.gap <= 1e-6 else "resolved")
    assert result.gap <= (0 if few else 1e-5) or (not few and result.cost - result.bound <= 5e-6)
    assert result.bound <= best + 1e-12 * abs(best) and best <= result.cost + 1e-12 * abs(best)
    assert result.cost == pytest.approx(best, rel=1e-5)
    real = sum(costs[t, p] for t, p in enumerate(result.places))
    real += sum(float(c.function(np.array(x))) for c, x in zip(curves, result.loads, strict=True))
    assert result.cost == pytest.approx(real, rel=1e-12)


def test_the_optimum_lies_between_inner_and_outer_functions_and_the_ends_meet():
    rng = np.random.default_rng(6)
    loads = np.repeat(rng.uniform(0.05, 0.4, 6)[:, None], 3, axis=1)
    costs = rng.uniform(0, 0.3, (6, 3))
    curve = CURVES["convex"]
    best = by_enumeration(costs, loads, [curve] * 3)
    spans = []
    for pieces in (2, 4, 8, 32):
        bracket = curve.bracket(pieces=pieces)
        ends = []
        for side in (bracket.below, bracket.above):
            replaced = Curve(side, curve.low, curve.high)
            ends.append(by_enumeration(costs, loads, [replaced] * 3))
        assert ends[0] <= best <= ends[1]
        assert ends[1] - ends[0] <= 3 * bracket.error
        spans.append(ends[1] - ends[0])
    assert spans == sorted(spans, reverse=True) and spans[-1] < 0.1 * spans[0]
    loose, tight = (assign(costs, loads, curve, tolerance=tolerance) for tolerance in (0.5, 1e-7))
    assert loose.bound <= tight.bound <= best * (1 + 1e-9) and tight.cost == pytest.approx(best, rel=1e-9)


def test_channels_to_memories_of_realistic_size():
    rng = np.random.default_rng(8)
    loads, costs = rng.uniform(0.1, 0.4, 9), rng.integers(1, 5, (9, 3)) * 0.02
    result = assign(costs, loads, Curve(waiting, 0.0, 0.98), tolerance=1e-3, time_limit=60)
    assert result.status == "optimal" and result.gap <= 1e-3
    assert (result.loads < 0.98).all() and result.loads.sum() == pytest.approx(loads.sum())


def test_a_budget_beside_the_curve_and_no_linear_cost():
    table = {"load": [0.1, 0.5, 0.9], "area": [4.0, 2.0, 1.0]}
    curve = Curve(lambda load: load / (2 - load), 0.0, 1.9)
    free = choose_congested({"a": table, "b": table}, curves={"load": curve})
    assert free.chosen == {"a": 0, "b": 0} and free.loads == {"load": 0.2}
    tight = choose_congested({"a": table, "b": table}, curves={"load": curve}, subject_to={"area": (None, 3)})
    assert sorted(tight.chosen.values()) == [1, 2] and tight.cost == pytest.approx(1.4 / 0.6)
    none = choose_congested({"a": table}, curves={"load": Curve(waiting, 0.0, 0.05)})
    assert none.status == "infeasible" and none.message.startswith("load <= 0.05 cannot be met")


def test_time_limits_are_statuses():
    rng = np.random.default_rng(9)
    loads, costs = rng.uniform(0.01, 0.15, 60), rng.uniform(0, 0.01, (60, 6))
    curve = Curve(waiting, 0.0, 0.98)
    result = assign(costs, loads, curve, tolerance=1e-9, time_limit=2.0)
    assert result.status == "feasible" and 0 < result.gap and result.bound < result.cost
    none = assign(costs, loads, curve, time_limit=1e-9)
    assert (none.status, none.places, none.cost) == ("time limit", (), None)
    assert none.message == "the time limit came before the first solution"


C = CURVES["convex"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: assign([1, 2], [1, 2], C), r"costs must be a table of tasks by places, .*of shape \(2,\)"),
        (lambda: assign([[np.nan]], [1], C), r"costs must be a table of tasks by places, not NaN or -inf"),
        (
            lambda: assign([[1, 2]], [[1.0]], C),
            r"loads must be finite and >= 0, of shape \(1, 2\) or \(1,\), got shape \(1, 1\)",
        ),
        (lambda: assign([[1]], [-1.0], C), r"loads must be finite and >= 0, of shape \(1, 1\)"),
        (lambda: assign([[1, 2]], [1.0], [C]), r"curves must be one per place \(2\), got 1"),
        (lambda: choose_congested({"a": {"x": [1]}}, curves={}), "curves must have at least one metric"),
        (
            lambda: choose_congested({"a": {"x": [1]}}, curves={"x": C}, tolerance=0),
            "tolerance must be finite and > 0, got 0",
        ),
        (lambda: choose_congested({"a": {"x": [1]}}, curves={"y": C}), "group 'a' has no metric 'y'"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("bend", [np.sqrt, np.square], ids=["concave", "convex"])
@pytest.mark.parametrize("dear", [-1.0, 1.0], ids=["less load is dear", "more load is dear"])
def test_a_curve_whose_domain_begins_above_zero(bend, dear, monkeypatch):
    """Loads between 4 and 30 at a price: the program, which has not all choices to look at, against these."""
    monkeypatch.setattr("optimize.programs.congestion.CHOICES", 0)
    loads, prices = (
        [1.0, 4.0, 10.0],
        [[dear * p for p in row] for row in ([1.0, 4.0, 9.0], [0.0, 2.0, 7.0], [1.5, 2.5, 3])],
    )
    groups = {f"g{k}": {"load": loads, "price": price} for k, price in enumerate(prices)}
    found = choose_congested(
        groups, minimize="price", curves={"load": Curve(bend, 4.0, 30.0)}, tolerance=1e-6
    )
    every = [
        (sum(price[k] for price, k in zip(prices, rows, strict=True)) + float(bend(load)), rows)
        for rows in itertools.product(range(3), repeat=3)
        if (load := sum(loads[k] for k in rows)) >= 4.0
    ]
    cost, best = min(every)
    assert found.cost == pytest.approx(cost) and tuple(found.chosen.values()) == best
    assert found.bound <= cost + 1e-9 and found.gap <= 1e-5
