"""The joint spec: what it derives and which combinations it refuses."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import PacketProcessor, dram
from qmodels.noc import Router, Topology
from qmodels.packets import Cost, FreeList, ProcessorNoc
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.packets.free_list import allocation_accesses

BASE = PacketProcessor()


def test_a_row_of_2_kib_holds_32_segments():
    assert BASE.row_blocks == 32
    assert replace(BASE, dram=replace(BASE.dram, row_bytes=4096)).row_blocks == 64


def test_blocks_are_where_the_channels_have_them():
    spec = replace(BASE, dram=replace(BASE.dram, interleaving_step=4, channels=2, banks=16, bank_step=8))
    # Four blocks, then the other channel; eight of a channel, then the next bank; 32 fill a row.
    assert [spec.locate(k) for k in (3, 4, 8, 16)] == [(0, 0, 0), (1, 0, 0), (0, 0, 0), (0, 1, 0)]
    assert spec.locate(2 * 16 * 32) == (0, 0, 1)


def test_blocks_are_where_the_controllers_have_them():
    memory = replace(dram("DDR4-3200", channels=2), address_map=Interleaved(step=4))
    spec = replace(BASE, dram=memory)
    assert (spec.channels, spec.banks, spec.row_blocks) == (2, 16, 128)
    assert spec.locate(9) == memory.address_map.locate(9, memory.geometry)[:3]


def test_array_fields_are_a_sweep():
    spec = replace(BASE, noc=replace(BASE.noc, link_width=np.array([8, 16])))
    assert spec.segment_flits.tolist() == [9, 5]


def with_channels(channels, nodes=16, initiators=8):
    noc = replace(BASE.noc, topology=Topology(nodes=nodes), initiators=initiators)
    return replace(BASE, noc=noc, dram=replace(BASE.dram, channels=channels))


@pytest.mark.parametrize(("channels", "worst"), [(9, 9), (np.array([1, 10, 4]), 10)])
def test_every_channel_needs_a_node(channels, worst):
    with pytest.raises(
        ValueError,
        match=f"dram.channels must leave a node for each of 8 initiators: at most 8 on 16 nodes, got {worst}",
    ):
        with_channels(channels)
    assert with_channels(8).dram.channels == 8


@pytest.mark.parametrize("row_bytes", [100, np.array([2048, 100])])
def test_a_row_must_hold_whole_segments(row_bytes):
    with pytest.raises(
        ValueError, match=r"dram.row_bytes must be a multiple of workload.segment_bytes = 64, got .*100"
    ):
        replace(BASE, dram=replace(BASE.dram, row_bytes=row_bytes))


def test_accesses_without_rejection_are_one_read():
    assert allocation_accesses(0) == 1


@pytest.mark.parametrize("alloc_trial_count", [2, 3, 4, 5])
def test_most_accesses_are_trials_and_one(alloc_trial_count):
    # A read for each rejected block, one write that links them to the tail, the read of the head taken.
    rejected = alloc_trial_count - 1
    assert allocation_accesses(rejected) == rejected + 1 + 1 == alloc_trial_count + 1


def test_accesses_grow_with_each_rejection():
    assert allocation_accesses(np.arange(5)).tolist() == [1, 3, 4, 5, 6]


def test_a_fresh_list_is_one_run():
    assert FreeList(mean_run_length=float("inf")).mean_run_length == float("inf")


def test_vms1_keeps_its_share_only_beside_lists_for_small_packets():
    share = np.array([0.0, 0.25, 1.0])
    assert FreeList(segments=10, vms1_share=share).vms1_segments.tolist() == [10, 10, 10]
    split = FreeList(segments=10, vms1_share=share, small_packet_segments=2)
    assert split.vms1_segments.tolist() == [0, 2, 10]


PRICED = replace(
    BASE,
    noc=replace(BASE.noc, initiators=8, link_width=8),
    dram=replace(BASE.dram, channels=3),
    llc=replace(BASE.llc, slices=2, slice_lines=1024),
    free_list=replace(BASE.free_list, segments=2**20, alloc_trial_count=4),
)
# Spidergon of 16 nodes: three links out of each node; 8 engines and 3 channels, in and out.
LINKS = 16 * 3 + 2 * (8 + 3)
PARTS = {
    "channel": 3,
    "router": 16,
    "router_per_byte": 16 * 8,
    "wire_per_byte": LINKS * 8,
    "slice_per_kib": 2 * 64,
    "pointer_per_mib": 8,
    "trial": 3,
}


def test_every_price_has_its_parts():
    assert set(PARTS) == {item.name for item in fields(Cost)}


@pytest.mark.parametrize(("price", "parts"), PARTS.items())
def test_cost_counts_the_parts(price, parts):
    nothing = Cost(**dict.fromkeys(PARTS, 0))
    assert replace(PRICED, cost=nothing).area == 0
    assert replace(PRICED, cost=replace(nothing, **{price: 1})).area == pytest.approx(parts, rel=1e-12)
    dearer = replace(Cost(), **{price: getattr(Cost(), price) + 1})
    assert replace(PRICED, cost=dearer).area == pytest.approx(PRICED.area + parts, rel=1e-12)


def test_the_cost_of_a_sweep_is_one_call():
    channels = np.array([1, 2, 4])
    sweep = replace(PRICED, dram=replace(PRICED.dram, channels=channels))
    one_by_one = [replace(PRICED, dram=replace(PRICED.dram, channels=int(c))).area for c in channels]
    assert sweep.area == pytest.approx(one_by_one, rel=1e-12)


@given(width=st.integers(1, 64), header=st.integers(1, 64), payload=st.integers(0, 256))
def test_flits_hold_the_packet_and_no_more(width, header, payload):
    flits = ProcessorNoc(link_width=width, header_bytes=header).flits(payload)
    assert (flits - 1) * width < header + payload <= flits * width


def test_widths_may_be_an_array():
    assert ProcessorNoc(link_width=np.array([8, 16, 32])).flits(64).tolist() == [9, 5, 3]


@pytest.mark.parametrize("kind", ["spidergon", "ring", "mesh", "torus", "crossbar", "bus"])
def test_channels_sit_behind_the_initiators(kind):
    noc = ProcessorNoc(topology=Topology(kind=kind, nodes=8), initiators=4)
    both = noc.networks(3)
    for initiator in range(4):
        for channel in range(3):
            there = both.requests.path(both.flow[0, initiator, channel])
            back = both.responses.path(both.flow[1, initiator, channel])
            assert (there[0], there[-1]) == (f"inject {initiator}", f"eject {4 + channel}")
            assert (back[0], back[-1]) == (f"inject {4 + channel}", f"eject {initiator}")
    assert len(set(both.link_names)) == len(noc.topology.links) + 2 * 8


def test_what_does_not_change_the_paths_shares_them():
    noc = ProcessorNoc()
    other = replace(noc, link_width=np.array([8, 32]), header_bytes=4, clock_ghz=2.0)
    assert other.networks(4) is noc.networks(4)
    assert replace(noc, router=Router(virtual_channels=4)).networks(4) is not noc.networks(4)
