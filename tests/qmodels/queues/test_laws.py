from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.laws import Deterministic, Empirical, Erlang, Exponential, Gamma, HyperExponential, formulas

LAWS = [
    (Deterministic(mean=1.3), lambda s: mp.exp(-s * mp.mpf(1.3))),
    (Gamma(mean=1.3, scv=0.25), lambda s: (1 + s * mp.mpf(1.3) / 4) ** -4),
    (Gamma(mean=1.3, scv=3.0), lambda s: (1 + s * mp.mpf(1.3) * 3) ** (-mp.mpf(1) / 3)),
    (Exponential(mean=0.7), lambda s: 1 / (1 + s * mp.mpf(0.7))),
    (
        HyperExponential(probabilities=[0.25, 0.75], means=[3.0, 0.5]),
        lambda s: mp.mpf(0.25) / (1 + 3 * s) + mp.mpf(0.75) / (1 + s / 2),
    ),
    (
        Empirical(values=[3.0, 0.5], weights=[0.25, 0.75]),
        lambda s: mp.mpf(0.25) * mp.exp(-3 * s) + mp.mpf(0.75) * mp.exp(-s / 2),
    ),
]


@pytest.mark.parametrize(("law", "transform"), LAWS)
def test_transforms_keep_their_digits(law, transform):
    law = formulas(law)
    with mp.workdps(60):
        mean = -mp.diff(transform, 0, 1, h=mp.mpf("1e-25"))
        for s in (1e-12, 1e-6, 1e-3, 0.03, 0.1, 0.5, 1.0, 10.0, 1e3, 1e-3 + 1e-2j, 0.02 + 0.03j, 1 + 3j):
            z = mp.mpc(s)
            exact = transform(z)
            if abs(exact) > 1e-290:
                assert abs(mp.mpc(complex(law.laplace(np.asarray(s)))) / exact - 1) < 1e-13
            aged = 1 - (1 - exact) / (mean * z)
            assert abs(mp.mpc(complex(law.residual_complement(np.asarray(s)))) / aged - 1) < 3e-14


@pytest.mark.parametrize(("law", "transform"), LAWS)
def test_moments_tails_and_expectations_agree(law, transform):
    law = formulas(law)
    for k in (1, 2, 3):
        with mp.workdps(80):
            moment = float((-1) ** k * mp.diff(transform, 0, k, h=mp.mpf("1e-18")))
        assert float(law.moment(k)) == pytest.approx(moment, rel=1e-12)
        assert law.expect(lambda x, k=k: x**k) == pytest.approx(moment, rel=1e-12)
        x = np.array([0.01, 0.5, 1.3, 2.0, 9.0])
        assert_allclose(law.truncated_moment(k, x) + law.tail_moment(k, x), moment, rtol=1e-12)
    assert law.expect(lambda x: np.exp(-x)) == pytest.approx(float(transform(1)), rel=1e-12)
    assert_allclose(law.tail_moment(0, x), law.tail(x), rtol=1e-13)


@pytest.mark.parametrize(("law", "transform"), LAWS)
def test_poisson_counts(law, transform):
    law = formulas(law)
    counts = law.poisson_counts(np.array([0.3, 2.0]), 400)
    assert counts.shape == (2, 400)
    assert_allclose(counts.sum(axis=1), 1, rtol=1e-13)
    n = np.arange(400)
    mean = float(law.moment(1))
    assert_allclose(counts @ n, np.array([0.3, 2.0]) * mean, rtol=1e-12)
    with mp.workdps(40):
        for rate, row in zip((0.3, 2.0), counts, strict=True):
            z = mp.mpf("0.5")
            assert float(transform(mp.mpf(rate) * (1 - z))) == pytest.approx(np.dot(row, 0.5**n), rel=1e-13)


@pytest.mark.parametrize("scv", [1e-4, 0.01, 0.2, 1.0, 3.0, 30.0, 300.0])
def test_expectations_of_wide_and_narrow_gammas(scv):
    law = formulas(Gamma(mean=2.0, scv=scv))
    assert law.expect(np.ones_like) == pytest.approx(1, rel=1e-12)
    assert law.expect(lambda x: x * x) == pytest.approx(4 * (1 + scv), rel=1e-12)


def test_families():
    assert Erlang(mean=2.0, phases=4).scv == 0.25
    law = HyperExponential.balanced(mean=2.0, scv=5.0)
    assert float(formulas(law).moment(1)) == pytest.approx(2, rel=1e-14)
    assert float(formulas(law).moment(2)) == pytest.approx(4 * 6, rel=1e-14)
    halves = np.multiply(law.probabilities, law.means)
    assert halves[0] == pytest.approx(halves[1], rel=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: formulas(Deterministic(mean=0)), "mean of a law must be > 0, got 0.0"),
        (
            lambda: HyperExponential(probabilities=[0.5, 0.6], means=[1, 2]),
            "probabilities must sum to 1, got 1.1",
        ),
        (
            lambda: Empirical(values=[1, 2], weights=[1.0]),
            r"weights must be a list of 2 numbers, got shape \(1,\)",
        ),
        (
            lambda: HyperExponential.balanced(mean=1, scv=0.5),
            "scv must be >= 1 for a hyperexponential law, got 0.5",
        ),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        make()
