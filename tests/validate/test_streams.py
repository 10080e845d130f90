"""Random streams: the published generator, independence, mirrored pairs."""

import numpy as np
import pytest
import scipy.stats as st

from validate.engine.jit import lean
from validate.engine.streams import new_streams, uniform


@lean
def fill(streams, stream, values):
    for k in range(values.size):
        values[k] = uniform(streams, stream)


def drawn(streams, stream, count):
    values = np.empty(count)
    fill(streams, stream, values)
    return values


def test_the_generator_is_xoshiro256_plus_plus():
    # First outputs from the state 1, 2, 3, 4, as in the test vector of the Rust crate rand_xoshiro.
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    streams = np.array([[1, 2, 3, 4, 0]], dtype=np.uint64)
    values = drawn(streams, 0, len(expected))
    assert ((values - 2.0**-53) * 2.0**52).astype(np.int64).tolist() == [bits >> 12 for bits in expected]


def test_streams_depend_on_their_name_seed_and_replication_alone():
    alone = new_streams(seed=7, replication=3, sources=["b"])
    among = new_streams(seed=7, replication=3, sources=["a", "b", "c"])
    assert np.array_equal(alone[0], among[1])
    others = [
        new_streams(seed=s, replication=r, sources=[name])
        for s, r, name in ((8, 3, "b"), (7, 4, "b"), (7, 3, "a"))
    ]
    assert all(not np.array_equal(alone[:, :4], other[:, :4]) for other in others)


def test_mirrored_streams_add_up_to_one_exactly():
    plain, mirrored = (
        drawn(new_streams(seed=1, replication=0, sources=["x"], antithetic=a), 0, 10_000)
        for a in (False, True)
    )
    assert np.array_equal(plain + mirrored, np.ones(10_000))
    assert 0 < plain.min() and plain.max() < 1


def test_numbers_are_uniform_and_streams_uncorrelated():
    streams = new_streams(seed=2, replication=0, sources=[str(k) for k in range(20)])
    values = np.array([drawn(streams, k, 20_000) for k in range(20)])
    assert st.kstest(values.ravel(), "uniform").pvalue > 1e-3
    # Pairs of neighbours fill the square evenly.
    pairs, _, _ = np.histogram2d(values[:, ::2].ravel(), values[:, 1::2].ravel(), bins=16)
    assert st.chisquare(pairs.ravel()).pvalue > 1e-3
    between = np.corrcoef(values)[np.triu_indices(20, 1)] * np.sqrt(20_000)
    assert np.abs(between).max() < st.norm.isf(0.001 / 190)
    assert st.kstest(between, "norm").pvalue > 1e-3
    later = [np.corrcoef(v[:-1], v[1:])[0, 1] * np.sqrt(20_000) for v in values]
    assert st.kstest(later, "norm").pvalue > 1e-3


def test_first_numbers_of_many_replications_are_uniform():
    firsts = np.array([uniform(new_streams(seed=0, replication=r, sources=["x"]), 0) for r in range(2000)])
    assert st.kstest(firsts, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(firsts[:-1], firsts[1:])[0, 1]) < 4 / np.sqrt(2000)


def test_compiled_numbers_are_those_of_plain_python():
    compiled, plain = (new_streams(seed=5, replication=1, sources=["x"]) for _ in range(2))
    with np.errstate(over="ignore"):
        expected = [uniform.py_func(plain, 0) for _ in range(100)]
    assert drawn(compiled, 0, 100).tolist() == expected


def test_negative_seeds_are_refused():
    with pytest.raises(ValueError):
        new_streams(seed=-1, replication=0, sources=["x"])
