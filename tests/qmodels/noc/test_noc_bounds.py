from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Noc, crossbar, mesh
from qmodels.noc import PacketClass, QosRule, Router, uniform
from qmodels.noc.bounds import latency_bounds
from qmodels.noc.solve_noc import solve_noc
from qmodels.systems.noc.patterns import RateMatrix

CIRCUITS = (QosRule(source=0, target=8, circuit=True), QosRule(source=1, target=8, circuit=True))
NOC = Noc(
    topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=4, injection_rate=0.05, qos=CIRCUITS
)


def of(noc, bounds, source, target):
    table = noc.flow_table()
    return bounds[(table.source == source) & (table.target == target)][0]


def test_a_circuit_alone_is_as_fast_as_at_zero_load():
    noc = replace(NOC, qos=CIRCUITS[:1])
    bounds = latency_bounds(noc)
    assert of(noc, bounds, 0, 8) == 5 * 3 + 2 + 3
    # A burst of three packets waits for itself.
    assert_allclose(of(noc, latency_bounds(noc, burst_packets=3.0), 0, 8), 20 + 8)


def test_only_circuits_have_bounds_without_priorities():
    bounds = latency_bounds(NOC)
    assert np.isfinite(bounds).sum() == 2
    two = of(NOC, bounds, 0, 8)
    assert two > of(NOC, latency_bounds(replace(NOC, qos=CIRCUITS[:1])), 0, 8)
    # More traffic of others leaves it as it is; more of the circuits does not.
    assert of(NOC, latency_bounds(replace(NOC, flits_per_packet=5)), 0, 8) > two


def test_bounds_are_above_means_and_grow_with_the_load():
    classes = tuple(PacketClass(flits=4, priority=k) for k in range(3))
    noc = replace(NOC, qos=(), mix=classes, router=Router(arbitration="priority"), injection_rate=0.004)
    bounds = latency_bounds(noc)
    assert np.isfinite(bounds).all()
    assert np.all(bounds >= solve_noc(noc).flows["packet_latency"])
    more = latency_bounds(replace(noc, injection_rate=0.006))
    assert np.all(more >= bounds)
    by_class = [bounds[noc.flow_table().packet_class == k].mean() for k in range(3)]
    assert by_class[0] < by_class[1] < by_class[2]
    assert np.isinf(latency_bounds(replace(noc, injection_rate=0.5))).any()


def test_one_output_of_a_crossbar_by_hand():
    rates = ((0, 0, 1), (0, 0, 1), (0, 0, 0))
    rules = (QosRule(source=0, circuit=True), QosRule(source=1, circuit=True))
    noc = Noc(
        topology=crossbar(3),
        traffic=RateMatrix(rates=rates),
        flits_per_packet=4,
        injection_rate=0.1,
        qos=rules,
    )
    rho = 0.4
    bound = latency_bounds(noc)[0]
    # D = D0 - L + b/(1-rho) + (b + rho D)/(1-rho), of both alike.
    assert_allclose(bound, 8 - 4 + 4 / (1 - rho) + (4 + rho * bound) / (1 - rho), rtol=1e-6)


def test_messages():
    with pytest.raises(ValueError, match="burst_packets must be >= 1, got 0.5"):
        latency_bounds(NOC, burst_packets=0.5)
    with pytest.raises(ValueError, match="injection_rate must be one number for bounds, got"):
        latency_bounds(replace(NOC, injection_rate=(0.1, 0.2)))
