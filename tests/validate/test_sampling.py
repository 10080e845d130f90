"""Draws of every law: distribution, correlation, order."""

import numpy as np
import pytest
import scipy.stats as st
from scipy.special import ndtri

from qmodels import laws
from qmodels.markov import lag_correlation
from validate.engine.jit import lean
from validate.engine.sampling import draw, law_table, normal_quantile
from validate.engine.streams import new_streams

COUNT = 50_000


@lean
def fill(rows, numbers, streams, law, values):
    for k in range(values.size):
        values[k] = draw(rows, numbers, streams, law)


def sample(law, count=COUNT, **options):
    table = law_table([law])
    values = np.empty(count)
    fill(*table, new_streams(seed=3, replication=0, sources=["x"], **options), 0, values)
    return values


MIXED = laws.HyperExponential(probabilities=[0.3, 0.7], means=[1.0, 5.0])
PHASES = {"initial": [0.5, 0.5], "generator": [[-1.0, 0.5], [0.2, -2.0]]}
ARRIVALS = {"d0": [[-5.0, 0.1], [0.02, -0.3]], "d1": [[4.9, 0.0], [0.08, 0.2]]}


@pytest.mark.parametrize(
    ("law", "distribution"),
    [
        (laws.Exponential(mean=2), st.expon(scale=2).cdf),
        (laws.Erlang(mean=2, phases=3), st.gamma(3, scale=2 / 3).cdf),
        (laws.Erlang(mean=2, phases=40), st.gamma(40, scale=1 / 20).cdf),
        (laws.Gamma(mean=2, scv=4), st.gamma(0.25, scale=8).cdf),
        (laws.LogNormal(mean=2, scv=2), st.lognorm(np.sqrt(np.log(3)), scale=2 / np.sqrt(3)).cdf),
        (laws.Weibull(mean=2, shape=2), st.weibull_min(2, scale=2 / st.weibull_min(2).mean()).cdf),
        (laws.Pareto(mean=3, shape=1.5), st.pareto(1.5, scale=1.0).cdf),
        (laws.Uniform(low=1, high=4), st.uniform(1, 3).cdf),
        (MIXED, lambda x: 1 - 0.3 * np.exp(-x) - 0.7 * np.exp(-x / 5)),
        (laws.PhaseType(**PHASES), lambda x: 1 - laws.formulas(laws.PhaseType(**PHASES)).tail(x)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_continuous_laws_by_kolmogorov_and_smirnov(law, distribution):
    assert st.kstest(sample(law), distribution).pvalue > 1e-3


@pytest.mark.parametrize(
    ("law", "values", "probabilities"),
    [
        (laws.Geometric(mean=3), np.arange(1, 20), st.geom(1 / 3).pmf(np.arange(1, 20))),
        (laws.Empirical(values=[3, 1, 7, 1], weights=[1, 2, 0, 3]), [1, 3], [5 / 6, 1 / 6]),
        (laws.Empirical(values=range(1000)), np.arange(1000), np.full(1000, 1e-3)),
    ],
    ids=["geometric", "weighted", "many"],
)
def test_discrete_laws_by_chi_square(law, values, probabilities):
    drawn = sample(law)
    seen = np.array([np.sum(drawn == v) for v in values])
    rest = COUNT - seen.sum()
    expected = np.append(probabilities, max(1 - np.sum(probabilities), 0)) * COUNT
    if expected[-1] < 1:
        assert rest == 0
        expected, observed = expected[:-1] * COUNT / expected[:-1].sum(), seen
    else:
        observed = np.append(seen, rest)
    assert st.chisquare(observed, expected).pvalue > 1e-3


def test_map_has_the_moments_and_correlations_of_theory():
    theory = laws.MAP(**ARRIVALS)
    gaps = sample(laws.MAP(**ARRIVALS), 2_000_000).reshape(40, -1)
    means = gaps.mean(axis=1)
    assert abs(means.mean() * theory.rate - 1) < 3.3 * means.std() * theory.rate / np.sqrt(39)
    products = (gaps[:, :-1] * gaps[:, 1:]).mean(axis=1)
    exact = (float(lag_correlation(theory, 1)) * theory.scv + 1) / theory.rate**2
    assert abs(products.mean() - exact) < 3.3 * products.std() / np.sqrt(39)


def test_constant_and_recorded_times_come_as_given():
    assert set(sample(laws.Deterministic(mean=2.5), 5)) == {2.5}
    assert sample(laws.Geometric(mean=1), 3).tolist() == [1, 1, 1]
    assert sample(laws.Replay(values=[3, 1, 2]), 7).tolist() == [3, 1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize(
    "law",
    [
        laws.Exponential(mean=2),
        laws.LogNormal(mean=2, scv=2),
        laws.Weibull(mean=2, shape=2),
        laws.Pareto(mean=3, shape=5),
        laws.Uniform(low=1, high=4),
        laws.Geometric(mean=3),
        laws.Empirical(values=[3, 1, 7, 2]),
    ],
    ids=lambda law: type(law).__name__,
)
def test_mirrored_draws_of_inverted_laws_are_opposed(law):
    plain, mirrored = (sample(law, 20_000, antithetic=a) for a in (False, True))
    order = np.argsort(plain, kind="stable")
    assert np.corrcoef(plain, mirrored)[0, 1] < -0.3
    # Large where the other is small, without exception.
    assert np.all(np.diff(mirrored[order])[np.diff(plain[order]) > 0] <= 0)


def test_normal_quantile():
    u = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 2000), 10.0 ** -np.arange(1, 16)])
    ours = np.array([normal_quantile(x) for x in u])
    # Measured 7e-16.
    assert np.max(np.abs(ours / ndtri(u) - 1)) < 2e-15
