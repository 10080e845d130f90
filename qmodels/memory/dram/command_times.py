"""Times of commands one after the other: the recursions that waits are averaged over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.numerics.kernels import compiled
from qmodels.systems.memory.dram_system import DramSystem

LONG_AGO = -(1 << 40)
(
    BURST, T_RCD, T_RP, T_RAS, T_RC, T_RRD_S, T_RRD_L, T_FAW, T_CCD_L, T_RTP, WRITTEN, T_RTRS, TO_WRITE,
    TO_READ, TO_READ_GROUP, TO_READ_RANK, GROUPS, BANKS, CHANNEL_GROUPS, CLOSED,
) = range(20)  # fmt: skip


def numbers(spec: DramSystem) -> Any:
    """Return the timings that the recursion needs, in the order of the names above."""
    t, g = spec.timing, spec.geometry
    written = t.cwl + t.burst
    return np.array(
        [
            t.burst, t.t_rcd, t.t_rp, t.t_ras, t.t_rc, t.t_rrd_s, t.t_rrd_l, t.t_faw, t.t_ccd_l, t.t_rtp,
            written + t.t_wr, t.t_rtrs, t.read_to_write, t.write_to_read, written + t.t_wtr_l,
            max(t.burst, written + t.t_rtrs - t.cl), g.groups, g.banks, g.ranks * g.groups,
            spec.page_policy == "closed",
        ],
        dtype=np.int64,
    )  # fmt: skip


@compiled
def serve_in_order(n: Any, run: Any, arrival: Any, bank: Any, row: Any, write: Any) -> Any:
    """Return when the column command of each access is given, and whether it found its bank busy.

    Parameters
    ----------
    n : array
        Timings, see `numbers`.
    run : array of int
        Number of the run of each access, ascending: each run starts idle, with row 0 open in all banks.
    arrival, bank, row, write : arrays of int
        Accesses in their order: arrival [cycles], bank of the channel, row, and 1 for a write.

    Notes
    -----
    Each command is given as soon as the timings to all earlier ones allow, a row command no sooner
    than the bus needs it; so times are maxima of earlier ones plus constants.
    """
    groups, banks = n[CHANNEL_GROUPS], n[CHANNEL_GROUPS] * n[BANKS]
    # Of each bank: its open row, the earliest next row command, column command and closing.
    open_row = np.empty(banks, dtype=np.int64)
    row_at = np.empty(banks, dtype=np.int64)
    column_at = np.empty(banks, dtype=np.int64)
    close_at = np.empty(banks, dtype=np.int64)
    columns = np.empty((2, groups), dtype=np.int64)
    rows = np.empty(groups, dtype=np.int64)
    four = np.empty((groups // n[GROUPS], 4), dtype=np.int64)
    oldest = np.zeros(groups // n[GROUPS], dtype=np.int64)
    column = np.empty(arrival.size, dtype=np.int64)
    conflict = np.empty(arrival.size, dtype=np.bool_)
    last = LONG_AGO
    for k in range(arrival.size):
        if k == 0 or run[k] != run[k - 1]:
            open_row[:] = -1 if n[CLOSED] else 0
            row_at[:] = LONG_AGO
            column_at[:] = LONG_AGO
            close_at[:] = LONG_AGO
            columns[:] = LONG_AGO
            rows[:] = LONG_AGO
            four[:] = LONG_AGO
            last = LONG_AGO
        b, mode, come = bank[k], write[k], arrival[k]
        g = b // n[BANKS]
        r = g // n[GROUPS]
        bus = last
        for other in range(groups):
            same, turned = columns[mode, other], columns[1 - mode, other]
            if other == g:
                same += n[T_CCD_L]
            elif other // n[GROUPS] == r:
                same += n[BURST]
            else:
                same += n[BURST] + n[T_RTRS]
            if mode == 1:
                turned += n[TO_WRITE]
            elif other == g:
                turned += n[TO_READ_GROUP]
            elif other // n[GROUPS] == r:
                turned += n[TO_READ]
            else:
                turned += n[TO_READ_RANK]
            bus = max(bus, max(same, turned))
        if open_row[b] == row[k]:
            time = max(bus, max(come, column_at[b]))
            conflict[k] = column_at[b] > max(come, bus)
        else:
            closing = 0
            ready = row_at[b]
            if open_row[b] >= 0:
                closing = n[T_RP]
                ready = max(ready, max(come, close_at[b]) + closing)
            free = max(come + closing, bus - n[T_RCD])
            opening = max(free, ready)
            conflict[k] = closing > 0 or ready > free
            for other in range(r * n[GROUPS], (r + 1) * n[GROUPS]):
                opening = max(opening, rows[other] + (n[T_RRD_L] if other == g else n[T_RRD_S]))
            opening = max(opening, four[r, oldest[r]] + n[T_FAW])
            time = opening + n[T_RCD]
            four[r, oldest[r]] = opening
            oldest[r] = (oldest[r] + 1) & 3
            rows[g] = opening
            row_at[b] = opening + n[T_RC]
            column_at[b] = time
            close_at[b] = opening + n[T_RAS]
            open_row[b] = row[k]
        columns[mode, g] = time
        close_at[b] = max(close_at[b], time + (n[WRITTEN] if mode else n[T_RTP]))
        if n[CLOSED]:
            open_row[b] = -1
            row_at[b] = max(row_at[b], close_at[b] + n[T_RP])
        column[k] = time
        last = time
    return column, conflict


CELLS = 1024
SERVED, SKIPPED = 2304, 256
"""Accesses of a sequence that its waits are derived from, and those of them that only lead to its state."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """Extra wait of each access of a sequence over the one before if both arrive together. [cycles]."""

    gap: FloatArray  # that difference of waits
    ahead: IntArray  # accesses of the whole system from the one before to each
    counted: FloatArray  # whether an access that has to wait counts for `waits`

    def waits(self, rate: float, guess: float) -> tuple[float, float]:
        """Return the mean wait at a rate of the whole system, and the share that waits and counts.

        Parameters
        ----------
        rate : float
            Accesses of the whole system, which arrive as a Poisson process. [accesses/cycle]
        guess : float
            About how long the wait is; it decides where the law of waits is cut off. [cycles]
        """
        if rate <= 0:
            return 0.0, 0.0
        gap, ahead, counted = (x[:SERVED] for x in (self.gap, self.ahead, self.counted))
        skip = min(SKIPPED, gap.size // 2)
        wait = late = 0.0
        for _ in range(8):
            cell = max((15 * guess + 6 * float(np.abs(gap).max())) / CELLS, 0.05)
            decay = float(np.exp(-rate * cell))
            moved = 1 / (rate * cell) - decay / max(-np.expm1(-rate * cell), 1e-300)
            wait, late = lindley_along(gap / cell, ahead, counted, decay, moved, CELLS, skip)
            wait *= cell
            if wait < 1.5 * guess:
                break
            guess = 2 * wait
        return wait, late


@compiled
def lindley_along(
    gap: Any, ahead: Any, counted: Any, decay: float, moved: float, cells: int, skip: int
) -> Any:
    r"""Return the mean wait, in cells, and the share of the accesses that wait and count.

    Parameters
    ----------
    gap : array of float
        What each waits longer than the access before if both arrive together; may be below 0. [cells]
    ahead : array of int
        Arrivals of the whole system from the access before to each, whose distances are exponential.
    counted : array of float
        Whether an access counts if it has to wait.
    decay, moved : float
        Of a distance between arrivals: the probability that it is longer than a cell, and the mean of
        what it has beyond whole cells.
    cells : int
        Cells of the law; what is beyond the last one is taken to be there.
    skip : int
        Accesses at the start that are not counted.

    Notes
    -----
    :math:`W_n = (W_{n-1} + G_n - A_n)^+`, with all laws on cells so that means are kept.
    """
    law = np.zeros(cells)
    law[0] = 1.0
    shifted = np.zeros(cells)
    total, late = 0.0, 0.0
    for n in range(gap.size):
        whole = int(np.floor(gap[n]))
        part = gap[n] - whole
        shifted[:] = 0.0
        for k in range(cells):
            shifted[max(min(k + whole, cells - 1), 0)] += (1 - part) * law[k]
            shifted[max(min(k + whole + 1, cells - 1), 0)] += part * law[k]
        for _ in range(ahead[n]):
            above = 0.0
            left = 1.0
            for k in range(cells - 1, 0, -1):
                here = shifted[k] + decay * above
                value = (1 - decay) * ((1 - moved) * here + moved * above)
                shifted[k] = value
                left -= value
                above = here
            shifted[0] = max(left, 0.0)
        law[:] = shifted
        if n >= skip:
            for k in range(1, cells):
                total += k * law[k]
            late += counted[n] * (1 - law[0])
    return total / (gap.size - skip), late / (gap.size - skip)


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
        Timings, see `qmodels.memory.dram.command_times.numbers`; those between reads and writes are not
        used.
    cap : int
        Row hits that may pass an older access to the bank; 0 if none may.
    run, arrival, bank, row, write : arrays of int
        As in `qmodels.memory.dram.command_times.serve_in_order`; arrivals of a run ascend.

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
