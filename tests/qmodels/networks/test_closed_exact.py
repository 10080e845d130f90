"""Exact solutions of closed networks: MVA, convolution, a CTMC and 60-digit arithmetic agree."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.networks import (
    convolution,
    log_normalising_constant,
    marginal_distribution,
    mva,
    throughput_curve,
)
from qmodels.networks._inputs import describe
from qmodels.networks.mva import _one_class

times = st.floats(0.05, 5.0)
LAWS = settings(max_examples=40, deadline=None, derandomize=True)


def limit_of(servers):
    return lambda i, n: n if np.isinf(servers[i]) else min(n, servers[i])


@st.composite
def small_networks(draw, classes=st.integers(1, 2)):
    stations, kinds = draw(st.integers(1, 3)), draw(classes)
    table = [[draw(times) for _ in range(kinds)] for _ in range(stations)]
    servers = [draw(st.sampled_from([1, 1, 2, 3, np.inf])) for _ in range(stations)]
    people = [draw(st.integers(1, 3)) for _ in range(kinds)]
    think = [draw(st.sampled_from([0.0, 0.7, 4.0])) for _ in range(kinds)]
    return table, servers, people, think


@LAWS
@given(network=small_networks())
def test_mva_convolution_and_chain_agree(network):
    from tests_oracle import shared_network  # noqa: F401
