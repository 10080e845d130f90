from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import Noc, crossbar, mesh, ring, spidergon, torus
from qmodels.noc import PacketClass, QosRule, Router, bursts, from_graph, interleaved, transpose, uniform
from qmodels.noc.solve_noc import solve_noc
from qmodels.systems.noc.patterns import Pattern, RateMatrix
from validate import simulate

NETS = {
    "mesh": mesh(3, 3),
    "torus": torus(4, 4),
    "ring": ring(8),
    "spidergon": spidergon(12),
    "crossbar": crossbar(6),
}


def network(kind="mesh", flits=5, vcs=2, buffer=8, **fields):
    topology = NETS[kind]
    values = {
        "topology": topology,
        "traffic": uniform(nodes=topology.nodes),
        "router": Router(virtual_channels=vcs, buffer_flits=buffer),
        "flits_per_packet": flits,
    }
    return Noc(**{**values, **fields})


specs = st.builds(
    network,
    kind=st.sampled_from(list(NETS)),
    flits=st.integers(1, 10),
    vcs=st.integers(2, 4),
    buffer=st.integers(4, 10),
)


@given(noc=specs)
def test_latency_grows_with_load_from_zero_load(noc):
    top = solve_noc(noc).saturation_rate
    curve = solve_noc(replace(noc, injection_rate=np.linspace(0, min(1, 1.1 * top), 12)))
    assert_allclose(curve.packet_latency[0], curve.zero_load_latency)
    assert np.all(np.diff(curve.packet_latency[curve.stable]) >= -1e-6)
    assert curve.stable[0] and curve.stable[:10].all() and not (curve.stable[-1] and 1.1 * top < 1)
    assert np.all(np.isinf(curve.packet_latency[~curve.stable]))
    assert np.all(curve.max_utilization <= 1)
    assert curve.saturation_rate <= curve.ideal_saturation_rate


@given(noc=specs, load=st.floats(0.1, 0.9))
def test_flow_is_conserved(noc, load):
    answer = solve_noc(noc)
    rate = load * answer.saturation_rate
    turns = answer.waits.turns
    table = turns.table
    # What enters a channel by turns leaves it by turns, but for injection and ejection.
    into = np.bincount(turns.sink, turns.packets, minlength=len(table.channel_names))
    out = np.bincount(turns.source, turns.packets, minlength=len(table.channel_names))
    through = turns.channels[:, 0]
    assert_allclose(into[table.channel_kind != 0], through[table.channel_kind != 0])
    assert_allclose(out[table.channel_kind != 2], through[table.channel_kind != 2])
    at = solve_noc(replace(noc, injection_rate=rate))
    flows = at.flows
    assert_allclose(at.delivered_rate, flows["rate"].sum())
    # The mean from the turns is that over the flows.
    assert_allclose(flows["packet_latency"] @ flows["rate"] / flows["rate"].sum(), at.packet_latency)
    assert np.all(flows["packet_latency_p95"] <= flows["packet_latency_p99"])
    assert at.zero_load_latency <= at.packet_latency <= at.packet_latency_p95 <= at.packet_latency_p99


@given(load=st.floats(0.1, 0.9), shift=st.integers(1, 7))
def test_nodes_of_a_ring_are_alike(load, shift):
    noc = network("ring", ties="split", vc_classes="none")
    rng = np.random.default_rng(3)
    rates = rng.random((8, 8)) * (1 - np.eye(8))
    rates /= rates.sum(axis=1, keepdims=True)
    turned = np.roll(rates, (shift, shift), axis=(0, 1))
    answers = [
        solve_noc(
            replace(noc, traffic=RateMatrix(rates=tuple(map(tuple, matrix))), injection_rate=0.05 * load)
        )
        for matrix in (rates, turned)
    ]
    assert_allclose(answers[0].packet_latency, answers[1].packet_latency, rtol=1e-5)
    assert_allclose(answers[0].saturation_rate, answers[1].saturation_rate, rtol=5e-3)


def test_wider_links_never_lower_the_saturation_rate():
    for kind in NETS:
        noc = network(kind, flits=0, packet_bytes=64)
        rates = [solve_noc(replace(noc, link_width=width)).saturation_rate for width in (4, 8, 16, 32, 64)]
        assert np.all(np.diff(rates) > 0)


