"""Which laws are which, one law as another, and what a system says to laws it does not take."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import laws

PHASES = laws.PhaseType(initial=(1.0, 0.0), generator=((-2.0, 1.0), (0.0, -3.0)))


def test_every_name_is_one_class():
    import qmodels as qm
    from qmodels.systems.laws import times as structure

    for name in structure.__all__:
        assert getattr(qm.laws, name) is getattr(structure, name)


@pytest.mark.parametrize(
    "law",
    [
        laws.Exponential(mean=2.0),
        laws.Erlang(mean=2.0, phases=3),
        laws.HyperExponential(probabilities=[0.2, 0.8], means=[3.0, 0.5]),
        PHASES,
    ],
)
def test_one_law_as_another(law):
    as_phases, process = laws.phase_type(law), laws.markovian(law)
    x = np.array([0.1, 1.0, 5.0])
    for other in (as_phases, process):
        assert other.mean == pytest.approx(law.mean, rel=1e-12)
        assert_allclose(laws.formulas(other).tail(x), laws.formulas(law).tail(x), rtol=1e-9)
    assert laws.scaled(process, 2.0).mean == pytest.approx(2 * law.mean, rel=1e-12)


def test_gaps_without_an_arrival_from_the_first_phase_are_a_process():
    """The phase right after an arrival need not have one of its own."""
    erlang = laws.MAP(d0=[[-1, 1], [0, -1]], d1=[[0, 0], [1, 0]])
    assert erlang.rate == pytest.approx(0.5) and erlang.scv == pytest.approx(0.5)


@pytest.mark.parametrize(
    "law",
    [
        laws.LogNormal(mean=2.0, scv=3.0),
        laws.Weibull(mean=2.0, shape=0.5),
        laws.Pareto(mean=2.0, shape=2.5),
        laws.Uniform(low=1.0, high=5.0),
        laws.Empirical(values=[1.0, 4.0], weights=[3, 1]),
        laws.Replay(values=[1.0, 4.0, 2.0]),
        laws.Deterministic(mean=3.0),
    ],
    ids=lambda law: type(law).__name__,
)
def test_another_unit_of_time(law):
    other = laws.scaled(law, 7.0)
    assert type(other) is type(law)
    assert other.mean == pytest.approx(7 * law.mean, rel=1e-12)
    assert other.scv == pytest.approx(law.scv, rel=1e-9)
