from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize.programs.piecewise import Curve

X = np.linspace(0, 1, 20001)


def check(curve, bracket, function, slack=1e-13):
    """The functions enclose the curve everywhere and are nowhere farther apart than stated."""
    x = curve.low + (curve.high - curve.low) * X
    exact = function(x)
    height = np.abs(exact).max()
    assert (bracket.below(x) <= exact + slack * height).all()
    assert (bracket.above(x) >= exact - slack * height).all()
    assert (bracket.above(x) - bracket.below(x)).max() <= bracket.error + slack * height
    np.testing.assert_allclose(bracket.below(bracket.knots), function(bracket.knots), atol=1e-6 * height)
    np.testing.assert_allclose(bracket.above(bracket.knots), function(bracket.knots), atol=1e-6 * height)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    end=st.floats(0.1, 0.99),
    servers=st.integers(1, 4),
    tolerance=st.sampled_from([1.0, 0.1, 0.01]),
    knots=st.lists(st.floats(0, 0.1), max_size=3),
)
def test_a_queue_is_enclosed_within_the_tolerance(end, servers, tolerance, knots):
    def waiting(load):
        return load ** (servers + 1) / (1 - load)

    curve = Curve(waiting, 0.0, end)
    bracket = curve.bracket(tolerance=tolerance, knots=knots)
    assert bracket.error <= tolerance and bracket.convex
    check(curve, bracket, waiting)
    slopes, heights = bracket.lines()
    x = end * X
    assert ((slopes * x[:, None] + heights).max(axis=1) <= waiting(x) + 1e-13 * waiting(end)).all()


def test_the_error_falls_with_the_square_of_the_pieces():
    curve = Curve(lambda x: x / (1 - x), 0.0, 0.9)
    errors = [curve.bracket(pieces=pieces).error for pieces in (16, 32, 64)]
    assert errors[1] < errors[0] / 2.5 and errors[2] < errors[1] / 2.5
    assert len(curve.bracket(pieces=16).knots) == 17
    assert len(curve.bracket().knots) == 2
    assert [len(Curve(np.square, 0, 1).bracket(pieces=n).knots) for n in (1, 3, 7)] == [2, 4, 8]


def test_a_curve_with_inflections():
    def bell(x):
        return np.exp(-x * x)

    curve = Curve(bell, -3.0, 3.0, inflections=[-(0.5**0.5), 0.5**0.5])
    bracket = curve.bracket(tolerance=1e-3)
    assert bracket.error <= 1e-3 and not bracket.convex
    check(curve, bracket, bell)


def test_concave_linear_and_bent_curves():
    for function, convex in (
        (lambda x: np.sqrt(x + 0.01), False),
        (lambda x: 3 - 2 * x, True),
        (lambda x: np.abs(x - 0.3), True),
    ):
        curve = Curve(function, 0.0, 1.0)
        bracket = curve.bracket(tolerance=0.05)
        assert bracket.convex is convex and bracket.error <= 0.05
        check(curve, bracket, function)
    root = Curve(np.sqrt, 0.0, 1.0).bracket(tolerance=0.05)  # even where the slope is infinite
    assert (root.below(X) <= np.sqrt(X) + 1e-15).all() and (np.sqrt(X) <= root.above(X) + 1e-15).all()
    assert Curve(lambda x: 0 * x + 2, 0, 1).bracket().error < 1e-7


def test_a_value_is_a_number_and_is_checked():
    curve = Curve(lambda x: 1 / (1 - x), 0.0, 2.0)
    assert float(curve(0.5)) == 2
    with (
        pytest.raises(ValueError, match="the curve must be finite, got -?inf at 1"),
        np.errstate(all="ignore"),
    ):
        curve(np.array([0.5, 1.0]))


def square(x):
    return x * x


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Curve(3, 0, 1), "function must be a callable on an array, got 3"),
        (lambda: Curve(square, 1, 1), "low and high must be finite with low < high, got 1 and 1"),
        (lambda: Curve(square, 0, np.inf), "low and high must be finite with low < high, got 0 and inf"),
        (
            lambda: Curve(square, 0, 1, inflections=[0.5, 0.2]),
            r"inflections must ascend between 0 and 1, got \[0.5, 0.2\]",
        ),
        (lambda: Curve(square, 0, 1).bracket(tolerance=0), "tolerance must be > 0, got 0"),
        (lambda: Curve(square, 0, 1).bracket(pieces=0), "pieces must be a whole number >= 1, got 0"),
        (lambda: Curve(square, 0, 1).bracket(knots=[2.0]), "knots must be from 0 to 1, got 2.0"),
        (
            lambda: Curve(np.sin, 0, 5).bracket(pieces=2),
            "the curve must be convex or concave from 0 to 5, but it bends both ways near .*; give its",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_tolerance_below_rounding_is_refused():
    with pytest.raises(RuntimeError, match="pieces leave an error of .* for a tolerance of 1e-12; ask for"):
        Curve(square, 0, 1).bracket(tolerance=1e-12)
