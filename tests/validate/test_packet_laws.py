"""What holds in every run: conservation, Little's law, work conservation, reproducibility."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from validate.composed.kernels import link_names
from validate.composed.replication import advance, area
from validate.composed.world import new_machine
from validate.data_queueing.free_lists import shuffled_runs
from validate.noc.state import IN_NETWORK, WAITING
from validate.packet_processor import Job, run_replication

NONE = -1


@pytest.fixture
def emptied(finished):
    """Return a function that runs a processor until its 400 packets have left or were refused."""

    def empty(spec):
        gaps = np.random.default_rng(0).exponential(1 / float(spec.workload.packet_rate), size=400)
        return finished(spec, packets=400, arrivals=np.cumsum(gaps))

    return empty


def free_blocks(machine, which=slice(0, 3)):
    """Return the addresses of the free blocks, list by list from head to tail."""
    pools, numbers = machine.kernels.blocks, []
    for vms in pools.lists[which]:
        block = vms["head"] if vms["length"] else NONE
        while block != NONE:
            numbers.append(block)
            block = NONE if block == vms["tail"] else pools.blocks[block]["next"]
    return pools.addresses[np.array(numbers, dtype=int)]


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_banks_serve_all_and_buses_carry_it(small, emptied, policy):
    spec = replace(small, dram=replace(small.dram, page_policy=policy))
    machine = emptied(spec)
    c, dram = machine.core, spec.dram
    banks = c.rows.reshape(dram.channels, dram.banks)
    assert_array_equal(banks["served"].sum(axis=1), c.channels["served"])
    assert c.channels["served"].all() and (c.rows["serving"] == NONE).all() and (c.rows["head"] == NONE).all()
    burst, recovery, precharge = (
        cycles / dram.clock_ghz for cycles in (dram.burst_cycles, dram.recovery_cycles, dram.precharge_cycles)
    )
    memory = c.memories[0]
    assert_allclose(c.channels["busy"], c.channels["served"] * burst)
    opened = memory["accesses"] - memory["hits"]
    own = memory["accesses"] * burst + opened * (recovery + (precharge if policy == "open" else 0.0))
    assert_allclose(c.rows["busy"].sum(), own)
    assert memory["accesses"] == c.arrived["number"].sum() and (c.arrived["conflicts"] > 0).all()


def test_little_holds_in_every_part_and_for_packets(small, emptied):
    machine = emptied(small)
    now, flow = float(machine.world.state["now"][0]), machine.core.flows
    assert flow["number"][0] == 0 and flow["ended"][0] == 400
    inside = area(flow, "number", now)
    assert_allclose(inside, flow["latency_sum"] + flow["uncounted_sum"], rtol=1e-9)
    stages = machine.core.stages
    assert_array_equal(stages["ended"], 400)
    assert_allclose(stages["time_sum"].sum(), inside, rtol=1e-9)
    assert_allclose(stages["time_sum"][2], flow["uncounted_sum"][0], rtol=1e-9)
    parts = machine.core.parts
    assert not parts["number"].any()
    assert_allclose(area(parts, "number", now), parts["time_sum"], rtol=1e-9, atol=1e-6)


def test_networks_carry_every_access_there_and_its_data_back(small, emptied):
    machine = emptied(small)
    network, core = machine.kernels.network, machine.core
    spec = small.system()
    flits = dict(zip(link_names(spec), network.channel["flits"].tolist(), strict=True))
    wide, narrow = small.segment_flits, small.request_flits
    writes, reads, lines = core.arrived["number"].tolist()
    nodes = range(small.noc.initiators, small.noc.initiators + small.dram.channels)
    asked = sum(flits["requests", f"eject {node}"] for node in nodes)
    answered = sum(flits["responses", f"inject {node}"] for node in nodes)
    # Writes carry a segment, all else is a bare request.
    assert asked == writes * wide + (reads + lines) * narrow
    assert answered == (reads + lines) * wide
    assert writes == reads == core.flows["segments"][0]
    assert network.clock[IN_NETWORK] == network.clock[WAITING] == 0


@pytest.mark.parametrize("segments", [24, 60, 20_000])
@pytest.mark.parametrize("trials", [1, 4])
@pytest.mark.parametrize("small_segments", [0, 1, 8])
def test_no_block_is_lost(small, emptied, segments, trials, small_segments):
    lists = replace(
        small.free_list,
        segments=segments,
        alloc_trial_count=trials,
        small_packet_segments=small_segments,
    )
    machine = emptied(replace(small, free_list=lists))
    assert_array_equal(np.sort(free_blocks(machine)), np.arange(segments))
    flow, core = machine.core.flows[0], machine.core
    assert flow["ended"] + flow["lost"] == 400 and (flow["lost"] == 0) == (segments > 60)
    taken = core.servers["taken_blocks"][0]
    assert taken == flow["segments"] == core.arrived["number"][0] == core.arrived["number"][1]
    assert not machine.kernels.blocks.banks["unfinished"].any()


def test_small_packets_have_their_own_lists(small, emptied):
    lists = replace(small.free_list, segments=4000, small_packet_segments=2, vms1_share=0.6)
    spec = replace(small, free_list=lists)
    machine = emptied(spec)
    of_large = free_blocks(machine, slice(0, 1))
    assert_array_equal(np.sort(of_large), np.arange(2400))
    for which, upper in ((1, False), (2, True)):
        _, bank, _ = spec.locate(free_blocks(machine, slice(which, which + 1)))
        assert np.all((2 * bank >= spec.dram.banks) == upper)


def test_blocks_in_store_plus_free_ones_are_all_at_any_time(small):
    machine = new_machine(small.system(), seed=5, replication=0)
    for ended in range(10, 400, 10):
        machine, _ = advance(machine, ended=ended)
        free = free_blocks(machine)
        assert np.unique(free).size == free.size
        stored = machine.core.strands["blocks"].sum()
        assert stored + free.size == 20_000
        assert stored > 0


def test_runs_have_the_mean_length():
    start = shuffled_runs(400_000, 8.0, np.random.default_rng(1))
    assert_array_equal(np.sort(start), np.arange(400_000))
    joined = np.mean(np.diff(start) == 1)
    # 50,000 runs: the share of adjacencies kept has a standard deviation of 0.0005.
    assert abs(joined - 7 / 8) < 0.002


def test_a_fresh_list_is_in_order():
    rng = np.random.default_rng(1)
    assert_array_equal(shuffled_runs(20_000, float("inf"), rng), np.arange(20_000))


@pytest.mark.parametrize("step", [2, 32])
def test_one_channel_makes_the_step_irrelevant(small, step):
    one = replace(small, dram=replace(small.dram, channels=1))
    other = replace(small, dram=replace(small.dram, channels=1, interleaving_step=step))
    first, second = (run_replication(Job(spec=s, seed=0, replication=0, packets=300)) for s in (one, other))
    assert_array_equal(first.parts, second.parts)
