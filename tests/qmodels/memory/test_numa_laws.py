"""Parts of the NUMA model by themselves: bounds by hand, times of a block, extremes, shares of channels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import gamma

from qmodels import NumaMachine
from qmodels.memory.numa import _lateness, numa_bounds, solve_numa
from qmodels.memory.numa_network import (
    _block,
    _stays_in_step,
    _wait,
    access_time,
    in_phase,
    number_of_others,
    rotation_time,
    structure_of,
    turns,
)
from qmodels.systems.memory.numa_system import BlockWork, DmaEngine

FETCH, WRITE = 100 + 192 * 45, 100 + 64 * 45


def alone(**work):
    """Return a machine in which only core 0 works, 20 blocks."""
    return NumaMachine(work=BlockWork(core_steps=(20,) + (0,) * 15, **work))


@pytest.mark.parametrize("double", [True, False])
def test_bounds_of_one_core_by_hand(double):
    machine = alone(compute_cycles=7_000.0, double_buffering=double)
    found = numa_bounds(machine)
    commands, edge = 20 * (FETCH + WRITE), (FETCH + WRITE) * double
    assert found.lower == pytest.approx(
        {
            "computing": 20 * 7_000 + edge,
            "commands": commands + 20 * 7_000 * (not double),
            "channels": commands,
            "controllers": 20 * 256 * 35,
        }
    )
    # All one after the other, as with one buffer, and each command's turn.
    switch = machine.dma.switch_cycles
    assert found.upper == pytest.approx(20 * (7_000 + FETCH + WRITE + 2 * switch))
    assert found.overlap_speedup == pytest.approx((7_000 + FETCH + WRITE) / (FETCH + WRITE))
    assert found.low == max(found.lower.values()) == found.lower[found.limit]


def test_random_computing_raises_the_upper_bound_by_what_the_largest_may_exceed_the_mean():
    """Of k sums of n times of a standard deviation s: the root of (k - 1) / k times k n s^2."""
    machine = NumaMachine(work=BlockWork(compute_cycles=9_000.0, steps=50))
    random = replace(machine, work=replace(machine.work, compute_scv=0.5))
    more = numa_bounds(random).upper - numa_bounds(machine).upper
    assert more == pytest.approx(np.sqrt(15 * 50 * 0.5) * 9_000)
    assert numa_bounds(random).lower == numa_bounds(machine).lower
    one = alone(compute_cycles=9_000.0, compute_scv=0.5)
    assert numa_bounds(one).upper == numa_bounds(alone(compute_cycles=9_000.0)).upper


def test_channels_of_a_pool_share_all_commands():
    spread = NumaMachine(dma=DmaEngine(assignment="any", channels=4), work=BlockWork(steps=50))
    own = NumaMachine(dma=DmaEngine(assignment="enumerated", channels=4), work=BlockWork(steps=50))
    one = NumaMachine(dma=DmaEngine(assignment="enumerated", channels=1), work=BlockWork(steps=50))
    pooled, fixed, all_on_one = (numa_bounds(each).lower["channels"] for each in (spread, own, one))
    assert pooled <= fixed * (1 + 1e-9) and all_on_one == pytest.approx(4 * pooled)


@pytest.mark.parametrize(
    ("cores", "exact"), [(1, 0.0), (2, 0.56419), (5, 1.16296), (10, 1.53875), (16, 1.76599)]
)
def test_the_largest_of_normal_numbers(cores, exact):
    """H. L. Harter, Biometrika 48 (1961), table 1; Blom's approximation is 5 % high for two."""
    assert _lateness(cores) == pytest.approx(exact, rel=0.05)


@given(scv=st.sampled_from([1.0, 0.25, 0.04]), ratio=st.floats(0.05, 5.0))
def test_a_block_takes_the_longer_of_computing_and_transfer(scv, ratio):
    """Against the integral over the gamma law; with one buffer it takes both."""
    machine = NumaMachine(work=BlockWork(compute_cycles=1000.0, compute_scv=scv))
    parts = structure_of(machine, [0])
    computing, transfer = np.array([1000.0]), np.array([1000.0 * ratio])
    mean, deviation = _block(machine, parts, computing, transfer)
    law = gamma(1 / scv, scale=1000 * scv)
    times = transfer + np.linspace(0, 12_000, 4001)
    beyond = law.sf(times)
    exact = transfer + np.trapezoid(beyond, times)
    assert_allclose(mean, exact, rtol=1e-4)
    square = transfer**2 + 2 * np.trapezoid(times * beyond, times)
    assert_allclose(deviation, np.sqrt(square - exact**2), rtol=0.01, atol=1.0)
    assert_allclose(_stays_in_step(machine, parts, computing, transfer), law.cdf(transfer))
    single = replace(machine, work=replace(machine.work, double_buffering=False))
    mean, deviation = _block(single, parts, computing, transfer)
    assert_allclose([mean[0], deviation[0]], [1000 * (1 + ratio), 1000 * np.sqrt(scv)])
    assert _stays_in_step(single, parts, computing, transfer) == 0
    constant = replace(parts, scv=0.0)
    mean, deviation = _block(machine, constant, computing, transfer)
    assert (mean[0], deviation[0]) == (max(1000, 1000 * ratio), 0)
    assert _stays_in_step(machine, constant, computing, transfer) == 1


