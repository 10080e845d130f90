"""Lists that are short, lossy or dry: the chain against ports and packets tried out, and the simulator."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from cases.published.paper import published_case
from optimize import replace_fields
from qmodels import DataQueueing, solve
from qmodels.allocator.data_queueing import solve_data_queueing
from qmodels.allocator.large_blocks import read_order_heads
from qmodels.allocator.packet_list import independent_heads, packet_list, pattern_heads
from qmodels.allocator.short_lists import ENUMERATED, drained_conflicts, lossy_list, starved_list
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, LineRate, QueueTraffic
from qmodels.traffic import fixed
from validate import simulate

SEGMENT_CASE = published_case("dqm").names["varied"](
    "ports that take turns by the segment, Poisson arrivals of IMIX"
)
SIZES = {"segments": (1, 10, 24), "offered": (7 / 12, 4 / 12, 1 / 12)}


def tried_out(speed: float, overload: float, packets: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Return just read and later writes at lengths 1 to 4, and losses, per write, port by port."""
    rng = np.random.default_rng(1)
    sizes = rng.choice(SIZES["segments"], size=packets, p=SIZES["offered"])
    times = np.cumsum(rng.exponential(size=packets))
    times *= sizes.sum() / (1 + overload) / times[-1]
    length, read, free, after_read = 200, 0.0, 0.0, False
    just_read, later, writes, lost = np.zeros(5), np.zeros(5), 0, 0
    for arrival, size in zip(times, sizes, strict=True):
        start = max(arrival, free)
        for k in range(size):
            while read <= start + k / speed:
                length, read, after_read = length + 1, read + 1.0, True
            if length == 0:
                lost += 1
                continue
            if length < 5:
                (just_read if after_read else later)[length] += 1
            length, writes, after_read = length - 1, writes + 1, False
        free = start + size / speed
    return just_read[1:] / writes, later[1:] / writes, lost / writes


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("speed", "overload"), [(1.66, 0.06), (3.0, 0.06), (5.0, 0.15)])
def test_short_lists_are_those_tried_out(speed, overload):
    just_read, later, lost = tried_out(speed, overload, 60_000)
    found = lossy_list(**SIZES, refused=lost / (1 + lost), input_ports=1, input_speed=speed, longest=4)
    # Measured: within 3 % of the commonest, 6 % of the others.
    assert_allclose(found.just_read[0], just_read[0], rtol=0.05)
    assert_allclose([*found.just_read[1:], *found.later], [*just_read[1:], *later], rtol=0.15)


@given(
    speed=st.floats(1.05, 12.0),
    refused=st.floats(1e-5, 0.2),
    ports=st.integers(1, 4),
    small=st.integers(1, 6),
    large=st.integers(7, 40),
)
def test_shares_are_shares_and_grow_with_the_losses(speed, refused, ports, small, large):
    law = {"segments": (small, large), "offered": (0.5, 0.5), "input_ports": ports, "input_speed": speed}
    found = lossy_list(**law, refused=refused, longest=5)
    every = np.concatenate((found.just_read, found.later))
    assert (every >= 0).all() and every.sum() <= 1 + 1e-9
    less = lossy_list(**law, refused=refused / 2, longest=5)
    assert less.just_read[0] <= found.just_read[0] * (1 + 1e-9)


def test_long_packets_lose_all_but_one_write_a_read():
    """(load - 1) / (speed - 1) of the writes, as long as an input is at work.

    Also where an input is hardly faster than the output: more waits there than is followed, and it was none.
    """
    law = ((1.25, 0.02, 60), (2.0, 0.04, 60), (4.0, 0.05, 60), (1.08, 0.02, 6), (1.05, 0.01, 60))
    for speed, overload, size in law:
        found = lossy_list(
            segments=(size,),
            offered=(1.0,),
            refused=overload / (1 + overload),
            input_ports=1,
            input_speed=speed,
            longest=1,
        )
        assert_allclose(found.just_read[0], overload / (speed - 1), rtol=0.05)


def test_inputs_no_faster_than_the_outputs_leave_the_list_long():
    found = lossy_list(**SIZES, refused=0.01, input_ports=1, input_speed=0.9, longest=3)
    assert not found.just_read.any() and not found.later.any()


@given(
    trials=st.integers(1, 9),
    banks=st.sampled_from([2, 4, 8, 16]),
    chances=st.tuples(*[st.floats(0.0, 1.0)] * 5),
)
def test_heads_are_probabilities_that_fall(trials, banks, chances):
    names = ("other_access", "access_within", "access_again", "other_packet", "same_packet")
    heads, adjacent = read_order_heads(banks=banks, trials=trials, **dict(zip(names, chances, strict=True)))
    assert len(heads) == trials + 1 and heads[0] == 1
    assert (np.diff(heads) <= 1e-12).all() and (heads >= 0).all() and 0 <= adjacent <= 1


def test_one_trial_meets_any_bank():
    heads, adjacent = read_order_heads(
        banks=8,
        trials=1,
        other_access=0.6,
        access_within=0.6,
        access_again=0.3,
        other_packet=0.2,
        same_packet=0.8,
    )
    assert_allclose([heads[1], adjacent], 1 / 8, rtol=1e-6)


def lossy(**changes: object) -> DataQueueing:
    return replace_fields(SEGMENT_CASE, changes)


@pytest.mark.parametrize("trials", [1, 2, 3, 5])
def test_below_overload_page_control_saves_nothing(trials):
    with_page, without = (
        solve(lossy(load_factor=0.9, page_control=control, alloc_trial_count=trials))
        for control in (True, False)
    )
    assert_allclose(with_page.write_conflict_probability, without.write_conflict_probability, rtol=2e-3)
    assert with_page.allocation_failure_probability < 1e-9


