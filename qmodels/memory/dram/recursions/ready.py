"""When a few accesses get the bus if the oldest one goes first whose command may be given."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.markov.chains.compiled import compiled
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
        As in `qmodels.memory.dram.recursions.order.serve_in_order`.

    Notes
    -----
    A greedy schedule, one command in a cycle, made for packets that meet: time grows with the banks.
    """
    banks, groups = n[CHANNEL_GROUPS] * n[BANKS], n[CHANNEL_GROUPS]
    ranks = groups // n[GROUPS]
    open_row = np.empty(banks, dtype=np.int64)
    row_at = np.empty(banks, dtype=np.int64)
    column_at = np.empty(banks, dtype=np.int64)
    close_at = np.empty(banks, dtype=np.int64)
    hits = np.empty(banks, dtype=np.int64)
    head = np.empty(banks, dtype=np.int64)
    tail = np.empty(banks, dtype=np.int64)
    waiting = np.empty(banks, dtype=np.int64)
    columns = np.empty(groups, dtype=np.int64)
    rows = np.empty(groups, dtype=np.int64)
    four = np.empty((ranks, 4), dtype=np.int64)
    oldest = np.empty(ranks, dtype=np.int64)
    following = np.full(arrival.size, -1, dtype=np.int64)
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
        four[:] = LONG_AGO
        hits[:] = 0
        head[:] = -1
        oldest[:] = 0
        now, came, left, used = LONG_AGO, begin, end - begin, 0
        while left > 0:
            best, best_kind, best_access, best_place = FAR, CLOSE, end, -1
            for place in range(used):
                b = waiting[place]
                k = head[b]
                if cap > 0 and open_row[b] >= 0 and hits[b] < cap:
                    other = k
                    while other >= 0 and row[other] != open_row[b]:
                        other = following[other]
                    if other >= 0:
                        k = other
                g = b // n[BANKS]
                r = g // n[GROUPS]
                time = max(now, arrival[k])
                if open_row[b] < 0:
                    kind = ROW
                    time = max(time, row_at[b])
                    for other in range(r * n[GROUPS], (r + 1) * n[GROUPS]):
                        time = max(time, rows[other] + (n[T_RRD_L] if other == g else n[T_RRD_S]))
                    time = max(time, four[r, oldest[r]] + n[T_FAW])
                elif open_row[b] == row[k]:
                    kind = COLUMN
                    time = max(time, column_at[b])
                    for other in range(groups):
                        after = n[BURST]
                        if other == g:
                            after = n[T_CCD_L]
                        elif other // n[GROUPS] != r:
                            after += n[T_RTRS]
                        time = max(time, columns[other] + after)
                else:
                    kind = CLOSE
                    time = max(time, close_at[b])
                ahead = time < best or (time == best and (kind > COLUMN) < (best_kind > COLUMN))
                if ahead or (time == best and (kind > COLUMN) == (best_kind > COLUMN) and k < best_access):
                    best, best_kind, best_access, best_place = time, kind, k, place
            if came < end and arrival[came] <= best:
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
                    conflict[came] = True
                tail[b] = came
                came += 1
                continue
            b, k = waiting[best_place], best_access
            g = b // n[BANKS]
            r = g // n[GROUPS]
            now = best + 1
            if best_kind == CLOSE:
                open_row[b] = -1
                row_at[b] = max(row_at[b], best + n[T_RP])
            elif best_kind == ROW:
                four[r, oldest[r]] = best
                oldest[r] = (oldest[r] + 1) & 3
                rows[g] = best
                row_at[b] = best + n[T_RC]
                column_at[b] = best + n[T_RCD]
                close_at[b] = best + n[T_RAS]
                open_row[b] = row[k]
                hits[b] = 0
                if n[T_RCD] == 0:
                    now = best
            else:
                column[k] = best
                columns[g] = best
                hits[b] += 1
                close_at[b] = max(close_at[b], best + (n[WRITTEN] if write[k] else n[T_RTP]))
                if n[CLOSED]:
                    open_row[b] = -1
                    row_at[b] = max(row_at[b], close_at[b] + n[T_RP])
                left -= 1
                if head[b] == k:
                    head[b] = following[k]
                else:
                    before = head[b]
                    while following[before] != k:
                        before = following[before]
                    following[before] = following[k]
                    if following[k] < 0:
                        tail[b] = before
                if head[b] < 0:
                    used -= 1
                    waiting[best_place] = waiting[used]
        begin = end
    return column, conflict
