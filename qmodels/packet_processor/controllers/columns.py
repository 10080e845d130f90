"""The memory of a sweep: a table for each pace at which packets come to it, and which designs share one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.controllers.stream import Pace, Sample
from qmodels.packet_processor.controllers.table import Table, table
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import DramSystem, RandomBlocks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.traffic.arrivals import OnOff, modelled

DIGITS = 3
"""Decimals of a time in ns up to which designs share a table."""
MISSES = 20.0
"""Designs share a table if their misses of a packet agree to one over that."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Controlled:
    """The memory of each design."""

    tables: tuple[Table, ...]  # of the paces there are
    which: IntArray  # the table of each design

    @property
    def capacity(self) -> FloatArray:
        """Packets per ns that the memory of each design carries."""
        return np.array([one.capacity for one in self.tables])[self.which]

    def at(self, rate: FloatArray) -> dict[str, FloatArray]:
        """Return waits of packets at their rates, see `Met`; one row per design."""
        found: dict[str, FloatArray] = {}
        for number, one in enumerate(self.tables):
            mine = self.which == number
            if not mine.any():
                continue
            for name, value in one.at(rate[mine]).items():
                found.setdefault(name, np.empty((rate.size, *value.shape[1:])))[mine] = value
        return found


def check_controlled(spec: PacketProcessor) -> None:
    """Refuse what the model of a memory behind controllers does not take."""
    memory, arrivals = spec.dram, spec.workload.arrivals
    if not isinstance(memory, DramSystem):
        return
    if memory.scheduler == "in-order":
        raise ValueError(
            "dram.scheduler must be oldest-ready-first or fr-fcfs for the model of a packet processor (the "
            "simulator takes all), got 'in-order'"
        )
    trials = int(np.max(spec.free_list.alloc_trial_count))
    if memory.page_policy == "closed" and trials > 1:
        raise ValueError(
            "free_list.alloc_trial_count must be 1 with closed pages of a DramSystem for the model, whose "
            f"latency is up to four times too high otherwise (the simulator takes all), got {trials}"
        )
    if not isinstance(memory.address_map, Interleaved):
        raise ValueError(
            "dram.address_map must be Interleaved for the model of a packet processor (the simulator takes "
            f"all), got {type(memory.address_map).__name__}"
        )
    if isinstance(arrivals, OnOff) and np.ndim(arrivals.on_packets) + np.ndim(arrivals.peak_to_mean):
        raise ValueError(
            "workload.arrivals must have one number in each field with a DramSystem, got an array"
        )


def controlled(
    spec: PacketProcessor, flat: Mapping[str, FloatArray], misses: FloatArray
) -> Controlled | None:
    """Return the memories of designs whose columns are given; None of a `Dram`.

    ``flat``: columns by name, see `qmodels.packet_processor.design.Columns`; ``misses``: lookups of a packet
    that go to DRAM.
    """
    if not isinstance(spec.dram, DramSystem):
        return None
    paces = np.stack(
        [
            np.maximum((1.0 + flat["enqueue_accesses"]) * flat["pointer_time"], flat["segment_time"]),
            np.maximum(flat["dequeue_accesses"] * flat["pointer_time"], flat["request_time"]),
            flat["segment_time"],
            np.round(misses * MISSES) / MISSES,
            flat["hold"],
            flat["enqueue_packet_accesses"] * flat["pointer_time"],
            flat["dequeue_packet_accesses"] * flat["pointer_time"],
            (1.0 + flat["enqueue_accesses"]) * flat["pointer_time"],
            flat["dequeue_accesses"] * flat["pointer_time"],
            flat["run_length"],
        ]
    ).round(DIGITS)
    keys, which = distinct(paces)
    memory = replace(spec.dram, traffic=RandomBlocks())
    load = spec.workload
    workload = type(load)(
        arrivals=modelled("workload.arrivals", load.arrivals),
        sizes=load.sizes,
        segment_bytes=load.segment_bytes,
    )
    sizes = tuple(int(size) for size in load.segment_law[0])
    blocks = float(np.max(spec.free_list.segments))
    tables = [
        table(
            Sample(dram=memory, workload=workload, blocks=blocks, run_length=float(run), pace=Pace(*pace)),
            sizes,
        )
        for *pace, run in keys.T.tolist()
    ]
    return Controlled(tables=tuple(tables), which=which)
