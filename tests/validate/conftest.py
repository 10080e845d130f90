from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qmodels.systems.memory.dram import Dram
from qmodels.systems.noc.topology import Topology
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.packets.processor_noc import ProcessorNoc
from qmodels.systems.traffic.sizes import fixed
from qmodels.systems.traffic.workload import Workload
from validate.packet_processor.inputs import draw_world, new_parts
from validate.packet_processor.loop import begin, run


@pytest.fixture
def pair() -> PacketProcessor:
    """One engine, one channel with closed pages, two nodes; no lookups, no hold, 64-byte packets."""
    return PacketProcessor(
        workload=Workload(sizes=fixed(bytes=64), lookups_per_packet=0, table_entries=100, hold_ns=0.0),
        noc=ProcessorNoc(topology=Topology(kind="ring", nodes=2), initiators=1),
        dram=Dram(channels=1, page_policy="closed"),
        free_list=FreeList(segments=64, alloc_trial_count=1, mean_run_length=float("inf")),
    )


@pytest.fixture
def finished() -> Callable[..., Any]:
    """Draw a world, give it arrival times if there are any, and run it to its end."""

    def finish(
        spec: PacketProcessor, *, packets: int, seed: int = 0, arrivals: Any = None, **options: Any
    ) -> Any:
        world = draw_world(
            spec, seed=np.random.SeedSequence(seed, spawn_key=(0,)), packets=packets, **options
        )
        if arrivals is not None:
            world.packets["arrival"] = arrivals
        begin(world)
        run(world, *new_parts(spec, world), packets + 1)
        return world

    return finish


@pytest.fixture
def small() -> PacketProcessor:
    """Return a busy processor with several segments per packet, small enough to trace."""
    spec = PacketProcessor()
    return replace(
        spec,
        workload=replace(spec.workload, load_factor=1.8, hold_ns=2000.0, lookups_per_packet=2),
        free_list=replace(spec.free_list, segments=20_000, mean_run_length=4.0),
    )
