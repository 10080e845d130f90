"""Which command of waiting accesses goes first: the compiled recursion against one that looks at all."""

from dataclasses import replace

import numpy as np
import pytest

from qmodels import dram
from qmodels.memory.dram.recursions.order import numbers
from qmodels.memory.dram.recursions.ready import serve_ready_first

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
