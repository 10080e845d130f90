"""Priorities, fair shares and circuits: what they give, and what they do not take."""

from dataclasses import replace

import numpy as np
import pytest
from pandas import DataFrame

from qmodels import Noc, crossbar, mesh
from qmodels.noc import PacketClass, QosRule, Router, rate_matrix, uniform
from validate import simulate

OPTIONS = {"packets": 5000, "cycles": 10_000, "replications": 6}


def mean_latency(result, column):
    flows = DataFrame(result.flows)
    weighted = (flows["packet_latency"] * flows["delivered_rate"]).groupby(flows[column]).sum()
    return (weighted / flows["delivered_rate"].groupby(flows[column]).sum()).to_dict()


def test_urgent_packets_pass_the_others_and_all_are_delivered():
    mix = (PacketClass(flits=5, priority=0), PacketClass(flits=5, priority=3))
    noc = Noc(topology=mesh(4, 4), traffic=uniform(nodes=16), mix=mix, injection_rate=0.1)
    plain = simulate(noc, **OPTIONS)
    first = simulate(replace(noc, router=Router(arbitration="priority")), **OPTIONS)
    alike, ranked = mean_latency(plain, "packet_class"), mean_latency(first, "packet_class")
    assert abs(alike[0] - alike[1]) < 1.0
    assert ranked[0] < alike[0] - 2 < alike[1] + 2 < ranked[1]
    # The same packets come at the same times: as many are delivered but for those under way.
    for one, other in zip(plain.runs, first.runs, strict=True):
        assert abs(int(one.sums[0].sum()) - int(other.sums[0].sum())) <= 40


def test_eight_priorities_are_eight_levels():
    mix = tuple(PacketClass(flits=2, priority=k) for k in range(8))
    noc = Noc(
        topology=crossbar(4),
        router=Router(arbitration="priority"),
        traffic=uniform(nodes=4),
        mix=mix,
        injection_rate=0.4,
    )
    latency = mean_latency(simulate(noc, **{**OPTIONS, "packets": 20_000}), "packet_class")
    assert list(latency.values()) == sorted(latency.values())


def test_one_source_shares_its_channel_by_weight_when_it_is_short():
    # Both want all of node 4; what it ejects is divided 3 to 1.
    rates = np.zeros((9, 9))
    rates[0, 4] = rates[2, 4] = 0.19
    noc = Noc(
        topology=mesh(3, 3),
        router=Router(arbitration="weighted"),
        traffic=rate_matrix(rates.tolist()),
        flits_per_packet=5,
        injection_rate=0.19,
        qos=(QosRule(source=0, weight=3.0),),
    )
    r = simulate(noc, **OPTIONS)
    shares = DataFrame(r.flows).set_index("source")["delivered_rate"]
    assert not r.stable
    assert shares[0] / shares[2] == pytest.approx(3, rel=0.02)
    assert shares.sum() == pytest.approx(0.2, rel=0.01)
    even = DataFrame(simulate(replace(noc, qos=()), **OPTIONS).flows).set_index("source")["delivered_rate"]
    assert even[0] / even[2] == pytest.approx(1, rel=0.02)


def with_circuit(others, *, circuit=True):
    rates = np.full((16, 16), others / 15)
    np.fill_diagonal(rates, 0)
    rates[0] = 0
    rates[0, 15] = 0.05
    traffic = rate_matrix(rates.tolist())
    return Noc(
        topology=mesh(4, 4),
        traffic=traffic,
        injection_rate=traffic.mean_rate,
        flits_per_packet=5,
        qos=(QosRule(source=0, target=15, circuit=circuit),),
    )


def test_a_circuit_does_not_feel_the_others_even_when_they_saturate():
    found = []
    for others in (0.001, 0.05, 0.2):
        r = simulate(with_circuit(others), packets=100, cycles=10_000, replications=3)
        flows = DataFrame(r.flows)
        found.append(flows[flows["source"] == 0]["packet_latency"].item())
    assert not r.stable
    # To the last bit: its packets come at the same times and meet nobody.
    assert found[0] == found[1] == found[2] < float("inf")


def test_without_the_circuit_the_same_packets_do_feel_them():
    quiet, loaded = (
        DataFrame(simulate(with_circuit(x, circuit=False), packets=100, cycles=10_000, replications=3).flows)
        for x in (0.001, 0.1)
    )
    one, other = (f[f["source"] == 0]["packet_latency"].item() for f in (quiet, loaded))
    assert other > one + 3


def test_a_circuit_slows_the_others_down():
    # Node 1 sends where the circuit of node 0 passes.
    rates = np.zeros((4, 4))
    rates[0, 3] = 0.6
    rates[1, 3] = 0.3
    traffic = rate_matrix(rates.tolist())
    noc = Noc(topology=mesh(1, 4), traffic=traffic, injection_rate=traffic.mean_rate, flits_per_packet=1)
    held = replace(noc, qos=(QosRule(source=0, circuit=True),))
    plain, slow = (DataFrame(simulate(x, **OPTIONS).flows).set_index("source") for x in (noc, held))
    assert slow.loc[0, "packet_latency"] == 3 * 4 + 2
    assert slow.loc[1, "packet_latency"] > plain.loc[1, "packet_latency"] > 3 * 3 + 2


def test_first_come_first_served_does_not_wait_longer_nor_farther():
    noc = Noc(topology=crossbar(6), traffic=uniform(nodes=6), flits_per_packet=4, injection_rate=0.15)
    turns = simulate(noc, **OPTIONS)
    order = simulate(replace(noc, router=Router(arbitration="fcfs")), **OPTIONS)
    assert order.packet_latency.best <= turns.packet_latency.best * 1.01
    assert order.packet_latency_p99.best <= turns.packet_latency_p99.best * 1.02
