import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels.systems.spec.estimate import exactly
from validate import Estimate
from validate.estimates.intervals import mean_interval, more_replications, stability, wandering


def about(best, half, confidence=0.95):
    return Estimate(low=best - half, best=best, high=best + half, confidence=confidence)


@given(replications=st.integers(0, 500), half=st.floats(0.0, 5.0), precision=st.floats(1e-3, 1.0))
def test_laws_of_the_rule(replications, half, precision):
    more = more_replications([about(1.0, half)], replications=replications, precision=precision)
    if replications < 10:
        assert more == 10 - replications
    else:
        assert (more == 0) == (about(1.0, half).relative_half_width <= precision)
        assert more <= replications
        worse = more_replications([about(1.0, 2 * half)], replications=replications, precision=precision)
        assert worse >= more
    limited = more_replications(
        [about(1.0, half)], replications=replications, precision=precision, maximum=20
    )
    assert limited == max(0, min(more, 20 - replications))


def test_the_least_precise_metric_decides_and_infinite_ones_cannot():
    narrow, wide = about(1.0, 0.01), about(1.0, 0.11)
    endless = exactly(np.inf, confidence=0.95)
    assert more_replications([narrow, wide, endless], replications=50, precision=0.1) == 10
    assert more_replications([narrow, endless], replications=50, precision=0.1) == 0
    assert more_replications([], replications=50, precision=0.1) == 0
    # A mean of 0 has no relative precision; the maximum ends such a simulation.
    assert more_replications([about(0.0, 1.0)], replications=50, precision=0.1, maximum=80) == 30


def test_the_rule_reaches_the_precision_and_keeps_the_coverage():
    rng = np.random.default_rng(1)
    covered, spent = 0, []
    for _ in range(1000):
        values = np.zeros(0)
        estimate = exactly(0.0, confidence=0.95)
        while more := more_replications([estimate], replications=values.size, precision=0.05):
            values = np.append(values, rng.gamma(11.0, 1 / 11, size=more))
            estimate = mean_interval(values, confidence=0.95)
        assert estimate.relative_half_width <= 0.05
        covered += 1.0 in estimate
        spent.append(values.size)
    # Standard deviation 6.9; stopping at a chance low costs about one point.
    assert covered > 950 - 10 - 21
    # (1.96 * 0.3015 / 0.05)**2 = 140.
    assert np.mean(spent) == pytest.approx(145, rel=0.05)


def queue(rng, load, arrivals):
    """Return the waiting times of an M/M/1 queue by Lindley's recursion, sampled every 50."""
    steps = rng.exponential(size=arrivals) - rng.exponential(1 / load, size=arrivals)
    path = np.cumsum(steps)
    return (path - np.minimum.accumulate(np.minimum(path, 0.0)))[::50]


@pytest.mark.parametrize(
    ("load", "allowed"),
    [(0.5, {True}), (0.9, {True}), (0.98, {True, None}), (1.0, {None, False}), (1.02, {None, False}),
     (1.05, {None, False}), (1.2, {False})],
)  # fmt: skip
def test_stability_of_a_queue_is_told_or_left_undecided(load, allowed):
    rng = np.random.default_rng(7)
    verdicts = [stability([queue(rng, load, 25_000)[100:] for _ in range(8)]) for _ in range(40)]
    # 1 % of the walks at a load of 1 are taken for steady, fewer above.
    assert sum(one not in allowed for one in verdicts) <= (2 if load == 1 else 0)


def test_a_walk_wanders():
    """A share of 1 % of reflected random walks, as many together as there are replications, is above."""
    rng = np.random.default_rng(5)
    walks = np.cumsum(rng.normal(size=(8000, 640)), axis=1)
    walks -= np.minimum(np.minimum.accumulate(walks, axis=1), 0.0)
    for points in (16, 32):
        means = walks[:, 128:].reshape(len(walks), points, -1).mean(axis=2)
        steps = np.sum(np.diff(means, axis=1) ** 2, axis=1)
        spread = np.sum((means - means.mean(axis=1, keepdims=True)) ** 2, axis=1)
        for together in (2, 8, 64):
            some = rng.integers(0, len(walks), size=(20_000, together))
            ratio = steps[some].sum(axis=1) / spread[some].sum(axis=1)
            assert 0.001 < np.mean(ratio > wandering(points, together)) < 0.015
