"""Times of one or two packets in an empty processor, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.systems.sizes import fixed
from validate.packet_run import packet_parts


def parts_of(world, packet=0):
    return packet_parts(world)[:, packet]


def test_one_segment_with_closed_pages(pair, finished):
    world = finished(pair, packets=1, arrivals=[0.0])
    # Links inject, 0->1, eject: the head is at the last after 2 x 3 ns. A segment has 5 flits, a request 1.
    # Enqueue 2 + 1 + 1 accesses; network 6 + 5; burst 10, array 30. Dequeue 3 + 1; 6 + 1; 40; 6 + 5.
    assert_allclose(parts_of(world), [0, 0, 4, 11 + 40, 0, 4, 7 + 40 + 11])


@pytest.mark.parametrize(("width", "segment", "order"), [(8, 9, 1), (16, 5, 1), (32, 3, 1), (4, 18, 2)])
def test_link_width_sets_the_flits(pair, finished, width, segment, order):
    world = finished(replace(pair, noc=replace(pair.noc, link_width=width)), packets=1, arrivals=[0.0])
    assert_allclose(parts_of(world), [0, 0, 4, 6 + segment + 40, 0, 4, 6 + order + 40 + 6 + segment])


def test_open_pages_precharge_once(pair, finished):
    world = finished(replace(pair, dram=replace(pair.dram, page_policy="open")), packets=1, arrivals=[0.0])
    # The first access waits 5 cycles of 2.5 ns for the precharge, the read finds its row open.
    assert_allclose(parts_of(world), [0, 0, 4, 11 + 12.5 + 40, 0, 4, 7 + 40 + 11])


def test_two_segments_of_one_bank(pair, finished):
    spec = replace(pair, workload=replace(pair.workload, sizes=fixed(bytes=128)))
    world = finished(spec, packets=1, arrivals=[0.0])
    # Segments are injected at 4 and 6; the first holds the link to 9, is delivered at 15, bursts to 25 and
    # keeps the bank to 45; the second is there at 20, bursts from 45 to 55 and is written at 85.
    assert_allclose(parts_of(world)[:4], [0, 0, 6, 79])
    # Reads are issued at 4 and 5 after the dequeue began, at the bank at 11 and 12; bursts 11-21 and 41-51;
    # data of the second leave at 81 and are back at 92.
    assert_allclose(parts_of(world)[4:], [0, 5, 87])
    assert world.counts[[11, 12, 13, 14]].tolist() == [2, 1, 2, 1]


def test_two_segments_of_one_open_row(pair, finished):
    spec = replace(
        pair,
        workload=replace(pair.workload, sizes=fixed(bytes=128)),
        dram=replace(pair.dram, page_policy="open"),
    )
    world = finished(spec, packets=1, arrivals=[0.0])
    # The first precharges 15-27.5, bursts to 37.5 and recovers to 57.5; the second is a hit: 57.5-67.5, +30.
    assert_allclose(parts_of(world)[:4], [0, 0, 6, 97.5 - 6])
    # Reads are hits: the bus takes them at 11 and 21; the second is back at 21 + 10 + 30 + 11.
    assert_allclose(parts_of(world)[4:], [0, 5, 72 - 5])
    assert world.counts[[12, 14, 15, 16]].tolist() == [0, 0, 4, 3]


def test_lookup_by_way_of_a_slice(pair, finished):
    spec = replace(
        pair,
        workload=replace(pair.workload, lookups_per_packet=3),
        llc=replace(pair.llc, slices=2, slice_lines=20_000),
    )
    # The bus there and back, 6 ns each way, and 8 ns in the slice that holds everything.
    assert_allclose(parts_of(finished(spec, packets=1, arrivals=[0.0]))[0], 3 * 20)


def test_lookup_by_way_of_dram(pair, finished):
    spec = replace(
        pair, workload=replace(pair.workload, lookups_per_packet=1), llc=replace(pair.llc, slices=0)
    )
    assert_allclose(parts_of(finished(spec, packets=1, arrivals=[0.0]))[0], 7 + 40 + 11)


def test_second_packet_waits_for_the_pointer_memory(pair, finished):
    world = finished(pair, packets=2, arrivals=[0.0, 1.0])
    assert_allclose(parts_of(world, 1)[1:3], [3, 4])


def test_hold_is_no_part_of_the_latency(pair, finished):
    spec = replace(pair, workload=replace(pair.workload, hold_ns=1e6))
    world = finished(spec, packets=1, arrivals=[0.0])
    assert world.packets["hold"][0] > 0
    # Sums of times around 1e6 ns: rounding only.
    assert_allclose(parts_of(world), [0, 0, 4, 51, 0, 4, 58], rtol=0, atol=1e-8)
    assert np.isclose(world.packets["read_join"][0] - world.packets["written"][0], world.packets["hold"][0])


def test_small_list_refuses_a_whole_packet(pair, finished):
    spec = replace(
        pair,
        workload=replace(pair.workload, sizes=fixed(bytes=256)),
        free_list=replace(pair.free_list, segments=6),
    )
    world = finished(spec, packets=3, arrivals=[0.0, 1.0, 5000.0])
    assert world.packets["blocked"].tolist() == [0, 1, 0]
    assert world.counts[[0, 1, 2, 3, 4]].tolist() == [3, 12, 1, 4, 2]
    # The refusal takes the two accesses of a packet and no more.
    assert world.packets["left"][1] - world.packets["write_start"][1] == 2.0