def test_page_control_saves_the_writes_to_the_block_just_read():
    saved = [
        solve(lossy(page_control=False, alloc_trial_count=trials)).write_conflict_probability
        - solve(lossy(alloc_trial_count=trials)).write_conflict_probability
        for trials in (1, 2, 3, 5)
    ]
    share = solve(lossy()).write_busy_probability - solve(lossy()).write_conflict_probability
    assert_allclose(saved, share, rtol=0.15)
    assert_allclose(share, (1.025 - 1) / (1.66 - 1), rtol=0.05)


def test_a_stack_gives_each_block_at_once():
    """A read's block lies on top: without page control every write right after one meets its bank."""
    for trials, rtol in ((1, 0.05), (2, 0.25)):
        spec = lossy(policy="lifo", page_control=False, load_factor=0.95, alloc_trial_count=trials)
        found = simulate(spec, packets=20_000, replications=2).write_conflict_probability.best
        assert_allclose(solve(spec).write_conflict_probability, found, rtol=rtol)


def test_small_packets_lists_and_all_policies_are_solved():
    for policy in ("lists", "bank-lists", "bitmap", "lifo"):
        small = {"small_packet_segments": 1, "vms1_size": 3000} if policy == "lists" else {}
        answer = solve(lossy(policy=policy, **small))
        for name, value in answer.metrics.items():
            assert np.isfinite(value) and value >= 0, (policy, name)
            assert not name.endswith("_probability") or value <= 1, (policy, name)
        assert_allclose(answer.allocation_accesses.sum(), 1.0)


BASE = published_case("dqm").names["base"]()
CONFLICTS = ("write_conflict_probability", "read_conflict_probability")


@st.composite
def packets(draw):
    sizes = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=4)))
    weights = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=len(sizes), max_size=len(sizes))))
    return tuple(sizes), tuple((weights / weights.sum()).tolist())


@given(law=packets(), load=st.floats(1.02, 1.6))
def test_what_is_not_lost_is_what_is_read(law, load):
    """In steady overload 1 - 1 / load of the segments are lost, one list or several, whatever the sizes."""
    sizes, offered = law
    found = packet_list(sizes=sizes, offered=offered, largest_other=0, load=load, share=1.0)
    kept = found.stored.sum(axis=0) @ np.arange(found.stored.shape[1])
    assert_allclose(kept / np.dot(sizes, offered), 1 / load, rtol=0.04)  # of some tens of packets counted
    assert_allclose((found.first_after_read + found.first + found.within + found.final).sum(), 1.0)
    assert_allclose(found.stored.sum(axis=1)[list(sizes)], offered, rtol=0.05)
    refused = found.refused(np.array(sizes))
    assert np.all((0 <= refused) & (refused <= 1)) and np.all(np.diff(refused) < 1e-9)


@settings(max_examples=6)
@given(banks=st.integers(2, 16), mean=st.floats(1.5, 8), trials=st.integers(1, 3))
def test_heads_of_short_lists(banks, mean, trials):
    alike = 1 / banks if trials == 1 else 0.02
    heads = pattern_heads(banks=banks, trials=trials, single=0.5, mean=mean, alike=alike, alike_last=alike)
    simple = independent_heads(banks=banks, trials=trials, busy=1)
    assert np.all(np.diff(heads, axis=2) <= 1e-12)
    # The only block there is, just read, is on the busy bank; of no list more heads are tried than it has.
    assert_allclose(heads[1, 1, 1], 1.0)
    assert np.all(heads[:, 1:5][simple[:, 1:5] == 0] == 0)
    if trials == 1:  # without rejections blocks are random
        assert_allclose(heads[0, 1:5, 1], 1 / banks, atol=1e-6)


@pytest.mark.in_ci(3)
@pytest.mark.parametrize(
    "change",
    [
        {"alloc_trial_count": 1},
        {"alloc_trial_count": 4},
        {"alloc_trial_count": 2, "page_control": False},
        {"alloc_trial_count": 2, "load_factor": 1.1, "banks": 16},
        {"alloc_trial_count": 3, "small_packet_segments": 2, "vms1_size": 3072},
    ],
)
def test_model_beside_simulation(change):
    """Within half a point, for the published reading and for what differs from it."""
    spec = replace_fields(BASE, change)
    model, simulated = solve(spec), simulate(spec, packets=150_000, replications=2, warm_up=0.4)
    assert not model.validated and not model.error
    for name in CONFLICTS:
        assert abs(model[name] - simulated[name].best) < 0.005, name
    # Where both lists run dry, which of them loses more wanders slowly.
    for name in ("allocation_failure_probability", "blocking_probability")[: 2 - ("vms1_size" in change)]:
        assert abs(model[name] - simulated[name].best) < 0.003, name


@pytest.mark.parametrize("change", [{"input_ports": 2}, {"busy_accesses": 2}, {"service": "arrival-order"}])
def test_other_systems_are_doubted(change):
    def doubted(spec):
        return [text for text, where in solve(spec).doubts.items() if "whole packets" in text and where]

    assert doubted(replace_fields(BASE, change)) and not doubted(BASE)
    assert not doubted(replace_fields(BASE, change | {"load_factor": 0.9}))


def test_long_lists_have_conflicts_at_the_first_read_of_a_packet_alone():
    """Below overload trials keep a packet's blocks apart: of its n reads one meets a random bank."""
    spec = replace_fields(BASE, {"alloc_trial_count": 4, "load_factor": 0.9})
    segments, share = spec.traffic.segment_law(64)
    expected = 1 / 8 / float(segments @ share)
    assert isinstance(spec.traffic.arrivals, LineRate)
    assert abs(solve(spec)["read_conflict_probability"] - expected) < 0.003


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
