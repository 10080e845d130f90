"""Networks whose packets can wait for each other in a circle have no plain answer."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from qmodels.noc.bounds import latency_bounds
from qmodels.systems.noc.memory import transactions
from qmodels.systems.noc.patterns import permutation, uniform
from qmodels.systems.noc.router import QosRule, Router
from qmodels.systems.noc.routes import SourceRoute
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topologies import mesh, ring, spidergon, torus
from qmodels.systems.noc.topology import Topology
from qmodels.systems.programs.messaging import MessageProgram
from validate import simulate

ONE = Router(virtual_channels=1)


def clockwise():
    """Return routes of two hops, all the same way round the four routers of a square."""
    order = (0, 1, 3, 2)
    way = [tuple(order[(k + j) % 4] for j in range(3)) for k in range(4)]
    return tuple(SourceRoute(source=w[0], target=w[-1], routers=w) for w in way)


def prone():
    """Return networks whose packets may deadlock."""
    even = {"traffic": uniform(nodes=16), "injection_rate": 0.01}
    round_the_ring = permutation([(k + 2) % 8 for k in range(8)])
    return {
        "torus": Noc(topology=torus(4, 4), router=ONE, **even),
        "ring": Noc(topology=ring(16), router=ONE, **even),
        "spidergon": Noc(topology=spidergon(16), router=ONE, **even),
        "classes left out": Noc(topology=torus(4, 4), vc_classes="none", **even),
        "two orders": Noc(topology=mesh(4, 4), routing="o1turn", vc_classes="none", **even),
        "several nodes a router": Noc(
            topology=Topology(kind="torus", nodes=32, shape=(4, 4), concentration=2),
            router=ONE,
            traffic=uniform(nodes=32),
        ),
        "a table": Noc(
            topology=mesh(2, 2), routing="table", routes=clockwise(), traffic=permutation([3, 2, 1, 0])
        ),
        "one way round": Noc(topology=ring(8), router=ONE, traffic=round_the_ring),
    }


@pytest.mark.parametrize("name", prone())
def test_there_is_no_latency(name):
    noc = prone()[name]
    answer = qm.solve(noc)
    assert answer.deadlock == noc.find_deadlock() != ()
    assert not answer.stable and not answer.validated
    assert math.isinf(answer.packet_latency) and math.isinf(answer.packet_latency_p99)
    assert answer.saturation_rate == answer.delivered_rate == 0
    assert np.isinf(answer.flows["packet_latency"]).all()
    assert np.isfinite(answer.zero_load_latency)
    assert answer.deadlock[0] in repr(answer) and "overloaded" in repr(answer)


def test_a_curve_crosses_it():
    noc = replace(prone()["torus"], injection_rate=np.array([0.0, 0.001, 0.05]))
    answer = qm.solve(noc)
    assert answer.stable.tolist() == [True, False, False]
    assert answer.packet_latency[0] == answer.zero_load_latency
    assert np.isinf(answer.packet_latency[1:]).all()
    assert not answer.validated[1:].any() and answer.error == {}
    assert "deadlock" in {text.get_text() for text in answer.plot().axes[0].get_legend().get_texts()}
    safe = replace(noc, router=Router(virtual_channels=2))
    assert qm.solve(safe).stable.all() and qm.solve(safe).deadlock == ()


def test_the_simulator_gets_stuck_where_the_model_says_so():
    noc = replace(prone()["torus"], injection_rate=0.06)
    result = simulate(noc, packets=5000, cycles=2000, replications=2)
    assert result.verdict == "deadlocked" and not qm.solve(noc).stable
    lucky = simulate(replace(noc, injection_rate=0.0005), packets=100, cycles=1000, replications=2)
    assert lucky.verdict == "stable" and "no deadlock in this run" in repr(lucky)


def test_circuits_wait_for_nobody():
    # Each has virtual channels of its own all the way: there is no circle among them.
    rules = (QosRule(circuit=True),)
    noc = Noc(topology=ring(8), router=ONE, traffic=prone()["one way round"].traffic, injection_rate=0.02)
    assert noc.find_deadlock() is not None
    closed = replace(noc, qos=rules)
    assert closed.find_deadlock() is None and qm.solve(closed).stable
    assert simulate(replace(closed, injection_rate=0.04), packets=2000, cycles=2000, replications=2).stable


def test_closed_loops():
    traffic = transactions(initiators=range(8), channels=range(8, 16), think_cycles=20)
    loop = qm.solve(Noc(topology=ring(16), router=ONE, traffic=traffic))
    assert loop.deadlock and not loop.stable
    assert loop.transaction_rate == 0 and math.isinf(loop.transaction_latency)
    assert loop.deadlock[0] in repr(loop)
    sound = qm.solve(Noc(topology=ring(16), traffic=traffic))
    assert sound.stable and sound.deadlock == ()
    # One packet has nobody to wait for.
    alone = transactions(initiators=[0], channels=[8], think_cycles=20)
    assert qm.solve(Noc(topology=ring(16), router=ONE, traffic=alone)).stable


def test_programs_are_flagged():
    steps = tuple((f"send {(k + 3) % 8} 64", f"receive {(k - 3) % 8}") for k in range(8))
    answer = qm.solve(MessageProgram(topology=ring(8), router=ONE, processes=steps))
    assert answer.deadlock and not answer.validated and not answer.stable
    assert "packets may deadlock" in repr(answer)
    safe = qm.solve(MessageProgram(topology=ring(8), processes=steps))
    assert safe.deadlock == () and safe.stable


def test_programs_that_were_not_measured_are_flagged():
    steps = (("send 3 8",), (), (), ("receive 0",))
    row = MessageProgram(topology=mesh(1, 4), processes=steps)
    assert qm.solve(row).validated
    assert not qm.solve(replace(row, router=Router(hold_switch_for_packet=False))).validated
    assert qm.solve(replace(row, router=replace(ONE, hold_switch_for_packet=False))).validated
    edges = tuple(edge for k in range(3) for edge in ((k, k + 1), (k + 1, k)))
    widths = (4, 4, 2, 2, 4, 4)
    narrow = Topology(kind="custom", nodes=4, edges=edges, edge_widths=widths)
    assert not qm.solve(replace(row, topology=narrow)).validated


def test_no_bound_holds_for_packets_that_may_be_stuck():
    noc = prone()["torus"]
    urgent = replace(noc, router=replace(ONE, arbitration="priority"), qos=(QosRule(source=0, circuit=True),))
    table, bounds = urgent.flow_table(), latency_bounds(urgent)
    assert np.isinf(bounds[~table.circuit]).all() and np.isfinite(bounds[table.circuit]).all()
