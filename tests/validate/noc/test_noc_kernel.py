"""Laws of every cycle of a network, on small ones of all kinds that are driven from Python."""

from collections import defaultdict
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import Noc, crossbar, mesh, ring, spidergon, torus
from qmodels.noc import Router, from_graph, uniform
from validate.noc.flits import send
from validate.noc.kernel import quiet, step
from validate.noc.state import (
    BUFFER,
    DELIVERED,
    FLAGS,
    HEAD,
    IN_NETWORK,
    LAST_MOVE,
    SHIFT,
    TAIL,
    TRAIN,
    WAITING,
    WHOLE,
    grown,
    new_world,
)
from validate.noc.traffic import seen

TOPOLOGIES = (ring(5), spidergon(8), mesh(2, 3), torus(3, 3), crossbar(4))


@st.composite
def networks(draw):
    """Draw a network of each kind, free of deadlock, with all routers there are."""
    topology = draw(st.sampled_from(TOPOLOGIES))
    return Noc(
        topology=topology,
        router=Router(
            virtual_channels=draw(st.integers(2, 4)),
            buffer_flits=draw(st.integers(1, 9)),
            pipeline_cycles=draw(st.integers(1, 4)),
            credit_cycles=draw(st.integers(5, 7)),
            arbitration=draw(st.sampled_from(("round_robin", "fcfs", "priority", "weighted"))),
            hold_switch_for_packet=draw(st.booleans()),
        ),
        traffic=uniform(nodes=topology.nodes, self_traffic=True),
    )


@st.composite
def loads(draw, flows=16):
    """Draw packets in the order of time: (cycle, flow, flits)."""
    one = st.tuples(st.integers(0, 60), st.integers(0, flows - 1), st.integers(1, 9))
    return sorted(draw(st.lists(one, min_size=1, max_size=80)))


def run(world, packets, *, check=False):
    """Send packets at their times, wait for all; return (delivery, creation, flow, flits) by position."""
    waiting = list(enumerate(packets))
    got = {}
    now = 0
    while waiting or world.clock[IN_NETWORK] or world.clock[WAITING] or not quiet(world, now):
        while waiting and waiting[0][1][0] <= now:
            tag, (_, flow, flits) = waiting.pop(0)
            assert send(world, flow, flits, tag, now) >= 0
        step(world, now)
        for p in world.delivered[: world.clock[DELIVERED]]:
            one = world.packet[p]
            assert int(one["tag"]) not in got, "delivered twice"
            got[int(one["tag"])] = (now, int(one["created"]), int(one["flow"]), int(one["flits"]))
        if check:
            check_invariants(world)
        now += 1
        assert now < 100_000, "stuck"
    return got


def new(noc, *, packets=500):
    """Return the empty network of a spec."""
    return new_world(noc.flow_table(), noc.router, packets=packets)


def check_invariants(world):
    """Credits are conserved, and the flits in a buffer are those of one packet after the other, in order."""
    size = int(world.clock[BUFFER])
    on_wires = np.zeros(world.vc.size, dtype=int)
    for row in world.arrivals:
        for word in row[1 : row[0] + 1]:
            on_wires[word >> 32] += flits_of(world, word & 0xFFFFFFFF)
    for row in world.credits:
        np.add.at(on_wires, row[1 : row[0] + 1] & 0xFFFFFFFF, row[1 : row[0] + 1] >> 32)
    sink = world.channel["sink"][np.arange(world.vc.size) >> world.clock[SHIFT]].astype(bool)
    total = world.vc["credits"] + world.vc["count"] + on_wires
    # A sink's credit is on its way back from the moment its flit is sent, and of flits only tails are.
    assert np.all(total[~sink] == size)
    assert np.all(world.vc["credits"] >= 0)
    for vc in world.vc[world.vc["count"] > 1]:
        behind = np.arange(flits_of(world, vc["flit"]) - 1, vc["count"] - 1)
        flits = [vc["flit"], *world.slots[vc["first_slot"] + (vc["front"] + behind) % size]]
        for one, following in zip(flits[:-1], flits[1:], strict=True):
            if one & TAIL:
                assert following & HEAD
            else:
                assert not following & HEAD
                assert following >> FLAGS == one >> FLAGS


def flits_of(world, flit):
    """Return how many flits one stands for: a whole packet comes as one."""
    return int(world.packet[flit >> FLAGS]["flits"]) if flit & WHOLE == WHOLE else 1


def zero_load(table, flow, flits, pipeline=3):
    hops = int(table.paths.start[flow + 1] - table.paths.start[flow])
    return pipeline * (hops - 1) + 2 + flits - 1


@given(networks(), loads())
def test_no_flit_is_lost_or_doubled_and_credits_are_conserved(noc, packets):
    world = new(noc)
    got = run(world, packets, check=True)
    assert sorted(got) == list(range(len(packets)))
    assert world.clock[IN_NETWORK] == 0
    assert np.all(world.vc["credits"] == world.clock[BUFFER])
    assert np.all(world.vc["owner"] == -1)
    assert np.all(world.channel["held_vc"] == -1)
    assert np.all(world.channel["stored"] == 0)


