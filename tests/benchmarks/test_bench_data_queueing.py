"""Speed of the data-queueing simulator: 1e5 packets, about 1.3e6 queue operations."""

import numpy as np
import pytest

from qmodels import DataQueueing
from qmodels.systems.packets.data_queueing import Allocation, DataMemory
from validate.data_queueing.kernel import run
from validate.data_queueing.world import build_world, draw_packets


@pytest.mark.parametrize("segments", [65_536, 4_194_304])
def test_run(benchmark, segments):
    spec = DataQueueing(data=DataMemory(segments=segments), allocation=Allocation(vms1_size=segments))
    seed = np.random.SeedSequence(1)
    offered = draw_packets(spec, seed=seed, packets=100_000)
    run(build_world(spec, offered, seed=seed), 1000)

    def fresh():
        return (build_world(spec, offered, seed=seed), 100_001), {}

    benchmark.pedantic(run, setup=fresh, rounds=5)
    world = build_world(spec, offered, seed=seed)
    run(world, 100_001)
    operations = int(world.operations[:6, 0].sum())
    if benchmark.stats:  # not when benchmarks are disabled
        benchmark.extra_info["operations per second"] = round(operations / benchmark.stats["min"])
