"""Pointer accesses of an allocation and messages of the free-list spec."""

from __future__ import annotations

import numpy as np
import pytest

from qmodels.systems.packets.free_list import FreeList, allocation_accesses


def test_accesses_without_rejection_are_one_read():
    assert allocation_accesses(0) == 1


@pytest.mark.parametrize("alloc_trial_count", [2, 3, 4, 5])
def test_most_accesses_are_trials_and_one(alloc_trial_count):
    # A read for each rejected block, one write that links them to the tail, the read of the head taken.
    rejected = alloc_trial_count - 1
    assert allocation_accesses(rejected) == rejected + 1 + 1 == alloc_trial_count + 1


def test_accesses_grow_with_each_rejection():
    assert allocation_accesses(np.arange(5)).tolist() == [1, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"segments": 0}, "free_list.segments must be a whole number from 1 to 2147483647, got 0"),
        (
            {"segments": 2**31},
            "free_list.segments must be a whole number from 1 to 2147483647, got 2147483648",
        ),
        (
            {"alloc_trial_count": 0},
            "free_list.alloc_trial_count must be a whole number from 1 to 1024, got 0",
        ),
        (
            {"alloc_trial_count": 2.5},
            "free_list.alloc_trial_count must be a whole number from 1 to 1024, got 2.5",
        ),
        (
            {"small_packet_segments": -1},
            "free_list.small_packet_segments must be a whole number >= 0, got -1",
        ),
        ({"vms1_share": 1.5}, "free_list.vms1_share must be in"),
        ({"mean_run_length": 0.5}, "free_list.mean_run_length must be >= 1, got 0.5"),
        ({"mean_run_length": float("nan")}, "free_list.mean_run_length must be >= 1, got nan"),
        ({"enqueue_accesses": -1}, "free_list.enqueue_accesses must be finite and >= 0, got -1"),
        ({"dequeue_accesses": float("nan")}, "free_list.dequeue_accesses must be finite and >= 0, got nan"),
        (
            {"enqueue_packet_accesses": -1},
            "free_list.enqueue_packet_accesses must be finite and >= 0, got -1",
        ),
        (
            {"dequeue_packet_accesses": -1},
            "free_list.dequeue_packet_accesses must be finite and >= 0, got -1",
        ),
        ({"clock_ghz": 0}, "free_list.clock_ghz must be finite and > 0, got 0"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        FreeList(**arguments)


def test_a_fresh_list_is_one_run():
    assert FreeList(mean_run_length=float("inf")).mean_run_length == float("inf")


def test_vms1_keeps_its_share_only_beside_lists_for_small_packets():
    share = np.array([0.0, 0.25, 1.0])
    assert FreeList(segments=10, vms1_share=share).vms1_segments.tolist() == [10, 10, 10]
    split = FreeList(segments=10, vms1_share=share, small_packet_segments=2)
    assert split.vms1_segments.tolist() == [0, 2, 10]
