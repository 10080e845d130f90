"""Parts of the DRAM model by themselves: laws of latencies, limits, patterns by counting, units, validity."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import dram
from qmodels.memory import RandomBlocks, StridedBlocks
from qmodels.memory.dram.access_pattern import SAMPLE, access_pattern
from qmodels.memory.dram.channel_waits import channel_waits
from qmodels.memory.dram.command_times import SERVED, Steps
from qmodels.memory.dram.limits import bank_times, binding, bus_time, channel_limits, refresh_time
from qmodels.memory.dram.mixture import Kind, _directions, _mean_waits, mixed_waits, packets_alone, pure_waits
from qmodels.memory.dram.order_waits import _asymptotic_variance, in_order_banks, ready_first_banks
from qmodels.memory.dram.packet_waits import packet_times
from qmodels.memory.dram.refresh_waits import used_since_refresh
from qmodels.memory.dram.solve import grid, latency_law, mixture, quantiles, solve_dram
from qmodels.memory.dram.stream_waits import Paths, StreamTimes, _weights
from qmodels.memory.dram.write_queue import Directions, ReadVisits, Turns, refreshed_writes, write_queue
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved
from qmodels.systems.memory.dram_system import Packets
from qmodels.systems.memory.dram_timing import abstract

DDR4 = dram("DDR4-3200")
QUIET = dram("DDR4-3200", t_refi=0, t_rfc=0)
BANKS = replace(
    dram("DDR4-3200"), timing=abstract(burst=4, bank_busy=8), geometry=DramGeometry(groups=1, banks=8)
)


def at(spec, rate, **traffic):
    return replace(spec, traffic=RandomBlocks(arrival_rate=rate, **traffic))


@given(
    wait=st.floats(0.1, 30.0),
    longest=st.floats(2.0, 60.0),
    chance=st.floats(0.0, 1.0),
    last=st.floats(1.0, 300.0),
    hits=st.floats(0.0, 1.0),
    cell=st.sampled_from([1, 4]),
)
def test_a_latency_has_the_moments_of_its_parts(wait, longest, chance, last, hits, cell):
    """A geometric number of uniform times, a uniform delay, and a row that some open."""
    parts = {"waits": [(wait, longest)], "delays": [(chance, last)], "fixed": 20.0, "hits": hits, "row": 40.0}
    law = latency_law(**parts, cell=cell)
    times = np.arange(law.size) * cell
    number = wait / (longest / 2)
    mean = 20 + (1 - hits) * 40 + wait + chance * last / 2
    variance = number * longest**2 / 12 + number * (1 + number) * longest**2 / 4
    variance += chance * last**2 / 3 - (chance * last / 2) ** 2 + hits * (1 - hits) * 1600
    assert_allclose(law.sum(), 1, rtol=1e-6)
    assert_allclose(law @ times, mean, rtol=1e-5)
    # What falls between two cells is spread over both.
    assert_allclose(law @ (times - mean) ** 2, variance, rtol=1e-3, atol=(number + 2) * cell**2 / 4 + 0.1)
    assert grid(**parts) == 1
    assert 1 << 20 > grid(**parts | {"fixed": 1e7}) * (1 << 16) / 16e7 * (1 << 16) > 1 << 15


def test_laws_are_mixed_by_their_shares_and_give_quantiles():
    both = mixture([(0.25, np.array([0.0, 1.0])), (0.75, np.array([0.5, 0.0, 0.0, 0.5]))])
    assert_allclose(both, [0.375, 0.25, 0.0, 0.375])
    found = quantiles(lambda k: (both, 4), np.array([True, False]), (0.3, 0.5, 0.9))
    assert [row.tolist() for row in found] == [[0.0, np.inf], [4.0, np.inf], [12.0, np.inf]]


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_a_refresh_waits_for_the_row_cycle_before(policy):
    """Poisson row commands: the last one is an exponential time ago."""
    spec, t = replace(DDR4, page_policy=policy), DDR4.timing
    rates = np.array([1e-9, 0.01, 0.05, 1e3])
    rng = np.random.default_rng(1)
    ago = rng.exponential(size=200_000)
    rest = np.array([np.maximum(t.t_rc - ago / rate, 0.0).mean() for rate in rates])
    expected = t.t_rfc + (rest if policy == "closed" else np.maximum(rest, t.t_rp))
    assert_allclose(refresh_time(spec, rates), expected, rtol=2e-3)
    assert refresh_time(replace(QUIET, page_policy=policy), 0.01) == 0


def test_rows_are_open_where_their_bank_was_used_since_the_refresh():
    rates = np.array([1e-12, 1e-4, 1.0])
    since = (np.arange(4000) + 0.5) / 4000 * DDR4.timing.t_refi
    expected = [(1 - np.exp(-rate * since)).mean() for rate in rates]
    assert_allclose(used_since_refresh(DDR4, rates), expected, atol=1e-4)
    assert used_since_refresh(QUIET, rates) == 1


@given(hits=st.floats(0.0, 1.0), writes=st.floats(0.0, 1.0))
def test_times_of_a_bank_are_a_mixture_of_pairs(hits, writes):
    traffic = RandomBlocks(row_hit_probability=hits, write_fraction=writes)
    spec = replace(QUIET, scheduler="in-order", traffic=traffic)
    t, pattern = spec.timing, access_pattern(spec)
    assert pattern.row_hit_ratio == hits
    mean, square = bank_times(spec, pattern)
    assert square >= mean**2 * (1 - 1e-12)
    ends = {
        (0, 0): t.read_cycle, (0, 1): t.write_cycle, (1, 0): t.t_ccd_l, (1, 1): t.t_ccd_l,
    }  # fmt: skip
    for (h, w), time in ends.items():
        pure = replace(spec, traffic=RandomBlocks(row_hit_probability=float(h), write_fraction=float(w)))
        assert bank_times(pure, access_pattern(pure)) == (time, time**2)
    # Halves of both: pairs of two that open rows, of one that does before or after a hit, and of hits.
    half = replace(spec, traffic=RandomBlocks(row_hit_probability=0.5))
    closes = t.t_rcd + t.t_rp + t.t_ccd_l, t.t_rtp
    assert_allclose(bank_times(half, access_pattern(half))[0], (t.read_cycle + sum(closes) + t.t_ccd_l) / 4)


@given(hits=st.floats(0.0, 1.0), writes=st.floats(0.0, 1.0))
def test_hits_among_writes_are_the_same_for_either_direction(hits, writes):
    found, other = (
        access_pattern(
            replace(DDR4, traffic=RandomBlocks(row_hit_probability=hits, write_fraction=w))
        ).row_hit_ratio
        for w in (writes, 1 - writes)
    )
    assert_allclose(found, other, rtol=1e-9, atol=1e-12)
    # Runs are cut by the other direction, hits of its own stay.
    assert hits * (writes**2 + (1 - writes) ** 2) - 1e-12 <= found <= hits + 1e-12


@pytest.mark.parametrize("page_policy", ["open", "closed"])
@pytest.mark.parametrize("stride", [1, 3, 64])
def test_a_stream_is_counted_access_by_access(stride, page_policy):
    plan = Interleaved(step=2, bank_step=4)
    spec = dram(
        "DDR4-3200",
        channels=3,
        page_policy=page_policy,
        address_map=plan,
        traffic=StridedBlocks(stride=stride),
    )
    place = plan.locate(np.arange(SAMPLE) * stride, spec.geometry)
    rows, last, channels, banks, groups = {}, {}, np.zeros(3), {}, {}
    hits = repeats = 0
    for channel, bank, row in zip(
        *(np.asarray(x).tolist() for x in (place.channel, place.bank, place.row)), strict=True
    ):
        group = channel, bank // spec.geometry.banks
        hits += rows.get((channel, bank)) == row
        repeats += last.get(channel) == group
        rows[channel, bank], last[channel] = row, group
        channels[channel] += 1
        banks[channel, bank] = banks.get((channel, bank), 0) + 1
        groups[group] = groups.get(group, 0) + 1
    found = access_pattern(spec)
    assert_allclose(found.channel_share, channels / SAMPLE)
    assert_allclose(found.bank_share, max(banks.values()) / channels.max())
    assert_allclose(found.group_share, max(groups.values()) / channels.max())
    assert_allclose(found.row_hit_ratio, 0 if page_policy == "closed" else hits / SAMPLE, atol=1e-3)
    assert_allclose(found.group_repeat, repeats / SAMPLE, atol=1e-3)


def test_channels_that_are_alike_are_told_once():
    pattern = replace(
        access_pattern(dram("DDR4-3200", channels=4)), channel_share=np.array([0.3, 0.2, 0.0, 0.2, 0.3])
    )
    found = pattern.channels(alike=True)
    assert [(number, share) for number, share, _ in found] == [(1, 0.2), (0, 0.3)]
    assert_allclose([of_all for _, _, of_all in found], [0.4, 0.6])
    each = pattern.channels(alike=False)
    assert [number for number, _, _ in each] == [0, 1, 3, 4] and all(
        share == of_all for _, share, of_all in each
    )


def test_a_refresh_takes_its_share_of_what_a_rank_sustains():
    for ranks in (1, 2):
        quiet, spec = replace(QUIET, geometry=replace(QUIET.geometry, ranks=ranks)), None
        spec = replace(quiet, timing=DDR4.timing)
        plain, found = (channel_limits(one, access_pattern(one)) for one in (quiet, spec))
        assert {name: value for name, value in found.items() if name != "refresh"} == plain
        share = refresh_time(spec, min(plain.values()) / ranks) / spec.timing.t_refi
        bus = plain["bus"] * (1 - share if ranks == 1 else 1)
        rest = min(value for name, value in plain.items() if name != "bus") * (1 - share)
        assert_allclose(found["refresh"], min(bus, rest))
        name, top = binding(found)
        assert top == found["refresh"] and name == min(plain, key=plain.get)
        assert bus_time(spec) == spec.timing.burst + (spec.timing.t_rtrs / 2 if ranks == 2 else 0)


def test_one_bank_that_is_used_rarely_waits_as_in_md1():
    """Of many banks every pair meets at the bus, one in so many at its bank."""
    for solve in (in_order_banks, ready_first_banks):
        for busy, banks in ((20, 1), (20, 10), (80, 1), (80, 10)):
            found = solve(arrival_rate=1e-6, burst=4, bank_busy=busy, banks=banks).mean_waiting_time
            assert_allclose(found, 1e-6 * (16 + (busy**2 - 16) / banks) / 2, rtol=1e-3)
    found = ready_first_banks(arrival_rate=0.01, burst=4, bank_busy=20, banks=10)
    assert_allclose(found.conflict_probability, 0.01 * 20 / 10)
    assert found.utilization == pytest.approx(0.04)


@pytest.mark.parametrize("busy", [8, 20, 30, 80])
def test_one_bank_in_order_is_md1(busy):
    """There its accesses come one after the other, each for the whole time that the bank is busy."""
    found = in_order_banks(arrival_rate=0.5 / busy, burst=4, bank_busy=busy, banks=1)
    assert_allclose([found.max_rate, found.mean_waiting_time], [1 / busy, busy / 2])


def tried_out(banks, hits, slot, busy, rate=np.inf, accesses=30_000):
    """Return how many accesses a cycle go out in order, the share that their bank delays, and their wait."""
    rng = np.random.default_rng(1)
    free, bus, late, wait = [0.0] * banks, 0.0, 0, 0.0
    arrivals = np.cumsum(rng.exponential(1 / rate, accesses)) if rate < np.inf else np.zeros(accesses)
    drawn = rng.integers(banks, size=accesses).tolist(), rng.random(accesses) < hits, arrivals.tolist()
    for bank, hit, come in zip(*drawn, strict=True):
        turn = max(bus, come)
        start = turn if hit else max(turn, free[bank])
        late += start > turn
        wait += start - come
        bus, free[bank] = start + slot, start + busy
    return accesses / bus, late / accesses, wait / accesses


@pytest.mark.parametrize(
    ("banks", "hits", "busy"),
    [(1, 0.5, 20), (2, 0.4, 20), (4, 0.5, 22), (8, 0.6, 12), (4, 0.0, 24), (4, 0.3, 60)],
)
def test_row_hits_of_few_banks_are_those_tried_out(banks, hits, busy):
    """A hit does not wait for its bank, which is in use anew from then on, and not twice."""
    rate, late, _ = tried_out(banks, hits, 4, busy)
    found = in_order_banks(arrival_rate=9.0, burst=4, bank_busy=busy, banks=banks, row_hit_probability=hits)
    assert_allclose(found.max_rate, rate, rtol=0.01)
    assert_allclose(found.conflict_probability, late, atol=0.01)


@pytest.mark.parametrize("load", [0.3, 0.8])
@pytest.mark.parametrize(("banks", "hits", "busy"), [(4, 0.0, 8), (2, 0.5, 7), (3, 0.3, 18)])
def test_waits_and_conflicts_in_order_are_those_tried_out(banks, hits, busy, load):
    """Exact for banks that are busy for two bursts at most, whose wait is that of M/G/1."""
    here = {"burst": 4, "bank_busy": busy, "banks": banks, "row_hit_probability": hits}
    rate = load * in_order_banks(arrival_rate=0.0, **here).max_rate
    found = in_order_banks(arrival_rate=rate, **here)
    _, late, wait = tried_out(banks, hits, 4, busy, rate)
    assert_allclose(found.conflict_probability, late, atol=0.01 if busy <= 8 else 0.02)
    assert_allclose(found.mean_waiting_time, wait, rtol=0.06)  # of 30,000 accesses: 2 % at load 0.8


def test_at_the_largest_rate_itself_nobody_is_served_in_time():
    for busy, top in ((12, 1 / 4), (64, 8 / 64)):
        found = ready_first_banks(arrival_rate=[top, 0.999 * top], burst=4, bank_busy=busy, banks=8)
        assert np.isinf(found.mean_waiting_time).tolist() == [True, False] and found.max_rate == top


@pytest.mark.parametrize("traffic", [StridedBlocks(), StridedBlocks(stride=4), Packets(blocks=1)])
def test_accesses_without_load_wait_for_nothing(traffic):
    answer = solve_dram(replace(QUIET, traffic=replace(traffic, arrival_rate=0.0)))
    waits = {name: float(answer.latency_parts[name]) for name in ("bank", "activation", "bus", "queue")}
    assert waits == dict.fromkeys(waits, pytest.approx(0, abs=1e-9))


def test_a_system_of_one_bank_in_order_is_solved():
    """It had a chain with more banks in use than there are."""
    spec = replace(BANKS, scheduler="in-order", geometry=DramGeometry(groups=1, banks=1))
    spec = at(replace(spec, timing=abstract(burst=4, bank_busy=20)), 0.5 / 20)
    assert_allclose(solve_dram(spec).read_latency, 4 + 20 / 2, rtol=1e-6)


def test_variances_of_a_row_of_times_with_what_follows():
    rng = np.random.default_rng(1)
    alone = rng.exponential(size=100_000)
    assert_allclose(_asymptotic_variance(alone, 0.1), 1.0, rtol=0.02)
    # Each time twice: sums of n vary twice as much; each followed by what is missing to 2: not at all.
    assert_allclose(_asymptotic_variance(np.repeat(alone, 2), 0.1), 2.0, rtol=0.02)
    back = np.column_stack([alone, 2 - alone]).ravel()
    assert _asymptotic_variance(back, 0.1) < 0.02


def test_a_faster_clock_shortens_all_times_alike():
    spec = at(DDR4, 0.05, write_fraction=0.2)
    fast = replace(spec, timing=replace(spec.timing, clock_ghz=2 * spec.timing.clock_ghz))
    one, two = solve_dram(spec), solve_dram(fast)
    for name, value in one.metrics.items():
        factor = {"ns": 0.5, "1/ns": 2.0, "GB/s": 2.0}.get(one.units[name], 1.0)
        assert_allclose(two.metrics[name], factor * value, rtol=1e-12, err_msg=name)
    assert one.bandwidth == pytest.approx(0.05 * 1.6 * 64) and one.delivered_rate == pytest.approx(0.05 * 1.6)


@pytest.mark.parametrize("scheduler", ["in-order", "oldest-ready-first"])
def test_channels_of_random_accesses_are_each_one_channel(scheduler):
    one, four = (solve_dram(at(dram("DDR4-3200", scheduler=scheduler, channels=n), 0.04 * n)) for n in (1, 4))
    for name, value in one.metrics.items():
        factor = 4 if name in ("delivered_rate", "bandwidth", "saturation_rate") else 1
        assert_allclose(four.metrics[name], factor * value, rtol=1e-9, err_msg=name)
    assert one.utilization == pytest.approx(four.utilization) == {"bus": pytest.approx(0.16)}


def test_what_all_are_alike_in_is_found_by_either_way():
    """Accesses of a system's own traffic, and one kind of packets of as many blocks."""
    spec = replace(QUIET, traffic=Packets(blocks=4))
    pure, mixed = pure_waits(spec, 0.05), mixed_waits(QUIET, [Kind(blocks=4, write=False, rate=0.05)])
    assert pure.load == pytest.approx(mixed.load) and pure.row_hit_ratio == pytest.approx(mixed.row_hit_ratio)
    for name in ("bank", "activation", "bus", "row", "refresh", "backlog"):
        assert_allclose(getattr(pure.waits[0], name), getattr(mixed.waits[0], name), atol=1e-9, err_msg=name)
    light = mixed_waits(QUIET, [Kind(blocks=4, write=False, rate=0.005)])
    assert pure.load == pytest.approx(10 * light.load)


