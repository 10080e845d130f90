import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import DramSystem, dram
from qmodels.memory import RandomBlocks, StridedBlocks
from qmodels.memory.dram.order_waits import in_order_banks, ready_first_banks
from qmodels.memory.dram.solve import solve_dram
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved
from qmodels.systems.memory.dram_system import AddressTrace, Packets
from qmodels.systems.memory.dram_timing import abstract
from validate import simulate


def banks(*, busy: int, scheduler: str, rate: float, burst: int = 4) -> DramSystem:
    return DramSystem(
        timing=abstract(burst=burst, bank_busy=busy),
        geometry=DramGeometry(groups=1, banks=8),
        page_policy="closed",
        scheduler=scheduler,
        traffic=RandomBlocks(arrival_rate=rate),
    )


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("busy", "load"), [(60, 0.6), (80, 0.85)])
def test_in_order_banks_of_at_most_two_bursts_are_exact(busy, load):
    # Bursts of many cycles: conflicts, unlike mean waits, notice that arrivals come in whole cycles.
    top = in_order_banks(arrival_rate=0.0, burst=40, bank_busy=busy, banks=8).max_rate
    known = in_order_banks(arrival_rate=load * top, burst=40, bank_busy=busy, banks=8)
    spec = banks(busy=busy, scheduler="in-order", rate=load * top, burst=40)
    found = simulate(spec, accesses=100_000, replications=20, confidence=0.999)
    assert known.mean_waiting_time + 40 in found.read_latency
    assert found.read_latency.relative_half_width < 0.04
    assert abs(known.conflict_probability - found.read_conflict_probability.best) < 0.0015
    assert found.read_conflict_probability.half_width < 0.001


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
def test_in_order_banks_of_three_bursts_are_within_one_percent(load):
    known = in_order_banks(arrival_rate=load * 18 / 97, burst=4, bank_busy=12, banks=8)
    found = simulate(
        banks(busy=12, scheduler="in-order", rate=load * 18 / 97), accesses=400_000, replications=8
    )
    # Of the wait 0.8 % measured on longer runs; the interval is what these runs leave open.
    error = abs(known.mean_waiting_time + 4 - found.read_latency.best) - found.read_latency.half_width
    assert error / found.read_latency.best < 0.008


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("busy", [8, 12])
@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
def test_oldest_ready_first_is_within_two_percent(busy, load):
    known = ready_first_banks(arrival_rate=load / 4, burst=4, bank_busy=busy, banks=8)
    found = simulate(
        banks(busy=busy, scheduler="oldest-ready-first", rate=load / 4), accesses=200_000, replications=4
    )
    error = abs(known.mean_waiting_time + 4 - found.read_latency.best) - found.read_latency.half_width
    # Measured: 0.7 % of the wait at most, and 0.9 % at 0.9 of the bus.
    assert error / found.read_latency.best < 0.008
    assert found.row_hit_ratio.best == 0


TRAFFICS = {
    "random": RandomBlocks(arrival_rate=0.1, write_fraction=0.2, row_hit_probability=0.5),
    "stride": StridedBlocks(arrival_rate=0.1, stride=3, write_fraction=0.3),
    "packets": Packets(arrival_rate=0.1, blocks=6, spacing=3, write_fraction=0.5),
    "trace": AddressTrace(blocks=tuple(range(0, 4000, 7)), writes=(0, 1) * 286, arrival_rate=0.1),
}


@pytest.mark.in_ci(3)
@pytest.mark.parametrize("traffic", TRAFFICS.values(), ids=TRAFFICS)
@pytest.mark.parametrize("scheduler", ["in-order", "oldest-ready-first", "fr-fcfs"])
def test_every_traffic_is_served_and_the_parts_add_up(traffic, scheduler):
    rate = 0.04 if scheduler == "in-order" else 0.1
    spec = dram(
        "DDR4-3200", channels=2, scheduler=scheduler, controller_cycles=7,
        traffic=replace(traffic, arrival_rate=rate),
    )  # fmt: skip
    found = simulate(spec, accesses=6000, replications=2)
    assert found.stable and found.effort["accesses"] >= 12_000
    assert_allclose(found.in_cycles()["delivered_rate"].best, rate, rtol=0.1)
    fixed = found.latency_parts["fixed"].best
    assert fixed == pytest.approx((7 + spec.timing.cl + spec.timing.burst) / 1.6)
    assert_allclose(sum(part.best for part in found.latency_parts.values()), found.read_latency.best)
    model = solve_dram(spec)
    assert set(found.latency_parts) == set(model.latency_parts) - {"queue"}
    assert set(found.metrics) == set(model.metrics) - {"saturation_rate"}
    assert set(found.utilization) == set(model.utilization)
    assert found.quantile(0.0).best >= fixed
    assert found.read_latency_p50.best <= found.read_latency_p99.best
    assert found.quantile(0.9, write=True).best > 0
    assert found.bandwidth.best == pytest.approx(found.delivered_rate.best * 64)


def test_the_step_is_nothing_to_one_channel():
    results = [
        simulate(
            dram(
                "DDR4-3200", address_map=Interleaved(step=step), traffic=Packets(arrival_rate=0.05, blocks=9)
            ),
            accesses=5000,
            replications=2,
        )
        for step in (1, 6)
    ]
    assert results[0].metrics == results[1].metrics


