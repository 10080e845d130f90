"""``solve`` of networks: 64 nodes in 5 ms, 256 in 50 ms, a curve of 20 loads for fewer than 20 solves."""

import numpy as np
import pytest

from qmodels import Noc, mesh, solve
from qmodels.noc import uniform


def network(side, rate):
    return Noc(
        topology=mesh(side, side), traffic=uniform(nodes=side**2), flits_per_packet=5, injection_rate=rate
    )


@pytest.mark.parametrize("side", [8, 16])
def test_solve(benchmark, side):
    noc = network(side, 0.3 / side)
    solve(noc)  # compiled, and the routes of the topology found
    assert benchmark(lambda: solve(noc).packet_latency) > 0


@pytest.mark.parametrize("side", [16, 32])
def test_first_solve(benchmark, side):
    """Routes, turns and the check for deadlocks: 256 and 1,024 nodes."""
    solve(network(4, 0.01))  # compiled
    assert benchmark.pedantic(lambda: solve(network(side, 0.3 / side)).packet_latency, rounds=1) > 0


@pytest.mark.parametrize("side", [8, 16])
def test_curve_of_20_loads(benchmark, side):
    noc = network(side, np.linspace(0.02, 0.4, 20) / side)
    solve(noc)
    assert benchmark(lambda: solve(noc).packet_latency).shape == (20,)


def test_saturation_rate(benchmark):
    noc = network(8, 0.01)
    solve(noc)
    assert benchmark(lambda: solve(noc).saturation_rate) > 0
