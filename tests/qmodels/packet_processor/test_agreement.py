"""The analytic packet processor against the simulator, which shares no formula with it."""

from dataclasses import replace
from typing import Any

import pytest

import qmodels as qm
from validate import simulate

# Bounds are the largest error measured in the region of load (cases/data/accuracy.csv), rounded up.
CASES = [
    ({"load": 0.01}, 0.06, 0.012),
    ({"load": 0.01, "step": 8, "channels": 1, "width": 8, "slices": 0}, 0.06, 0.012),
    ({"load": 0.4, "trials": 1}, 0.11, 0.02),
    ({"load": 0.4, "step": 8, "channels": 2, "width": 8}, 0.11, 0.02),
    ({"load": 0.6, "step": 4, "channels": 6, "trials": 3, "width": 32, "slices": 8}, 0.13, 0.026),
    ({"load": 0.75, "channels": 8, "slices": 0}, 0.16, 0.03),
    ({"load": 0.5, "trials": 3, "small": 4}, 0.11, 0.02),
]


def processor(gbps: float, d: dict[str, Any]) -> qm.PacketProcessor:
    base = qm.PacketProcessor()
    return replace(
        base,
        workload=replace(base.workload, offered_gbps=gbps),
        dram=replace(base.dram, interleaving_step=d.get("step", 1), channels=d.get("channels", 4)),
        free_list=replace(
            base.free_list, alloc_trial_count=d.get("trials", 2), small_packet_segments=d.get("small", 0)
        ),
        noc=replace(base.noc, link_width=d.get("width", 16)),
        llc=replace(base.llc, slices=d.get("slices", 4)),
    )


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(("design", "latency_bound", "conflict_bound"), CASES)
def test_model_and_simulation_agree(
    design: dict[str, Any], latency_bound: float, conflict_bound: float
) -> None:
    full = qm.solve(processor(10.0, design)).saturation_data_rate
    spec = processor(design["load"] * full, design)
    model, run = qm.solve(spec), simulate(spec, packets=8_000, replications=8, seed=11)
    assert run.stable and model.stable
    assert abs(model.packet_latency / run.packet_latency.best - 1) < latency_bound
    assert run.packet_latency.high - run.packet_latency.low < 0.08 * run.packet_latency.best
    for name in ("write_conflict_probability", "read_conflict_probability"):
        assert abs(model.metrics[name] - run.metrics[name].best) < conflict_bound
    # Largest measured: 5.5 %, the last design, whose pointer memory is the bottleneck.
    assert abs(model.saturation_data_rate / run.saturation_data_rate.best - 1) < 0.06
    assert abs(model.energy_per_packet / run.energy_per_packet.best - 1) < 0.03
    assert model.bottleneck == run.bottleneck


def test_both_call_an_overloaded_design_saturated() -> None:
    spec = processor(150.0, {})
    model, run = qm.solve(spec), simulate(spec, packets=6_000, replications=2, seed=1)
    assert not model.stable and not run.stable
    assert model.packet_latency == run.packet_latency.best == float("inf")


def test_a_short_list_blocks_as_much_in_both() -> None:
    base = processor(20.0, {})
    spec = replace(
        base,
        workload=replace(base.workload, hold_ns=2000.0),
        free_list=replace(base.free_list, segments=120),
    )
    model, run = qm.solve(spec), simulate(spec, packets=12_000, replications=4, seed=3, saturation=False)
    for name in ("blocking_probability", "overflow_probability"):
        assert model.metrics[name] == pytest.approx(run.metrics[name].best, rel=0.1)


def test_small_packets_own_lists_block_as_much_in_both() -> None:
    base = processor(20.0, {"small": 1})
    spec = replace(
        base,
        workload=replace(
            base.workload, hold_ns=2000.0, sizes=qm.traffic.bimodal(small=64, large=640, small_fraction=0.8)
        ),
        free_list=replace(base.free_list, segments=100, vms1_share=0.7),
    )
    model, run = qm.solve(spec), simulate(spec, packets=12_000, replications=4, seed=3, saturation=False)
    assert run.blocking_probability.best > 0.02
    for name in ("blocking_probability", "overflow_probability"):
        assert model.metrics[name] == pytest.approx(run.metrics[name].best, rel=0.1)
