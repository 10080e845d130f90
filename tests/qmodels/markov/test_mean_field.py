"""Mean-field limits against closed fixed points, plain integration and finite systems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.markov import CTMC, fluid_fixed_point, power_of_choices, work_stealing
from qmodels.markov.chains import mean_field

laws = settings(max_examples=15)


@laws
@given(st.floats(0.05, 0.95), st.integers(2, 5), st.floats(1e-3, 1e3))
def test_the_fixed_point_of_choices(load, choices, speed):
    """Doubly exponential tail: s_k = rho^((d^k - 1)/(d - 1))."""
    found = power_of_choices(arrival_rate=load * speed, service_rate=speed, choices=choices)
    k = np.arange(1, 7)
    assert_allclose(found.tail[:6], load ** ((choices**k - 1) / (choices - 1)), rtol=1e-7, atol=1e-12)
    assert_allclose(found.mean_response_time * found.arrival_rate, found.mean_number_in_system)


def test_one_choice_is_the_single_server_queue():
    found = power_of_choices(arrival_rate=0.6, service_rate=1.0, choices=1)
    assert_allclose(found.mean_response_time, 2.5, rtol=1e-9)


@laws
@given(st.floats(0.1, 0.95))
def test_the_fixed_point_of_stealing(load):
    """One attempt when idle, victims of two or more: a geometric tail from a quadratic."""
    idle = 1 - load
    ends = (-idle + np.sqrt(idle**2 + 4 * load * idle)) / 2  # s_1 - s_2
    ratio = load / (1 + ends)
    expected = ends * ratio ** np.arange(20) / (1 - ratio)
    found = work_stealing(arrival_rate=load, service_rate=1.0)
    assert_allclose(found.tail[:20], expected, rtol=1e-7, atol=1e-11)


@laws
@given(
    st.floats(0.1, 0.9),
    st.integers(2, 6),
    st.integers(1, 3),
    st.floats(0.0, 5.0),
    st.integers(0, 10**6),
)
def test_stealing_conserves_jobs(load, threshold, stolen, retry, seed):
    """Whatever the state, jobs arrive at rate lambda and leave at mu s_1; tails stay ordered."""
    stolen = min(stolen, threshold - 1)
    model = work_stealing(
        arrival_rate=load, service_rate=1.0, threshold=threshold, stolen=stolen, retry_rate=retry
    )
    s = np.zeros(64)
    s[:30] = np.sort(np.random.default_rng(seed).random(30))[::-1]
    assert_allclose(model.drift(s).sum(), load - s[0], atol=1e-12)
    path = model.trajectory(times=np.linspace(0, 20, 5), initial=s[:30])
    assert np.all(np.diff(path, axis=1) <= 1e-9)
    assert np.all((path > -1e-9) & (path < 1 + 1e-9))


def test_more_stealing_is_better():
    plain, once, again = (
        power_of_choices(arrival_rate=0.9, service_rate=1.0, choices=1).mean_response_time,
        work_stealing(arrival_rate=0.9, service_rate=1.0).mean_response_time,
        work_stealing(arrival_rate=0.9, service_rate=1.0, retry_rate=10.0).mean_response_time,
    )
    protected = work_stealing(arrival_rate=0.9, service_rate=1.0, threshold=5).mean_response_time
    assert again < once < protected < plain


def test_trajectories_against_small_euler_steps():
    model = power_of_choices(arrival_rate=0.8, service_rate=1.0, choices=2)
    s, h = np.zeros(64), 1e-4
    for _ in range(20_000):
        middle = s + h / 2 * model.drift(s)
        s = s + h * model.drift(middle)
    assert_allclose(model.trajectory(times=[0.0, 2.0])[1], s, atol=1e-8)
    assert_allclose(model.trajectory(times=[0.0])[0], 0.0)


def test_finite_systems_approach_the_limit():
    """Two choices among N queues, exactly: the error of the limit halves as N doubles."""
    lam, limit = 0.7, power_of_choices(arrival_rate=0.7, service_rate=1.0, choices=2).mean_number_in_system

    def exact(queues):
        def moves(counts):
            """Counts of queues by length; the two looked at are drawn with replacement."""
            at_least = np.cumsum(counts[::-1])[::-1] / queues
            for k in range(len(counts) - 1):
                if counts[k]:
                    further = at_least[k + 1]
                    yield shifted(counts, k, k + 1), lam * queues * (at_least[k] ** 2 - further**2)
            for k in range(1, len(counts)):
                if counts[k]:
                    yield shifted(counts, k, k - 1), float(counts[k])

        start = (queues, *[0] * 7)
        law = CTMC.from_transitions(initial_state=start, transitions=moves).stationary()
        return law.expected(lambda counts: np.dot(counts, range(8))) / queues

    def shifted(counts, source, target):
        new = list(counts)
        new[source] -= 1
        new[target] += 1
        return tuple(new)

    errors = [exact(queues) - limit for queues in (2, 4)]
    assert errors[0] > errors[1] > 0
    assert 1.6 < errors[0] / errors[1] < 2.6


@pytest.mark.parametrize("load", [1.0, 1.2])
def test_overload(load):
    for model in (
        power_of_choices(arrival_rate=load, service_rate=1.0, choices=2),
        work_stealing(arrival_rate=load, service_rate=1.0),
    ):
        assert not model.stable
        assert model.mean_number_in_system == model.mean_response_time == np.inf
        assert_allclose(model.tail, 1.0)


def test_a_fixed_point_of_any_system():
    """Logistic growth from a small start; and a start that already rests."""
    assert_allclose(fluid_fixed_point(drift=lambda x: x * (1 - x), initial=[0.01]), 1.0, rtol=1e-12)
    assert_allclose(fluid_fixed_point(drift=lambda x: 0 * x, initial=[3.0]), 3.0)


def test_failures_are_told(monkeypatch):
    with pytest.raises(RuntimeError) as caught:
        fluid_fixed_point(drift=lambda x: np.array([x[1], -x[0]]), initial=[1.0, 0.0], longest=50.0)
    message = str(caught.value)
    assert message.startswith("the drift is still ")
    assert " after time 63, above the tolerance 1e-11: start nearer to the fixed point, or " in message
    endless = power_of_choices(arrival_rate=99.0, service_rate=1.0, choices=1)
    with pytest.raises(
        RuntimeError, match="^more than 1e-09 of the queues hold 128 jobs: too many to follow$"
    ):
        monkeypatch.setattr(mean_field, "MOST_LEVELS", 128)
        endless.trajectory(times=[2.0])
