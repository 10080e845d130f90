from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import traffic


def processor(
    segments: int, *, gbps: float = 20.0, sizes: traffic.SizeLaw | None = None
) -> qm.PacketProcessor:
    base = qm.PacketProcessor()
    return replace(
        base,
        workload=replace(
            base.workload, sizes=sizes or traffic.fixed(bytes=64), offered_gbps=gbps, hold_ns=1000.0
        ),
        free_list=replace(base.free_list, segments=segments),
    )


def erlang_b(servers: int, load: float) -> float:
    blocking = 1.0
    for n in range(1, servers + 1):
        blocking = load * blocking / (n + load * blocking)
    return blocking


def test_one_segment_packets_are_erlangs_loss_link() -> None:
    spec = processor(40)
    result = qm.solve(spec)
    stored = result.packet_latency - result.lookup_latency + 1000.0
    load = spec.workload.packet_rate * stored
    assert_allclose(result.blocking_probability, erlang_b(40, load), rtol=1e-3)
    assert_allclose(result.overflow_probability, result.blocking_probability)
    assert_allclose(result.data_rate, 20.0 * (1 - result.blocking_probability))


def test_large_packets_are_refused_more_often() -> None:
    result = qm.solve(processor(400, sizes=traffic.bimodal(small=64, large=1518, small_fraction=0.5)))
    assert 0 < result.blocking_probability < result.overflow_probability < 1


def test_longer_lists_overflow_less_and_the_papers_never() -> None:
    *short, papers = (
        qm.solve(processor(n, gbps=40.0)).blocking_probability for n in (40, 60, 80, 100, 4_194_304)
    )
    assert np.all(np.diff(short) < 0) and short[-1] > 0
    assert papers == 0


def test_scaled_long_lists_err_on_the_side_of_refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = qm.solve(processor(200, gbps=60.0)).blocking_probability
    monkeypatch.setattr("qmodels.packet_processor.load.LONGEST", 100)
    scaled = qm.solve(processor(200, gbps=60.0)).blocking_probability
    assert exact <= scaled


def test_a_large_sweep_is_read_off_a_table_as_exact_as_single_designs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = traffic.bimodal(small=64, large=1518, small_fraction=0.5)
    base = processor(400, sizes=sizes)
    holds = np.geomspace(1000.0, 20000.0, 400)
    spec = replace(base, workload=replace(base.workload, hold_ns=holds))
    swept = qm.solve(spec).overflow_probability
    some = np.arange(0, 400, 23)
    single = [
        qm.solve(replace(base, workload=replace(base.workload, hold_ns=hold))).overflow_probability
        for hold in holds[some].tolist()
    ]
    assert min(single) < 1e-6 and max(single) > 0.3
    assert_allclose(swept[some], single, rtol=1e-5, atol=1e-15)


def test_fields_that_only_size_or_charge_broadcast_like_all_others() -> None:
    base = processor(100, gbps=40.0)
    segments, price = np.array([[40], [60], [80]]), np.array([1.0, 2.0])
    spec = replace(
        base,
        free_list=replace(base.free_list, segments=segments),
        cost=replace(base.cost, channel=price),
    )
    result = qm.solve(spec)
    assert result.packet_latency.shape == result.cost.shape == result.stable.shape == (3, 2)
    single = qm.solve(
        replace(base, free_list=replace(base.free_list, segments=60), cost=replace(base.cost, channel=2.0))
    )
    for name in ("overflow_probability", "cost", "packet_latency", "energy_per_packet"):
        assert_allclose(result.metrics[name][1, 1], single.metrics[name], rtol=1e-12)
