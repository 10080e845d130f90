"""Packets worked out by hand: times in an empty processor, controllers, energy."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import PacketProcessor, dram
from qmodels.packets import Energy
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.spec.text.toml import from_toml, to_toml
from qmodels.traffic import fixed
from validate import simulate
from validate.composed.replication import table_sums
from validate.packet_processor import Job, energy_per_packet, mean_parts, run_replication


def parts_of(machine):
    """Return the means of the parts of the latency of all packets."""
    return mean_parts(table_sums(machine.core.stages), table_sums(machine.core.operations))


def came(machine):
    """Return the writes, those of them in conflict, the reads and those in conflict."""
    return table_sums(machine.core.arrived)[:2].ravel().tolist()


def row_hits(machine):
    return int(machine.core.memories["hits"][0])


def test_one_segment_with_closed_pages(pair, finished):
    world = finished(pair, packets=1, arrivals=[0.0])
    # Two routers of 3 ns and 2 ns at the ends, then the other flits: a segment has 5 flits, a request 1.
    # Enqueue 2 + 1 + 1 accesses; network 8 + 4; burst 10, array 30. Dequeue 3 + 1; 8; 40; 8 + 4.
    assert_allclose(parts_of(world), [0, 0, 4, 12 + 40, 0, 4, 8 + 40 + 12])


@pytest.mark.parametrize(("width", "segment", "order"), [(8, 9, 1), (16, 5, 1), (32, 3, 1), (4, 18, 2)])
def test_link_width_sets_the_flits(pair, finished, width, segment, order):
    world = finished(replace(pair, noc=replace(pair.noc, link_width=width)), packets=1, arrivals=[0.0])
    assert_allclose(parts_of(world), [0, 0, 4, 7 + segment + 40, 0, 4, 7 + order + 40 + 7 + segment])


def test_open_pages_precharge_once(pair, finished):
    world = finished(replace(pair, dram=replace(pair.dram, page_policy="open")), packets=1, arrivals=[0.0])
    # The first access waits 5 cycles of 2.5 ns for the precharge, the read finds its row open; it is
    # sent in the next cycle of the network, half a nanosecond after the dequeue.
    assert_allclose(parts_of(world), [0, 0, 4, 12 + 12.5 + 40, 0, 4, 0.5 + 8 + 40 + 12])


def test_two_segments_of_one_bank(pair, finished):
    spec = replace(pair, workload=replace(pair.workload, sizes=fixed(bytes=128)))
    world = finished(spec, packets=1, arrivals=[0.0])
    # Segments are sent at 4 and 6; the first holds the link to 9, is delivered at 16, bursts to 26 and
    # keeps the bank to 46; the second is there at 21, bursts from 46 to 56 and is written at 86.
    assert_allclose(parts_of(world)[:4], [0, 0, 6, 80])
    # Reads are issued at 4 and 5 after the dequeue began, at the bank at 12 and 13; bursts 12-22 and 42-52;
    # data of the second leave at 82 and are back at 94.
    assert_allclose(parts_of(world)[4:], [0, 5, 89])
    assert came(world) == [2, 1, 2, 1]


def test_two_segments_of_one_open_row(pair, finished):
    spec = replace(
        pair,
        workload=replace(pair.workload, sizes=fixed(bytes=128)),
        dram=replace(pair.dram, page_policy="open"),
    )
    world = finished(spec, packets=1, arrivals=[0.0])
    # The first precharges 16-28.5, bursts to 38.5 and recovers to 58.5; the second is a hit: 58.5-68.5, +30,
    # which is between two cycles of the network: the reads are sent half a nanosecond later.
    assert_allclose(parts_of(world)[:4], [0, 0, 6, 98.5 - 6])
    # Reads are hits: the bus takes them at 12 and 22; the second is back at 22 + 10 + 30 + 12.
    assert_allclose(parts_of(world)[4:], [0, 5, 74 - 5 + 0.5])
    assert came(world) == [2, 0, 2, 0] and row_hits(world) == 3


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
    assert_allclose(parts_of(finished(spec, packets=1, arrivals=[0.0]))[0], 8 + 40 + 12)


def test_second_packet_waits_for_the_pointer_memory(pair, finished):
    # The second waits 3 ns, each takes 4.
    assert_allclose(parts_of(finished(pair, packets=2, arrivals=[0.0, 1.0]))[1:3], [1.5, 4])


def test_hold_is_no_part_of_the_latency(pair, finished):
    spec = replace(pair, workload=replace(pair.workload, hold_ns=1e6))
    world = finished(spec, packets=1, arrivals=[0.0], hold=1e6 + 0.25)
    # The request is sent in the network's next cycle.
    assert_allclose(parts_of(world), [0, 0, 4, 52, 0, 4, 60.75], rtol=0, atol=1e-8)
    assert_allclose(world.core.stages["time_sum"][2], 1e6 + 0.25)
    assert_allclose(world.core.flows["latency_sum"], 120.75)


def test_small_list_refuses_a_whole_packet(pair, finished):
    spec = replace(
        pair,
        workload=replace(pair.workload, sizes=fixed(bytes=256)),
        free_list=replace(pair.free_list, segments=6),
    )
    world = finished(spec, packets=3, arrivals=[0.0, 1.0, 5000.0])
    flow = world.core.flows[0]
    assert (flow["ended"], flow["lost"], flow["segments"], flow["lost_segments"]) == (2, 1, 8, 4)
    # The refusal takes the two accesses of a packet and no more, beside two enqueues and two dequeues.
    assert_allclose(world.core.servers["busy_sum"], 3 * 2 + 2 * 4 * 2 + 2 * (3 + 4))


def test_refresh_holds_back_what_comes_meanwhile(pair, finished):
    dram = replace(pair.dram, refresh_interval_cycles=400, refresh_cycles=20)
    # The channel is refreshed from 0 to 50 ns and from 1000 ns on; the access is there at 16.
    world = finished(replace(pair, dram=dram), packets=1, arrivals=[0.0])
    assert_allclose(parts_of(world)[:4], [0, 0, 4, 12 + (50 - 16) + 40])
    late = finished(replace(pair, dram=dram), packets=1, arrivals=[100.0])
    assert_allclose(parts_of(late)[:4], [0, 0, 4, 12 + 40])


def test_refresh_closes_the_row(pair, finished):
    dram = replace(pair.dram, page_policy="open", refresh_interval_cycles=400, refresh_cycles=1)
    spec = replace(pair, dram=dram)
    packets = finished(spec, packets=1, arrivals=[100.0])
    # Written before the refresh at 1000 ns and read before it: the read hits the open row.
    assert row_hits(packets) == 1
    spec = replace(spec, workload=replace(spec.workload, hold_ns=1e6))
    assert row_hits(finished(spec, packets=1, arrivals=[100.0], hold=1e6)) == 0


QUIET = {"t_refi": 0, "t_rfc": 0}


def test_one_segment_in_an_open_row(pair, finished):
    spec = replace(pair, dram=dram("DDR4-3200", **QUIET))
    world = finished(spec, packets=1, arrivals=[0.0])
    # At the channel at 16 ns: the row opens, 22 cycles of 0.625 ns, the write 16, the burst 4. The dequeue
    # ends at 46.25, the request is sent at 47 and at the channel at 55: a hit, 22 and 4 cycles, to 71.25,
    # sent at 72.
    written, read = 12 + 42 * 0.625, 0.75 + 8 + 26 * 0.625 + 0.75 + 12
    parts = mean_parts(table_sums(world.core.stages), table_sums(world.core.operations))
    assert_allclose(parts, [0, 0, 4, written, 0, 4, read])


def test_every_metric_but_that_of_banks_is_there():
    spec = replace(PacketProcessor(), dram=dram("DDR5-6400", channels=8))
    found = simulate(spec, packets=2000, replications=3)
    assert set(found.metrics) == set(spec.metric_names.both) and found.stable
    assert "dram banks" not in found.utilization and "channel 7 bus" in found.waiting
    assert 0 < found.resources["channel 0 bus"].best < 1


def test_a_processor_with_controllers_is_written_and_read():
    memory = replace(dram("DDR5-6400", channels=4), address_map=Interleaved(step=4))
    spec = replace(PacketProcessor(), dram=memory)
    assert from_toml(to_toml(spec), PacketProcessor) == spec
    text = '[dram]\npreset = "DDR5-6400"\ngeometry = { channels = 4 }\n'
    assert from_toml(text, PacketProcessor).dram == dram("DDR5-6400", channels=4)


def test_small_packets_have_their_lists_on_halves_of_the_banks(pair, finished):
    spec = replace(
        pair,
        dram=dram("DDR4-3200"),
        workload=replace(pair.workload, sizes=fixed(bytes=64)),
        free_list=replace(pair.free_list, segments=4096, small_packet_segments=1),
    )
    blocks = finished(spec, packets=200).kernels.blocks
    first = int(blocks.boards[0, 0])
    of_list = [blocks.blocks["bank"][blocks.blocks["list"] == k] - first for k in (1, 2)]
    assert of_list[0].max() < 8 <= of_list[1].min()


NOTHING = dict.fromkeys((item.name for item in fields(Energy)), 0.0)
SEGMENTS, CHANNELS, WIDTH, GBPS = 3, 2, 16, 8.0
BASE = qm.PacketProcessor()
# Closed pages, whole packets of three segments, two lookups that always go to a slice.
SPEC = replace(
    BASE,
    workload=qm.Workload(
        sizes=qm.traffic.fixed(bytes=64 * SEGMENTS), offered_gbps=GBPS, lookups_per_packet=2, hold_ns=200.0
    ),
    dram=replace(BASE.dram, channels=CHANNELS, page_policy="closed"),
    llc=replace(BASE.llc, slices=4, slice_lines=8192),
    free_list=replace(BASE.free_list, alloc_trial_count=1, segments=2**16),
    noc=replace(BASE.noc, link_width=WIDTH),
)


@pytest.fixture(scope="module")
def run() -> Any:
    return run_replication(Job(spec=SPEC, seed=1, replication=0, packets=4000))


def misses(run: Any) -> float:
    return float(run.sums["lookups"] - run.sums["lookup hits"]) / float(run.sums["packets"])


def per_packet(run: Any, price: str) -> float:
    return energy_per_packet(replace(SPEC, energy=Energy(**NOTHING | {price: 1.0})), run)


def test_events_of_a_packet_by_hand(run: Any) -> None:
    """Two walks of three segments, two lookups; a missed one opens a row. To 1 %: packets cut at the ends."""
    accesses = 2 * SEGMENTS + misses(run)
    assert_allclose(per_packet(run, "burst_nj"), accesses, rtol=0.01)
    assert_allclose(per_packet(run, "activation_nj"), accesses, rtol=0.01)
    assert_allclose(per_packet(run, "lookup_nj"), 2.0, rtol=0.01)
    # Enqueue: 2 of the packet, 1 + 1 a segment; dequeue: 3 of the packet, 1 a segment.
    assert_allclose(per_packet(run, "pointer_nj"), 2 + SEGMENTS * 2 + 3 + SEGMENTS, rtol=0.01)


def test_flits_are_counted_on_every_link(run: Any) -> None:
    """The links of a path, ends included, averaged over engines and channels of each network."""
    both = SPEC.noc.networks(CHANNELS)
    links = [np.diff(table.paths.start).mean() for table in (both.requests, both.responses)]
    data, request, reads = int(SPEC.segment_flits), int(SPEC.request_flits), SEGMENTS + misses(run)
    flits = (SEGMENTS * data + reads * request) * links[0] + reads * data * links[1]
    assert_allclose(per_packet(run, "hop_pj_per_byte"), flits * WIDTH / 1000, rtol=0.02)


@pytest.mark.parametrize(
    ("price", "parts"),
    [("channel_mw", CHANNELS), ("slice_mw", 4), ("router_mw", 16), ("router_mw_per_byte", 16 * WIDTH)],
)
def test_parts_that_are_on(run: Any, price: str, parts: int) -> None:
    """A milliwatt is shared by the packets of its time: 192 ns apart at 8 Gb/s."""
    assert_allclose(per_packet(run, price), parts * (64 * SEGMENTS * 8 / GBPS) / 1000, rtol=0.05)


def test_an_error_in_the_models_energy_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import qmodels.packet_processor.answer as answer

    run = simulate(SPEC, packets=2000, replications=3, seed=1, saturation=False)
    assert abs(qm.solve(SPEC).energy_per_packet / run.energy_per_packet.best - 1) < 0.02
    right = answer.energy_per_packet
    monkeypatch.setattr(
        answer, "energy_per_packet", lambda spec, **events: right(spec, **events | {"bursts": 0.0})
    )
    again = simulate(SPEC, packets=2000, replications=3, seed=1, saturation=False)
    assert again.energy_per_packet.best == run.energy_per_packet.best
    assert abs(qm.solve(SPEC).energy_per_packet / run.energy_per_packet.best - 1) > 0.1