def test_single_accesses_in_order_are_alike_of_whatever_kind():
    spec = replace(QUIET, scheduler="in-order")
    kinds = [Kind(blocks=1, write=False, rate=rate) for rate in (0.005, 0.01)]
    pure = pure_waits(replace(spec, traffic=Packets(blocks=1)), 0.015).waits[0]
    for waits in mixed_waits(spec, kinds).waits:
        assert_allclose(waits.bank + waits.bus, pure.bank + pure.bus, rtol=1e-9)


def test_packets_that_follow_each_other_find_rows_open_if_nobody_else_was_there():
    follows, others = (
        Kind(blocks=1, write=False, rate=0.02, run=math.inf),
        Kind(blocks=4, write=False, rate=0.02),
    )
    alone, met = mixed_waits(QUIET, [follows]), mixed_waits(QUIET, [follows, others])
    stays = 1 - 1 / QUIET.geometry.row_blocks
    assert_allclose([alone.row_hit_ratio[0], met.row_hit_ratio[0]], [stays, stays * np.exp(-1)], rtol=1e-9)
    closed = replace(QUIET, page_policy="closed")
    assert mixed_waits(closed, [follows]).row_hit_ratio == (0.0,)


def test_banks_serve_the_more_the_more_wait():
    """None for none, with one that waits one in the time it takes, at last as many as there are banks."""
    turns = Turns(spec=QUIET, miss=1.0, each=1e-9)
    number = np.array([1e-6, 1.0, 4.0, 30.0, 1e6])
    cycle, banks = float(QUIET.timing.t_rc), QUIET.geometry.channel_banks
    found = turns.paces(number, cycle)
    assert_allclose(found[0], 1e-6 / turns.opening, rtol=1e-3)
    assert_allclose(found[-1], banks / cycle, rtol=1e-3)
    assert (np.diff(found) > 0).all()
    # By the formula that it is the root of: n = x (o + rho c / 2 (1 - rho)).
    load = found * cycle / banks
    assert_allclose(found * (turns.opening + load * cycle / 2 / (1 - load)), number, rtol=1e-6)
    assert_allclose(Turns(spec=QUIET, miss=0.0, each=4.0).paces(number, cycle), 0.25)


