"""The flow table: what is conserved, what a relabelling may not change, and who can deadlock."""

from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import Noc, crossbar, mesh, ring, spidergon, torus
from qmodels.noc import (
    PacketClass,
    QosRule,
    Router,
    SourceRoute,
    Topology,
    concentrated_mesh,
    from_graph,
    interleaved,
    permutation,
    rate_matrix,
    shared_bus,
    transactions,
    uniform,
)
from qmodels.systems.noc.routes import EJECTION, INJECTION, LINK

topologies = st.one_of(
    st.integers(3, 9).map(ring),
    st.integers(2, 6).map(lambda half: spidergon(2 * half)),
    st.tuples(st.integers(1, 4), st.integers(2, 4)).map(lambda shape: mesh(*shape)),
    st.tuples(st.integers(2, 4), st.integers(2, 4)).map(lambda shape: torus(*shape)),
    st.integers(2, 6).map(crossbar),
    st.integers(2, 6).map(shared_bus),
    st.just(concentrated_mesh(2, 2, concentration=3)),
)


@st.composite
def nocs(draw):
    topology = draw(topologies)
    n = topology.nodes
    seed = draw(st.integers(0, 999))
    rng = np.random.default_rng(seed)
    rates = rng.random((n, n)) * (rng.random((n, n)) < 0.6)
    if not rates.any():
        rates[0, 1] = 1.0
    return Noc(
        topology=topology,
        ties=draw(st.sampled_from(["first", "split"])),
        traffic=draw(
            st.sampled_from([uniform(nodes=n), uniform(nodes=n, self_traffic=True), rate_matrix(rates)])
        ),
        injection_rate=0.1,
        mix=draw(st.sampled_from([(), (PacketClass(flits=1, share=3), PacketClass(flits=5))])),
    )


@given(noc=nocs())
def test_flows_are_conserved_and_paths_connected(noc):
    table = noc.flow_table()
    rows = [table.paths.channel[a:b] for a, b in zip(table.paths.start, table.paths.start[1:], strict=False)]
    for k, path in enumerate(rows):
        kinds = table.channel_kind[path]
        assert (kinds[0], kinds[-1]) == (INJECTION, EJECTION)
        assert np.all(kinds[1:-1] == LINK)
        assert np.array_equal(table.channel_to[path[:-1]], table.channel_from[path[1:]])
        assert table.path(k)[0] == f"inject {table.source[k]}"
        assert table.path(k)[-1] == f"eject {table.target[k]}"
    # What goes into every router comes out of it.
    load = table.channel_load()
    routers = table.routers
    into = np.bincount(table.channel_to[load > 0] + 1, weights=load[load > 0], minlength=routers + 1)[1:]
    out = np.bincount(table.channel_from[load > 0] + 1, weights=load[load > 0], minlength=routers + 1)[1:]
    assert into == pytest.approx(out)
    # Shares of a source add up to 1, rates to what the traffic says.
    senders = np.unique(table.source)
    assert np.bincount(table.source, weights=table.share)[senders] == pytest.approx(1)
    assert table.unit_rate.sum() == pytest.approx(noc.traffic.matrix(table.nodes).sum())
    assert table.rate == pytest.approx(0.1 * table.unit_rate)
    assert [
        table.source[a:b].tolist() for a, b in zip(table.source_start, table.source_start[1:], strict=False)
    ] == [[node] * int(np.sum(table.source == node)) for node in range(table.nodes)]


@given(noc=nocs(), virtual_channels=st.integers(1, 5))
def test_hops_may_use_virtual_channels_that_exist(noc, virtual_channels):
    table = replace(noc, router=Router(virtual_channels=virtual_channels)).flow_table()
    assert np.all(table.paths.low >= 0)
    assert np.all(table.paths.low < table.paths.high)
    assert np.all(table.paths.high <= virtual_channels)
    ends = table.channel_kind[table.paths.channel] != LINK
    assert np.all((table.paths.high - table.paths.low)[ends] == virtual_channels)


