"""A packet processor whose memory is behind controllers: times by hand, and the controllers on their own."""

from __future__ import annotations

from dataclasses import replace

from numpy.testing import assert_allclose

from qmodels import PacketProcessor, dram
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.spec.text.toml import from_toml, to_toml
from qmodels.traffic import fixed
from validate import simulate
from validate.composed.replication import table_sums
from validate.packet_processor.run import mean_parts

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
