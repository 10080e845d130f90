"""When a few accesses get the bus if the oldest one goes first whose command may be given."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.memory.dram.recursions.order import (
    BANKS,
    BURST,
    CHANNEL_GROUPS,
    CLOSED,
    GROUPS,
    LONG_AGO,
    T_CCD_L,
    T_FAW,
    T_RAS,
    T_RC,
    T_RCD,
    T_RP,
    T_RRD_L,
    T_RRD_S,
    T_RTP,
    T_RTRS,
    WRITTEN,
)
from qmodels.numerics.kernels import compiled

FAR = 1 << 50
COLUMN, ROW, CLOSE = range(3)


@compiled
def serve_ready_first(
    n: Any, cap: int, run: Any, arrival: Any, bank: Any, row: Any, write: Any
) -> tuple[Any, Any]:
    """Return when the column command of each access is given, and whether it found its bank busy.

    Parameters
    ----------
    n : array
        Timings, see `qmodels.memory.dram.recursions.order.numbers`; those between reads and writes are not
        used.
    cap : int
        Row hits that may pass an older access to the bank; 0 if none may.
    run, arrival, bank, row, write : arrays of int
        As in `qmodels.memory.dram.recursions.order.serve_in_order`; arrivals of a run ascend.

    Notes
    -----
    A greedy schedule, one command in a cycle, made for packets that meet: time grows with the accesses
    and the banks. Of each bank the oldest access to its open row is kept, so that the others in its queue
    are looked at once for each row that is opened.
    """
    banks, groups = n[CHANNEL_GROUPS] * n[BANKS], n[CHANNEL_GROUPS]
    ranks = groups // n[GROUPS]
    open_row = np.empty(banks, dtype=np.int64)
    row_at = np.empty(banks, dtype=np.int64)
    column_at = np.empty(banks, dtype=np.int64)
    close_at = np.empty(banks, dtype=np.int64)
    hits = np.empty(banks, dtype=np.int64)
    # Of each bank: the first and last access that wait, and the first of those to its open row.
    head = np.empty(banks, dtype=np.int64)
    tail = np.empty(banks, dtype=np.int64)
    hit = np.empty(banks, dtype=np.int64)
    waiting = np.empty(banks, dtype=np.int64)
    columns = np.empty(groups, dtype=np.int64)
    rows = np.empty(groups, dtype=np.int64)
    last_column = np.empty(ranks, dtype=np.int64)
    last_row = np.empty(ranks, dtype=np.int64)
    four = np.empty((ranks, 4), dtype=np.int64)
    oldest = np.empty(ranks, dtype=np.int64)
    following = np.full(arrival.size, -1, dtype=np.int64)
    before = np.full(arrival.size, -1, dtype=np.int64)
    column = np.empty(arrival.size, dtype=np.int64)
    conflict = np.zeros(arrival.size, dtype=np.bool_)
    begin = 0
    while begin < arrival.size:
        end = begin + 1
        while end < arrival.size and run[end] == run[begin]:
            end += 1
        open_row[:] = -1 if n[CLOSED] else 0
        row_at[:] = LONG_AGO
        column_at[:] = LONG_AGO
        close_at[:] = LONG_AGO
        columns[:] = LONG_AGO
        rows[:] = LONG_AGO
        last_column[:] = LONG_AGO
        last_row[:] = LONG_AGO
        four[:] = LONG_AGO
        hits[:] = 0
        head[:] = -1
        hit[:] = -1
        oldest[:] = 0
        now, came, left, used, best = arrival[begin], begin, end - begin, 0, LONG_AGO
        while left > 0:
            # No command is given before now, so that all who have come by then are known to it.
            while came < end and arrival[came] <= max(now, best):
                b = bank[came]
                if head[b] < 0:
                    head[b] = came
                    waiting[used] = b
                    used += 1
                    if open_row[b] < 0:
                        conflict[came] = row_at[b] > arrival[came]
                    else:
                        conflict[came] = open_row[b] != row[came]
                else:
                    following[tail[b]] = came
                    before[came] = tail[b]
                    conflict[came] = True
                if hit[b] < 0 and open_row[b] == row[came]:
                    hit[b] = came
                tail[b] = came
                came += 1
                if arrival[came - 1] > now:
                    break
            best, best_kind, best_access, best_place = FAR, CLOSE, end, -1
            for place in range(used):
                b = waiting[place]
                k = head[b]
                if open_row[b] >= 0 and hits[b] < cap and hit[b] >= 0:
                    k = hit[b]
                g = b // n[BANKS]
                r = g // n[GROUPS]
                time = max(now, arrival[k])
                if open_row[b] < 0:
                    kind = ROW
                    time = max(time, max(row_at[b], four[r, oldest[r]] + n[T_FAW]))
                    time = max(time, max(rows[g] + n[T_RRD_L], last_row[r] + n[T_RRD_S]))
                elif open_row[b] == row[k]:
                    kind = COLUMN
                    time = max(time, max(column_at[b], columns[g] + n[T_CCD_L]))
                    for other in range(ranks):
                        time = max(time, last_column[other] + n[BURST] + (n[T_RTRS] if other != r else 0))
                else:
                    kind = CLOSE
                    time = max(time, close_at[b])
                ahead = time < best or (time == best and (kind > COLUMN) < (best_kind > COLUMN))
                if ahead or (time == best and (kind > COLUMN) == (best_kind > COLUMN) and k < best_access):
                    best, best_kind, best_access, best_place = time, kind, k, place
            if came < end and arrival[came] <= best:
                continue
            b, k = waiting[best_place], best_access
            g = b // n[BANKS]
            r = g // n[GROUPS]
            now = best + 1
            if best_kind == CLOSE:
                open_row[b] = hit[b] = -1
                row_at[b] = max(row_at[b], best + n[T_RP])
            elif best_kind == ROW:
                four[r, oldest[r]] = best
                oldest[r] = (oldest[r] + 1) & 3
                rows[g] = last_row[r] = best
                row_at[b] = best + n[T_RC]
                column_at[b] = best + n[T_RCD]
                close_at[b] = best + n[T_RAS]
                open_row[b] = row[k]
                hits[b], hit[b] = 0, k
                if n[T_RCD] == 0:
                    now = best
            else:
                column[k] = best
                columns[g] = last_column[r] = best
                hits[b] += 1
                close_at[b] = max(close_at[b], best + (n[WRITTEN] if write[k] else n[T_RTP]))
                # Its place in the queue closes, and the next one to the row takes its part.
                if head[b] == k:
                    head[b] = following[k]
                else:
                    following[before[k]] = following[k]
                if tail[b] == k:
                    tail[b] = before[k]
                else:
                    before[following[k]] = before[k]
                if n[CLOSED]:
                    open_row[b] = hit[b] = -1
                    row_at[b] = max(row_at[b], close_at[b] + n[T_RP])
                elif hit[b] == k:
                    hit[b] = following[k]
                    while hit[b] >= 0 and row[hit[b]] != open_row[b] and hits[b] < cap:
                        hit[b] = following[hit[b]]
                left -= 1
                if head[b] < 0:
                    used -= 1
                    waiting[best_place] = waiting[used]
            best = LONG_AGO
        begin = end
    return column, conflict