def test_waits_for_a_channel_and_for_a_pool():
    machine = NumaMachine(work=BlockWork(compute_scv=1.0))
    parts = structure_of(machine, [0, 1, 2])
    held, present = np.array([10.0, 20.0, 30.0]), np.array([1.0, 0.5, 0.0])
    same = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=bool)
    # Of one that always has a command all of it, of one that has for half of the time 3 / 8 of it.
    found = _wait(machine, parts, same, np.zeros(3), held, present)
    assert_allclose(found, [20 * 0.375, 10, 10 + 20 * 0.375])
    # Behind a pool of two only who finds two others waits, for half of one of their commands.
    pooled = replace(parts, pool=2)
    always = np.ones(3)
    assert_allclose(_wait(machine, pooled, same, np.zeros(3), held, always), held.mean() * 3 * 0.5 / 3)
    assert_allclose(_wait(machine, pooled, same, np.zeros(3), held, np.array([1.0, 0.0, 0.0])), 0)
    constant = replace(machine, work=BlockWork(compute_scv=0.0, double_buffering=False))
    found = _wait(constant, replace(parts, scv=0.0), same, np.array([100.0, 25.0, 0.0]), held, present)
    assert_allclose(found, [0, 15, 30])


@given(st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6))
def test_others_are_as_many_as_are_active(activity):
    law = number_of_others(np.array(activity)[:, None])[:, 0]
    assert_allclose(law.sum(axis=1), 1)
    assert_allclose(law @ np.arange(len(activity)), sum(activity) - np.array(activity), atol=1e-12)
    times = access_time(law, np.full(len(activity), 1e-9), 2.0)
    assert_allclose(times, 2 * (1 + sum(activity) - np.array(activity)))


def test_commands_of_cores_in_phase_and_what_they_turn():
    machine = NumaMachine(work=BlockWork(placement="all"))
    order = in_phase(machine, [0, 5])
    assert len(order) == 4 and all(len(step) == 4 for step in order)
    # Each fetches the next block and writes the last one, so two memories on; both cores alike.
    for core in (0, 5):
        fetched, written = (
            [m for step in order for c, k, m in step if (c, k) == (core, kind)] for kind in (0, 1)
        )
        assert sorted(fetched) == [0, 1, 2, 3] and np.roll(fetched, 2).tolist() == written
    found = turns(machine, [0])
    assert found.shape == (1, 2) and found.tolist() == [[1.0, 1.0]]
    assert turns(NumaMachine(work=BlockWork(placement="one")), [0, 5]).sum() == 0
    alone_there = rotation_time(machine, [[0]])
    assert np.isinf(alone_there[1:]).all()
    way = np.mean([machine.chip.access_cycles(0, memory) for memory in range(4)])
    assert alone_there[0] == pytest.approx(way)


def test_a_machine_with_nothing_to_write_only_computes_its_last_block():
    answer = solve_numa(alone(compute_cycles=30_000.0, write_bytes=0))
    assert answer.execution_time == pytest.approx(FETCH + 20 * 30_000, rel=1e-5)


def test_bytes_moved_and_busy_cores_follow_from_the_time():
    machine = NumaMachine(work=BlockWork(compute_cycles=20_000.0, steps=64))
    answer = solve_numa(machine)
    end, clock = answer.execution_time, machine.clock_ghz
    moved = 16 * 64 * (machine.work.read_bytes + machine.work.write_bytes)
    assert answer.bandwidth == pytest.approx(moved / end)
    assert answer.core_utilization == pytest.approx(64 * 20_000 / clock / end)
    accesses = machine.accesses_of_memories()
    assert_allclose(answer.controller_busy, accesses * machine.chip.controller_cycles / clock / end)
    assert answer.controller_utilization == max(answer.controller_busy)
    assert answer.core_time.max() == pytest.approx(end, rel=1e-3)
