"""Few nodes of popularity fill caches as all lines do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.llc.characteristic_time import hit_ratios
from qmodels.numerics.nodes import smooth_nodes
from qmodels.traffic import Zipf


@pytest.mark.parametrize("exponent", [0.6, 0.8, 1.2])
def test_hit_ratios_of_nodes_are_those_of_all_lines(exponent):
    p = Zipf(entries=200_000, exponent=exponent).probabilities()
    node, number = smooth_nodes(p, np.ones(p.size))
    assert node.size < 1500
    for capacity in (100, 20_000):
        lines = p @ hit_ratios(popularity=p, capacity=capacity)
        nodes = (number * node) @ hit_ratios(popularity=node, count=number, capacity=capacity)
        assert_allclose(nodes, lines, rtol=1e-8)


def test_equal_and_unwanted_lines_stay_as_they_are():
    node, number = smooth_nodes(np.array([0.0, 0.25, 0.25, 0.5, 0.0]), np.ones(5))
    assert sorted(zip(node.tolist(), number.tolist(), strict=True)) == [(0.0, 2.0), (0.25, 2.0), (0.5, 1.0)]
