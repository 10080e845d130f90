"""Laws of times: moments against other libraries, and what is refused."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats as st
from hypothesis import given
from hypothesis import strategies as hs

from qmodels.laws import formulas
from qmodels.systems.laws import times as laws
from qmodels.systems.spec.fields import stable_hash

means = hs.floats(1e-3, 1e3)


@pytest.mark.parametrize(
    ("law", "same"),
    [
        (laws.Exponential(mean=3.0), st.expon(scale=3.0)),
        (laws.Erlang(mean=3.0, phases=5), st.gamma(5, scale=0.6)),
        (laws.Gamma(mean=3.0, scv=2.5), st.gamma(0.4, scale=7.5)),
        (laws.LogNormal(mean=3.0, scv=2.0), st.lognorm(np.sqrt(np.log(3)), scale=3 / np.sqrt(3))),
        (laws.Weibull(mean=3.0, shape=0.7), st.weibull_min(0.7, scale=3 / st.weibull_min(0.7).mean())),
        (laws.Pareto(mean=3.0, shape=2.5), st.pareto(2.5, scale=3 * 1.5 / 2.5)),
        (laws.Uniform(low=1.0, high=5.0), st.uniform(1.0, 4.0)),
        (laws.Geometric(mean=3.0), st.geom(1 / 3)),
        (laws.Deterministic(mean=3.0), st.uniform(3.0, 1e-9)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_moments_agree_with_scipy(law, same):
    assert law.mean == pytest.approx(same.mean(), rel=1e-9)
    assert law.scv == pytest.approx(same.var() / same.mean() ** 2, rel=1e-9, abs=1e-12)


@given(p=hs.floats(0.01, 0.99), first=means, second=means)
def test_a_mixture_is_the_phase_type_with_parallel_phases(p, first, second):
    mixture = laws.HyperExponential(probabilities=[p, 1 - p], means=[first, second])
    phases = laws.PhaseType(initial=[p, 1 - p], generator=[[-1 / first, 0], [0, -1 / second]])
    assert mixture.mean == pytest.approx(phases.mean, rel=1e-9)
    # The second moment cancels in the scv of laws close to exponential.
    assert mixture.scv == pytest.approx(phases.scv, rel=1e-9, abs=1e-9)


def test_moments_are_those_of_the_formulas():
    for law in (
        laws.PhaseType(initial=[0.3, 0.7], generator=[[-3.0, 1.0], [0.5, -2.0]]),
        laws.MAP(d0=[[-5.0, 1.0], [0.2, -1.0]], d1=[[4.0, 0.0], [0.3, 0.5]]),
    ):
        assert law.mean == pytest.approx(float(formulas(law).moment(1)), rel=1e-12)
        assert law.scv == pytest.approx(float(formulas(law).scv), rel=1e-11)


@given(values=hs.lists(hs.floats(0.01, 100), min_size=1, max_size=20))
def test_recorded_laws_have_the_moments_of_their_lists(values):
    for law in (laws.Empirical(values=values), laws.Replay(values=values)):
        assert law.mean == pytest.approx(np.mean(values))
        assert law.scv == pytest.approx(np.var(values) / np.mean(values) ** 2, abs=1e-9)


def test_weights_count():
    assert laws.Empirical(values=[1, 5], weights=[3, 1]) != laws.Empirical(values=[1, 5])
    assert laws.Empirical(values=[1, 5], weights=[3, 1]).mean == 2.0
    assert laws.Empirical(values=[0.0]).scv == 0.0


def test_rounding_and_overflow_leave_a_variation_in_its_range():
    assert all(laws.Empirical(values=[x] * 3).scv >= 0 for x in np.linspace(0.01, 1, 100))
    assert laws.Weibull(mean=1.0, shape=1e-3).scv == np.inf
    # Variance over squared mean tends to pi^2 / 6 / shape^2 (the Gumbel law's).
    assert laws.Weibull(mean=1.0, shape=1e4).scv == pytest.approx(np.pi**2 / 6 * 1e-8, rel=1e-3)


def test_laws_are_values():
    law = laws.PhaseType(initial=np.array([1.0, 0.0]), generator=np.array([[-1.0, 1.0], [0.0, -2.0]]))
    same = laws.PhaseType(initial=(1, 0), generator=((-1, 1), (0, -2)))
    assert law == same and hash(law) == hash(same) and stable_hash(law) == stable_hash(same)
    assert pickle.loads(pickle.dumps(law)) == law
    assert replace(laws.Erlang(mean=1.0, phases=2), phases=3).scv == pytest.approx(1 / 3)