@given(networks(), loads())
def test_trains_are_nothing_but_their_flits(noc, packets):
    noc = replace(noc, router=replace(noc.router, arbitration="round_robin"))
    together, single = worlds = [new(noc), new(noc)]
    assert together.clock[TRAIN] == noc.router.buffer_flits
    single.clock[TRAIN] = 1
    last = packets[-1][0]
    now = 0
    while now <= last or not all(quiet(world, now) for world in worlds):
        for tag, (time, flow, flits) in enumerate(packets):
            if time == now:
                assert min(send(world, flow, flits, tag, now) for world in worlds) >= 0
        for world in worlds:
            step(world, now)
        now += 1
        tags = [sorted(w.packet["tag"][w.delivered[: w.clock[DELIVERED]]].tolist()) for w in worlds]
        assert tags[0] == tags[1]
        assert together.clock[WAITING] == single.clock[WAITING]
        np.testing.assert_array_equal(seen(together, now=now), seen(single, now=now))
    assert together.clock[IN_NETWORK] == single.clock[IN_NETWORK] == 0
    for field in ("credits", "count", "owner", "leaving"):
        assert np.array_equal(together.vc[field], single.vc[field])
    for field in ("free", "held_vc", "held_by", "key", "next_in", "next_out", "next_vc", "next_free"):
        assert np.array_equal(together.channel[field], single.channel[field])


@given(networks(), loads())
def test_no_packet_is_faster_than_alone(noc, packets):
    table = noc.flow_table()
    for delivered, created, flow, flits in run(new(noc), packets).values():
        assert delivered - created >= zero_load(table, flow, flits, noc.router.pipeline_cycles)


@given(networks(), loads())
def test_packets_of_a_flow_with_one_virtual_channel_stay_in_order(noc, packets):
    # In one virtual channel nothing can overtake; crossbars and meshes are free of deadlock with one.
    if noc.topology.kind not in ("mesh", "crossbar"):
        noc = replace(noc, topology=mesh(2, 3), traffic=uniform(nodes=6, self_traffic=True))
    one = replace(noc, router=replace(noc.router, virtual_channels=1))
    last = defaultdict(int)
    got = run(new(one), packets)
    for tag in sorted(got):
        delivered, _, flow, _ = got[tag]
        assert delivered > last[flow]
        last[flow] = delivered


@given(networks(), loads())
def test_every_channel_carries_the_flits_of_its_flows(noc, packets):
    table = noc.flow_table()
    world = new(noc)
    run(world, packets)
    expected = np.zeros(len(table.channel_names), dtype=int)
    for _, flow, flits in packets:
        expected[table.paths.channel[table.paths.start[flow] : table.paths.start[flow + 1]]] += flits
    assert world.channel["flits"].tolist() == expected.tolist()


@given(networks(), loads(), st.booleans())
def test_without_company_it_does_not_matter_who_holds_the_switch(noc, packets, short):
    # Packets of one flit never keep it; with one virtual channel no other packet can come between.
    if short:
        packets = [(time, flow, 1) for time, flow, _ in packets]
    else:
        noc = replace(noc, topology=mesh(2, 3), traffic=uniform(nodes=6, self_traffic=True))
        noc = replace(noc, router=replace(noc.router, virtual_channels=1))
    both = [
        run(new(replace(noc, router=replace(noc.router, hold_switch_for_packet=hold))), packets)
        for hold in (True, False)
    ]
    assert both[0] == both[1]


def test_a_packet_that_comes_in_drops_shares_the_link_or_waits_for_the_other():
    # A narrow link brings a flit of the first packet every other cycle; the second begins in between.
    narrow = replace(from_graph(nx.path_graph(3)), edge_widths=(8, 8, 16, 16))
    ends = {}
    for hold in (True, False):
        noc = Noc(
            topology=narrow,
            traffic=uniform(nodes=3),
            router=Router(buffer_flits=20, hold_switch_for_packet=hold),
        )
        table = noc.flow_table()
        flow = {int(s): k for k, s in enumerate(table.source) if table.target[k] == 2}
        got = run(new(noc), [(0, flow[0], 6), (5, flow[1], 6)])
        ends[hold] = [got[tag][0] for tag in (0, 1)]
    # Three routers of 3 cycles, 2 at the ends, 2 for each flit over the narrow link but the last one.
    first_alone = 3 * 3 + 2 + 6 * 2 - 1
    # The second, in turn with the first, has every other cycle; holding the switch, it has all.
    second_alone = 5 + 3 * 2 + 2 + 6 - 1
    assert ends[False][0] == first_alone < ends[True][0]
    assert second_alone <= ends[True][1] < ends[False][1]


