from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import dram
from qmodels.memory.dram.command_times import numbers, serve_ready_first
from qmodels.memory.dram.order_waits import in_order_banks, ready_first_banks
from qmodels.queues import mg1

loads = st.floats(0.01, 0.98)


@given(loads, st.floats(1, 20), st.floats(1, 2), st.integers(1, 64), st.floats(0, 1))
def test_two_slots_at_most_is_pollaczek_khinchine(load, burst, ratio, banks, hits):
    q = (1 - hits) / banks
    busy = burst * ratio
    mean, square = burst + q * (busy - burst), burst**2 + q * (busy**2 - burst**2)
    rate = load / mean
    found = in_order_banks(
        arrival_rate=rate, burst=burst, bank_busy=busy, banks=banks, row_hit_probability=hits
    )
    assert_allclose(found.max_rate, 1 / mean)
    assert_allclose(found.mean_waiting_time, rate * square / (2 * (1 - load)), rtol=1e-7)


@given(loads, st.sampled_from(["order", "ready"]), st.floats(1, 12), st.floats(0.1, 10))
def test_laws(load, kind, ratio, unit):
    solve = in_order_banks if kind == "order" else ready_first_banks
    here = {"burst": 4.0, "bank_busy": 4.0 * ratio, "banks": 8}
    top = solve(arrival_rate=0.0, **here).max_rate
    wait = solve(arrival_rate=load * top, **here)
    # Another unit of time changes times and nothing else.
    other = solve(arrival_rate=load * top / unit, burst=4.0 * unit, bank_busy=4.0 * ratio * unit, banks=8)
    assert_allclose(other.mean_waiting_time, wait.mean_waiting_time * unit, rtol=1e-6)
    assert_allclose(other.conflict_probability, wait.conflict_probability, rtol=1e-6)
    assert 0 <= wait.conflict_probability <= 1 and wait.utilization <= 1 + 1e-12
    # More load and slower banks mean longer waits; at least those of the bus alone.
    assert solve(arrival_rate=load * top * 0.9, **here).mean_waiting_time <= wait.mean_waiting_time
    bus = mg1(arrival_rate=load * top, mean_service_time=4.0, service_scv=0.0).mean_waiting_time
    assert wait.mean_waiting_time >= bus * (1 - 1e-9)


def test_free_banks_leave_the_bus():
    rate = np.array([0.0, 0.05, 0.2])
    for solve in (in_order_banks, ready_first_banks):
        found = solve(arrival_rate=rate, burst=4, bank_busy=4, banks=3).mean_waiting_time
        expected = rate * 16 / (2 * (1 - 4 * rate))
        assert_allclose(found, expected)


def test_largest_rates():
    # Gaps of 4, 8 and 12 cycles over 8 banks: a chain of three states, by hand.
    assert in_order_banks(arrival_rate=0, burst=4, bank_busy=12, banks=8).max_rate == pytest.approx(18 / 97)
    one = in_order_banks(arrival_rate=0, burst=4, bank_busy=74, banks=1)
    assert one.max_rate == pytest.approx(1 / 74)
    assert ready_first_banks(arrival_rate=0, burst=4, bank_busy=40, banks=8).max_rate == 0.2
    hits = in_order_banks(arrival_rate=0, burst=4, bank_busy=74, banks=8, row_hit_probability=1.0)
    assert hits.max_rate == pytest.approx(0.25)


def test_overload_is_infinite():
    for solve in (in_order_banks, ready_first_banks):
        found = solve(arrival_rate=[0.01, 0.3], burst=4, bank_busy=12, banks=8)
        assert np.isfinite(found.mean_waiting_time).tolist() == [True, False]
        assert found.utilization[1] == pytest.approx(4 * found.max_rate)
        assert 0 < found.conflict_probability[1] <= 1


AGO = -(1 << 40)


