"""``solve`` of networks: 64 nodes in 5 ms, 256 in 50 ms, a curve of 20 loads for fewer than 20 solves.

The first one of 1,024 nodes in 1 s, of 4,096 in 10 s.
"""

import numpy as np
import pytest

from qmodels import Noc, mesh, ring, solve, torus
from qmodels.noc import hotspot, transpose, uniform


def network(side, rate):
    return Noc(
        topology=mesh(side, side), traffic=uniform(nodes=side**2), flits_per_packet=5, injection_rate=rate
    )


@pytest.mark.parametrize("side", [8, 16])
def test_solve(benchmark, side):
    noc = network(side, 0.3 / side)
    solve(noc)  # compiled, and the routes of the topology found
    assert benchmark(lambda: solve(noc).packet_latency) > 0


TRAFFIC = {
    "uniform": lambda nodes: uniform(nodes=nodes),
    "transpose": lambda nodes: transpose(nodes=nodes),
    "hotspot": lambda nodes: hotspot(nodes=nodes, spots=[1], fraction=0.02),
}
FIRST = [("mesh", "uniform", 16)]
FIRST += [(shape, traffic, 32) for shape in ("mesh", "torus", "ring") for traffic in TRAFFIC]
FIRST += [(shape, "uniform", 64) for shape in ("mesh", "torus")]


@pytest.mark.parametrize(("shape", "traffic", "side"), FIRST)
def test_first_solve(benchmark, shape, traffic, side):
    """Routes, turns and the check for deadlocks."""
    solve(network(4, 0.01))  # compiled
    nodes = side**2
    topology = ring(nodes) if shape == "ring" else {"mesh": mesh, "torus": torus}[shape](side, side)
    noc = Noc(topology=topology, traffic=TRAFFIC[traffic](nodes), flits_per_packet=5, injection_rate=1e-4)
    assert benchmark.pedantic(lambda: solve(noc).packet_latency, rounds=1) > 0


@pytest.mark.parametrize("side", [8, 16])
def test_curve_of_20_loads(benchmark, side):
    noc = network(side, np.linspace(0.02, 0.4, 20) / side)
    solve(noc)
    assert benchmark(lambda: solve(noc).packet_latency).shape == (20,)


def test_saturation_rate(benchmark):
    noc = network(8, 0.01)
    solve(noc)
    assert benchmark(lambda: solve(noc).saturation_rate) > 0
