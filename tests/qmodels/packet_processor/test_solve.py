"""Laws of the analytic packet processor; its error against the simulator is tested in test_agreement."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import traffic
from qmodels.packet_processor import latency

STEPS, CHANNELS, WIDTHS, SLICES = [1, 2, 4, 8, 16, 32], [1, 2, 3, 4, 6, 8], [8, 16, 32], [0, 1, 2, 4, 8]
designs = st.fixed_dictionaries(
    {
        "step": st.sampled_from(STEPS),
        "channels": st.sampled_from(CHANNELS),
        "trials": st.integers(1, 5),
        "width": st.sampled_from(WIDTHS),
        "slices": st.sampled_from(SLICES),
        "sizes": st.sampled_from([traffic.imix(), traffic.bimodal(small=64, large=1518, small_fraction=0.3)]),
        "page_policy": st.sampled_from(["open", "closed"]),
    }
)


def processor(**d: Any) -> qm.PacketProcessor:
    base = qm.PacketProcessor()
    return replace(
        base,
        workload=replace(
            base.workload, sizes=d.get("sizes", traffic.imix()), offered_gbps=d.get("gbps", 20.0)
        ),
        dram=replace(
            base.dram,
            interleaving_step=d.get("step", 1),
            channels=d.get("channels", 4),
            page_policy=d.get("page_policy", "open"),
        ),
        free_list=replace(base.free_list, alloc_trial_count=d.get("trials", 2)),
        noc=replace(base.noc, link_width=d.get("width", 16)),
        llc=replace(base.llc, slices=d.get("slices", 4)),
    )


def at_load(fraction: float, **d: Any) -> qm.PacketProcessor:
    spec = processor(**d)
    return processor(**d, gbps=fraction * float(qm.solve(spec).saturation_data_rate))


@given(designs)
def test_metrics_are_complete_and_consistent(design: dict[str, Any]) -> None:
    result = qm.solve(at_load(0.5, **design))
    assert tuple(result.metrics) == qm.PacketProcessor.metric_names.both
    assert result.stable
    assert_allclose(sum(result.latency_parts.values()), result.packet_latency)
    assert_allclose(result.lookup_latency + result.write_latency + result.read_latency, result.packet_latency)
    assert result.packet_latency < result.packet_latency_p99
    assert_allclose(result.max_utilization, max(result.utilization.values()))
    # A network may fill up before the busiest link of another group.
    fullest = max(result.utilization, key=lambda name: result.utilization[name])
    assert result.bottleneck == fullest or result.bottleneck in ("request links", "response links")
    for name in ("write_conflict_probability", "read_conflict_probability", "row_hit_ratio", "llc_hit_ratio"):
        assert 0 <= result.metrics[name] <= 1
    assert 1 <= result.pointer_accesses_per_allocation <= result.max_pointer_accesses_per_allocation


@given(designs, st.floats(0.01, 0.9), st.floats(1.01, 1.1))
def test_latency_grows_with_load_up_to_saturation(design: dict[str, Any], load: float, more: float) -> None:
    low, high = (qm.solve(at_load(x, **design)) for x in (load, load * more))
    assert low.stable and high.stable
    assert low.packet_latency <= high.packet_latency * (1 + 1e-6)
    assert_allclose(low.saturation_data_rate, high.saturation_data_rate, rtol=1e-3)


@given(designs)
def test_saturation_is_where_the_first_resource_is_full(design: dict[str, Any]) -> None:
    below, above = (qm.solve(at_load(x, **design)) for x in (0.999, 1.002))
    assert below.stable and below.packet_latency < np.inf
    assert not above.stable and above.packet_latency == np.inf
    if above.bottleneck not in ("request links", "response links"):
        assert below.max_utilization > 0.98 and above.max_utilization == 1


def test_an_overloaded_design_is_an_answer() -> None:
    result = qm.solve(processor(gbps=300.0))
    assert not result.stable and not result.validated
    for name in ("packet_latency", "packet_latency_p99", "lookup_latency", "write_latency", "read_latency"):
        assert result.metrics[name] == np.inf
    assert result.traffic_intensity[result.bottleneck] > 1 >= max(result.utilization.values())
    assert_allclose(result.data_rate, result.saturation_data_rate)
    assert_allclose(result.blocking_probability, 1 - result.saturation_data_rate / 300.0)
    assert np.isfinite(result.energy_per_packet)
    assert "overloaded" in repr(result)


@given(designs)
def test_more_channels_never_sustain_less(design: dict[str, Any]) -> None:
    design = design | {"page_policy": "open"}
    sustained = qm.solve(processor(**design | {"channels": np.array(CHANNELS)})).saturation_data_rate
    assert np.all(np.diff(sustained) >= -1e-4 * sustained[:-1])


@given(designs)
def test_with_one_channel_the_step_does_not_matter(design: dict[str, Any]) -> None:
    result = qm.solve(processor(**design | {"channels": 1, "step": np.array([1, 3, 32]), "gbps": 10.0}))
    for name, values in result.metrics.items():
        assert_allclose(values, values[0], rtol=1e-9, err_msg=name)


@given(designs)
def test_one_trial_is_the_plain_list(design: dict[str, Any]) -> None:
    result = qm.solve(processor(**design | {"trials": 1}))
    assert result.pointer_accesses_per_allocation == result.max_pointer_accesses_per_allocation == 1


def test_sweeps_broadcast_and_become_tables() -> None:
    result = qm.solve(processor(step=np.array([[1], [8]]), channels=np.array([2, 4, 8])))
    assert result.packet_latency.shape == result.stable.shape == result.bottleneck.shape == (2, 3)
    assert {row["dram.channels"] for row in result.rows()} == {2, 4, 8}


def test_an_idle_system_is_the_lone_packet() -> None:
    """By hand: one 64-byte packet, no lookups, closed pages, one engine, one channel, next to each other."""
    base = qm.PacketProcessor()
    spec = replace(
        base,
        workload=replace(
            base.workload, sizes=traffic.fixed(bytes=64), lookups_per_packet=0, offered_gbps=1e-6
        ),
        noc=replace(base.noc, topology=qm.noc.Topology(kind="ring", nodes=2), initiators=1, link_width=8),
        dram=replace(base.dram, channels=1, page_policy="closed"),
    )
    result = qm.solve(spec)
    # Two routers of three cycles and two at the ends for a flit, which waits half a cycle for the next one.
    flit = 0.5 + 2 * 3.0 + 2.0
    dram = 10.0 + 30.0
    assert_allclose(result.write_latency, 2 + 1 + 1 + flit + 8 + dram, rtol=1e-4)
    assert_allclose(result.read_latency, 3 + 1 + flit + dram + flit + 8, rtol=1e-4)


def test_every_resource_is_listed_for_one_design() -> None:
    result = qm.solve(processor(channels=2, slices=2))
    names = set(result.resources)
    assert {"pointer memory", "llc slice 1", "request inject 0", "response eject 3", "channel 1 bus"} <= names
    assert "channel 1 bank 7" in names and "channel 2 bus" not in names
    assert_allclose(result.resources["pointer memory"], result.utilization["pointer memory"])
    assert_allclose(
        max(v for k, v in result.resources.items() if k.startswith("request")),
        result.utilization["request links"],
    )


def test_bursty_arrivals_wait_longer() -> None:
    base = processor(gbps=40.0)
    bursty = replace(
        base, workload=replace(base.workload, arrivals=traffic.OnOff(on_packets=20, peak_to_mean=3))
    )
    assert qm.solve(bursty).packet_latency > 1.1 * qm.solve(base).packet_latency


def test_a_sweep_of_burst_lengths_is_its_single_answers() -> None:
    base = processor(gbps=40.0)

    def bursty(on_packets: Any) -> qm.PacketProcessor:
        return replace(
            base,
            workload=replace(base.workload, arrivals=traffic.OnOff(on_packets=on_packets, peak_to_mean=3)),
        )

    sweep = qm.solve(bursty(np.array([2.0, 5.0, 20.0]))).packet_latency
    assert_allclose(sweep, [qm.solve(bursty(n)).packet_latency for n in (2.0, 5.0, 20.0)], rtol=1e-9)
    assert np.all(np.diff(sweep) > 0)


def test_a_trace_of_poisson_packets_is_answered_like_poisson() -> None:
    base = processor(gbps=40.0)
    packets = base.workload.packets(np.random.default_rng(1), 60_000)
    trace = traffic.Trace(times_ns=packets.times_ns, bytes=packets.bytes, source="test")
    traced = replace(base, workload=qm.Workload.from_trace(trace, offered_gbps=40.0))
    assert_allclose(qm.solve(traced).packet_latency, qm.solve(base).packet_latency, rtol=0.03)


def test_lists_for_small_packets_change_nothing_without_small_packets() -> None:
    base = processor(sizes=traffic.fixed(bytes=640))
    own = replace(base, free_list=replace(base.free_list, small_packet_segments=4, vms1_share=1.0))
    for name, value in qm.solve(base).metrics.items():
        assert_allclose(qm.solve(own).metrics[name], value, rtol=1e-12)


def test_small_packets_take_one_access_and_return_block_by_block() -> None:
    base = processor(sizes=traffic.fixed(bytes=256), trials=4)
    own = replace(base, free_list=replace(base.free_list, small_packet_segments=4, vms1_share=0.0))
    one, two = qm.solve(base), qm.solve(own)
    assert two.pointer_accesses_per_allocation == two.max_pointer_accesses_per_allocation == 1.0
    assert one.max_pointer_accesses_per_allocation == 5.0
    dequeue = "read: dequeue"
    # Three more writes at 1 GHz.
    assert_allclose(two.latency_parts[dequeue] - one.latency_parts[dequeue], 3.0)


def test_a_list_without_blocks_refuses_all() -> None:
    base = processor(sizes=traffic.fixed(bytes=640))
    spec = replace(base, free_list=replace(base.free_list, small_packet_segments=4, vms1_share=0.0))
    assert qm.solve(spec).blocking_probability == 1.0


def test_networks_that_the_error_was_not_measured_on_are_flagged() -> None:
    known = processor(step=8)
    assert qm.solve(known).validated
    noc = known.noc
    for other in (
        replace(noc, router=replace(noc.router, hold_switch_for_packet=False)),
        # A credit is back after 5 cycles and twice the wires: later than a buffer of 8 is empty.
        replace(noc, topology=replace(noc.topology, delay=2)),
        replace(noc, router=replace(noc.router, buffer_flits=4)),
    ):
        assert not qm.solve(replace(known, noc=other)).validated
    long_buffers = replace(noc.router, buffer_flits=9)
    far = replace(noc, topology=replace(noc.topology, delay=2), router=long_buffers)
    assert qm.solve(replace(known, noc=far)).validated


def test_quantiles_are_looked_for_only_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    quantile, asked = latency.wait_quantile, []
    monkeypatch.setattr(latency, "wait_quantile", lambda **given: asked.append(given) or quantile(**given))
    answer = qm.solve(qm.PacketProcessor())
    assert answer.packet_latency > 0 and not asked
    assert answer.packet_latency_p99 > answer.packet_latency and asked
