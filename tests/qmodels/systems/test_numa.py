"""The spec of a NUMA machine: ways, assignments, placements, files, and what it refuses."""

from __future__ import annotations

import pytest

from qmodels import NumaMachine
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine, NumaChip


def test_factors_follow_from_the_route():
    """The published range 1.1 to 1.5, the same for the corresponding cores of all clusters."""
    chip = NumaChip()
    factors = [sorted(chip.numa_factor(core, memory) for memory in range(4)) for core in range(16)]
    remote = [factor for row in factors for factor in row[1:]]
    assert min(remote) == pytest.approx(1.1)
    assert max(remote) == pytest.approx(1.5)
    kinds = {tuple(round(factor, 9) for factor in row) for row in factors}
    assert all(sum(tuple(round(f, 9) for f in row) == kind for row in factors) >= 4 for kind in kinds)
    # Of the remote memories that of cluster 2 is the cheapest for cluster 0, as published.
    ways = [sum(chip.way_cycles(core, memory) for core in range(4)) for memory in range(4)]
    assert sorted(range(4), key=ways.__getitem__) == [0, 2, 1, 3]
    assert all(chip.way_cycles(core, 2) <= chip.way_cycles(core, 1) for core in range(4))


def test_a_matrix_replaces_the_route():
    """Factors as given, in units of the time over one router."""
    chip = NumaChip(core_nodes=(0, 1), memory_nodes=(0, 3), numa_factors=((1.0, 1.3), (1.2, 1.0)))
    assert chip.access_cycles(0, 1) == pytest.approx(1.3 * 40)
    assert chip.numa_factor(1, 0) == pytest.approx(1.2)
    assert chip.clusters == (0, 1)


def test_assignments_of_the_paper():
    """Pairs in the order of the cores, or the core's number modulo the channels."""
    assert DmaEngine().channels_of(16)[:4] == (0, 0, 1, 1)
    assert DmaEngine(assignment="enumerated").channels_of(16)[8:10] == (0, 1)
    assert DmaEngine(assignment="any").channels_of(3) == (-1, -1, -1)
    assert DmaEngine(channels=3).channels_of(4) == (0, 0, 1, 1)
    assert DmaEngine(assignment="custom", core_channels=(2, 0)).channels_of(2) == (2, 0)


def test_accesses_of_memories_count_every_block():
    """Also where a core does not go round its memories a whole number of times."""
    work = BlockWork(
        steps=5, read_bytes=130, write_bytes=64, global_loads=2, placement="all", core_steps=(5,) + (0,) * 15
    )
    found = NumaMachine(work=work).accesses_of_memories()
    assert found.tolist() == [2 * 6, 6, 6, 6]


def test_loads_make_computing_longer():
    """Scratchpad, cache and misses at their costs."""
    work = BlockWork(compute_cycles=100.0, scratchpad_loads=3, local_loads=10, local_miss_ratio=0.2)
    assert NumaMachine(work=work).own_cycles == pytest.approx(100 + 3 * 10 + 10 * (0.8 * 10 + 0.2 * 50))