@given(half=st.integers(2, 8), shift=st.integers(1, 15))
def test_turning_a_spidergon_turns_its_loads(half, shift):
    # Rotation is a symmetry: relabelled nodes see relabelled loads, the routes' lengths stay.
    n = 2 * half
    turned = [(k + shift) % n for k in range(n)]
    rng = np.random.default_rng(half * 16 + shift)
    rates = rng.random((n, n))
    np.fill_diagonal(rates, 0)
    moved = np.zeros((n, n))
    moved[np.ix_(turned, turned)] = rates
    loads = []
    for matrix in (rates, moved):
        noc = Noc(topology=spidergon(n), traffic=rate_matrix(matrix), injection_rate=0.1)
        table = noc.flow_table()
        loads.append(dict(zip(table.channel_names, table.channel_load(), strict=True)))
    for name, load in loads[0].items():
        kind, _, node = name.partition(" ")
        if kind in ("inject", "eject"):
            other = f"{kind} {turned[int(node)]}"
        else:
            u, v = name.split("->")
            other = f"{turned[int(u)]}->{turned[int(v)]}"
        assert loads[1][other] == pytest.approx(load)


@given(noc=nocs(), virtual_channels=st.integers(2, 4))
def test_dateline_classes_prevent_deadlocks(noc, virtual_channels):
    assert replace(noc, router=Router(virtual_channels=virtual_channels)).find_deadlock() is None


@given(n=st.integers(3, 7), seed=st.integers(0, 99))
def test_up_down_routing_needs_no_classes(n, seed):
    graph = from_graph(nx.compose(nx.gnp_random_graph(n, 0.5, seed=seed), nx.path_graph(n)))
    noc = Noc(topology=graph, routing="up-down", traffic=uniform(nodes=n), router=Router(virtual_channels=1))
    assert noc.find_deadlock() is None


@given(n=st.integers(3, 6), seed=st.integers(0, 400))
def test_deadlocks_against_networkx(n, seed):
    graph = from_graph(
        nx.compose(nx.gnp_random_graph(n, 0.4, seed=seed, directed=True), nx.cycle_graph(n, nx.DiGraph))
    )
    targets = np.random.default_rng(seed).permutation(n).tolist()
    if targets == sorted(targets):
        return
    noc = Noc(topology=graph, traffic=permutation(targets))
    table = noc.flow_table()
    waits = nx.DiGraph()
    for k in range(table.source.size):
        nx.add_path(waits, table.path(k))
    found = noc.find_deadlock()
    assert (found is None) == nx.is_directed_acyclic_graph(waits)
    if found is not None:
        names = [name.partition(" vc ")[0] for name in found]
        for pair in zip(names, names[1:] + names[:1], strict=True):
            assert waits.has_edge(*pair)


@pytest.mark.parametrize(
    "noc",
    [
        Noc(topology=ring(6), traffic=uniform(nodes=6), router=Router(virtual_channels=1)),
        Noc(topology=torus(4, 4), vc_classes="none"),
        Noc(topology=mesh(3, 3), routing="o1turn", vc_classes="none", traffic=uniform(nodes=9)),
    ],
)
def test_deadlocks_are_named(noc):
    circle = noc.find_deadlock()
    assert circle is not None
    ends = [name.partition(" vc ")[0].split("->") for name in circle]
    for (_, to), (start, _) in zip(ends, ends[1:] + ends[:1], strict=True):
        assert to == start


def test_narrow_and_long_links():
    graph = nx.path_graph(3)
    graph.edges[0, 1].update(width=8, delay=2)
    graph.edges[1, 2].update(width=32)
    table = Noc(topology=from_graph(graph), traffic=uniform(nodes=3), link_width=16).flow_table()
    cycles = dict(zip(table.channel_names, table.channel_cycles_per_flit.tolist(), strict=True))
    delays = dict(zip(table.channel_names, table.channel_delay.tolist(), strict=True))
    assert (cycles["0->1"], cycles["1->2"], cycles["inject 0"]) == (2, 1, 1)
    assert (delays["1->0"], delays["1->2"]) == (2, 0)


def test_wider_links_never_add_flits():
    noc = Noc()
    flits = [replace(noc, link_width=width).flits(128) for width in (1, 8, 16, 32, 200)]
    assert flits == [136, 17, 9, 5, 1]


