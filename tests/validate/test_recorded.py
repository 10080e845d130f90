"""Recorded traffic: a trace is replayed in full rotations, whatever packet it begins with."""

from dataclasses import replace

import numpy as np
import pytest

from qmodels import Flow, PacketProcessor, Station, System, Workload
from qmodels.laws import Deterministic
from qmodels.traffic import Recorded, Trace
from validate import simulate
from validate.composed.world import SETTLED_HOLDS
from validate.network.state import FREE
from validate.packet_processor import replayed

SIZES = np.tile([64, 576], 1500)
EVEN = Trace(times_ns=100.0 * np.arange(SIZES.size), bytes=SIZES, source="even gaps")


def recorded(trace):
    return PacketProcessor(workload=Workload.from_trace(trace, hold_ns=500.0))


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("wanted", "rotations"), [(1000, 1 + 1), (13_000, 1 + 4), (16_000, 2 + 5)])
def test_full_rotations_are_simulated(wanted, rotations):
    spec = recorded(EVEN)
    result = simulate(spec, packets=wanted, replications=2, window=32)
    assert result.effort["packets per replication"] == rotations * SIZES.size
    assert f"2 replications, {rotations * SIZES.size} packets" in repr(result)
    assert result.stable and not result.short
    # What leaves in a rotation has come in one, but for the few packets on their way at its ends.
    assert result.data_rate.best == pytest.approx(spec.workload.offered_gbps, rel=0.01)
    assert result.packet_latency.best < np.inf and result.blocking_probability.best == 0


def test_holds_longer_than_a_rotation_settle_before_measuring_begins():
    trace = Trace(times_ns=EVEN.times_ns[:200], bytes=SIZES[:200], source="short")
    workload = Workload.from_trace(trace, hold_ns=20_000.0)
    rotation = 200 / float(workload.packet_rate)
    replay = replayed(PacketProcessor(workload=workload), 1000)
    assert replay.measured == 5 and replay.warm_up == int(np.ceil(SETTLED_HOLDS * 20_000.0 / rotation)) > 1
    assert replay.period == pytest.approx(rotation)


def busy_stretch(turned):
    """Return packets of which the first fifth comes ten times as fast, turned by so many."""
    gaps = np.random.default_rng(3).exponential(100.0, size=4000)
    gaps[:800] /= 10.0
    return Trace(times_ns=np.cumsum(np.roll(gaps, turned)), bytes=np.full(4000, 576), source="busy")


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("turned", [2000, 3600])
def test_the_first_packet_of_a_trace_does_not_matter(turned):
    spec = PacketProcessor(workload=Workload.from_trace(busy_stretch(0), hold_ns=500.0))
    other = replace(spec, workload=replace(spec.workload, arrivals=Recorded(trace=busy_stretch(turned))))
    first, second = simulate([spec, other], packets=4000, replications=6, saturation=False, confidence=0.999)
    assert first.stable and second.stable
    # The busy stretch decides: that it is measured shows in a mean far above that of the others.
    assert first.packet_latency.best > 3000
    for name in ("packet_latency", "packet_latency_p99", "write_latency", "data_rate"):
        one, two = first[name], second[name]
        assert one.low <= two.high and two.low <= one.high
        assert one.half_width < 0.1 * one.best


def test_a_trace_that_offers_too_much_is_found_overloaded():
    spec = PacketProcessor(workload=Workload.from_trace(busy_stretch(0), hold_ns=500.0))
    over = replace(spec, workload=replace(spec.workload, load_factor=3.0))
    assert not simulate(over, packets=4000, replications=2, saturation=False).stable


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_a_system_with_a_trace_has_the_wait_of_lindleys_recursion(rate):
    trace = busy_stretch(0)
    flow = Flow(arrivals=trace, rate=rate, program="visit s")
    system = System(parts={"s": Station(service=Deterministic(mean=1.0))}, flows=(flow,))
    gaps = np.append(1 / trace.packet_rate, np.diff(trace.times_ns)) * trace.packet_rate / rate
    waits = [0.0]
    for gap in (*gaps, *gaps):
        waits.append(max(waits[-1] + 1.0 - gap, 0.0))
    result = simulate(system, passages=1000, replications=3)
    assert result.stable and not result.short
    assert result.latency.best == pytest.approx(1.0 + np.mean(waits[-gaps.size :]), rel=1e-3)
    over = replace(system, flows=(replace(flow, rate=1.05),))
    assert simulate(over, passages=4000, replications=3).overloaded == ("jobs",)


@pytest.mark.parametrize("wanted", [1000, 5000])
def test_packets_are_consecutive_ones_of_the_trace_round_and_round(finished, wanted):
    rng = np.random.default_rng(5)
    trace = Trace(
        times_ns=np.cumsum(rng.exponential(100.0, size=3000)),
        bytes=rng.integers(40, 1500, size=3000),
        source="by chance",
    )
    machine = finished(recorded(trace), packets=wanted)
    flow, world = machine.core.flows[0], machine.world
    inside = (world.jobs["phase"] != FREE) & (world.jobs["parent"] < 0)
    assert flow["lost"] == 0 and inside.sum() == flow["number"] == flow["born"] - wanted
    arrived = np.take(trace.bytes, np.arange(flow["born"]), mode="wrap")
    assert flow["bytes"] + machine.core.strands["bytes"][inside].sum() == arrived.sum()
    # The whole trace has the offered rate, and its first packet comes a mean gap after the last one.
    rate = recorded(trace).workload.offered_gbps
    assert 8 * arrived.sum() / world.state["now"][0] == pytest.approx(rate, rel=0.05)


@pytest.mark.parametrize("size", [2, 3, 40])
def test_a_few_packets_are_played_many_times(size):
    trace = Trace(times_ns=EVEN.times_ns[:size], bytes=SIZES[:size], source="few")
    result = simulate(recorded(trace), packets=1000, replications=2)
    measured = round(1000 / size)
    assert result.effort["packets per replication"] == (measured + -(-measured // 4)) * size
    assert result.stable and not result.short and result.saturation_data_rate.best > 0
