"""Refused packets: the fluid limit, and the diffusion against a walk between two walls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.allocator.stored import StoredPackets, list_overflow, overflow_metrics, refused_fraction


@pytest.mark.parametrize("load", [0.9, 1.0, 1.1])
def test_against_the_stationary_law_of_a_walk(load):
    # A slot brings 2 segments or none, or 1 (so that the variance is 1) and takes one away.
    blocks, lazy = 60, 0.5
    up, down = lazy * load / 2, lazy * (2 - load) / 2
    weights = (up / down) ** np.arange(blocks + 1.0)
    refused = up * weights[-1] / weights.sum()
    mean_up = lazy * (load - 1.0)
    variance = up + down - mean_up**2
    diffusion = refused_fraction(load=1 + mean_up, blocks=blocks + 1, variability=variance) * (1 + mean_up)
    # A step of the walk is a small one of the diffusion: measured within 5 %.
    assert_allclose(diffusion, refused, rtol=0.06)


@given(st.floats(1.05, 3.0), st.floats(1e5, 1e7), st.floats(1.0, 100.0))
def test_overload_refuses_the_excess(load, blocks, variability):
    assert_allclose(
        refused_fraction(load=load, blocks=blocks, variability=variability), 1 - 1 / load, rtol=1e-9
    )


@given(st.floats(0.2, 3.0), st.floats(0.0, 1.0), st.floats(0.0, 1e5), st.floats(1.0, 1e5))
def test_refusals_are_shares_and_add_up(load, share, large, small):
    one = list_overflow(
        load=load, large_share=share, large_blocks=large, small_blocks=small, variability=20.0
    )
    parts = share * one.large_probability + (1 - share) * one.small_probability
    assert_allclose(parts, one.overflow_probability, atol=1e-9)
    for value in (one.large_probability, one.small_probability, one.small_empty_probability):
        assert 0.0 <= value <= 1.0
    if load > 1:
        assert one.overflow_probability >= 1 - 1 / load - 1e-9


@given(st.floats(0.5, 2.0), st.floats(10.0, 1e4), st.floats(1.1, 5.0))
def test_more_room_refuses_less(load, blocks, factor):
    few = refused_fraction(load=load, blocks=blocks, variability=10.0)
    assert refused_fraction(load=load, blocks=factor * blocks, variability=10.0) <= few + 1e-12


def test_the_class_with_room_is_admitted_whole():
    one = list_overflow(load=1.2, large_share=0.5, large_blocks=1e5, small_blocks=9e5, variability=10.0)
    assert one.small_probability == 0.0
    assert_allclose(one.large_probability, (0.6 - 0.4) / 0.6, rtol=1e-9)
    both = list_overflow(load=2.0, large_share=0.5, large_blocks=4e5, small_blocks=6e5, variability=10.0)
    assert_allclose([both.large_probability, both.small_probability], [0.6, 0.4], rtol=1e-9)


def test_a_class_without_blocks_is_refused():
    one = list_overflow(load=0.8, large_share=0.5, large_blocks=0.0, small_blocks=1e5, variability=10.0)
    assert one.large_probability == 1.0
    assert one.small_probability == 0.0


@pytest.mark.parametrize("large_share", [0.0, 0.5, 0.8])
def test_small_packets_have_used_up_their_first_list_where_the_backlog_is_long(large_share):
    """The backlog of a reflected diffusion is exponential; VMS2 has half of the small packets' blocks."""
    load, small, variability = 0.9, 400.0, 30.0
    one = list_overflow(
        load=load, large_share=large_share, large_blocks=1e6, small_blocks=small, variability=variability
    )
    used_up = small / 2 / (1 - large_share)  # of both classes, in proportion to what they offer
    assert_allclose(one.small_empty_probability, np.exp(-used_up * 2 * (1 - load) / variability), rtol=1e-12)


def test_packets_of_one_segment_lose_it_alone_or_are_refused_alike():
    """Their lists see the same requests, whatever else is offered."""
    overflow = list_overflow(load=1.3, large_share=0.9, large_blocks=4e3, small_blocks=30.0, variability=9.0)
    lost = overflow.small_probability
    assert 0.1 < lost < 1 and 0 < overflow.small_empty_probability < 1
    offered, refused = np.array([0.2, 0.8]), np.array([lost, 0.1])
    kept = offered * (1 - refused)
    alone, whole = (
        overflow_metrics(
            StoredPackets(
                segments=np.array([1, 12]),
                share=kept / kept.sum(),
                small=np.array([True, False]),
                overflow=overflow,
                offered=offered,
                refused=refused,
                dry=None,
                lossy=None,
                segments_alone=how,
            ),
            head_busy=0.125,
        )
        for how in (True, False)
    )
    for name in ("vms2_overflow_probability", "vms3_overflow_probability"):
        assert_allclose(alone[name], whole[name])
    # VMS2 is asked for every segment, VMS3 for those that find VMS2 empty or its head on a busy bank.
    empty = overflow.small_empty_probability
    asked = lost + (1 - lost) * (empty + (1 - empty) * 0.125)
    assert_allclose(alone["vms2_overflow_probability"], lost + (1 - lost) * empty)
    assert_allclose(alone["vms3_overflow_probability"], lost / asked)
