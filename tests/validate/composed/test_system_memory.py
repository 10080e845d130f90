"""Memories and the interconnect: idle ones to the cycle, loaded ones against their own simulation."""

from dataclasses import replace

import numpy as np
import pytest

from qmodels import Flow, Noc, Station, System, Tokens, dram, mesh
from qmodels.laws import Deterministic, Exponential
from qmodels.memory import RandomBlocks, StridedBlocks
from qmodels.noc import Router, uniform
from qmodels.steps import Acquire, Each, Fork, Hold, Read, Release, Send, Visit, Write
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.traffic import Poisson, fixed
from validate import simulate
from validate.composed.replication import advance
from validate.composed.world import new_machine

GHZ = 1.6
NOC = Noc(
    topology=mesh(4, 1),
    traffic=uniform(nodes=4),
    link_width=16,
    header_bytes=8,
    clock_ghz=GHZ,
    router=Router(pipeline_cycles=3, credit_cycles=5, buffer_flits=8),
)
CLOSED = dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0, controller_cycles=7)
T = CLOSED.timing


def way(hops, flits):
    """Cycles of a packet alone: 2 on its source's wire, 3 at each router, one for each further flit."""
    return 2 + 3 * (hops + 1) + flits - 1


def lone(*program, **fields):
    """A job alone, which begins at multiples of a cycle of both clocks."""
    return Flow(population=1, think=Deterministic(mean=1000.0), program=program, **fields)


def test_a_read_through_a_mesh_is_exact_to_the_cycle(simulated):
    system = System(
        parts={"noc": NOC, "dram": CLOSED}, place={"dram": 3}, flows=lone(Read("dram"), at=(0,))
    )  # fmt: skip
    result = simulated(system, replications=2, passages=1000)
    request, reply, access = way(3, 1), way(3, 5), T.t_rcd + T.cl + T.burst + 7
    assert result.latency.best == pytest.approx((request + access + reply) / GHZ, rel=1e-9)
    assert result.latency_parts["dram"].best == pytest.approx(access / GHZ, rel=1e-9)
    assert result["visit_latency[noc]"].best == pytest.approx((request + reply) / 2 / GHZ, rel=1e-9)


def test_a_write_sends_the_block_and_nothing_comes_back(simulated):
    place = {"dram": 3, "stage": 0}
    system = System(
        parts={"noc": NOC, "dram": CLOSED, "stage": Station(service=Deterministic(mean=1 / GHZ))},
        place=place,
        flows=lone(Write("dram"), Visit("stage"), at=(0,)),
    )
    result = simulated(system, replications=2, passages=1000)
    access = T.t_rcd + T.cwl + T.burst + 7
    # The job never left its node, where the stage is.
    assert result.latency.best == pytest.approx((way(3, 5) + access + 1) / GHZ, rel=1e-9)


def test_a_job_on_its_way_visits_what_is_where_it_is(simulated):
    system = System(
        parts={"noc": NOC, "dram": CLOSED, "far": Station(service=Deterministic(mean=1 / GHZ))},
        place={"dram": 3, "far": (2, 3)},
        flows=lone(Send("dram", bytes=24), Visit("far", bytes=8, reply_bytes=40), Read("dram"), at=(1,)),
    )
    result = simulated(system, replications=2, passages=1000)
    access = T.t_rcd + T.cl + T.burst + 7
    assert result.latency.best == pytest.approx((way(2, 2) + 1 + access) / GHZ, rel=1e-9)


def test_packets_of_a_visit_have_their_sizes(simulated):
    system = System(
        parts={"noc": NOC, "far": Station(service=Deterministic(mean=1 / GHZ))},
        place={"far": 2},
        flows=lone(Visit("far", bytes=8, reply_bytes=41), at=(0,)),
    )
    result = simulated(system, replications=2, passages=1000)
    assert result.latency.best == pytest.approx((way(2, 1) + 1 + way(2, 4)) / GHZ, rel=1e-9)


def test_blocks_are_asked_for_at_once(simulated):
    spec = dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0, channels=4)
    system = System(parts={"dram": spec}, flows=lone(Read("dram", 4)))
    result = simulated(system, replications=2, passages=1000)
    # Consecutive blocks lie in channels of their own.
    assert result.latency.best == pytest.approx((T.t_rcd + T.cl + T.burst) / GHZ, rel=1e-9)
    assert result.latency_parts["dram"].best == pytest.approx(result.latency.best, rel=1e-12)
    one = System(
        parts={"dram": dram("DDR4-3200", page_policy="closed", t_refi=0, t_rfc=0)},
        flows=lone(Read("dram", "segments"), sizes=fixed(bytes=256)),
    )
    result = simulated(one, replications=2, passages=1000)
    # Four bank groups one after the other; the bus carries a burst each.
    assert result.latency.best == pytest.approx((T.t_rcd + T.cl + 4 * T.burst) / GHZ, rel=1e-9)


