"""Formulas of laws against other libraries, exact transforms and each other, deep tails included."""

import mpmath as mp
import numpy as np
import pytest
import scipy.stats as st
from numpy.testing import assert_allclose

from qmodels import laws
from qmodels.laws import Deterministic, Empirical, Exponential, Gamma, HyperExponential, formulas
from qmodels.laws.formulas import one_minus_phi
from qmodels.laws.phases import Phases

SAME = {
    "exponential": (laws.Exponential(mean=3.0), st.expon(scale=3.0)),
    "erlang": (laws.Erlang(mean=3.0, phases=5), st.gamma(5, scale=0.6)),
    "gamma": (laws.Gamma(mean=3.0, scv=2.5), st.gamma(0.4, scale=7.5)),
    "narrow gamma": (laws.Gamma(mean=3.0, scv=1e-4), st.gamma(1e4, scale=3e-4)),
    "lognormal": (laws.LogNormal(mean=3.0, scv=2.0), st.lognorm(np.sqrt(np.log(3)), scale=3 / np.sqrt(3))),
    "weibull": (laws.Weibull(mean=3.0, shape=0.7), st.weibull_min(0.7, scale=3 / st.weibull_min(0.7).mean())),
    "pareto": (laws.Pareto(mean=3.0, shape=2.5), st.pareto(2.5, scale=3 * 1.5 / 2.5)),
    "uniform": (laws.Uniform(low=1.0, high=5.0), st.uniform(1.0, 4.0)),
}
PHASED = {
    "phases": laws.PhaseType(initial=[0.3, 0.7], generator=[[-3.0, 1.0], [0.5, -2.0]]),
    "fast and slow": laws.PhaseType(initial=[0.5, 0.5], generator=[[-1e6, 0.0], [0.0, -0.1]]),
    "process": laws.MAP.mmpp(generator=[[-0.5, 0.5], [0.2, -0.2]], rates=[4.0, 0.5]),
}
OTHERS = {
    "geometric": laws.Geometric(mean=3.0),
    "one tick": laws.Geometric(mean=1.0),
    "mixture": laws.HyperExponential(probabilities=[0.2, 0.8], means=[5.0, 1.0]),
    "constant": laws.Deterministic(mean=2.0),
    "list": laws.Empirical(values=[1.0, 2.0, 9.0], weights=[3.0, 2.0, 1.0]),
}
EVERY = {name: law for name, (law, _) in SAME.items()} | PHASED | OTHERS
every = pytest.mark.parametrize("law", EVERY.values(), ids=EVERY)
same = pytest.mark.parametrize(("law", "other"), SAME.values(), ids=SAME)


@same
def test_tails_densities_and_quantiles_are_those_of_scipy(law, other):
    found = formulas(law)
    level = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-9])
    x = np.append(other.ppf(level), [0.3, 4.9])
    assert_allclose(found.cdf(x), other.cdf(x), rtol=1e-9, atol=1e-14)
    assert_allclose(found.tail(x), other.sf(x), rtol=1e-9, atol=1e-300)
    assert_allclose(found.density(x), other.pdf(x), rtol=2e-9, atol=1e-300)
    assert_allclose(found.quantile(level[:-1]), other.ppf(level[:-1]), rtol=1e-7)
    if np.isinf(other.support()[1]):
        assert found.tail(other.isf(1e-100)) == pytest.approx(1e-100, rel=1e-6, abs=0)
    for k in (0, 1, 2):
        outside = other.expect(lambda t, k=k: t**k, lb=2.5) if law.scv > 1e-3 else None
        if outside is not None:
            assert float(found.tail_moment(k, np.asarray(2.5))) == pytest.approx(outside, rel=1e-5)


@every
def test_the_complement_of_the_residual_keeps_its_digits_at_small_s(law):
    """It begins with s E[X^2] / (2 E[X]), the next term being - s^2 E[X^3] / (6 E[X])."""
    found = formulas(law)
    for s in np.array([1e-12, 1e-6, 1e-4]) / law.mean:
        begin = s * float(found.moment(2)) / (2 * law.mean)
        third = float(found.moment(3)) if not isinstance(law, laws.Pareto) else np.inf
        error = s**2 * third / (6 * law.mean) / begin if np.isfinite(third) else 1e-2
        value = found.residual_complement(np.asarray(s))
        assert float(value) == pytest.approx(begin, rel=1.01 * error + 1e-9)
        assert found.residual_complement(np.asarray(1j * s)).imag == pytest.approx(begin, rel=error + 1e-9)


