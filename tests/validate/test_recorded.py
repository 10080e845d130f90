"""Recorded traffic: parts of a trace and whole ones are replayed as they were recorded."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.traffic.trace import Trace
from qmodels.systems.traffic.workload import Workload
from validate import simulate
from validate.packet_processor.state import BLOCKED_PACKETS, LEFT_BYTES

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


@pytest.mark.parametrize("wanted", [1000, 20_000])
def test_packets_are_consecutive_ones_of_the_trace(finished, wanted):
    rng = np.random.default_rng(5)
    trace = Trace(
        times_ns=np.cumsum(rng.exponential(100.0, size=3000)),
        bytes=rng.integers(40, 1500, size=3000),
        source="by chance",
    )
    spec = recorded(trace)
    packets = finished(spec, packets=wanted).packets
    (start,) = (
        k
        for k in range(3001 - packets.size)
        if np.array_equal(trace.bytes[k : k + packets.size], packets["bytes"])
    )
    times = trace.times_ns[start : start + packets.size] * trace.mean_gbps / spec.workload.offered_gbps
    assert_allclose(packets["arrival"], times - times[0], rtol=1e-9, atol=1e-6)
    assert packets.size == min(wanted, 3000)


def test_all_bytes_of_a_whole_trace_leave(finished):
    world = finished(recorded(EVEN), packets=SIZES.size)
    assert world.counts[LEFT_BYTES] == SIZES.sum() and world.counts[BLOCKED_PACKETS] == 0
    assert_array_equal(world.packets["bytes"], SIZES)


@pytest.mark.parametrize("size", [2, 3, 4, 10, 40, 400])
def test_too_few_packets_are_flagged(size):
    trace = Trace(times_ns=EVEN.times_ns[:size], bytes=SIZES[:size], source="few")
    result = simulate(recorded(trace), packets=1000, replications=2)
    assert result.short and result.effort["packets per replication"] == size
    assert result.saturation_data_rate.best >= 0
