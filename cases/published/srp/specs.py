"""The 16-SRP case: the chip, image blurring on it, and the benchmarks of channels and congestion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qmodels.systems.memory.numa import NumaMachine
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine, NumaChip

ALGORITHMS = ("non-optimal", "optimal")
PLACEMENTS = ("one", "clustered", "all")
ROW_BYTES = 4096
ROWS = 4096
READ_ROWS = {"non-optimal": 3, "optimal": 1}
"""Rows fetched for one that is written: the results are a quarter and a half of all transfers."""
HOPS = 7
"""Time of a controller in hops, which gives the NUMA factors 1.1 and 1.5 at once."""
BENCHMARK_BYTES, BENCHMARK_STEPS = 16_384, 640
LOADS = 20_000
"""Loads of the latency benchmark."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The three times that are fitted to one row of Table 6.1."""

    controller_cycles: float  # of one access of 64 bytes [cycles]
    compute_per_byte: float  # computing of a core per byte moved [cycles / byte]
    switch_cycles: float  # of a channel that turns to another memory [cycles]


def chip(costs: Costs) -> NumaChip:
    """Return the chip with the fitted time of its controllers."""
    return NumaChip(
        controller_cycles=costs.controller_cycles,
        hop_cycles=costs.controller_cycles / HOPS,
        scratchpad_cycles=2 * costs.controller_cycles / HOPS,
        local_cycles=2 * costs.controller_cycles / HOPS,
        local_miss_cycles=10 * costs.controller_cycles / HOPS,
    )


def blurring(costs: Costs, algorithm: str, placement: str) -> NumaMachine:
    """Return image blurring with the data in one memory, clustered, or in all memories."""
    read = READ_ROWS[algorithm] * ROW_BYTES
    return NumaMachine(
        chip=chip(costs),
        dma=DmaEngine(switch_cycles=costs.switch_cycles),
        work=BlockWork(
            steps=ROWS // 16,
            compute_cycles=costs.compute_per_byte * (read + ROW_BYTES),
            read_bytes=read,
            write_bytes=ROW_BYTES,
            placement=placement,
        ),
    )


def benchmark(
    costs: Costs, memories: Sequence[int | Sequence[int]], *, cores: Sequence[int], assignment: str = "paired"
) -> NumaMachine:
    """Return the paper's benchmark: some cores fetch 10 MB each, 16 kB a time, and compute nothing.

    ``memories``: the memory, or the memories in turn, of each of the 16 cores; ``cores``: the cores that
    fetch; ``assignment``: of cores to channels.
    """
    rows = tuple((one,) if isinstance(one, int) else tuple(one) for one in memories)
    work = BlockWork(
        core_steps=tuple(BENCHMARK_STEPS if core in cores else 0 for core in range(16)),
        compute_cycles=0.0,
        read_bytes=BENCHMARK_BYTES,
        write_bytes=0,
        placement="per-core",
        memories=rows,
    )
    dma = DmaEngine(assignment=assignment, switch_cycles=costs.switch_cycles)
    return NumaMachine(chip=chip(costs), dma=dma, work=work)


def loads(costs: Costs, core: int, memory: int) -> NumaMachine:
    """Return the paper's latency benchmark: one core loads from one memory, all others idle."""
    machine = benchmark(costs, [memory] * 16, cores=[core])
    steps = tuple(int(k == core) for k in range(16))
    return replace(machine, work=replace(machine.work, core_steps=steps, read_bytes=64, global_loads=LOADS))
