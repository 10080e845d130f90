"""One DRAM channel whose accesses use the bus in the order of their arrival."""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.commands import keep_ended, limit_columns, limit_rows_after, number_of, record
from validate.dram.refresh import close_for_refresh
from validate.dram.state import Channel
from validate.engine.jit import lean, lean_part


@lean_part
def serve_in_order(channel: Channel) -> None:
    """Serve in order all accesses that will come: what each finds is known from those before it.

    A row is opened just in time for the bus: its command comes so that the column command follows the
    one of the access before as early as bank, rank and bus allow.
    """
    p, limits, clock = channel.p, channel.limits, channel.clock
    groups = p[c.RANKS] * p[c.GROUPS]
    last = clock[c.NOW]
    access = clock[c.CAME]
    while access >= 0:
        number = number_of(channel, access)
        mode, b, arrival = channel.write[access], channel.bank_of[access], channel.arrival[access]
        bank = channel.banks[b]
        rank = channel.ranks[bank[c.RANK]]
        while rank[c.REFRESH_AT] <= max(arrival, last):
            rank[c.BLOCKED_FROM] = rank[c.REFRESH_AT]
            rank[c.REFRESH_AT] += p[c.T_REFI]
            close_for_refresh(channel, bank[c.RANK], rank[c.BLOCKED_FROM])
        bus = max(limits[(c.COLUMN + mode) * groups + bank[c.GROUP]], last)
        if bank[c.OPEN_ROW] == channel.row[access]:
            time = max(bus, max(arrival, bank[c.COLUMN_AT]))
            conflict = bank[c.COLUMN_AT] > max(arrival, bus)
        else:
            closing = 0
            ready = bank[c.ROW_AT]
            if bank[c.OPEN_ROW] >= 0:
                closing = p[c.T_RP]
                ready = max(ready, max(arrival, bank[c.CLOSE_AT]) + closing)
            free = max(arrival + closing, bus - p[c.T_RCD])
            opening = max(max(free, ready), limits[c.ROW * groups + bank[c.GROUP]])
            conflict = closing > 0 or ready > free
            time = opening + p[c.T_RCD]
            since = arrival + closing
            refresh = 0
            if rank[c.BLOCKED_TO] > since:
                refresh = min(opening - since, rank[c.BLOCKED_TO] - max(since, rank[c.BLOCKED_FROM]))
            bank[c.OPENED_FOR] = number
            bank[c.ROW_TIME] = closing + p[c.T_RCD]
            bank[c.REFRESH_TIME] = refresh
            bank[c.BANK_TIME] = max(0, min(opening, ready) - max(free, since + refresh))
            bank[c.SLOT_TIME] = 0
            bank[c.OPEN_ROW] = channel.row[access]
            bank[c.HITS] = 0
            bank[c.ROW_AT] = opening + p[c.T_RC]
            bank[c.COLUMN_AT] = time
            bank[c.CLOSE_AT] = opening + p[c.T_RAS]
            limit_rows_after(channel, b, opening)
        channel.sums[mode, number >> p[c.SHIFT], c.CONFLICTS] += conflict
        limit_columns(channel, b, mode, time)
        record(channel, b, mode, access, number, time)
        last = time
        access = channel.following[access]
    clock[c.NOW] = last
    keep_ended(channel, clock[c.CAME], clock[c.LAST])
    clock[c.LEFT] = 0
    clock[c.CAME] = -1


@lean
def run_channel_in_order(channel: Channel) -> int:
    """Serve all accesses of a channel in order; return the cycle after the last command."""
    serve_in_order(channel)
    return channel.clock[c.NOW] + 1
