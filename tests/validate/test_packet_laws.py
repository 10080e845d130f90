"""What holds in every run: conservation, Little's law, work conservation, reproducibility."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from validate import simulate
from validate.data_queueing.initial_lists import shuffled_runs
from validate.noc.state import IN_NETWORK, WAITING
from validate.packet_processor.inputs import (
    PHASES,
    draw_world,
    initial_lists,
    networks_of,
    new_parts,
    station_groups,
    station_names,
)
from validate.packet_processor.loop import begin, run
from validate.packet_processor.run import packet_parts


def blocks_of(world, which=None):
    """Return the addresses of the free blocks in the table, list by list from head to tail."""
    numbers = []
    for vms in world.lists if which is None else world.lists[which : which + 1]:
        block = vms["head"] if vms["length"] else -1
        while block != -1:
            numbers.append(block)
            block = -1 if block == vms["tail"] else world.blocks[block]["next"]
    return world.addresses[np.array(numbers, dtype=int)]


def number_at(world, station):
    """Return the times at which the number at a station changes and the number after each."""
    notes = world.trace[: int(world.state["traced"][0])]
    notes = notes[notes["station"] == station]
    # Arrivals before departures where both happen at once, so that the number is never negative.
    order = np.lexsort((-notes["change"], notes["time"]))
    return notes["time"][order], np.cumsum(notes["change"][order])


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_every_station_balances_and_conserves_work(small, finished, policy):
    spec = replace(small, dram=replace(small.dram, page_policy=policy))
    world = finished(spec, packets=400, trace=500_000)
    assert 0 < world.state["traced"][0] < world.trace.size
    names = station_names(spec)
    groups = station_groups(spec)
    links = {*range(len(names))[groups["request links"]], *range(len(names))[groups["response links"]]}
    for station, name in enumerate(names):
        if station in links:
            continue  # flits of a network, which its own tests follow
        times, number = number_at(world, station)
        record = world.stations[station]
        assert np.sum(np.diff(number, prepend=0) > 0) == record["served"]
        if times.size == 0:
            continue
        assert number.min() >= 0 and number[-1] == 0
        busy = np.sum(np.diff(times) * (number[:-1] > 0))
        area = np.sum(np.diff(times) * number[:-1])
        if "bank" in name:
            # A bank is also taken while its access waits for the bus, which is not its own work.
            assert busy >= record["busy"] * (1 - 1e-9)
            assert area >= (record["waited"] + record["busy"]) * (1 - 1e-9)
        else:
            assert_allclose(busy, record["busy"], rtol=1e-9)
            assert_allclose(area, record["waited"] + record["busy"], rtol=1e-9)


def test_little_holds_in_every_phase(small, finished):
    world = finished(small, packets=400, trace=500_000)
    packets, parts = world.packets, packet_parts(world)
    spent = {
        "lookup": parts[0],
        "write": parts[1:4].sum(axis=0),
        "hold": packets["hold"],
        "read": parts[4:].sum(axis=0),
    }
    for k, phase in enumerate(PHASES):
        times, number = number_at(world, len(station_names(small)) + k)
        assert number.min() >= 0 and number[-1] == 0
        assert_allclose(np.sum(np.diff(times) * number[:-1]), spent[phase].sum(), rtol=1e-9)


def test_banks_serve_one_access_at_a_time_and_buses_carry_all(small, finished):
    world = finished(small, packets=400)
    served = dict(zip(station_names(small), world.stations["served"].tolist(), strict=True))
    for channel in range(small.dram.channels):
        banks = sum(served[f"channel {channel} bank {bank}"] for bank in range(small.dram.banks))
        assert 0 < banks == served[f"channel {channel} bus"]


def test_networks_carry_every_access_there_and_its_data_back(small):
    world = draw_world(small, seed=np.random.SeedSequence(3), packets=400)
    begin(world)
    requests, responses, channels = new_parts(small, world)
    run(world, requests, responses, channels, 401)
    names = list(station_names(small))
    served = dict(zip(names, world.stations["served"].tolist(), strict=True))
    wide, narrow = small.segment_flits, small.request_flits
    link = networks_of(small).link_names
    writes = responded = 0
    for channel in range(small.dram.channels):
        node = link.index(f"eject {small.noc.initiators + channel}")
        flits = int(requests.channel["flits"][node])
        accesses = served[f"channel {channel} bus"]
        # Writes carry a segment, all else is a bare request.
        segments, rest = divmod(flits - accesses * narrow, wide - narrow)
        assert rest == 0
        writes += segments
        responded += accesses - segments
        answered = link.index(f"inject {small.noc.initiators + channel}")
        assert responses.channel["flits"][answered] == (accesses - segments) * wide
    assert writes == world.counts[11]
    for network in (requests, responses):
        assert network.clock[IN_NETWORK] == network.clock[WAITING] == 0
    assert responded == world.counts[13] + world.counts[6] - world.counts[7]


@pytest.mark.parametrize("segments", [24, 60, 20_000])
@pytest.mark.parametrize("trials", [1, 4])
@pytest.mark.parametrize("small_segments", [0, 1, 8])
def test_no_block_is_lost_or_handed_out_twice(small, finished, segments, trials, small_segments):
    lists = replace(
        small.free_list,
        segments=segments,
        alloc_trial_count=trials,
        small_packet_segments=small_segments,
    )
    world = finished(replace(small, free_list=lists), packets=400)
    assert_array_equal(np.sort(blocks_of(world)), np.sort(world.addresses))
    assert np.unique(world.addresses).size == world.addresses.size
    assert world.lists["length"].sum() == segments
    packets = world.packets[world.packets["blocked"] == 0]
    owners = [(b, p["written"], p["left"]) for p in packets for b in blocks_in(world, p)]
    owners.sort()
    for (block, _, left), (other, written, _) in zip(owners, owners[1:], strict=False):
        assert block != other or written > left
    stored = world.counts[1] - world.counts[3]
    assert stored == packets["segments"].sum() == world.counts[8] == world.counts[11] == world.counts[13]
    assert world.counts[0] == world.counts[2] + world.counts[4]


def test_small_packets_have_their_own_lists(small, finished):
    lists = replace(small.free_list, segments=4000, small_packet_segments=2, vms1_share=0.6)
    spec = replace(small, free_list=lists)
    world = finished(spec, packets=400)
    small_packets = world.packets["segments"] <= 2
    assert 0 < small_packets.sum() < small_packets.size
    for packet in world.packets[world.packets["blocked"] == 0]:
        own = np.array(blocks_in(world, packet))
        assert np.all((own < 2400) == (packet["segments"] > 2))
    _, bank, _ = spec.locate(blocks_of(world, 1))
    assert np.all(2 * bank < spec.dram.banks)
    _, bank, _ = spec.locate(blocks_of(world, 2))
    assert np.all(2 * bank >= spec.dram.banks)


def blocks_in(world, packet):
    own = slice(packet["first"], packet["first"] + packet["segments"])
    return world.addresses[world.segments["block"][own]].tolist()


def test_blocks_in_store_plus_free_ones_are_all_at_any_time(small):
    world = draw_world(small, seed=np.random.SeedSequence(5), packets=400)
    begin(world)
    networks = new_parts(small, world)
    for stop in range(10, 400, 10):
        run(world, *networks, stop)
        free = blocks_of(world)
        assert np.unique(free).size == free.size
        packets = world.packets[: int(world.state["admitted"][0])]
        whole = packets[(packets["write_end"] > 0) & (packets["left"] == 0)]
        stored = [b for p in whole for b in blocks_in(world, p)]
        assert not np.isin(stored, free).any() and len(set(stored)) == len(stored)
        # One packet may be in the middle of its allocation.
        missing = world.addresses.size - free.size - len(stored)
        assert 0 <= missing < 24


def test_one_trial_is_the_plain_list(pair, finished):
    spec = replace(pair, free_list=replace(pair.free_list, segments=50, mean_run_length=3.0))
    world = finished(spec, packets=50, arrivals=np.arange(50) * 5.0)
    _, _, start = initial_lists(spec, np.random.default_rng(list_stream()), examined=(50, 0, 0))
    assert_array_equal(world.addresses[world.segments["block"]], start)


def list_stream():
    """Return the seed of the sixth stream of replication 0 of seed 0: the free list's."""
    return np.random.SeedSequence(0, spawn_key=(0,)).spawn(7)[5]


