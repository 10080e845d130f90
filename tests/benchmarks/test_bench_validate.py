from __future__ import annotations

import numpy as np

from qmodels.systems.packets.packet_processor import PacketProcessor
from validate.packet_processor.inputs import draw_world, new_parts
from validate.packet_processor.loop import begin, run
from validate.packet_processor.state import EVENTS


def test_one_replication(benchmark):
    """20,000 packets of the default design; events per second in the extra information."""

    def setup():
        spec = PacketProcessor()
        world = draw_world(spec, seed=np.random.SeedSequence(1), packets=20_000)
        begin(world)
        return (world, *new_parts(spec, world)), {}

    def simulate_all(world, *parts):
        run(world, *parts, 20_001)
        return int(world.counts[EVENTS])

    events = benchmark.pedantic(simulate_all, setup=setup, rounds=5, warmup_rounds=1)
    if benchmark.stats is not None:
        benchmark.extra_info["events_per_second"] = events / benchmark.stats["min"]


def test_drawing_a_replication(benchmark):
    """Everything random of 20,000 packets, the list of 4 million blocks included."""
    benchmark(draw_world, PacketProcessor(), seed=np.random.SeedSequence(1), packets=20_000)
