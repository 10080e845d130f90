"""A packet processor whose memory is behind controllers: times by hand, and the controllers on their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.toml import from_toml, to_toml
from qmodels.systems.traffic.sizes import fixed
from qmodels.systems.traffic.workload import Workload
from validate import simulate
from validate.dram.kernel import run_channel
from validate.dram.order_kernel import run_channel_in_order
from validate.dram.state import COUNT, LATENCY, new_channel
from validate.packet_processor.inputs import draw_world, new_parts
from validate.packet_processor.loop import begin, run
from validate.packet_processor.run import packet_parts

QUIET = {"t_refi": 0, "t_rfc": 0}


def test_one_segment_in_an_open_row(pair, finished):
    spec = replace(pair, dram=dram("DDR4-3200", **QUIET))
    world = finished(spec, packets=1, arrivals=[0.0])
    # At the channel at 16 ns: the row opens, 22 cycles of 0.625 ns, the write 16, the burst 4. The dequeue
    # ends at 46.25, the request is sent at 47 and at the channel at 55: a hit, 22 and 4 cycles, to 71.25,
    # sent at 72.
    written, read = 12 + 42 * 0.625, 0.75 + 8 + 26 * 0.625 + 0.75 + 12
    assert_allclose(packet_parts(world)[:, 0], [0, 0, 4, written, 0, 4, read])


@pytest.mark.parametrize(
    "changes", [{}, {"page_policy": "closed", "scheduler": "oldest-ready-first"}, {"scheduler": "in-order"}]
)
def test_accesses_take_as_long_as_at_the_controllers_alone(changes):
    spec = replace(
        PacketProcessor(),
        dram=dram("DDR4-3200", channels=2, controller_cycles=7, **changes),
        workload=Workload(offered_gbps=100.0, lookups_per_packet=0, hold_ns=2000.0),
    )
    world, channels, accesses = watched(spec, packets=400)
    assert not world.banks["unfinished"].any() and not world.banks["present"].any()
    for k in range(2):
        own = np.array([a for a in accesses if a["bank"] // spec.banks == k])
        own = own[np.argsort(own["joined"], kind="stable")]
        alone = new_channel(
            spec.dram,
            arrival=own["cycle"].astype(np.int64),
            bank=(own["bank"] % spec.banks).astype(np.int64),
            row=own["row"].astype(np.int64),
            write=own["hit"].astype(np.int64),
            start=float(world.parameters["refresh_start"][0]),
        )
        (run_channel_in_order if spec.dram.scheduler == "in-order" else run_channel)(alone)
        found, sums = channels.sums[k, :, 0], alone.sums.sum(axis=1)
        assert_array_equal(found[:, COUNT], sums[:, COUNT])
        # Accesses of one cycle may come in another order.
        assert_allclose(found[:, LATENCY], sums[:, LATENCY], rtol=0.01)


def watched(spec, *, packets):
    """Run a world and return it, its channels and all accesses; ``hit`` is 1 of those that write.

    A look at each arrival sees every access: none of a segment comes twice between two of them. It ends with
    the arrival of a last packet, long after the others.
    """
    world = draw_world(spec, seed=np.random.SeedSequence(1), packets=packets)
    world.packets["arrival"][-1] += 1e5
    world.packets["hold"] += 1000.0
    world.packets["hold"][-60:] = 1e7
    begin(world)
    *networks, channels = new_parts(spec, world)
    before, accesses = world.segments["joined"].copy(), []
    seen = np.zeros(world.segments.size, dtype=int)
    for stop in range(2, packets + 1):
        run(world, *networks, channels, stop)
        for k in np.flatnonzero(world.segments["joined"] != before):
            accesses.append(world.segments[k].copy())
            accesses[-1]["hit"] = seen[k] == 0
            seen[k] += 1
        before = world.segments["joined"].copy()
    return world, channels, accesses


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


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"dram": dram("HBM3", channels=8)},
            "must be dram.geometry.block_bytes = 32, .* got 64",
        ),
        (
            {"dram": dram("HBM2", channels=16)},
            "dram.geometry.channels must leave .* at most 12 .* got 16",
        ),
        ({"dram": "DDR4-3200"}, "dram must be Dram or DramSystem, got 'DDR4-3200'"),
    ],
)
def test_what_does_not_fit_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        replace(PacketProcessor(), **changes)


def test_small_packets_have_their_lists_on_halves_of_the_banks(pair, finished):
    spec = replace(
        pair,
        dram=dram("DDR4-3200"),
        workload=replace(pair.workload, sizes=fixed(bytes=64)),
        free_list=replace(pair.free_list, segments=4096, small_packet_segments=1),
    )
    world = finished(spec, packets=200)
    of_list = [world.blocks["bank"][world.blocks["list"] == k] for k in (1, 2)]
    assert of_list[0].max() < 8 <= of_list[1].min()