def test_interleaving_over_one_channel_changes_nothing():
    answers = [
        solve_noc(
            network(
                "spidergon",
                traffic=interleaved(initiators=range(4), channels=[9], step=step),
                injection_rate=0.02,
            )
        )
        for step in (1, 2, 8)
    ]
    for other in answers[1:]:
        assert_allclose(other.packet_latency, answers[0].packet_latency)
        assert_allclose(other.saturation_rate, answers[0].saturation_rate)


def test_priorities_conserve_the_work_at_an_output():
    classes = tuple(PacketClass(flits=5, priority=k) for k in range(4))
    router = Router(arbitration="priority", virtual_channels=2)
    noc = network("crossbar", mix=classes, router=router, injection_rate=0.1)
    flows = solve_noc(noc).flows
    latency = [flows["traversal_delay"][flows["packet_class"] == k].mean() for k in range(4)]
    assert np.all(np.diff(latency) > 0)
    # Without blocking behind heads the mean wait does not depend on who goes first.
    one_output = np.zeros((6, 6))
    one_output[1:, 0] = 1.0
    noc = replace(noc, traffic=RateMatrix(rates=tuple(map(tuple, one_output))), injection_rate=0.03)
    plain = replace(noc, router=replace(router, arbitration="round_robin"))
    assert_allclose(solve_noc(noc).traversal_delay, solve_noc(plain).traversal_delay, rtol=1e-9)
    heavy = replace(noc, mix=(), qos=(QosRule(source=1, weight=3.0),), router=Router(arbitration="weighted"))
    even = replace(heavy, qos=())
    assert solve_noc(heavy).flows["traversal_delay"][0] < solve_noc(even).flows["traversal_delay"][0]
    assert_allclose(solve_noc(heavy).traversal_delay, solve_noc(even).traversal_delay, rtol=1e-9)


def test_a_circuit_does_not_notice_the_others():
    rule = QosRule(source=0, target=8, circuit=True)
    noc = network(qos=(rule,), injection_rate=0.02)
    busy = replace(noc, injection_rate=0.1)
    rates = solve_noc(busy).waits.turns.flow_rate
    latency = []
    for one in (noc, busy):
        flows = solve_noc(one).flows
        mine = (flows["source"] == 0) & (flows["target"] == 8)
        latency.append(flows["traversal_delay"][mine][0])
    assert latency[0] == latency[1] == 3 * 5 + 2 + 4
    # The others see what it leaves.
    table = busy.flow_table()
    slow = solve_noc(busy).channels["waiting_time"]
    free = solve_noc(replace(busy, qos=())).channels["waiting_time"]
    assert rates.sum() == pytest.approx(9)
    assert slow[table.channel_names.index("eject 8")] != free[table.channel_names.index("eject 8")]


def test_overload_is_called_so():
    noc = network(injection_rate=0.3)
    answer = solve_noc(noc)
    assert not answer.stable
    assert np.isinf([answer.packet_latency, answer.packet_latency_p99, answer.source_queue_delay]).all()
    assert answer.delivered_rate == pytest.approx(answer.saturation_rate * 9)
    assert np.isinf(answer.flows["packet_latency"]).all()
    assert "overloaded" in repr(answer) and answer.bottleneck_load > 1
    assert answer.traffic_intensity[answer.bottleneck] == answer.bottleneck_load
    assert max(answer.utilization.values()) <= 1
    assert not np.isnan(answer.channels["buffer_occupancy"]).any()
    nothing = solve_noc(replace(noc, injection_rate=0.0))
    assert nothing.packet_latency == nothing.zero_load_latency
    assert nothing.delivered_rate == 0


@given(seed=st.integers(0, 999), part=st.floats(0.1, 1.2))
def test_the_bottleneck_is_the_most_loaded_channel(seed, part):
    # Not the one whose heads block its input first, which the search for saturation ends at.
    rates = np.random.default_rng(seed).random((9, 9)) * (1 - np.eye(9))
    noc = network(traffic=RateMatrix(rates=tuple(map(tuple, rates.tolist()))), injection_rate=0.01)
    table = noc.flow_table()
    loads = dict(zip(table.channel_names, table.channel_load(), strict=True))
    top = max(loads.values())
    answer = solve_noc(replace(noc, injection_rate=part / top))
    assert loads[answer.bottleneck] == pytest.approx(top, rel=1e-9)
    busiest = int(np.argmax(answer.channels["utilization"]))
    assert part > 1 or answer.channels["name"][busiest] == answer.bottleneck