def test_load_curves_have_rates_for_every_load():
    noc = Noc(injection_rate=np.array([0.01, 0.02]))
    assert noc.flow_table().rate.shape == (2, noc.flow_table().source.size)
    assert noc.flow_table().paths.channel is replace(noc, injection_rate=0.5).flow_table().paths.channel
    with pytest.raises(ValueError, match="read-only"):
        noc.flow_table().share[0] = 1.0


def test_interleaved_flows_are_in_the_order_of_the_addresses():
    traffic = interleaved(initiators=[0, 2], channels=[5, 1, 6], step=4, offset=1, starts="spread")
    table = Noc(topology=mesh(2, 4), traffic=traffic).flow_table()
    assert table.target.tolist() == [1, 6, 5, 1, 6, 5]
    assert table.order.tolist() == [0, 1, 2, 0, 1, 2]
    assert table.source_step.tolist() == [4, 0, 4, 0, 0, 0, 0, 0]
    assert table.source_first[[0, 2]].tolist() == [0, 4]


def test_replies_answer_requests():
    traffic = transactions(initiators=[0, 1], channels=[2, 3], read_fraction=0.25)
    table = Noc(topology=ring(4), traffic=traffic, link_width=8).flow_table()
    asked = np.flatnonzero(table.reply >= 0)
    assert Counter(table.source[asked].tolist()) == {0: 4, 1: 4}
    for k in asked:
        back = table.reply[k]
        assert (table.source[k], table.target[k]) == (table.target[back], table.source[back])
        assert sorted((table.flits[k], table.flits[back])) == [1, 17]
        assert table.packet_class[k] == table.packet_class[back] == int(table.flits[k] == 1)
        assert table.share[k] == pytest.approx((0.25 if table.flits[k] == 1 else 0.75) / 2)
    assert not table.unit_rate.any()


def test_rules_of_service_the_first_counts():
    rules = (
        QosRule(source=0, target=1, circuit=True, priority=0),
        QosRule(source=0, priority=2, weight=3.0),
        QosRule(priority=5),
    )
    table = Noc(topology=ring(3), traffic=uniform(nodes=3), qos=rules).flow_table()
    rows = zip(table.source, table.target, table.priority, table.weight, table.circuit, strict=True)
    assert [tuple(map(float, row)) for row in rows] == [
        (0, 1, 0, 1, 1), (0, 2, 2, 3, 0), (1, 0, 5, 1, 0), (1, 2, 5, 1, 0), (2, 0, 5, 1, 0), (2, 1, 5, 1, 0),
    ]  # fmt: skip


def test_priorities_of_a_mix():
    mix = (PacketClass(flits=1, priority=1, share=3), PacketClass(flits=9, priority=4))
    table = Noc(topology=ring(3), traffic=uniform(nodes=3), mix=mix).flow_table()
    assert table.priority[:2].tolist() == [1, 4]
    assert table.share[:2].tolist() == pytest.approx([0.375, 0.125])


def test_sizes_are_whole_numbers_of_python():
    noc = Noc(link_width=np.int64(16), packet_bytes=120.0)
    assert [type(n) for n in (noc.link_width, noc.packet_bytes, noc.flits(120))] == [int] * 3


def test_a_packet_has_no_more_data_than_its_flits_hold():
    noc = Noc(link_width=16, header_bytes=8)
    assert [noc.class_payload(PacketClass(flits=n)) for n in (0, 1, 5, 9)] == [128, 8, 72, 128]


ROLES = Topology(kind="ring", nodes=3, roles=("initiator", "memory", "memory"))


def test_split_routes_of_transactions_are_refused():
    routes = [
        SourceRoute(source=0, target=2, routers=(0, 1, 2), share=0.5),
        SourceRoute(source=0, target=2, routers=(0, 3, 2), share=0.5),
        SourceRoute(source=2, target=0, routers=(2, 1, 0)),
    ]
    traffic = transactions(initiators=[0], channels=[2])
    noc = Noc(topology=ring(4), routing="table", routes=tuple(routes), traffic=traffic)
    with pytest.raises(
        ValueError, match="routes of transactions must be one for each pair of nodes, got splits"
    ):
        noc.flow_table()
