"""A packet alone is exact to the cycle, whatever it goes through; and loops of transactions."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas import DataFrame

import qmodels as qm
from qmodels import MessageProgram, Noc, mesh, spidergon
from qmodels.noc import QosRule, Router, Topology, transactions, uniform
from qmodels.noc.bounds import latency_bounds
from qmodels.noc.closed_loop import closed_loop
from qmodels.noc.turns import group_turns
from qmodels.systems.programs.messaging import MessageCosts
from validate import simulate
from validate.noc.flits import send
from validate.noc.kernel import quiet, step
from validate.noc.state import DELIVERED, new_world


def chain(widths, delays, **options):
    """Return a network of routers in a row, whose links both ways have these widths and wires."""
    edges = tuple(edge for k in range(len(widths)) for edge in ((k, k + 1), (k + 1, k)))
    topology = Topology(
        kind="custom",
        nodes=len(widths) + 1,
        edges=edges,
        edge_widths=tuple(w for w in widths for _ in range(2)),
        edge_delays=tuple(d for d in delays for _ in range(2)),
    )
    return Noc(
        topology=topology, link_width=16, traffic=uniform(nodes=topology.nodes, self_traffic=True), **options
    )


@st.composite
def networks(draw):
    """Draw a row of links of all widths, wires and buffers, and how long its packets are."""
    links = draw(st.integers(1, 6))
    pipeline = draw(st.integers(1, 5))
    return chain(
        draw(st.lists(st.sampled_from([1, 2, 3, 4, 8, 16, 32]), min_size=links, max_size=links)),
        draw(st.lists(st.integers(0, 4), min_size=links, max_size=links)),
        flits_per_packet=draw(st.integers(1, 30)),
        router=Router(
            virtual_channels=draw(st.integers(1, 3)),
            buffer_flits=draw(st.integers(1, 12)),
            pipeline_cycles=pipeline,
            credit_cycles=pipeline + draw(st.integers(1, 5)),
            hold_switch_for_packet=draw(st.booleans()),
        ),
    )


def alone(noc, flow):
    """Return the simulated latency of a packet of a flow in an empty network."""
    table = noc.flow_table()
    world = new_world(table, noc.router, packets=2)
    send(world, flow, int(table.flits[flow]), 0, 0)
    for now in range(100_000):
        step(world, now)
        if world.clock[DELIVERED]:
            return now
        assert now < 100 or not quiet(world, now), "stuck"
    raise AssertionError("lost")


@given(networks(), st.data())
def test_zero_load_is_exact(noc, data):
    table = noc.flow_table()
    flow = data.draw(st.integers(0, table.source.size - 1))
    assert group_turns(table, noc.router, rate=table.unit_rate).zero_load[flow] == alone(noc, flow)


def test_six_narrow_links():
    # Seven routers of 3 cycles, 2 at the ends, and on each link of 8 bytes one more for a flit of 16.
    noc = chain([8] * 6, [0] * 6, flits_per_packet=1)
    table = noc.flow_table()
    flow = int(((table.source == 0) & (table.target == 6)).argmax())
    expected = 7 * 3 + 2 + 6
    assert alone(noc, flow) == expected
    assert group_turns(table, noc.router, rate=table.unit_rate).zero_load[flow] == expected


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("buffer", [2, 5, 16])
@pytest.mark.parametrize("widths", [(16, 4, 8), (8, 8, 8), (16, 16, 16)])
def test_loops_and_programs_that_meet_nobody_are_exact(widths, buffer):
    noc = chain(widths, (1, 0, 3), router=Router(buffer_flits=buffer))
    loop = Noc(
        topology=noc.topology,
        router=noc.router,
        traffic=transactions(initiators=[0], channels=[3], think_cycles=50, service_cycles=4),
    )
    found = simulate(loop, packets=200, replications=2)
    assert found.transaction_latency.best == pytest.approx(closed_loop(loop).transaction_latency)
    program = MessageProgram(
        topology=noc.topology,
        router=noc.router,
        link_width=16,
        costs=MessageCosts(packet_words=20, response_cycles=1),
        processes=(("send 3 40",), (), (), ("receive 0",)),
    )
    exact = simulate(program, replications=2)
    assert exact["execution_time"].best == qm.solve(program)["execution_time"]


def test_bounds_of_circuits_are_not_below_zero_load():
    noc = chain([4] * 3, [0] * 3, qos=(QosRule(source=0, target=3, circuit=True),), injection_rate=0.001)
    table = noc.flow_table()
    circuit = int(table.circuit.argmax())
    assert latency_bounds(noc)[circuit] >= alone(noc, circuit)


SMALL = {"packets": 2000, "cycles": 2000, "replications": 2}


def one_engine(**options):
    return Noc(
        topology=mesh(1, 2),
        link_width=16,
        traffic=transactions(initiators=[0], channels=[1], **options),
    )


@pytest.mark.parametrize("think", [0.0, 10.0, 1000.0])
def test_one_engine_alone_takes_the_sum_of_its_parts(think):
    # 9 flits there (8 + 128 bytes), 1 back; two routers each way; the answer leaves when served, and
    # the next request a cycle after the answer at the earliest.
    r = simulate(one_engine(think_cycles=think, service_cycles=7, latency_cycles=4), **SMALL)
    there, back = 3 * 2 + 2 + 8, 3 * 2 + 2
    assert r.transaction_latency.best == there + 7 + 4 + back
    assert 1 / r.transaction_rate.best == pytest.approx(there + 11 + back + max(1, think), rel=0.01)
    assert r.bandwidth.best == pytest.approx(128 * r.transaction_rate.best, rel=0.01)


def test_a_read_is_short_there_and_long_back():
    r = simulate(one_engine(read_fraction=1.0, service_cycles=5), **SMALL)
    flows = DataFrame(r.flows).set_index("source")["packet_latency"]
    assert (flows[0], flows[1]) == (8, 16)


def test_littles_law_holds_for_the_loop():
    # Outstanding = rate x (time of a transaction + thinking).
    spec = Noc(
        topology=spidergon(12),
        traffic=transactions(
            initiators=range(8),
            channels=range(8, 12),
            outstanding=3,
            think_cycles=60,
            think_law="exponential",
        ),
    )
    r = simulate(spec, packets=20_000, replications=4)
    # A request waits for the next whole cycle after the thinking, half a cycle on average.
    inside = r.transaction_rate.best * (r.transaction_latency.best + 60.5)
    assert inside == pytest.approx(8 * 3, rel=0.01)
    assert r.verdict == "stable"


@pytest.mark.parametrize("seed", range(4))
def test_no_engine_is_ever_lost(seed):
    # Answers in the same cycle let several send in the next one, before the places of these are free.
    traffic = transactions(initiators=[0, 1], channels=[8, 9])
    r = simulate(Noc(topology=spidergon(16), traffic=traffic), seed=seed, **SMALL)
    assert r.transaction_rate.best * (r.transaction_latency.best + 1) == pytest.approx(2, rel=0.005)


def test_a_slow_memory_is_the_limit():
    spec = Noc(
        topology=spidergon(8),
        traffic=transactions(initiators=range(4), channels=[4], outstanding=8, service_cycles=50),
    )
    r = simulate(spec, **SMALL)
    assert r.transaction_rate.best == pytest.approx(1 / 50, rel=0.01)
    spread = replace(spec, traffic=replace(spec.traffic, channels=(4, 5, 6, 7)))
    assert simulate(spread, **SMALL).transaction_rate.best > 3.5 / 50


def test_more_outstanding_never_lowers_the_rate_much_and_few_do_not_fill_the_memory():
    rates = []
    for outstanding in (1, 2, 4, 8):
        traffic = transactions(
            initiators=range(4), channels=[4, 5], outstanding=outstanding, service_cycles=20
        )
        rates.append(simulate(Noc(topology=spidergon(8), traffic=traffic), **SMALL).transaction_rate.best)
    assert rates[0] < rates[1] < rates[2] <= rates[3] * 1.01 < 2 / 20 * 1.02


def test_exponential_service_waits_longer_than_fixed():
    fixed, random = (
        simulate(
            Noc(
                topology=spidergon(8),
                traffic=transactions(
                    initiators=range(4), channels=[4], think_cycles=150, service_cycles=40, service_law=law
                ),
            ),
            packets=10_000,
            replications=4,
        ).transaction_latency
        for law in ("fixed", "exponential")
    )
    assert random.low > fixed.high
