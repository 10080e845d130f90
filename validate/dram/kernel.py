"""One DRAM channel, command by command: of the banks' next commands the first that may be given.

All times are whole cycles. A command is given at the latest of what its bank, bank group, rank and
the buses allow; between commands nothing is computed, so that idle time costs nothing.
"""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.queues import (
    admit,
    begin_refreshes,
    close_for_refresh,
    keep_ended,
    limit_columns,
    limit_rows_after,
    number_of,
    record,
    refer,
    refresh_due,
    remove,
    turn,
)
from validate.dram.state import Channel
from validate.engine.jit import inlined, lean, lean_part


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


@inlined
def _open(channel: Channel, mode: int, place: int, now: int) -> None:
    """Give a row command and note what its access waited for."""
    p = channel.p
    entry = channel.entries[mode, place]
    access, number, b = entry[c.ACCESS], entry[c.NUMBER], entry[c.BANK]
    bank = channel.banks[b]
    rank = channel.ranks[bank[c.RANK]]
    since = channel.arrival[access]
    wait = now - since
    refresh = 0
    if rank[c.BLOCKED_TO] > since:
        refresh = min(wait, rank[c.BLOCKED_TO] - max(since, rank[c.BLOCKED_FROM]))
        since = max(since, rank[c.BLOCKED_TO])
        wait -= refresh
    own = min(wait, max(0, bank[c.ROW_AT] - since))
    closing = 0
    if bank[c.CLOSED_FOR] == number:
        closing = min(own, p[c.T_RP])
    bank[c.OPENED_FOR] = number
    bank[c.ROW_TIME] = closing + p[c.T_RCD]
    bank[c.BANK_TIME] = own - closing
    bank[c.SLOT_TIME] = wait - own
    bank[c.REFRESH_TIME] = refresh
    bank[c.OPEN_ROW] = channel.row[access]
    bank[c.HITS] = 0
    bank[c.ROW_AT] = now + p[c.T_RC]
    bank[c.COLUMN_AT] = now + p[c.T_RCD]
    bank[c.CLOSE_AT] = now + p[c.T_RAS]
    limit_rows_after(channel, b, now)


@inlined
def _close(channel: Channel, mode: int, place: int, now: int) -> None:
    """Close a row for an access to another one."""
    bank = channel.banks[channel.entries[mode, place, c.BANK]]
    bank[c.OPEN_ROW] = -1
    bank[c.ROW_AT] = max(bank[c.ROW_AT], now + channel.p[c.T_RP])
    bank[c.CLOSED_FOR] = channel.entries[mode, place, c.NUMBER]


@lean_part
def step_until(channel: Channel, until: int) -> int:
    """Give all commands before a cycle; return the first cycle at which an access may then end.

    All accesses that come before that cycle must be there. It is `NEVER` if none is left.
    """
    clock, limits = channel.clock, channel.limits
    column_limits = c.ROW * channel.p[c.RANKS] * channel.p[c.GROUPS]
    row_limits = c.CLOSE * channel.p[c.RANKS] * channel.p[c.GROUPS]
    refresh = c.NEVER
    for r in range(channel.p[c.RANKS]):
        refresh = min(refresh, channel.ranks[r, c.REFRESH_AT])
    while clock[c.LEFT] > 0:
        # Of the commands that may be given first, a column command goes before others, then the
        # command of the oldest access.
        mode = clock[c.MODE]
        now = clock[c.NOW]
        entries = channel.entries[mode]
        best, oldest, chosen = 2 * c.NEVER, c.NEVER, -1
        place = 0
        arrival = channel.arrival[clock[c.CAME]]
        while True:
            while place < clock[c.QUEUES + mode]:
                limit = entries[place, c.LIMIT]
                time = max(max(entries[place, c.OWN], limits[limit]), now)
                key = 2 * time + (limit >= column_limits)
                number = entries[place, c.NUMBER]
                if key < best or (key == best and number < oldest):
                    best, oldest, chosen = key, number, place
                place += 1
            if arrival > best >> 1 or arrival == c.NEVER or refresh <= arrival:
                break
            if admit(channel):
                chosen = -2
                break
            arrival = channel.arrival[clock[c.CAME]]
        if chosen == -2:
            if clock[c.RANKS_DUE]:
                begin_refreshes(channel)
            continue
        time = best >> 1
        if min(time, refresh) >= until:
            return _first_end(channel, mode)
        if refresh <= min(time, arrival):
            refresh = refresh_due(channel, refresh)
            begin_refreshes(channel)
            continue
        clock[c.NOW] = time + 1
        limit = entries[chosen, c.LIMIT]
        if limit < column_limits:
            access = entries[chosen, c.ACCESS]
            limit_columns(channel, entries[chosen, c.BANK], mode, time)
            record(channel, entries[chosen, c.BANK], mode, access, oldest, time)
            remove(channel, mode, chosen, access)
            keep_ended(channel, access, access)
            clock[c.LEFT] -= 1
            turn(channel)
            if clock[c.RANKS_DUE]:
                begin_refreshes(channel)
        else:
            if limit < row_limits:
                _open(channel, mode, chosen, time)
                if channel.p[c.T_RCD] == 0:
                    clock[c.NOW] = time  # both commands are one
            else:
                _close(channel, mode, chosen, time)
            refer(channel, mode, chosen)
    return c.NEVER


@lean_part
def _first_end(channel: Channel, mode: int) -> int:
    """Return a cycle before which no access ends: of the next one that comes, or of a bank's next one.

    Accesses of the other direction come after one of these.
    """
    p, limits = channel.p, channel.limits
    groups = p[c.RANKS] * p[c.GROUPS]
    first = channel.arrival[channel.clock[c.CAME]]
    for place in range(channel.clock[c.QUEUES + mode]):
        entry = channel.entries[mode, place]
        limit = entry[c.LIMIT]
        column = max(max(entry[c.OWN], limits[limit]), channel.clock[c.NOW])
        if limit >= c.ROW * groups:
            column += p[c.T_RCD]
        if limit >= c.CLOSE * groups:
            column += p[c.T_RP]
        first = min(first, column)
    return first + p[c.LEAST]


@lean
def run_channel(channel: Channel) -> int:
    """Serve all accesses of a channel; return the cycle after the last command."""
    if channel.p[c.IN_ORDER]:
        serve_in_order(channel)
        return channel.clock[c.NOW] + 1
    step_until(channel, c.NEVER)
    return channel.clock[c.NOW]