def exact_transform(name, s):
    """Return E[exp(-sX)] from a formula that shares nothing with those of the package."""
    s = mp.mpmathify(s)
    if name == "uniform":
        return (mp.exp(-s) - mp.exp(-5 * s)) / (4 * s)
    if name == "pareto":
        x = mp.mpf(3) * 3 / 5
        return mp.mpf(2.5) * (x * s) ** 2.5 * mp.gammainc(-2.5, x * s)
    if name in ("exponential", "erlang", "gamma", "narrow gamma"):
        scv = {"exponential": 1, "erlang": mp.mpf(1) / 5, "gamma": 2.5, "narrow gamma": 1e-4}[name]
        return (1 + 3 * s * scv) ** (-1 / mp.mpf(scv))
    if name == "lognormal":
        sigma = mp.sqrt(mp.log(3))
        return mp.quad(
            lambda z: mp.npdf(z) * mp.exp(-s * mp.sqrt(3) * mp.exp(sigma * z)),
            [-9, -5, -3, -1, 0, 1, 3, 5, 9],
        )
    scale = 3 / mp.gamma(1 + 1 / mp.mpf(0.7))
    return mp.quad(lambda u: mp.exp(-u - s * scale * u ** (1 / mp.mpf(0.7))), [0, 0.1, 1, 3, 8, 20, 50])


@pytest.mark.parametrize("name", SAME)
def test_transforms_are_exact(name):
    found = formulas(SAME[name][0])
    for s in (0.04, 0.3 + 1.0j):
        assert_allclose(
            found.laplace(np.asarray(s)), complex(exact_transform(name, s)), rtol=2e-9, atol=1e-12
        )


@every
def test_the_transform_is_known_as_far_as_it_says(law):
    """Up to the pole on the left: there is none with a bounded time, and none is claimed of long tails."""
    found = formulas(law)
    end = float(found.decay())
    slow = isinstance(law, laws.LogNormal | laws.Weibull | laws.Pareto)
    assert (end == 0.0) or not slow
    if end:
        s = min(0.5 * end, 300 / law.mean)
        below = float(found.laplace(np.asarray(-s)))
        assert np.isfinite(below) and below > np.exp(s * law.mean) * (1 - 1e-12)  # Jensen
        if not isinstance(law, laws.Deterministic | laws.Empirical) and law.scv > 0.1:
            assert abs(found.laplace(np.asarray(-end * (1 - 1e-9)))) > 1e3


@pytest.mark.parametrize(
    "law", [law for law in EVERY.values() if formulas(law).decay() or law in PHASED.values()]
)
def test_arrivals_during_a_time_are_a_mixture_of_poisson_laws(law):
    found, rate = formulas(law), np.array([0.3, 1.1])
    counts = found.poisson_counts(rate, 400)
    n = np.arange(400)
    assert np.all(counts >= 0)
    assert_allclose(counts[:, 0], found.laplace(rate), rtol=1e-9)
    assert_allclose(counts.sum(axis=1), 1.0, atol=1e-6)
    if law.scv < 1.5:
        assert_allclose(counts @ n, rate * law.mean, rtol=1e-6)
        assert_allclose(counts @ (n * (n - 1.0)), rate**2 * found.moment(2), rtol=1e-6)


@every
def test_panels_go_from_0_to_where_the_tail_has_vanished(law):
    found = formulas(law)
    borders = found.breaks()
    assert borders[0] == 0.0 and np.all(np.diff(borders) > 0)
    assert float(found.tail(borders[-1:])[0]) < 1e-17
    # So much of the law lies before the second border, where its density may have no bound.
    if not isinstance(law, laws.Deterministic | laws.Geometric | laws.Empirical):
        assert float(found.cdf(borders[1:2])[0]) < 1e-13