def test_the_simulated_bottleneck_is_the_same():
    hot = Pattern(pattern="hotspot", nodes=9, spots=(5,), fraction=0.3)
    noc = network(traffic=hot, injection_rate=0.02)
    assert solve_noc(noc).bottleneck == simulate(noc, packets=5000, replications=2).bottleneck == "eject 5"
    # In a row of three, the ends' links carry as much each; those of half the width are busy for longer.
    row = replace(from_graph(nx.path_graph(3)), edge_widths=(16, 16, 8, 8))
    noc = Noc(topology=row, traffic=uniform(nodes=3), injection_rate=0.01)
    assert solve_noc(noc).bottleneck == "1->2"


def test_answers_say_what_they_are_worth():
    answer = solve_noc(
        network("torus", traffic=Pattern(pattern="uniform", nodes=16, self_traffic=True), injection_rate=0.08)
    )
    assert answer.validated
    curve = solve_noc(network(injection_rate=[0.01, 0.05, 0.3]))
    assert "3 points" in repr(curve) and "2 of 3 stable" in repr(curve)
    assert curve.channels["utilization"].shape == (3, len(curve.channels["name"]))
    assert curve.bandwidth.shape == (3,)


@pytest.mark.parametrize("rates", [0.05, 0.9, [0.01, 0.1, 0.9], [[0.01, 0.02]], 0.0])
def test_a_picture_of_any_rates(rates):
    answer = solve_noc(network(injection_rate=rates))
    curve, asked, zero = answer.plot().axes[0].lines
    assert np.isfinite(curve.get_ydata()).all() and np.all(np.diff(curve.get_ydata()) > 0)
    stable = np.ravel(rates)[np.ravel(answer.stable)]
    assert_allclose(asked.get_xdata(), stable)
    assert_allclose(zero.get_ydata(), answer.zero_load_latency)
    assert curve.get_ydata()[0] == pytest.approx(answer.zero_load_latency)


def test_a_picture_of_sources_that_never_saturate_the_network():
    one = np.zeros((9, 9))
    one[0, 1] = 1.0
    answer = solve_noc(network(flits=1, traffic=RateMatrix(rates=tuple(map(tuple, one)))))
    assert answer.plot().axes[0].lines[0].get_xdata().max() <= 1


def test_what_is_left_out_is_said():
    sound = solve_noc(network("ring", injection_rate=0.02))
    assert sound.notes == () and sound.validated
    ring_of_one = solve_noc(network("ring", vcs=1, injection_rate=0.02))
    assert ring_of_one.stable and ring_of_one.notes[0] == (
        "packets may deadlock: 8 virtual channels in a circle from 0->1 vc 0; the numbers hold as long as "
        "they do not"
    )
    assert not ring_of_one.validated
    assert "packets may deadlock" in repr(ring_of_one)
    wide = network(topology=spidergon(24), traffic=uniform(nodes=24), router=Router(virtual_channels=2))
    top = solve_noc(wide).saturation_rate
    for part, warned in ((0.5, 0), (0.95, 1)):
        answer = solve_noc(replace(wide, injection_rate=part * top))
        jams = [words for words in answer.notes if words.startswith("metastable: once jammed, the network")]
        assert answer.stable and len(jams) == warned == (not answer.validated)
    runs = interleaved(initiators=range(4), channels=range(4, 8), step=16)
    assert solve_noc(network("ring", traffic=runs)).notes[0] == (
        "runs of 16 packets to each target in turn: they wait longer than this"
    )


@pytest.mark.parametrize(
    ("vcs", "flits", "known"), [(2, 5, False), (4, 9, False), (1, 5, True), (2, 1, True)]
)
def test_flits_that_compete_for_the_switch_are_a_doubt(vcs, flits, known):
    held = network(vcs=vcs, flits=flits, injection_rate=0.01)
    noc = replace(held, router=replace(held.router, hold_switch_for_packet=False))
    assert solve_noc(held).validated
    assert solve_noc(noc).validated == known
    assert known or "up to 16 % too low at 85 %" in solve_noc(noc).notes[0]
    # Where it makes no difference the two are simulated alike, see `test_noc_kernel`.
    assert solve_noc(noc).packet_latency == solve_noc(held).packet_latency


