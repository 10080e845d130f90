"""The spec of a NUMA machine: ways, assignments, placements, files, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from qmodels import NumaMachine
from qmodels.noc import cxl_pool
from qmodels.systems.memory.numa_system import BlockWork, DmaEngine, NumaChip
from qmodels.systems.noc.patterns import RateMatrix
from validate import simulate


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


def one_flow(pool, source, target, rate, packet_bytes):
    rates = np.zeros((pool.topology.nodes,) * 2)
    rates[source, target] = rate
    matrix = RateMatrix(rates=tuple(map(tuple, rates.tolist())))
    return replace(pool, traffic=matrix, injection_rate=None, packet_bytes=packet_bytes)


@pytest.mark.parametrize(("attach", "switch", "lanes"), [(80, 90, 8), (70, 90, 16), (90, 115, 4)])
def test_an_idle_access_takes_what_was_published(attach, switch, lanes):
    pool = cxl_pool(3, 2, lanes=lanes, attach_ns=attach, switch_ns=switch)
    there = qm.solve(one_flow(pool, 1, 4, 1e-6, 0)).zero_load_latency
    back = qm.solve(one_flow(pool, 4, 1, 1e-6, 64)).zero_load_latency
    # An answer has four slots more than its header.
    both = there + back - 4 / pool.clock_ghz
    assert both == pytest.approx(attach + switch, abs=2 / pool.clock_ghz)


def test_every_host_reaches_every_device_through_the_switch():
    pool = cxl_pool(5, 3)
    assert all(pool.topology.route(h, d) == (h, 8, d) for h in range(5) for d in range(5, 8))
    assert len(pool.topology.links) == 16
    # Eight lanes of 32 GT/s are 32 GB/s each way, of which four slots in 68 bytes are data and headers.
    assert pool.clock_ghz * pool.link_width == pytest.approx(32 * 64 / 68)
    assert cxl_pool(5, 3, gigatransfers=16).clock_ghz == pytest.approx(pool.clock_ghz / 2)
    assert cxl_pool(2, 1, lanes=16, header_bytes=32).flits(64) == 6


def test_a_link_can_be_full_although_it_is_long():
    pool = one_flow(cxl_pool(2, 1), 0, 2, 0.19, 64)
    found = simulate(pool, replications=4)
    assert found.stable and found.max_utilization.best == pytest.approx(0.95, abs=0.03)