def test_drains_of_a_pure_death_process():
    """Without new writes the drain of the k-th takes its exponential time: means and variances add."""
    turns = Turns(spec=replace(QUIET, traffic=RandomBlocks(write_fraction=0.5)), miss=1.0, each=4.0)
    mean, variance = turns.drains(0.0)
    low, high = QUIET.write_low, QUIET.write_high
    pace = turns.paces(np.arange(low + 1.0, high + 1.0), QUIET.timing.write_cycle)
    assert mean.size == high + 1 and not mean[: low + 1].any()
    assert_allclose(np.diff(mean[low:]), 1 / pace)
    assert_allclose(np.diff(variance[low:]), 1 / pace**2)
    assert (turns.drains(0.02)[0][low + 1 :] > mean[low + 1 :]).all()
    # All of the time at the largest rate, and none without load.
    top = turns.limit(0.5)
    assert turns.load(0.5 * top, 0.5 * top) == pytest.approx(1, abs=1e-6) and turns.load(0.0, 0.0) == 0


def test_writes_that_come_in_a_refresh_or_while_reads_catch_up_wait_for_both():
    spec = replace(DDR4, write_high=10**6)
    found = refreshed_writes(spec, 1e-3, wait=7.0, block=300.0, load=0.25)
    drain = 100.0
    assert_allclose(found, (drain * (300 + drain) / 2 + 7 * (300 + drain)) / spec.timing.t_refi)
    assert refreshed_writes(spec, 1e-3, wait=0.0, block=300.0, load=0.0) == 0


