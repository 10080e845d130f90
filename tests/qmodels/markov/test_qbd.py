"""Quasi-birth-death processes against truncated chains and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.markov import CTMC, qbd
from qmodels.markov.processes.qbd import first_passage

seeds = st.integers(0, 10**6)


def random_blocks(seed, m, load):
    """Positive blocks with a given ratio of mean rate up to mean rate down."""
    rng = np.random.default_rng(seed)
    up, down, inner = rng.exponential(size=(3, m, m)) * (rng.random((3, m, m)) < 0.8) + 1e-2
    np.fill_diagonal(inner, 0.0)
    total = up + down + inner
    np.fill_diagonal(total, total.diagonal() - total.sum(axis=1))
    theta = CTMC(generator=total).stationary().probabilities
    # Scaling the rates up changes theta unless they keep the phase: so they are put on the diagonal.
    up = np.diag(up.sum(axis=1))
    total = down + inner
    np.fill_diagonal(total, total.diagonal() - total.sum(axis=1))
    theta = CTMC(generator=total).stationary().probabilities
    up *= load * (theta @ down.sum(axis=1)) / (theta @ up.sum(axis=1))
    local = inner - np.diag((up + down + inner).sum(axis=1))
    return up, local, down


def truncated(up, local, down, boundary, levels):
    """The chain cut after some levels, where the rates up are lost."""
    m, b = len(local), len(boundary[0])
    generator = np.zeros((b + m * levels, b + m * levels))
    generator[:b, :b], generator[:b, b : b + m] = boundary[0], boundary[1]
    generator[b : b + m, :b] = boundary[2]
    for k in range(levels):
        here = slice(b + k * m, b + (k + 1) * m)
        generator[here, here] = local
        if k:
            generator[here, b + (k - 1) * m : b + k * m] = down
        if k + 1 < levels:
            generator[here, b + (k + 1) * m : b + (k + 2) * m] = up
    np.fill_diagonal(generator, 0.0)
    generator -= np.diag(generator.sum(axis=1))
    law = CTMC(generator=generator).stationary().probabilities
    return law[:b], law[b:].reshape(levels, m)


@given(seeds, st.integers(1, 4), st.floats(0.05, 0.7))
def test_against_the_truncated_chain(seed, m, load):
    up, local, down = random_blocks(seed, m, load)
    boundary = (local + np.diag(down.sum(axis=1)), up, down)
    found = qbd(up=up, local=local, down=down, boundary_local=boundary[0])
    low, high = truncated(up, local, down, boundary, 120)
    assert found.stable
    assert_allclose(found.drift_ratio, load, rtol=1e-12)
    assert_allclose(found.boundary, low, rtol=1e-9)
    for level in (1, 2, 7):
        assert_allclose(found.level_phases(level), high[level - 1], rtol=1e-9)
    totals = np.append(low.sum(), high.sum(axis=1))
    levels = np.arange(121)
    assert_allclose(found.level_probability(levels)[:20], totals[:20], rtol=1e-9)
    assert_allclose(found.level_tail([0, 1, 5]), [1.0, 1 - totals[0], totals[5:].sum()], rtol=1e-9)
    mean = levels @ totals
    assert_allclose(found.mean_level, mean, rtol=1e-8)
    assert_allclose(found.mean_above(3), np.maximum(levels - 3, 0) @ totals, rtol=1e-8)
    assert_allclose(found.level_variance, (levels - mean) ** 2 @ totals, rtol=1e-8)
    assert_allclose(found.decay_rate, totals[41] / totals[40], rtol=1e-6)


@given(seeds, st.integers(1, 5), st.floats(0.05, 3.0), st.floats(1e-9, 1e9))
def test_equations_and_the_unit_of_time(seed, m, load, unit):
    up, local, down = random_blocks(seed, m, load)
    boundary = local + np.diag(down.sum(axis=1))
    found = qbd(up=up, local=local, down=down, boundary_local=boundary)
    g, r = found.first_passage_matrix, found.rate_matrix
    scale = np.abs(local).max()
    assert_allclose(down + local @ g + up @ g @ g, 0.0, atol=1e-12 * scale)
    assert_allclose(up + r @ local + r @ r @ down, 0.0, atol=1e-12 * scale)
    if found.stable:
        assert_allclose(g.sum(axis=1), 1.0, rtol=1e-14)
    faster = qbd(up=up * unit, local=local * unit, down=down * unit, boundary_local=boundary * unit)
    assert_allclose(faster.rate_matrix, r, rtol=1e-10)
    assert_allclose(faster.level_probability([0, 1, 2]), found.level_probability([0, 1, 2]), rtol=1e-9)


@pytest.mark.parametrize("load", [1e-6, 0.5, 0.9, 1 - 2.0**-10, 1 - 2.0**-20])
def test_one_phase_is_the_single_server_queue(load):
    found = qbd(up=[[load]], local=[[-load - 1]], down=[[1.0]], boundary_local=[[-load]])
    n = np.array([0, 1, 10, 1000])
    assert_allclose(found.level_probability(n), (1 - load) * load**n, rtol=1e-9)
    assert_allclose(found.level_tail(n), load**n, rtol=1e-9)
    assert_allclose(found.mean_level, load / (1 - load), rtol=1e-9)
    assert_allclose(found.level_variance, load / (1 - load) ** 2, rtol=1e-9)
    assert_allclose(found.decay_rate, load, rtol=1e-14)


def test_a_boundary_of_its_own():
    """M/M/2 with level 0 holding 0 and 1 jobs: two phases there, one above."""
    lam, mu = 1.2, 1.0
    found = qbd(
        up=[[lam]],
        local=[[-lam - 2 * mu]],
        down=[[2 * mu]],
        boundary_local=[[-lam, lam], [mu, -lam - mu]],
        boundary_up=[[0.0], [lam]],
        boundary_down=[[0.0, 2 * mu]],
    )
    idle = 1 / (1 + 1.2 + 1.2**2 / 2 / (1 - 0.6))
    assert_allclose(found.boundary, [idle, 1.2 * idle], rtol=1e-14)
    assert_allclose(found.level_probability(3), idle * 1.2**2 / 2 * 0.6**2, rtol=1e-14)


@pytest.mark.parametrize("load", [1.0, 1.0 + 1e-13, 1.5])
def test_overload(load):
    found = qbd(up=[[load]], local=[[-load - 1]], down=[[1.0]], boundary_local=[[-load]])
    assert not found.stable
    assert_allclose(found.drift_ratio, load)
    assert found.mean_level == found.level_variance == found.mean_above(4) == np.inf
    assert_allclose(found.level_probability([0, 3]), 0.0)
    assert_allclose(found.level_tail([0, 3]), 1.0)
    assert found.decay_rate == 1.0
    assert_allclose(found.first_passage_matrix, 1 / load, rtol=1e-6)


def test_no_way_down():
    found = qbd(up=[[1.0]], local=[[-1.0]], down=[[0.0]], boundary_local=[[-1.0]])
    assert not found.stable
    assert found.drift_ratio == np.inf


def test_first_passage_keeps_small_entries():
    """G solves its equation in every entry, also those of 1e-12."""
    up = np.diag([1e-6, 0.3])
    down = np.array([[1.0, 1e-9], [1e-9, 1e-3]])
    inner = np.array([[0.0, 1e-6], [1e-3, 0.0]])
    g = first_passage(up, inner, down)
    total = (up + down + inner).sum(axis=1)
    again = (down + inner @ g + up @ g @ g) / total[:, None]
    assert_allclose(again, g, rtol=1e-12)
