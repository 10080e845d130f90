"""A packet processor whose memory is behind controllers: times by hand, and the controllers on their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.toml import from_toml, to_toml
from qmodels.systems.traffic.sizes import fixed
from qmodels.systems.traffic.workload import Workload
from validate import simulate
from validate.dram.kernel import run_channel
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


@pytest.mark.parametrize("changes", [{}, {"page_policy": "closed", "scheduler": "oldest-ready-first"}])
def test_reads_take_as_long_as_at_the_controller_alone(changes):
    spec = replace(
        PacketProcessor(),
        dram=dram("DDR4-3200", channels=2, controller_cycles=7, **QUIET, **changes),
        workload=Workload(offered_gbps=300.0, lookups_per_packet=0),
    )
    world = draw_world(spec, seed=np.random.SeedSequence(1), packets=300)
    # All writes are done long before the first read.
    world.packets["hold"] = 1e6
    begin(world)
    *networks, channels = new_parts(spec, world)
    run(world, *networks, channels, 301)
    assert not world.banks["unfinished"].any() and not world.banks["present"].any()
    for k in range(2):
        own = world.segments[world.segments["bank"] // spec.banks == k]
        own = own[np.argsort(own["joined"], kind="stable")]
        alone = new_channel(
            spec.dram,
            arrival=own["cycle"] - own["cycle"][0] + 10_000,
            bank=(own["bank"] % spec.banks).astype(np.int64),
            row=own["row"].astype(np.int64),
            write=np.zeros(own.size, dtype=np.int64),
            start=0.0,
        )
        run_channel(alone)
        # What rows the writes have left open matters to the first reads of their banks alone.
        total = channels.sums[k, 0, 0, LATENCY]
        assert channels.sums[k, 0, 0, COUNT] == own.size
        assert_allclose(total, alone.sums[0, :, LATENCY].sum(), rtol=0.0 if changes else 0.01)


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