def test_row_hits_come_with_the_asked_probability():
    spec = dram(
        "DDR4-3200", t_refi=0, t_rfc=0, row_hit_cap=10**6,
        traffic=RandomBlocks(arrival_rate=0.01, row_hit_probability=0.4),
    )  # fmt: skip
    found = simulate(spec, accesses=40_000, replications=4, confidence=0.999)
    assert 0.4 in found.row_hit_ratio and found.row_hit_ratio.half_width < 0.02


def test_a_full_channel_is_found_out():
    spec = dram(
        "DDR4-3200", channels=2, page_policy="closed", traffic=StridedBlocks(arrival_rate=0.2, stride=2)
    )
    found = simulate(spec, accesses=30_000, replications=2)
    assert not found.stable and found.overloaded == (0,)
    assert found.channel_share == (1.0, 0.0)
    assert found.read_latency.best == np.inf and found.quantile(0.5).best == np.inf
    # tFAW and refresh leave at most this.
    assert found.delivered_rate.best < 4 / 34 * 1.6
    assert "overloaded channels: 0" in repr(found)


@pytest.mark.parametrize("accesses", [1000, 5000])
def test_a_short_run_finds_a_full_channel_out_too(accesses):
    spec = dram("DDR4-3200")
    full, idle = (
        simulate(replace(spec, traffic=RandomBlocks(arrival_rate=rate)), accesses=accesses, replications=2)
        for rate in (1.0, 0.05)
    )
    assert not full.stable and full.read_latency.best == np.inf
    assert idle.stable and idle.read_latency.best < 300 / 1.6


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("rate", "hits"), [(0.003, 0.5), (0.003, 0.9), (0.03, 0.5), (0.05, 0.0)])
def test_refreshes_close_rows_before_they_are_hit_again(rate, hits):
    """The model's row hits are exact for random reads; latencies are 4.1 % apart at most."""
    spec = dram("DDR4-3200", traffic=RandomBlocks(arrival_rate=rate, row_hit_probability=hits))
    model, found = solve_dram(spec), simulate(spec, accesses=40_000, replications=4, confidence=0.999)
    assert model.row_hit_ratio in found.row_hit_ratio
    assert_allclose(model.read_latency, found.read_latency.best, rtol=0.045)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("writes", "hits"), [(0.3, 0.5), (0.5, 0.5), (0.1, 0.5), (0.3, 0.9)])
def test_writes_interrupt_row_hits(writes, hits):
    """The largest rate is at most 11 % from simulation, and latencies at half of it 19 %."""
    half = RandomBlocks(arrival_rate=0.0, row_hit_probability=hits, write_fraction=writes)
    spec = dram("DDR4-3200", traffic=half)
    top = solve_dram(spec).in_cycles()["saturation_rate"]
    overloaded = replace(spec, traffic=replace(half, arrival_rate=1.2 * top))
    assert_allclose(
        simulate(overloaded, accesses=20_000, replications=2).in_cycles()["delivered_rate"].best,
        top,
        rtol=0.12,
    )
    spec = replace(spec, traffic=replace(half, arrival_rate=0.5 * top))
    found = simulate(spec, accesses=20_000, replications=2)
    assert_allclose(solve_dram(spec).read_latency, found.read_latency.best, rtol=0.2)


_SPEC = importlib.util.spec_from_file_location(
    "dram_pairs", Path(__file__).parents[2] / "reference" / "dram_pairs.py"
)
_PAIRS = importlib.util.module_from_spec(_SPEC)
sys.modules["dram_pairs"] = _PAIRS
_SPEC.loader.exec_module(_PAIRS)
READS = [pair for pair in _PAIRS.pairs() if not pair.spec.traffic.write_fraction]
RANDOM = [pair for pair in READS if not pair.spec.traffic.row_hit_probability]


def name(pair):
    spec = pair.spec
    parts = (
        spec.page_policy,
        spec.geometry.ranks,
        "refresh" if pair.refresh else "",
        spec.traffic.arrival_rate,
    )
    return "-".join(str(part) for part in parts)


def load(pair):
    return pair.spec.traffic.arrival_rate / solve_dram(pair.spec).in_cycles()["saturation_rate"]


@pytest.mark.parametrize("pair", RANDOM, ids=name)
def test_the_model_is_close_to_both(pair):
    model = solve_dram(pair.spec).in_cycles()["read_latency"]
    errors = [abs(model / mean - 1) for mean in pair.mean.values()]
    if not pair.refresh:
        assert max(errors) < 0.04
    elif load(pair) < 0.85:
        assert max(errors) < 0.06
    else:
        # Near saturation the two differ among themselves by 4 %.
        assert max(errors) < 0.07


@pytest.mark.in_ci(3)
@pytest.mark.parametrize("pair", READS, ids=name)
def test_our_simulator_is_close_to_both(pair):
    found = simulate(pair.spec, accesses=60_000, replications=4).in_cycles()["read_latency"]
    errors = [
        (abs(found.best - mean) - found.half_width - 2 * pair.standard_error[name]) / mean
        for name, mean in pair.mean.items()
    ]
    # Measured on longer runs: at most 1.4 % from the nearer of the two.
    assert min(errors) < 0.015
    assert max(errors) < 0.03
