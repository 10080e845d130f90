"""The largest of independent times against closed forms, and steps towards fixed points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from qmodels.numerics import largest
from qmodels.numerics.largest import largest_moments
from qmodels.numerics.mixing import Mixing


@pytest.mark.parametrize("count", [1, 2, 8, 64])
def test_of_exponential_times(count):
    mean, variance = largest_moments(mean=2.0, variance=4.0, count=count)
    assert mean == pytest.approx(2 * sum(1 / k for k in range(1, count + 1)), rel=2e-3)
    assert variance == pytest.approx(4 * sum(1 / k**2 for k in range(1, count + 1)), rel=1e-2)


def test_constant_times_end_with_the_last_start():
    assert largest_moments(mean=2.0, variance=0.0, count=1, start=[0.0, 5.0, 1.0]) == (7.0, 0.0)


def test_starts_far_apart_leave_the_last_alone():
    mean, variance = largest_moments(mean=1.0, variance=0.5, count=[4, 1], start=[0.0, 100.0])
    assert mean == pytest.approx(101.0, rel=1e-3) and variance == pytest.approx(0.5, rel=2e-2)


@given(scv=st.floats(0.1, 100.0), reach=st.floats(1e-6, 1e3), count=st.integers(8, 128))
def test_series_give_all_digits_of_a_law(scv, reach, count):
    """Of a gamma law at many times the same comes out as where each is found by itself."""
    times = {"mean": 1.0, "variance": scv, "count": 1, "start": reach * np.linspace(-1.0, 1.0, count)}
    found = largest_moments(**times)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(largest, "MANY_TIMES", np.inf)
        assert found == pytest.approx(largest_moments(**times), rel=1e-12, abs=1e-12 * reach**2)


def test_a_law_of_many_times_is_found_at_few(monkeypatch):
    """The incomplete gamma function is what the last of a long batch costs."""
    asked = []
    plain = special.gammainc
    monkeypatch.setattr(special, "gammainc", lambda shape, x: asked.append(np.size(x)) or plain(shape, x))
    largest_moments(mean=1.0, variance=2.0, count=1, start=np.linspace(0.0, 3.0, 64))
    assert 0 < sum(asked) < 500


@given(
    shares=st.lists(st.floats(0.0, 0.8), min_size=1, max_size=6),
    begin=st.floats(0.8, 1.2),
    turn=st.floats(-0.3, 0.3),
)
def test_mixing_comes_nearer_than_rounds_do(shares, begin, turn):
    """Of a linear map whose rounds keep shares of an error, and pass some of it on to the next number."""
    keep = np.diag(shares) + turn * (1 - max(shares)) * np.eye(len(shares), k=1)
    mixing, mixed, plain = Mixing(), np.full(len(shares), begin), np.full(len(shares), begin)
    for _ in range(16):
        mixed = mixing.after(mixed, 1 + keep @ (mixed - 1))
        plain = 1 + keep @ (plain - 1)
    assert np.abs(mixed - 1).max() <= 1.01 * np.abs(plain - 1).max() + 1e-12


def test_what_is_not_positive_or_of_another_number_is_taken_as_it_is():
    mixing = Mixing()
    for x in (1.0, 0.9, 0.7):
        found = mixing.after(np.array([x, 0.0, 2.0]), np.array([0.8, 0.0, np.inf]))
        assert found[1] == 0.0 and found[2] == np.inf and 0.5 < found[0] < 1.1
    assert mixing.after(np.array([1.0]), np.array([0.5, 0.6])).tolist() == [0.5, 0.6]