@pytest.mark.parametrize("load", [0.2, 0.7])
def test_waits_along_a_regular_sequence_are_those_of_a_queue(load):
    """Services of 4 one after the other: M/D/1, access by access and by Spitzer's identity."""
    rate, count = load / 4, SERVED
    exact = rate * 16 / (2 * (1 - load))
    steps = Steps(gap=np.full(count, 4.0), ahead=np.ones(count, dtype=np.int64), counted=np.ones(count))
    wait, late = steps.waits(rate, exact)
    assert_allclose([wait, late], [exact, load], rtol=0.01)
    # Whatever is guessed. Services of twice the time for every other arrival are less by chance.
    assert_allclose(steps.waits(rate, 0.05 * exact)[0], exact, rtol=0.03)
    pairs = Steps(gap=np.full(count, 8.0), ahead=np.full(count, 2), counted=np.zeros(count))
    even, none = pairs.waits(rate, exact)
    assert 0 < even < 2 * exact and none == 0
    assert steps.waits(0.0, 1.0) == (0.0, 0.0)
    number = np.append(np.arange(1.0, 65.0), np.geomspace(70, 4000, 24).round())
    ahead = number[None, :]
    paths = Paths(weight=_weights(number), ahead=ahead, time=4 * ahead, share=np.ones(1))
    assert_allclose(paths.waiting_time(rate), exact, rtol=2e-3)
    assert paths.waiting_time(0.0) == 0


