"""Networks whose packets can wait for each other in a circle: a doubt beside finite numbers."""

from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from qmodels import Flow, MessageProgram, Noc, Station, System, mesh, ring, spidergon, torus
from qmodels.laws import Deterministic
from qmodels.noc import QosRule, Router, SourceRoute, Topology, permutation, transactions, uniform
from qmodels.noc.bounds import latency_bounds
from qmodels.steps import Send, Visit
from qmodels.traffic import Poisson
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


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("name", prone())
def test_the_latency_is_that_of_a_simulation_without_a_deadlock(name):
    noc = replace(prone()[name], injection_rate=1e-9)
    top = qm.solve(noc).saturation_rate
    noc = replace(noc, injection_rate=0.3 * top)
    answer, result = qm.solve(noc), simulate(noc, packets=5000, cycles=2000, replications=4)
    assert result.verdict == "stable" and "no deadlock in this run" in repr(result)
    assert answer.packet_latency == pytest.approx(result.packet_latency.best, rel=0.015)
    assert answer.deadlock == noc.find_deadlock() != ()
    assert answer.stable and not answer.validated
    assert f"circle from {answer.deadlock[0]}; the numbers hold as long as they do not" in repr(answer)


def test_a_spidergon_with_minimal_routes():
    noc = Noc(
        topology=spidergon(16), routing="shortest", traffic=uniform(nodes=16), flits_per_packet=1,
        injection_rate=0.1,
    )  # fmt: skip
    assert len(qm.solve(noc).deadlock) == 9 and qm.solve(noc).stable
    result = simulate(noc, packets=5000, replications=4)
    assert qm.solve(noc).packet_latency == pytest.approx(result.packet_latency.best, rel=0.015)


def test_a_curve_crosses_saturation():
    noc = replace(prone()["torus"], injection_rate=np.array([0.0, 0.001, 0.06]))
    answer = qm.solve(noc)
    assert answer.stable.tolist() == [True, True, False]
    assert answer.packet_latency[0] == answer.zero_load_latency < answer.packet_latency[1]
    assert np.isinf(answer.packet_latency[2]) and 0.001 < answer.saturation_rate < 0.06
    assert not answer.validated.any()
    safe = replace(noc, router=Router(virtual_channels=2))
    assert qm.solve(safe).deadlock == () and qm.solve(safe).saturation_rate > answer.saturation_rate
    # Beyond saturation the buffers fill and the simulator finds the deadlock.
    result = simulate(replace(noc, injection_rate=0.06), packets=5000, cycles=2000, replications=2)
    assert result.verdict == "deadlocked"


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
    noc = Noc(topology=ring(16), router=ONE, traffic=traffic)
    loop, result = qm.solve(noc), simulate(noc, packets=5000, cycles=2000, replications=2)
    assert loop.deadlock and loop.stable and not loop.validated
    assert loop.transaction_rate == pytest.approx(result.transaction_rate.best, rel=0.02)
    assert loop.deadlock[0] in repr(loop)
    sound = qm.solve(Noc(topology=ring(16), traffic=traffic))
    assert sound.stable and sound.deadlock == ()
    # One packet has nobody to wait for.
    alone = transactions(initiators=[0], channels=[8], think_cycles=20)
    assert qm.solve(Noc(topology=ring(16), router=ONE, traffic=alone)).deadlock == ()


def test_programs_are_flagged():
    steps = tuple((f"send {(k + 3) % 8} 64", f"receive {(k - 3) % 8}") for k in range(8))
    answer = qm.solve(MessageProgram(topology=ring(8), router=ONE, processes=steps))
    assert answer.deadlock and not answer.validated and answer.stable
    assert "packets may deadlock" in repr(answer)
    safe = qm.solve(MessageProgram(topology=ring(8), processes=steps))
    assert safe.deadlock == () and safe.stable


def test_programs_whose_model_leaves_something_out_are_flagged():
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


def test_a_part_of_a_system_is_doubted_too():
    noc = Noc(topology=ring(4), vc_classes="none", link_width=4, router=ONE)
    sinks = {f"sink {k}": Station(service=Deterministic(mean=1.0)) for k in range(4)}
    flows = [
        Flow(name=f"from {k}", arrivals=Poisson(), rate=0.005, at=(k,), program=(
            Send(f"sink {(k + 2) % 4}", bytes=16), Visit(f"sink {(k + 2) % 4}")
        ))
        for k in range(4)
    ]  # fmt: skip
    answer = qm.solve(
        System(parts={"noc": noc} | sinks, place={f"sink {k}": k for k in range(4)}, flows=flows)
    )
    assert answer.stable and np.isfinite(answer["latency"]) and answer["saturation_factor"] > 1
    assert not answer.validated and any("packets may deadlock" in note for note in answer.notes)
