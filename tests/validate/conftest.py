from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qmodels import PacketProcessor, Workload
from qmodels.laws import Deterministic, Replay
from qmodels.noc import Topology
from qmodels.packets import Dram, FreeList, ProcessorNoc
from qmodels.steps import Hold
from qmodels.systems.packets.packet_processor import processor_system
from qmodels.traffic import fixed
from validate.composed.replication import advance
from validate.composed.world import new_machine


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
    """Run the system of a processor until so many packets have left, which come at given times if any."""

    def finish(
        spec: PacketProcessor, *, packets: int, seed: int = 0, arrivals: Any = None, hold: Any = None
    ) -> Any:
        system = processor_system(spec)
        (flow,) = system.flows
        if arrivals is not None:
            gaps = (*np.diff([0.0, *arrivals]).tolist(), 1e12)
            flow = replace(flow, arrivals=Replay(values=gaps), rate=None)
        if hold is not None:
            program = tuple(
                replace(s, time=Deterministic(mean=hold)) if isinstance(s, Hold) else s for s in flow.program
            )
            flow = replace(flow, program=program)
        machine = new_machine(replace(system, flows=(flow,)), seed=seed, replication=0)
        return advance(machine, ended=packets)[0]

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