def test_sums_over_all_numbers_from_some_are_exact_for_straight_lines():
    number = np.array([1.0, 2.0, 3.0, 7.0, 12.0, 40.0])
    every = np.arange(1.0, 41.0)
    for line in (lambda n: 2.0 + 0 * n, lambda n: 3.0 * n - 1.0):
        assert_allclose(_weights(number) @ (number * line(number)), line(every).sum())


def test_waits_of_unlike_channels_are_their_mean_over_the_accesses():
    spec = dram(
        "DDR4-3200", channels=2, traffic=StridedBlocks(), address_map=Interleaved(step=3, bank_step=3)
    )
    spec = replace(spec, geometry=replace(spec.geometry, channels=3))
    pattern = replace(access_pattern(spec), channel_share=np.array([0.5, 0.25, 0.25]))
    each = [
        (part, channel_waits(spec, pattern, k, 0.06 * share))
        for k, share, part in pattern.channels(alike=True)
    ]
    assert [part for part, _ in each] == [0.5, 0.5]
    mean = _mean_waits(each)
    for name in ("bank", "bus", "row", "refresh", "backlog", "bank_conflict"):
        assert_allclose(
            getattr(mean, name), sum(p * np.asarray(getattr(w, name)) for p, w in each), rtol=1e-12
        )
    assert_allclose(mean.reach["bank"], sum(p * w.reach["bank"] for p, w in each))
    assert mean.write_last is None