def test_runs_have_the_mean_length():
    start = shuffled_runs(400_000, 8.0, np.random.default_rng(1), reached=400_000)
    assert_array_equal(np.sort(start), np.arange(400_000))
    joined = np.mean(np.diff(start) == 1)
    # 50,000 runs: the share of adjacencies kept has a standard deviation of 0.0005.
    assert abs(joined - 7 / 8) < 0.002


def test_a_fresh_list_is_in_order():
    rng = np.random.default_rng(1)
    assert_array_equal(shuffled_runs(20_000, float("inf"), rng, reached=30_000), np.arange(20_000))


@pytest.mark.parametrize("mean", [1.0, 3.5])
def test_a_run_that_reaches_fewer_blocks_sees_the_same_ones(mean):
    whole = shuffled_runs(5000, mean, np.random.default_rng(7), reached=5000)
    part = shuffled_runs(5000, mean, np.random.default_rng(7), reached=300)
    assert_array_equal(part, whole[:300])


@pytest.mark.parametrize("step", [2, 32])
def test_one_channel_makes_the_step_irrelevant(small, finished, step):
    one = replace(small, dram=replace(small.dram, channels=1))
    other = replace(small, dram=replace(small.dram, channels=1, interleaving_step=step))
    assert_array_equal(finished(one, packets=300).packets, finished(other, packets=300).packets)


def test_same_numbers_whatever_the_workers(small):
    options = {"packets": 1000, "replications": 4, "seed": 3, "window": 64}
    results = [simulate(small, executor=None, **options)]
    for executor in (ThreadPoolExecutor(1), ThreadPoolExecutor(3), ProcessPoolExecutor(2)):
        with executor:
            results.append(simulate(small, executor=executor, **options))
    for other in results[1:]:
        assert other.metrics == results[0].metrics
        assert other.resources == results[0].resources
    assert simulate(small, **{**options, "seed": 4}).metrics != results[0].metrics
