"""The joint spec: what it derives and which combinations it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.noc.topology import Topology
from qmodels.systems.packets.packet_processor import PacketProcessor

BASE = PacketProcessor()


@pytest.mark.parametrize(
    ("width", "data_flits", "bare_flits"), [(8, 9, 1), (16, 5, 1), (32, 3, 1), (4, 18, 2)]
)
def test_flits_of_segments_and_requests(width, data_flits, bare_flits):
    spec = replace(BASE, noc=replace(BASE.noc, link_width=width))
    assert (spec.segment_flits, spec.request_flits) == (data_flits, bare_flits)


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


def test_a_segment_must_fit_a_noc_packet():
    with pytest.raises(
        ValueError, match="workload.segment_bytes must be at most noc.payload_bytes = 32, got 64"
    ):
        replace(BASE, noc=replace(BASE.noc, payload_bytes=32))


@pytest.mark.parametrize("row_bytes", [100, np.array([2048, 100])])
def test_a_row_must_hold_whole_segments(row_bytes):
    with pytest.raises(
        ValueError, match=r"dram.row_bytes must be a multiple of workload.segment_bytes = 64, got .*100"
    ):
        replace(BASE, dram=replace(BASE.dram, row_bytes=row_bytes))