@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_a_bank_of_a_sequence_is_busy_as_often_as_drawn(rate):
    """The access before came an Erlang time ago, may have waited, and then keeps the bank."""
    ahead, after = np.array([1.0, 4.0]), np.array([10.0, 40.0])
    stream = StreamTimes(
        resources={}, ahead=ahead, after=after, always=0.25, part=0.5, bank_time=1.0, row_hit_ratio=0.0
    )
    rng = np.random.default_rng(1)
    for wait, busy in ((0.0, 0.0), (6.0, 0.5)):
        waited = (rng.random((200_000, 2)) < busy) * rng.exponential(wait / max(busy, 1e-9), (200_000, 2))
        ago = rng.gamma(ahead, 0.5 / rate, (200_000, 2))
        expected = 0.25 + 0.75 * (waited + after > ago).mean()
        assert_allclose(stream.conflict_probability(rate, wait, busy), expected, atol=0.003)
    assert stream.conflict_probability(0.0, 0.0, 0.0) == 0.25


def test_directions_of_kinds_are_told_apart():
    """A read is of a kind as often as it comes; a write is in a large batch more often than batches are."""
    kinds = [Kind(blocks=n, write=w, rate=0.01) for n, w in ((2, True), (8, True), (1, False), (4, False))]
    times = [packet_times(packets_alone(QUIET, kind.blocks, kind.write)) for kind in kinds]
    reads, (size, alone) = _directions(kinds, times, np.array([3.0, 1.0, 2.0, 6.0]))
    assert_allclose([share for share, _, _ in reads], [0.25, 0.75])
    assert [number for _, number, _ in reads] == [1, 4]
    assert size == pytest.approx((3 * 2**2 + 8**2) / (3 * 2 + 8))
    assert alone == pytest.approx((3 * 2 * times[0].alone + 8 * times[1].alone) / (3 * 2 + 8))
    assert _directions(kinds[2:], times[2:], np.array([1.0, 1.0]))[1] == (1, 0)