@pytest.mark.parametrize("topology", [mesh(4, 4), torus(4, 4), ring(9), spidergon(12), crossbar(5)])
@pytest.mark.parametrize(("flits", "buffer"), [(1, 1), (5, 8), (9, 5)])
def test_alone_a_packet_takes_what_booksim_gives_it(topology, flits, buffer):
    # 3 cycles a router, 2 at the ends and one for each further flit: exact for BookSim2.
    noc = Noc(
        topology=topology,
        router=Router(buffer_flits=buffer),
        traffic=uniform(nodes=topology.nodes, self_traffic=True),
    )
    table = noc.flow_table()
    world = new(noc)
    for flow in range(0, table.source.size, 3):
        ((delivered, created, _, _),) = run_alone(world, flow, flits)
        assert delivered - created == zero_load(table, flow, flits)


def run_alone(world, flow, flits):
    start = int(world.clock[LAST_MOVE]) + 100  # long after the last move
    send(world, flow, flits, 0, start)
    for now in range(start, start + 1000):
        step(world, now)
        if world.clock[DELIVERED]:
            one = world.packet[world.delivered[0]]
            return [(now, int(one["created"]), flow, flits)]
    raise AssertionError("lost")


def test_a_small_buffer_stops_a_long_packet_for_the_credit_loop():
    # 4 slots and a loop of 5 cycles: one cycle lost after every 4 flits, floor((9 - 1) / 4) times.
    noc = Noc(topology=mesh(2, 2), router=Router(buffer_flits=4), traffic=uniform(nodes=4))
    ((delivered, created, _, _),) = run_alone(new(noc), 0, 9)
    assert delivered - created == zero_load(noc.flow_table(), 0, 9) + 2


def test_wires_and_narrow_links_add_their_cycles():
    graph = nx.cycle_graph(4)
    nx.set_edge_attributes(graph, 2, "delay")
    nx.set_edge_attributes(graph, 4, "width")
    topology = from_graph(graph)
    noc = Noc(topology=topology, link_width=16, traffic=uniform(nodes=4), router=Router(buffer_flits=16))
    table = noc.flow_table()
    ((delivered, created, _, _),) = run_alone(new(noc), 0, 3)
    links = int(table.paths.start[1] - table.paths.start[0]) - 2
    # Each link 2 cycles of wire and 3 more for a flit in 4 parts; the flits follow at 4 cycles.
    assert delivered - created == 3 * (links + 1) + 2 + links * (2 + 3) + 2 * 4


def test_without_datelines_a_full_ring_is_stuck_and_with_them_it_is_not():
    plain = Noc(
        topology=ring(5),
        vc_classes="none",
        router=Router(virtual_channels=1, buffer_flits=2),
        traffic=uniform(nodes=5),
    )
    # All go two nodes on: each holds a link and waits for the next one.
    table = plain.flow_table()
    packets = [(0, int(flow), 9) for flow in np.flatnonzero((table.target - table.source) % 5 == 2)]
    world = new(plain)
    for tag, (_, flow, flits) in enumerate(packets):
        send(world, flow, flits, tag, 0)
    for now in range(1000):
        step(world, now)
    assert quiet(world, 1000)
    assert world.clock[IN_NETWORK] > 0
    check_invariants(world)
    safe = replace(plain, vc_classes="dateline", router=Router(virtual_channels=2, buffer_flits=2))
    assert len(run(new(safe), packets)) == len(packets)


@pytest.mark.parametrize("flits", [1, 7])
def test_who_comes_first_does_not_change_how_long_all_take(flits):
    # Three nodes of a crossbar send to the fourth at once: its channel is never idle.
    base = Noc(topology=crossbar(4), traffic=uniform(nodes=4), router=Router(buffer_flits=40))
    table = base.flow_table()
    flows = np.flatnonzero(table.target == 3)
    packets = [(0, int(flow), flits) for flow in flows for _ in range(5)]
    ends = set()
    for arbitration in ("round_robin", "fcfs", "priority", "weighted"):
        noc = replace(base, router=replace(base.router, arbitration=arbitration))
        got = run(new(noc), packets)
        ends.add(max(delivered for delivered, *_ in got.values()))
        assert sum(flits for *_, flits in got.values()) == 15 * flits
    assert ends == {3 + 2 + 15 * flits - 1}


def test_a_packet_under_way_is_not_forgotten_when_the_network_grows():
    noc = Noc(topology=mesh(2, 2), traffic=uniform(nodes=4))
    world = new(noc, packets=2)
    assert [send(world, 0, 3, tag, 0) >= 0 for tag in range(3)] == [True, True, False]
    step(world, 0)
    world = grown(world, 4)
    assert [send(world, 0, 3, tag, 1) >= 0 for tag in range(2, 5)] == [True, True, False]
    tags = []
    for now in range(1, 100):
        step(world, now)
        tags += world.packet["tag"][world.delivered[: world.clock[DELIVERED]]].tolist()
    assert tags == [0, 1, 2, 3]
    assert world.clock[WAITING] == 0