def overlap(one, other, *, within):
    assert one.low <= other.high and other.low <= one.high, f"{one} and {other}"
    assert max(one.half_width, other.half_width) <= within * other.best, f"{one}, {other}"


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("changes", [{}, {"page_policy": "closed"}, {"scheduler": "in-order"}])
@pytest.mark.parametrize("rate", [0.02, 0.06])
def test_a_memory_alone_is_simulated_as_it_simulates_itself(simulated, changes, rate):
    spec = dram("DDR4-3200", channels=2, **changes)
    program = (Read("dram"),)
    flow = Flow(arrivals=Poisson(), rate=rate * GHZ, program=program)
    result = simulated(System(parts={"dram": spec}, flows=flow), replications=8, passages=40_000)
    alone = simulate(
        dram("DDR4-3200", channels=2, traffic=RandomBlocks(arrival_rate=rate), **changes),
        replications=8, confidence=0.999, accesses=40_000,
    )  # fmt: skip
    # Times between cycles count as the one that has begun, here and there.
    overlap(result["visit_latency[dram]"], alone.read_latency, within=0.04)
    assert result.utilization["dram"].best == pytest.approx(alone.bus_utilization.best, rel=0.02)


def test_a_stream_in_order_is_one(simulated):
    spec = dram("DDR4-3200")
    flow = Flow(arrivals=Poisson(), rate=0.1 * GHZ, program=(Read("dram", addresses="sequential"),))
    result = simulated(System(parts={"dram": spec}, flows=flow), replications=16, passages=60_000)
    alone = simulate(
        dram("DDR4-3200", traffic=StridedBlocks(arrival_rate=0.1, stride=1)), replications=16,
        confidence=0.999, accesses=60_000,
    )  # fmt: skip
    overlap(result["visit_latency[dram]"], alone.read_latency, within=0.03)


def test_a_network_alone_is_simulated_as_it_simulates_itself(simulated):
    rates = np.zeros((4, 4))
    rates[[0, 1, 2], [3, 3, 3]] = 0.05
    send = Send("sink", bytes=40)
    flows = [
        Flow(name=f"from {k}", arrivals=Poisson(), rate=0.05 * GHZ, at=(k,), program=(send, Visit("sink")))
        for k in range(3)
    ]
    parts = {"noc": NOC, "sink": Station(service=Deterministic(mean=0.0), servers=float("inf"))}
    result = simulated(System(parts=parts, place={"sink": 3}, flows=flows), replications=8)
    alone = simulate(
        Noc(
            topology=mesh(4, 1), link_width=16, clock_ghz=GHZ, packet_bytes=40, process="poisson",
            router=NOC.router, traffic=RateMatrix(rates=tuple(map(tuple, rates.tolist()))),
        ),
        replications=8, confidence=0.999,
    )  # fmt: skip
    # A packet waits for the next cycle, half of one on average; there it arrives with a cycle.
    other = alone.packet_latency
    half = 0.5 / GHZ
    other = replace(other, low=other.low + half, best=other.best + half, high=other.high + half)
    overlap(result["visit_latency[noc]"], other, within=0.02)


def test_nothing_is_lost_on_the_way(simulated):
    parts = {
        "noc": NOC, "dram": dram("DDR4-3200", channels=3), "pool": Tokens(count=4),
        "unit": Station(service=Exponential(mean=3.0)),
    }  # fmt: skip
    program = (
        Acquire("pool"),
        Fork((Read("dram", 3), (Visit("unit", bytes=8, reply_bytes=64), Write("dram", 2, "sequential")))),
        Each((Read("dram"), Hold(Exponential(mean=2.0))), 2),
        Release("pool"),
    )
    flows = [
        Flow(name="open", arrivals=Poisson(), rate=0.01, at=(0, 1, 2, 3), program=program),
        Flow(name="closed", population=5, at=(0, 2), program=program),
    ]
    system = System(parts=parts, place={"dram": (1, 2), "pool": (0, 1, 2, 3), "unit": 3}, flows=flows)
    machine, _ = advance(new_machine(system, seed=1, replication=0), ended=2000)
    core, now = machine.core, machine.world.state["now"][0]
    f = core.flows
    assert np.array_equal(f["born"], f["ended"] + f["lost"] + f["number"])
    assert np.array_equal(core.holds.sum(axis=0), core.pools["tokens"] - core.pools["free"])
    done = machine.kernels.channels.sums[:, :, 0, 0].sum()
    dram_part = core.parts[1]
    assert 0 <= done - dram_part["visits"] <= dram_part["number"]
    result = simulated(system, replications=4, passages=2000)
    for name in ("noc", "dram", "pool", "unit"):
        visits, time = result.visit_rates[name], result[f"visit_latency[{name}]"]
        assert result.numbers[name].best == pytest.approx(visits.best * time.best, rel=0.01), name
    assert now > 0 and result.latency.best == pytest.approx(
        sum(part.best for part in result.latency_parts.values())
    )