def test_packets_that_start_anywhere_use_all_channels_alike():
    """Also where there are more banks than places that were looked at come to."""
    pattern = access_pattern(dram("HBM2", channels=128, traffic=Packets(blocks=1)))
    assert_allclose(pattern.channel_share, 1 / 128)


@pytest.mark.parametrize("hits", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.0, 0.05])
def test_the_law_of_latencies_has_their_mean(rate, hits):
    spec = at(QUIET, rate, row_hit_probability=hits)
    answer = solve_dram(spec)
    law, cell = answer.laws(0)
    mean = law @ np.arange(law.size) / law.sum() * cell / spec.clock_ghz
    assert_allclose(mean, answer.read_latency, rtol=1e-3)
    if rate == 0:
        t = spec.timing
        late = t.cl + t.burst + t.t_rcd + t.t_rp  # of the accesses that open a row
        assert answer.read_latency_p99 == pytest.approx(late / spec.clock_ghz)
        assert answer.quantile(0.4) == pytest.approx(
            (late if hits < 0.4 else t.cl + t.burst) / spec.clock_ghz
        )


@pytest.mark.parametrize("load", [0.2, 0.6])
def test_a_stream_that_goes_to_one_bank_waits_as_in_md1(load):
    """Every eighth block of eight banks, each in a row of its own: one after the other for a row cycle."""
    traffic = StridedBlocks(stride=8, arrival_rate=load / 20)
    spec = replace(BANKS, timing=abstract(burst=4, bank_busy=20), page_policy="closed", traffic=traffic)
    assert access_pattern(spec).bank_share == 1
    found = solve_dram(replace(spec, scheduler="oldest-ready-first"))
    assert_allclose(found.read_latency - 4, load * 20 / (2 * (1 - load)), rtol=0.02)


@given(
    waits=st.lists(st.floats(0.0, 200.0), min_size=1, max_size=5),
    reads=st.floats(1e-4, 0.05),
    writes=st.floats(1e-5, 0.01),
    size=st.sampled_from([1.0, 3.0, 8.0]),
)
def test_kinds_of_accesses_wait_for_writes_as_each_alone(waits, reads, writes, size):
    both = Directions(
        reads=(ReadVisits(reads, 2.0, 5.0), ReadVisits(reads / 2, 1.0, 0.0)),
        writes=writes,
        write_size=size,
        write_alone=2.5 * (size - 1),
        miss=0.7,
    )
    given = {"row_open": 0.6, "each": 5.0, "refreshed": 0.04, "block": 400.0}
    together = write_queue(DDR4, both, wait=np.array(waits), **given)
    for k, wait in enumerate(waits):
        alone = write_queue(DDR4, both, wait=np.array([wait]), **given)
        assert_allclose([one[k] for one in together[:5]], np.ravel(alone[:5]), rtol=1e-9, atol=1e-12)
        assert_allclose(together.last[k].of(8, 2.0), alone.last[0].of(8, 2.0), rtol=1e-9, atol=1e-12)


def test_streams_that_are_alike_wait_alike():
    """Pairs of them were drawn: four equal streams differed by 1 to 3 %."""
    kinds = [Kind(blocks=4, write=False, rate=0.01, run=np.inf) for _ in range(3)]
    waits = mixed_waits(DDR4, kinds).waits
    assert waits[0].bank == waits[1].bank == waits[2].bank
    assert waits[0].activation == waits[1].activation == waits[2].activation
