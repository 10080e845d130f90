"""When accesses in order get the bus: the recursion over their banks, rows and the timings between them."""

from __future__ import annotations

from typing import Any

import numpy as np

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
