"""A packet alone in the network: the model has the simulated time to the cycle, whatever it goes through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmodels as qm
from qmodels import MessageProgram, Noc
from qmodels.noc import QosRule, Router, Topology, transactions, uniform
from qmodels.noc.bounds import latency_bounds
from qmodels.noc.closed_loop import closed_loop
from qmodels.noc.turns import group_turns
from qmodels.systems.programs.messaging import MessageCosts
from validate import simulate
from validate.noc.kernel import quiet, step
from validate.noc.replication import build_world
from validate.noc.sources import send
from validate.noc.state import DELIVERED


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
    world = build_world(noc, table, packets=2)
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


@pytest.mark.in_ci(2)
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
