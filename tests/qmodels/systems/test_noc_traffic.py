"""Who sends to whom: patterns against their definitions, matrices from files, memory traffic."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import Noc, mesh, solve
from qmodels.noc import (
    Bernoulli,
    bit_complement,
    bursts,
    hotspot,
    interleaved,
    neighbour,
    permutation,
    rate_matrix,
    task_graph,
    tornado,
    transpose,
    uniform,
)
from qmodels.systems.noc.flows import injection_process
from qmodels.systems.spec.text.toml import from_toml, to_toml


@given(nodes=st.integers(2, 9), self_traffic=st.booleans(), fraction=st.floats(0, 1), data=st.data())
def test_rows_add_up_to_one(nodes, self_traffic, fraction, data):
    spots = data.draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=nodes, unique=True))
    for traffic in (
        uniform(nodes=nodes, self_traffic=self_traffic),
        hotspot(nodes=nodes, spots=spots, fraction=fraction, self_traffic=self_traffic),
    ):
        matrix = traffic.matrix(nodes)
        sums = matrix.sum(axis=1)
        assert np.all((np.abs(sums - 1) < 1e-12) | (sums == 0))
        assert self_traffic or not np.diag(matrix).any()
    assert np.all(matrix >= 0)


def targets(traffic, nodes):
    return [int(row.argmax()) if row.any() else None for row in traffic.matrix(nodes)]


def test_permutations_by_their_definitions():
    assert targets(transpose(nodes=9), 9) == [None, 3, 6, 1, None, 7, 2, 5, None]
    assert targets(transpose(nodes=4, self_traffic=True), 4) == [0, 2, 1, 3]
    assert targets(bit_complement(nodes=8), 8) == [0b111 ^ n for n in range(8)]
    assert targets(tornado(8), 8) == [(n + 3) % 8 for n in range(8)]
    assert targets(tornado(5), 5) == [(n + 2) % 5 for n in range(5)]
    assert targets(tornado(4, 4), 16)[0] == 5
    assert targets(neighbour(2, 3), 6)[0] == 4
    assert targets(permutation([1, 0, 2]), 3) == [1, 0, None]


def test_hot_nodes_get_their_fraction_and_their_part_of_the_rest():
    matrix = hotspot(nodes=5, spots=[1, 3], fraction=0.4).matrix(5)
    assert matrix[0].tolist() == pytest.approx([0, 0.35, 0.15, 0.35, 0.15])
    assert matrix[1].tolist() == pytest.approx([0.15, 0, 0.15, 0.55, 0.15])
    alone = hotspot(nodes=3, spots=[0], fraction=1.0).matrix(3)
    assert alone.tolist() == [[0, 0, 0], [1, 0, 0], [1, 0, 0]]


def test_rate_matrices(tmp_path):
    rates = [[0, 0.1, 0.3], [0, 0, 0], [0.2, 0, 0]]
    traffic = rate_matrix(rates)
    assert traffic.mean_rate == pytest.approx(0.3)
    assert (traffic.mean_rate * traffic.matrix(3)).tolist() == pytest.approx(np.array(rates))
    file = tmp_path / "rates.csv"
    file.write_text("0, 0.1, 0.3\n0,0,0\n\n0.2,0,0\n", encoding="utf-8")
    assert rate_matrix(file) == traffic


RATES = [[0, 0.1, 0.3], [0, 0, 0], [0.2, 0, 0]]


def rates_of(noc):
    """Return the packets per cycle between all pairs of nodes."""
    table = noc.flow_table()
    rates = np.zeros((noc.topology.nodes,) * 2)
    rates[table.source, table.target] = table.rate
    return rates


def test_a_network_has_the_rates_of_its_matrix():
    noc = Noc(topology=mesh(1, 3), traffic=rate_matrix(RATES), flits_per_packet=1)
    assert_allclose(rates_of(noc), RATES)
    # Two of three nodes send.
    assert solve(noc).delivered_rate == pytest.approx(0.6)
    usual = Noc(topology=mesh(1, 3), traffic=uniform(nodes=3))
    assert usual.mean_rate == 0.01
    assert_allclose(rates_of(replace(usual, traffic=rate_matrix(RATES))), RATES)
    assert_allclose(rates_of(from_toml(to_toml(noc), Noc)), RATES)


def test_an_injection_rate_scales_a_matrix_to_its_mean():
    noc = Noc(topology=mesh(1, 3), traffic=rate_matrix(RATES), flits_per_packet=1, injection_rate=0.03)
    assert noc.mean_rate == 0.03
    assert_allclose(rates_of(noc), np.array(RATES) / 10)
    curve = solve(replace(noc, injection_rate=np.array([0.0, 0.3])))
    assert_allclose(curve.delivered_rate, [0, 0.6])


def test_more_packets_than_cycles_are_refused():
    edges = [("a", "b", 7), ("b", "a", 2)]
    graph = task_graph(edges, mapping={"a": 0, "b": 1}, nodes=2)
    with pytest.raises(ValueError, match="traffic.rates must let a source .* got 7: give injection_rate"):
        Noc(topology=mesh(1, 2), traffic=graph)
    slower = task_graph(edges, mapping={"a": 0, "b": 1}, nodes=2, period_cycles=100)
    assert_allclose(rates_of(Noc(topology=mesh(1, 2), traffic=slower)), [[0, 0.07], [0.02, 0]])
    with pytest.raises(ValueError, match="period_cycles must be finite and > 0, got 0"):
        task_graph(edges, mapping={"a": 0, "b": 1}, nodes=2, period_cycles=0)


def test_task_graphs():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", packets=2)
    graph.add_edge("b", "c")
    graph.add_edge("a", "c", packets=5)
    traffic = task_graph(graph, mapping={"a": 0, "b": 1, "c": 1}, nodes=2)
    assert traffic.rates == ((0.0, 7.0), (0.0, 0.0))


@given(
    initiators=st.integers(1, 5),
    channels=st.integers(1, 16),
    step=st.integers(1, 9),
    offset=st.integers(0, 15),
)
def test_interleaved_order_is_that_of_the_memory_map(initiators, channels, step, offset):
    nodes = range(initiators, initiators + channels)
    traffic = interleaved(initiators=range(initiators), channels=nodes, step=step, offset=offset % channels)
    addresses = np.arange(3 * step * channels) * 128
    sequence = traffic.memory.locate(addresses)[1]
    turns = np.arange(addresses.size) // max(traffic.step_packets, 1) % channels
    assert np.array_equal(np.array(traffic.targets)[turns], sequence) or channels == 1
    assert traffic.matrix(initiators + channels)[0].sum() == pytest.approx(1)


def test_interleaving_over_one_channel_changes_nothing():
    one = [interleaved(initiators=[0, 1], channels=[2], step=step) for step in (1, 32)]
    assert one[0].step_packets == one[1].step_packets == 0
    assert np.array_equal(one[0].matrix(3), one[1].matrix(3))


def test_disabled_regions_are_used_part_by_part():
    traffic = interleaved(initiators=[0], channels=[1, 2], enabled=False)
    assert traffic.step_packets == 2**16
    assert interleaved(initiators=[0], channels=[1, 2]).step_packets == 1
    assert interleaved(initiators=[0], channels=[1, 2], addresses="random").step_packets == 0


def test_where_cycles_start():
    def first(starts):
        return interleaved(initiators=range(5), channels=range(5, 8), step=2, starts=starts).first_packets()

    assert first("same").tolist() == [0] * 5
    assert first("spread").tolist() == [0, 2, 4, 0, 2]
    assert first("random").tolist() == [-1] * 5


def test_bursts_have_the_scv():
    for scv in (3.0, 20.0):
        assert bursts(scv=scv).scv == pytest.approx(scv)
    assert injection_process("bernoulli") == Bernoulli()
    assert injection_process("poisson").scv == 1.0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0,1\n1,x\n", r"rates.csv:2: must be numbers, got '1,x'"),
        (b"\xff\xfe", "not a text file"),
        (b"0,1", "square"),
    ],
)
def test_messages_of_rate_files(tmp_path, content, message):
    file = tmp_path / "rates.csv"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        rate_matrix(file)
