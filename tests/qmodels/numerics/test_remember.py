"""What is kept between calls stays within its size, for a million designs as for one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import qmodels as qm
from qmodels import traffic
from qmodels.numerics.remember import remembered
from qmodels.packet_processor.following.waits import run


def test_the_last_used_are_kept() -> None:
    calls = []

    @remembered(100, lambda found: found.nbytes)
    def ones(count: int) -> np.ndarray:
        calls.append(count)
        return np.ones(count)

    assert [ones(count).size for count in (5, 6, 5, 4, 5, 6)] == [5, 6, 5, 4, 5, 6]
    assert calls == [5, 6, 4, 6] and ones.bytes == sum(found.nbytes for found, _ in ones.kept.values())
    assert ones(1000).size == 1000 and len(ones.kept) == 1
    ones.cache_clear()
    assert ones.bytes == 0 and not ones.kept


def test_followed_packets_of_many_designs_do_not_pile_up(monkeypatch) -> None:
    run.cache_clear()
    monkeypatch.setattr(run, "most", 500_000)
    spec = qm.PacketProcessor()
    packets = spec.workload.packets(np.random.default_rng(1), 3_000)
    trace = traffic.Trace(times_ns=packets.times_ns, bytes=packets.bytes, source="test")
    spec = replace(spec, workload=qm.Workload.from_trace(trace))
    load = replace(spec.workload, offered_gbps=np.linspace(1.0, 60.0, 16))
    tail = qm.solve(replace(spec, workload=load)).packet_latency_p99
    assert run.bytes <= 500_000 and 1 < len(run.kept) < 16
    monkeypatch.setattr(run, "most", 100_000_000)
    np.testing.assert_array_equal(tail, qm.solve(replace(spec, workload=load)).packet_latency_p99)
