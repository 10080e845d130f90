"""How transfers share a network: laws of the division, and cases that can be counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from qmodels.noc.message_rates import Transfer, even_parts, transfer_rates


def row_path(source: int, target: int) -> tuple[int, ...]:
    """Return the channels between nodes of a row: injection 100 + k, links 2 k (+ 1), ejection 200 + k."""
    step = 1 if target > source else -1
    links = [2 * k + (step < 0) for k in range(source, target, step)]
    return (100 + source, *links, 200 + target)


transfers = st.lists(
    st.builds(
        lambda ends, flits, extra, priority, circuit: Transfer(
            path=row_path(*ends), flits=float(flits), cycles=flits + extra, priority=priority, circuit=circuit
        ),
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda ends: ends[0] != ends[1]),
        st.integers(1, 5),
        st.floats(3, 60),
        st.integers(0, 7),
        st.just(False),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one.path[0],
)


@given(some=transfers)
def test_no_channel_carries_more_than_it_can(some):
    rates = transfer_rates(some)
    assert np.all(rates >= 0)
    assert np.all(rates <= [1 / one.cycles * (1 + 1e-12) for one in some])
    for channel in {channel for one in some for channel in one.path}:
        load = sum(r * one.flits for r, one in zip(rates, some, strict=True) if channel in one.path)
        assert load <= 1 + 1e-6


@given(some=transfers, seed=st.integers(0, 99))
def test_the_order_of_the_transfers_does_not_matter(some, seed):
    order = np.random.default_rng(seed).permutation(len(some))
    rates = transfer_rates(some)
    assert transfer_rates([some[k] for k in order]) == pytest.approx(rates[order], rel=1e-6, abs=1e-12)


@given(some=transfers)
def test_a_circuit_does_not_notice_the_others(some):
    circuit = replace(some[0], circuit=True)
    assert transfer_rates([circuit, *some[1:]])[0] == pytest.approx(1 / circuit.cycles)


@given(some=transfers)
def test_the_unit_of_time_does_not_matter(some):
    slower = [replace(one, flits=3 * one.flits, cycles=3 * one.cycles) for one in some]
    assert 3 * transfer_rates(slower, buffer_flits=24) == pytest.approx(transfer_rates(some), rel=1e-9)


def test_alone_nobody_waits():
    assert transfer_rates([Transfer(path=(0, 1), flits=4, cycles=20)])[0] == 1 / 20
    assert transfer_rates([]).size == 0


def test_apart_nobody_waits():
    pair = [Transfer(path=(k, k + 1), flits=4, cycles=20) for k in (0, 10)]
    assert transfer_rates(pair).tolist() == [1 / 20, 1 / 20]


def test_a_full_channel_is_used_up_and_shared_evenly():
    """Ten sources with an input each at the last switch: round robin gives a tenth to each."""
    rates = transfer_rates([Transfer(path=(k, 99), flits=4, cycles=12) for k in range(10)])
    assert rates * 4 == pytest.approx(np.full(10, 0.1), rel=1e-6)


def test_higher_priorities_leave_what_they_do_not_use():
    """Ten at 1/12: the first class asks for more than there is, the others get nothing."""
    first = [Transfer(path=(k, 99), flits=4, cycles=12, priority=0) for k in range(10)]
    rates = transfer_rates([*first, Transfer(path=(50, 99), flits=4, cycles=12)])
    assert np.sum(rates[:10]) * 4 == pytest.approx(1.0, rel=1e-3)
    assert rates[10] < 1e-3
    few = transfer_rates([*first[:1], *(Transfer(path=(k, 99), flits=4, cycles=12) for k in range(20, 29))])
    assert few[0] > 1.5 * few[1]


@given(wanted=st.lists(st.floats(0, 10), max_size=8), room=st.floats(0, 10))
def test_even_parts_are_max_min_fair(wanted, room):
    parts = even_parts(wanted, room)
    assert sum(parts) == pytest.approx(min(room, sum(wanted)))
    short = [part for part, want in zip(parts, wanted, strict=True) if part < want * (1 - 1e-9)]
    # Whoever gets less than it wants gets as much as anybody.
    assert all(part == pytest.approx(max(parts)) for part in short)


def test_two_that_meet_wait_for_the_rest_of_each_other_s_packets():
    """The equation of `transfer_rates`, solved for two alike, and put to two of different priorities."""
    flits, cycles = 10.0, 20.0
    one, other = (Transfer(path=(k, 99), flits=flits, cycles=cycles) for k in range(2))

    def rate(rest: float, before: float = 0.0) -> float:
        return 1 / (cycles + (1 + rest * flits / 2) * rest * flits**2 / 2 / (1 - before * flits))

    alike = brentq(lambda x: rate(x) - x, 0.0, 1 / cycles)
    assert transfer_rates([one, other]) == pytest.approx([alike, alike], rel=2e-3)
    first, second = transfer_rates([replace(one, priority=0), other])
    assert [first, second] == pytest.approx([rate(second), rate(first, first)], rel=2e-3)


def test_inputs_of_a_switch_share_evenly_however_many_transfers_come_by_each():
    """Two from one source get half of the channel together, one from another source the other half."""
    rates = transfer_rates([Transfer(path=(source, 99), flits=4, cycles=5) for source in (0, 0, 1)])
    assert rates * 4 == pytest.approx([0.25, 0.25, 0.5])
