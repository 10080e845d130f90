from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Noc, crossbar
from qmodels.noc import PacketClass, QosRule, Router
from qmodels.noc.delay_law import delay_quantiles
from qmodels.noc.solve_noc import solve_noc
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.traffic import OnOff

ONE = Noc(
    topology=crossbar(2),
    traffic=RateMatrix(rates=((0.0, 1.0), (0.0, 0.0))),
    flits_per_packet=5,
    injection_rate=0.12,
    router=Router(virtual_channels=1, buffer_flits=8),
)


def lindley(gaps, service):
    """Mean wait by the recursion."""
    wait, total = 0.0, 0.0
    for gap in gaps:
        wait = max(0.0, wait + service - gap)
        total += wait
    return total / len(gaps)


def test_bernoulli_and_poisson_by_simulation():
    rng = np.random.default_rng(1)
    for process, gaps in (
        ("bernoulli", rng.geometric(0.12, 200_000)),
        ("poisson", rng.exponential(1 / 0.12, 200_000)),
    ):
        answer = solve_noc(replace(ONE, process=process))
        assert_allclose(answer.source_queue_delay, lindley(gaps, 5), rtol=0.02)
        # One flow alone waits nowhere else.
        assert_allclose(answer.traversal_delay, answer.zero_load_latency)


@pytest.mark.parametrize(("packets", "peak", "rate"), [(3.0, 2.0, 0.05), (10.0, 4.0, 0.1), (5.0, 10.0, 0.15)])
def test_bursts_by_simulation(packets, peak, rate):
    law = OnOff(on_packets=packets, peak_to_mean=peak)
    gaps = law.gaps(np.random.default_rng(2), 400_000) / rate
    answer = solve_noc(replace(ONE, process=law, injection_rate=rate))
    assert_allclose(answer.source_queue_delay, lindley(gaps, 5), rtol=0.05)


def test_bursts_near_poisson_are_poisson():
    # Hardly ever OFF.
    law = OnOff(on_packets=50.0, peak_to_mean=1.0001)
    assert_allclose(
        solve_noc(replace(ONE, process=law)).source_queue_delay,
        solve_noc(replace(ONE, process="poisson")).source_queue_delay,
        rtol=1e-3,
    )


def test_priorities_and_circuits_have_queues_of_their_own():
    classes = (PacketClass(flits=5, priority=0), PacketClass(flits=5, priority=1))
    noc = replace(ONE, mix=classes, router=Router(arbitration="priority"))
    waits = solve_noc(noc).flows["source_queue_delay"]
    assert waits[0] < waits[1]
    assert_allclose(waits.mean(), solve_noc(ONE).source_queue_delay)
    circuit = replace(ONE, qos=(QosRule(source=0, circuit=True),))
    assert_allclose(solve_noc(circuit).source_queue_delay, solve_noc(ONE).source_queue_delay)
    with_bursts = replace(noc, process=OnOff(on_packets=4.0, peak_to_mean=3.0))
    assert solve_noc(with_bursts).source_queue_delay > solve_noc(noc).source_queue_delay


def test_quantiles_of_one_flow_and_of_the_mixture_agree():
    answer = solve_noc(ONE)
    assert_allclose(answer.flows["packet_latency_p95"][0], answer.packet_latency_p95, rtol=1e-3)
    assert answer.quantile(0.5) < answer.packet_latency_p95 < answer.packet_latency_p99
    with pytest.raises(ValueError, match="probability must be between 0 and 1, got 1"):
        delay_quantiles(answer.waits, answer.source_delay, None, 1)
