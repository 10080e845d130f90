"""The interconnect as a part: as its own model where that can say the packets."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Flow, Noc, Station, System, mesh, ring, spidergon
from qmodels.composed.parts.bursty import added_waits
from qmodels.composed.parts.network import respond_network
from qmodels.composed.solve import solve_system
from qmodels.composed.streams import Bursts, PacketStreams
from qmodels.laws import Deterministic
from qmodels.noc import PacketClass, rate_matrix, uniform
from qmodels.noc.solve_noc import solve_noc
from qmodels.steps import Send, Visit
from qmodels.traffic import OnOff, Poisson
from validate import simulate

NETWORKS = {
    "mesh": Noc(topology=mesh(4, 4), flits_per_packet=5, process=Poisson(), clock_ghz=2.0),
    "spidergon": Noc(
        topology=spidergon(12), traffic=uniform(nodes=12), flits_per_packet=3, process=Poisson()
    ),
    "split ways": Noc(
        topology=ring(8), traffic=uniform(nodes=8), flits_per_packet=2, process=Poisson(), ties="split"
    ),
}


def packet(source, target, rate, flits, **more):
    """Return one stream of packets, or several of arrays."""
    source, target, rate, flits = np.broadcast_arrays(*map(np.atleast_1d, (source, target, rate, flits)))
    return PacketStreams(source=source, target=target, rate=rate, flits=flits, **more)


def with_matrix(noc, rate):
    """Return uneven traffic at a rate, and the same as packets of one size."""
    nodes = noc.topology.nodes
    matrix = uniform(nodes=nodes).matrix(nodes) * rate * np.linspace(0.5, 1.5, nodes)
    np.fill_diagonal(matrix, 0.0)
    spec = replace(noc, traffic=rate_matrix(matrix.tolist()), injection_rate=None)
    source, target = np.nonzero(matrix)
    rates = matrix[source, target] * noc.clock_ghz
    return spec, packet(source, target, rates, noc.flits_per_packet)


@pytest.mark.parametrize("name", NETWORKS)
def test_packets_of_one_size_are_answered_as_by_the_network_alone(name):
    spec, packets = with_matrix(NETWORKS[name], 0.04)
    alone, answer = solve_noc(spec), respond_network(NETWORKS[name], packets)
    rate = packets.rate
    assert_allclose(rate @ answer.mean / rate.sum(), alone.packet_latency, rtol=1e-9)
    assert_allclose(answer.intensity[""], alone.max_utilization, rtol=1e-9)
    flows = alone.flows
    for source, target, mean in zip(packets.source, packets.target, answer.mean, strict=True):
        mine = (flows["source"] == source) & (flows["target"] == target)
        assert_allclose(mean, flows["packet_latency"][mine] @ flows["rate"][mine] / flows["rate"][mine].sum())


def test_a_mix_of_sizes_is_that_of_the_network():
    noc = Noc(topology=mesh(4, 4), process=Poisson())
    matrix = uniform(nodes=16).matrix(16) * 0.05
    mix = (PacketClass(flits=1, share=0.5), PacketClass(flits=5, share=0.5))
    alone = solve_noc(replace(noc, traffic=rate_matrix(matrix.tolist()), injection_rate=None, mix=mix))
    source, target = (np.tile(ends, 2) for ends in np.nonzero(matrix))
    packets = packet(source, target, matrix[source, target] / 2, np.repeat([1, 5], source.size // 2))
    assert_allclose(respond_network(noc, packets).mean.mean(), alone.packet_latency, rtol=1e-9)


def test_intensity_grows_with_the_rate_and_latency_with_it():
    noc = NETWORKS["mesh"]
    answers = [respond_network(noc, with_matrix(noc, rate)[1]) for rate in (0.02, 0.04, 0.08)]
    for name, value in answers[0].intensity.items():
        assert_allclose([a.intensity[name] for a in answers[1:]], [2 * value, 4 * value], rtol=1e-9)
    assert (answers[0].mean < answers[1].mean).all() and (answers[1].mean < answers[2].mean).all()
    assert (answers[0].variance < answers[2].variance).all()
    full = respond_network(noc, with_matrix(noc, 0.5)[1])
    assert np.isinf(full.mean).all() and full.intensity[""] > 1


def test_an_idle_network_takes_the_zero_load_latency():
    noc = NETWORKS["mesh"]
    (latency,) = respond_network(noc, packet(0, 15, 1e-12, 5)).mean
    alone = solve_noc(replace(noc, traffic=rate_matrix(np.eye(16, k=15).tolist()), injection_rate=0.0))
    assert_allclose(latency, alone.zero_load_latency)


def test_packets_that_come_together_wait_for_each_other():
    noc = NETWORKS["mesh"]
    lone = packet(0, 5, 1e-9, 5)
    first = respond_network(noc, lone).mean[0]
    assert_allclose(respond_network(noc, replace(lone, together=4.0)).mean[0], first + 1.5 * 5 / 2.0)


def test_bursts_wait_once_at_the_link_where_they_wait_longest():
    # The station model of the same bursts, at a link of 5 cycles of 0.5 ns, is exact.
    noc = NETWORKS["mesh"]
    calm = packet([0, 1], [5, 7], 0.1, 5)
    bursts = Bursts(flow="jobs", rate=np.array([0.1, 0.0]), peak=4.0, ends=4.0 * 0.1 / 10)
    before, after = (respond_network(noc, replace(calm, bursts=one)) for one in ((), (bursts,)))
    own, others, decay = after.added["jobs"]
    alone = added_waits(
        others=np.zeros(1), rate=np.array([0.1]), peak=4.0, ends=bursts.ends, mean=np.array([2.5]),
        square=np.array([6.25]),
    )  # fmt: skip
    assert_allclose([own[0], others[0], decay[0]], np.ravel(alone), rtol=1e-9)
    assert own[1] == others[1] == 0
    assert_allclose(after.mean, before.mean)
    assert_allclose(after.intensity[""], before.intensity[""])
    assert before.doubts == () and "bursts into a network" in after.doubts[0]


def test_a_source_of_bursts_at_several_nodes_meets_itself():
    flow = Flow(
        arrivals=OnOff(on_packets=40, peak_to_mean=6), rate=0.04, at=tuple(range(8)),
        program=(Send("s", bytes=64), Visit("s")),
    )  # fmt: skip
    parts = {"noc": Noc(topology=mesh(3, 3)), "s": Station(service=Deterministic(mean=0.1))}
    system = System(parts=parts, place={"s": 8}, flows=flow)
    calm = replace(system, flows=(replace(flow, arrivals=Poisson()),))
    answer = solve_system(system)
    assert answer.latency == pytest.approx(simulate(system, replications=8).latency.best, rel=0.15)
    assert answer.saturation_factor == pytest.approx(solve_system(calm).saturation_factor)
    assert not answer.validated and solve_system(calm).validated


def test_nothing_to_send():
    assert respond_network(NETWORKS["mesh"], packet([], [], [], [])).mean.size == 0
