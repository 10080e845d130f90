"""Lists that run dry: against walks drawn, drained lists tried out, and the simulator."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import DataQueueing
from qmodels.allocator.data_queueing import solve_data_queueing
from qmodels.allocator.short_lists import ENUMERATED, drained_conflicts, starved_list
from qmodels.systems.packets.data_queueing import Allocation, DataMemory
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
from qmodels.traffic import fixed
from validate import simulate


@pytest.mark.parametrize(("trials", "busy"), [(1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2)])
def test_drained_lists_are_those_tried_out(trials, busy):
    banks, length = 3, ENUMERATED - busy
    conflicts = np.zeros(length)
    for order in product(range(banks), repeat=ENUMERATED):
        recent, listed = list(order[:busy]), list(order[busy:])
        while listed:
            left = len(listed)
            for _ in range(min(trials, left) - 1):
                if listed[0] in recent:
                    listed.append(listed.pop(0))
                else:
                    break
            bank = listed.pop(0)
            conflicts[left - 1] += bank in recent
            recent = [bank, *recent[:-1]]
    assert_allclose(
        drained_conflicts(banks=banks, trials=trials, busy=busy), conflicts / banks**ENUMERATED, rtol=1e-12
    )


@pytest.mark.parametrize("busy", [0, 9])
def test_windows_that_are_not_enumerated_count_as_independent(busy):
    random = 1 - (7 / 8) ** busy
    assert_allclose(drained_conflicts(banks=8, trials=3, busy=busy)[0], random)


@pytest.mark.parametrize("whole", [False, True])
def test_the_walk_is_that_of_packets_drawn(whole):
    sizes, asks, refused = np.array([1, 10, 24]), np.array([0.58, 0.34, 0.08]), 1 / 3
    dry = starved_list(
        segments=tuple(sizes.tolist()), offered=tuple(asks.tolist()), refused=refused, whole=whole
    )
    assert_allclose((dry.refused * asks) @ sizes, refused * (asks @ sizes))
    rng = np.random.default_rng(1)
    kept = asks * (1 - dry.refused)
    comes = 1 / (1 + kept.sum())  # one goes for each that stays
    events = 200_000
    arrives, new = rng.random(events) < comes, rng.choice(sizes, size=events, p=asks)
    old = rng.choice(sizes, size=events, p=kept / kept.sum())
    free, refusals, writes, given_up = 50, 0, np.zeros(3), 0
    for comes_now, size, leaves in zip(arrives, new, old, strict=True):
        if not comes_now:
            free += leaves
            continue
        takes = size if size <= free else 0 if whole else free
        for left in range(1, 4):
            writes[left - 1] += free - takes < left <= free
        if size > free:
            refusals, given_up = refusals + 1, given_up + takes
        else:
            free -= size
    # The walk drawn is not cut off. Measured: writes within 1.1 %, given up within 1.2 %.
    assert_allclose(dry.writes[:3], writes / refusals, rtol=0.03)
    assert_allclose(dry.given_up, given_up / refusals, rtol=0.03)


def overloaded(trials, load, admission="segment"):
    return DataQueueing(
        data=DataMemory(segments=4096, page_control=False),
        allocation=Allocation(alloc_trial_count=trials, vms1_size=4096, admission=admission),
        traffic=QueueTraffic(load_factor=load, input_ports=1, output_ports=1, input_speed=5.0),
    )


@pytest.mark.in_ci(1)
# Largest errors measured: conflicts 9.1 %, failures 2.0 %.
@pytest.mark.parametrize(("trials", "load"), [(2, 1.2), (3, 1.5), (5, 1.5)])
def test_a_list_that_runs_dry_against_the_simulator(trials, load):
    spec = overloaded(trials, load)
    simulated = simulate(spec, packets=60_000, replications=2).metrics
    model = solve_data_queueing(spec)
    assert_allclose(model.write_conflict_probability, simulated["write_conflict_probability"].best, rtol=0.12)
    assert_allclose(
        model.allocation_failure_probability, simulated["allocation_failure_probability"].best, rtol=0.04
    )


def test_packets_admitted_whole_run_their_list_dry_less_often():
    by_segment, whole = (
        solve_data_queueing(overloaded(4, 1.5, admission)).write_conflict_probability
        for admission in ("segment", "packet")
    )
    assert whole < 0.5 * by_segment


def test_packets_larger_than_what_is_followed_are_refused_by_their_size():
    spec = overloaded(2, 1.5)
    huge = DataQueueing(
        data=spec.data,
        allocation=spec.allocation,
        traffic=QueueTraffic(load_factor=1.5, sizes=fixed(bytes=64 * 600)),
    )
    answer = solve_data_queueing(huge)
    assert_allclose(answer.blocking_probability, answer.overflow_probability)