def test_data_are_no_more_than_the_flits_hold():
    answer = solve_noc(network(flits=5, injection_rate=0.05))  # 128 bytes do not fit into 5 x 16
    assert answer.bandwidth == pytest.approx(0.05 * 9 * (5 * 16 - 8))
    result = simulate(network(flits=5, injection_rate=0.05), packets=2000, replications=2)
    assert result.bandwidth.best == pytest.approx(72 * result.delivered_rate.best)


def test_longer_wires_and_pipelines_cost_what_they_are_long():
    noc = network(injection_rate=1e-9)
    alone = solve_noc(noc)
    assert alone.packet_latency == pytest.approx(alone.zero_load_latency)
    wire = solve_noc(replace(noc, topology=mesh(3, 3, delay=2), router=Router(buffer_flits=20)))
    hops = np.mean([len(noc.flow_table().path(f)) - 2 for f in range(72)])
    assert wire.zero_load_latency == pytest.approx(alone.zero_load_latency + 2 * hops)
    slow = solve_noc(replace(noc, router=Router(pipeline_cycles=5, credit_cycles=7)))
    assert slow.zero_load_latency == pytest.approx(alone.zero_load_latency + 2 * (hops + 1))


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(
    ("noc", "allowed"),
    [
        (network("torus", injection_rate=0.08), 0.02),
        (network("torus", traffic=transpose(nodes=16), injection_rate=0.04), 0.02),
        (network(mix=(PacketClass(flits=1), PacketClass(flits=9)), injection_rate=0.07), 0.02),
        (network(process=bursts(scv=3.0), injection_rate=0.06), 0.05),
        (network(process="poisson", injection_rate=0.09), 0.02),
        (network(topology=mesh(3, 3, delay=2), router=Router(buffer_flits=12), injection_rate=0.09), 0.02),
        (network(qos=(QosRule(source=0, target=8, circuit=True),), injection_rate=0.1), 0.03),
    ],
)
def test_against_simulation(noc, allowed):
    answer, result = solve_noc(noc), simulate(noc, replications=4, packets=8000)
    assert result.packet_latency.half_width < 0.02 * result.packet_latency.best
    assert_allclose(answer.packet_latency, result.packet_latency.best, rtol=allowed)
    assert_allclose(answer.packet_latency_p95, result.packet_latency_p95.best, rtol=0.1)
    busy = result.channels["utilization"]
    assert_allclose(answer.channels["utilization"], busy, atol=0.03)
    filled = result.channels["buffer_occupancy"]
    assert_allclose(answer.channels["buffer_occupancy"].mean(), np.mean(filled), rtol=0.35, atol=0.02)


def test_priorities_against_simulation():
    classes = tuple(PacketClass(flits=5, priority=k) for k in range(3))
    noc = network("torus", mix=classes, router=Router(arbitration="priority"), injection_rate=0.1)
    flows = solve_noc(noc).flows
    simulated = simulate(noc, replications=4, packets=15_000).flows["packet_latency"]
    for k in range(3):
        mine = flows["packet_class"] == k
        assert_allclose(
            flows["packet_latency"][mine].mean(), simulated[mine].mean(), rtol=0.07
        )  # measured: up to 6.2 %


def test_where_a_ring_collapses_has_nothing_to_do_with_what_it_carries_now():
    noc = Noc(topology=ring(8), traffic=uniform(nodes=8), injection_rate=0.01)
    usual = solve_noc(noc).saturation_rate
    assert usual < solve_noc(noc).ideal_saturation_rate
    assert_allclose(solve_noc(replace(noc, injection_rate=1e-6)).saturation_rate, usual, rtol=1e-6)


def test_a_faster_clock_raises_the_largest_rates():
    one = solve_noc(network(injection_rate=0.05))
    two = solve_noc(replace(one.spec, clock_ghz=2.0))
    assert two.congested_rate == 2 * one.congested_rate
    assert two.ideal_saturation_rate == 2 * one.ideal_saturation_rate