def test_special_laws_are_others():
    """Erlang with one phase and Weibull of shape 1 are exponential; many phases tend to a constant."""
    x = np.array([0.1, 1.0, 7.0])
    one = formulas(laws.Exponential(mean=2.0))
    for law in (
        laws.Erlang(mean=2.0, phases=1),
        laws.Weibull(mean=2.0, shape=1.0),
        laws.Gamma(mean=2.0, scv=1.0),
        laws.PhaseType(initial=[1.0], generator=[[-0.5]]),
        laws.HyperExponential(probabilities=[0.4, 0.6], means=[2.0, 2.0]),
    ):
        other = formulas(law)
        assert_allclose(other.tail(x), one.tail(x), rtol=1e-12)
        assert_allclose(other.density(x), one.density(x), rtol=1e-9)
        assert_allclose(other.laplace(x + 1j), one.laplace(x + 1j), rtol=1e-8)
    narrow, constant = formulas(laws.Gamma(mean=2.0, scv=1e-8)), formulas(laws.Deterministic(mean=2.0))
    assert_allclose(narrow.laplace(x), constant.laplace(x), rtol=1e-6)
    assert narrow.tail(np.asarray(1.99)) == 1.0 and narrow.tail(np.asarray(2.01)) == 0.0
    assert constant.tail(np.asarray(2.0)) == 0.0 and constant.cdf(np.asarray(2.0)) == 1.0


def test_ticks_are_counted_one_by_one():
    law = formulas(laws.Geometric(mean=4.0))
    n = np.arange(1, 400)
    p = 0.25 * 0.75 ** (n - 1.0)
    for k in range(4):
        assert float(law.moment(k)) == pytest.approx(p @ n.astype(float) ** k, rel=1e-12)
        assert float(law.tail_moment(k, np.asarray(5.5))) == pytest.approx(p[5:] @ n[5:].astype(float) ** k)
    s = np.array([1e-9, 0.3, 0.2 + 2.0j])
    assert_allclose(law.laplace(s), np.exp(-s[:, None] * n) @ p, rtol=1e-12)
    assert law.expect(lambda x: x**2) == pytest.approx(float(law.moment(2)), rel=1e-9)
    assert law.tail(np.asarray(1.0)) == 0.75 and law.tail(np.asarray(0.99)) == 1.0
    with pytest.raises(ValueError, match=r"mean must be at most 90,000 ticks to sum over them, got 100000$"):
        formulas(laws.Geometric(mean=100_000.0)).breaks()
    assert formulas(laws.Geometric(mean=90_000.0)).breaks().size > 90_000 * 40


def test_moments_of_parts_of_a_phase_type_law():
    """Two exponential phases, one a million times as fast: uniformized, and from what is missing beyond."""
    law = formulas(PHASED["fast and slow"])
    for x in (1e-7, 1e-3, 0.05, 30.0):  # the last two take more than 100,000 steps or less
        for k in (0, 1, 2):
            total = sum(0.5 * mp.gammainc(k + 1, 0, rate * x) / mp.mpf(rate) ** k for rate in (1e6, 0.1))
            assert float(law.truncated_moment(k, np.asarray(x))) == pytest.approx(float(total), rel=1e-8)
    assert isinstance(law, Phases) and law.phases == 2 and law.mean == pytest.approx(5.0000005)
    with pytest.raises(ValueError, match="k must be a whole number >= 0"):
        law.moment(-1)


def test_phi_at_small_and_large_arguments():
    """1 - (1 - exp(-x)) / x by its series, in twice the digits."""
    x = np.array([1e-300, 1e-8, 0.1, 0.49, 0.51, 3.0, 500.0])
    with mp.workdps(40):
        exact = [float(1 - (1 - mp.exp(-mp.mpf(v))) / mp.mpf(v)) if v > 1e-20 else v / 2 for v in x.tolist()]
    assert_allclose(one_minus_phi(x), exact, rtol=3e-16 * 20)
    z = np.array([0.3j, 0.2 + 0.4j, 2.0 - 3.0j])
    assert_allclose(one_minus_phi(z), 1 - (1 - np.exp(-z)) / z, rtol=1e-13)


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


@pytest.mark.parametrize("scv", [1e-4, 0.01, 0.2, 1.0, 3.0, 30.0, 300.0])
def test_expectations_of_wide_and_narrow_gammas(scv):
    law = formulas(Gamma(mean=2.0, scv=scv))
    assert law.expect(np.ones_like) == pytest.approx(1, rel=1e-12)
    assert law.expect(lambda x: x * x) == pytest.approx(4 * (1 + scv), rel=1e-12)
