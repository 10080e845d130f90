"""Recorded traffic: parts of a trace and whole ones are replayed as they were recorded."""

from __future__ import annotations

import numpy as np
import pytest

from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.traffic.trace import Trace
from qmodels.systems.traffic.workload import Workload
from validate import simulate
from validate.network.state import FREE

SIZES = np.tile([64, 576], 1500)
EVEN = Trace(times_ns=100.0 * np.arange(SIZES.size), bytes=SIZES, source="even gaps")


def recorded(trace):
    return PacketProcessor(workload=Workload.from_trace(trace, hold_ns=500.0))


@pytest.mark.parametrize(("wanted", "replayed"), [(1000, 1000), (20_000, SIZES.size)])
def test_a_window_and_the_whole_trace(wanted, replayed):
    spec = recorded(EVEN)
    result = simulate(spec, packets=wanted, replications=2, window=32)
    assert result.effort["packets per replication"] == replayed
    assert f"2 replications, {replayed} packets" in repr(result)
    assert result.stable and not result.short
    # Gaps are even, so a long stretch has the offered rate but for a packet or two at its ends.
    assert result.data_rate.best == pytest.approx(spec.workload.offered_gbps, rel=4 / replayed)
    assert result.packet_latency.best < np.inf and result.blocking_probability.best == 0


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


@pytest.mark.parametrize("size", [2, 3, 4, 10, 40, 400])
def test_too_few_packets_are_flagged(size):
    trace = Trace(times_ns=EVEN.times_ns[:size], bytes=SIZES[:size], source="few")
    result = simulate(recorded(trace), packets=1000, replications=2)
    assert result.short and result.effort["packets per replication"] == size
    assert result.saturation_data_rate.best >= 0