def plain(spec, cap, arrival, bank, row, write):
    """Return column times and conflicts of one run: of every cycle's commands the best one is given."""
    t, g = spec.timing, spec.geometry
    closed, banks, groups = spec.page_policy == "closed", g.ranks * g.groups * g.banks, g.ranks * g.groups
    opened = [None if closed else 0] * banks
    row_at, column_at, close_at, hits = [AGO] * banks, [AGO] * banks, [AGO] * banks, [0] * banks
    columns, rows, activated = [AGO] * groups, [AGO] * groups, [[] for _ in range(g.ranks)]
    queue, waiting = [[] for _ in range(banks)], list(range(len(arrival)))
    column, conflict, now = [0] * len(arrival), [False] * len(arrival), AGO

    def command(b):
        k = queue[b][0]
        if opened[b] is not None and hits[b] < cap:
            k = next((one for one in queue[b] if row[one] == opened[b]), k)
        at, r = b // g.banks, b // g.banks // g.groups
        times = [now, arrival[k]]
        if opened[b] is None:
            mine = range(r * g.groups, (r + 1) * g.groups)
            times += [row_at[b], *(rows[o] + (t.t_rrd_l if o == at else t.t_rrd_s) for o in mine)]
            times += [one + t.t_faw for one in activated[r][-4:][:1] if len(activated[r]) >= 4]
            return max(times), 1, k, b
        if opened[b] != row[k]:
            return max(*times, close_at[b]), 1, k, b
        apart = [t.t_ccd_l if o == at else t.burst + t.t_rtrs * (o // g.groups != r) for o in range(groups)]
        return max(*times, column_at[b], *map(sum, zip(columns, apart, strict=True))), 0, k, b

    while waiting or any(queue):
        best = min((command(b) for b in range(banks) if queue[b]), default=None)
        if waiting and (best is None or arrival[waiting[0]] <= best[0]):
            k = waiting.pop(0)
            b = bank[k]
            busy = row_at[b] > arrival[k] if opened[b] is None else opened[b] != row[k]
            conflict[k] = bool(queue[b]) or busy
            queue[b].append(k)
            continue
        time, late, k, b = best
        at, now = b // g.banks, time + 1
        if not late:
            column[k] = columns[at] = time
            hits[b] += 1
            close_at[b] = max(close_at[b], time + (t.cwl + t.burst + t.t_wr if write[k] else t.t_rtp))
            if closed:
                opened[b], row_at[b] = None, max(row_at[b], close_at[b] + t.t_rp)
            queue[b].remove(k)
        elif opened[b] is None:
            activated[at // g.groups].append(time)
            rows[at], row_at[b], column_at[b], close_at[b] = (
                time,
                time + t.t_rc,
                time + t.t_rcd,
                time + t.t_ras,
            )
            opened[b], hits[b] = row[k], 0
        else:
            opened[b], row_at[b] = None, max(row_at[b], time + t.t_rp)
    return column, conflict


@pytest.mark.parametrize("page_policy", ["open", "closed"])
def test_a_row_cycle_may_be_longer_than_opening_and_closing(page_policy):
    """In no preset it is: there a row has to be open for so long that its cycle says nothing new."""
    spec = dram("DDR4-3200", page_policy=page_policy, t_rc=120)
    assert spec.timing.t_rc > spec.timing.t_ras + spec.timing.t_rp
    agree(spec, 4)


@pytest.mark.parametrize("cap", [0, 1, 16])
@pytest.mark.parametrize("page_policy", ["open", "closed"])
@pytest.mark.parametrize(("preset", "ranks"), [("DDR4-3200", 1), ("LPDDR5-6400", 1), ("DDR4-3200", 2)])
def test_commands_are_those_of_a_plain_schedule(preset, ranks, page_policy, cap):
    spec = dram(preset, page_policy=page_policy)
    agree(replace(spec, geometry=replace(spec.geometry, ranks=ranks)), cap)


def agree(spec, cap):
    """Compare both on runs of accesses at random, and in rows."""
    rng = np.random.default_rng(cap)
    for used, spread, length in ((2, 0, 60), (spec.geometry.channel_banks, 3, 60), (3, 9, 120)):
        arrival = np.cumsum(rng.integers(0, spread + 1, length))
        bank, write = rng.integers(used, size=length), (rng.random(length) < 0.3).astype(np.int64)
        for row in (rng.integers(0, 4, length), np.arange(length) // 9 % 5):
            found = serve_ready_first(numbers(spec), cap, 0 * bank, arrival, bank, row, write)
            expected = plain(spec, cap, *(x.tolist() for x in (arrival, bank, row, write)))
            assert [one.tolist() for one in found] == list(expected)
