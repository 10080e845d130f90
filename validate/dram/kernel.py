"""One DRAM channel, command by command: of the banks' next commands the first that may be given.

All times are whole cycles. A command is given at the latest of what its bank, bank group, rank and
the buses allow; between commands nothing is computed, so that idle time costs nothing.
"""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.commands import close_for_refresh, limit_columns, limit_rows_after, record
from validate.dram.state import Channel
from validate.engine.jit import inlined, lean, lean_part

NEVER = c.NEVER


@inlined
def _refer(channel: Channel, mode: int, place: int) -> None:
    """Find the next access of a queue and the command it needs: the oldest, or the oldest row hit."""
    p, bank, entry = channel.p, channel.banks, channel.entries[mode, place]
    b = entry[c.BANK]
    groups = p[c.RANKS] * p[c.GROUPS]
    total = groups * p[c.BANKS]
    head = channel.queues[mode * total + b, c.HEAD]
    chosen = head
    state = bank[b]
    open_row = state[c.OPEN_ROW]
    if open_row >= 0 and p[c.HITS_FIRST] and state[c.HITS] < p[c.CAP]:
        access = head
        while access >= 0 and channel.row[access] != open_row:
            access = channel.following[access]
        if access >= 0:
            chosen = access
    if open_row < 0:
        kind, own = c.ROW, state[c.ROW_AT]
    elif channel.row[chosen] == open_row:
        kind, own = c.COLUMN + mode, state[c.COLUMN_AT]
    else:
        kind, own = c.CLOSE, state[c.CLOSE_AT]
    entry[c.OWN] = max(own, channel.arrival[chosen])
    entry[c.LIMIT] = kind * groups + state[c.GROUP]
    entry[c.ACCESS] = chosen


@lean_part
def _refer_all(channel: Channel, mode: int) -> None:
    for place in range(channel.clock[c.QUEUES + mode]):
        _refer(channel, mode, place)


@inlined
def _direction(channel: Channel) -> None:
    """Turn from reads to writes or back where it is time."""
    clock, p = channel.clock, channel.p
    reads, writes = clock[c.WAITING], clock[c.WAITING + 1]
    mode = clock[c.MODE]
    if mode == 0:
        if writes >= p[c.HIGH] or (reads == 0 and writes > 0):
            mode = 1
    elif writes == 0 or (reads > 0 and writes <= p[c.LOW]):
        mode = 0
    if mode != clock[c.MODE]:
        clock[c.MODE] = mode
        _refer_all(channel, mode)


@inlined
def _admit(channel: Channel) -> bool:
    """Let the next access into its queue; return whether more than a new last entry has changed."""
    clock, p = channel.clock, channel.p
    access = clock[c.CAME]
    clock[c.CAME] = access + 1
    mode, b = channel.write[access], channel.bank_of[access]
    total = p[c.RANKS] * p[c.GROUPS] * p[c.BANKS]
    queue = channel.queues[mode * total + b]
    channel.following[access] = -1
    clock[c.WAITING + mode] += 1
    changed = True
    bank = channel.banks[b]
    conflict = True
    if queue[c.HEAD] < 0:
        queue[c.HEAD] = access
        queue[c.TAIL] = access
        place = clock[c.QUEUES + mode]
        clock[c.QUEUES + mode] = place + 1
        queue[c.PLACE] = place
        channel.entries[mode, place, c.BANK] = b
        _refer(channel, mode, place)
        changed = False
        other_row = bank[c.OPEN_ROW] >= 0 and bank[c.OPEN_ROW] != channel.row[access]
        conflict = other_row or bank[c.ROW_AT] > channel.arrival[access]
        if bank[c.OPEN_ROW] == channel.row[access]:
            conflict = False
    else:
        channel.following[queue[c.TAIL]] = access
        queue[c.TAIL] = access
        if p[c.HITS_FIRST] and bank[c.OPEN_ROW] == channel.row[access]:
            _refer(channel, mode, queue[c.PLACE])
        else:
            changed = False
    batch = access >> p[c.SHIFT]
    channel.sums[mode, batch, c.CONFLICTS] += conflict
    before = clock[c.MODE]
    _direction(channel)
    if clock[c.MODE] != before:
        # Accesses that waited for this turn may not be served before it.
        clock[c.NOW] = max(clock[c.NOW], channel.arrival[access])
        changed = True
    return changed


@inlined
def _remove(channel: Channel, mode: int, place: int, access: int) -> None:
    """Take a served access out of its queue."""
    clock, p = channel.clock, channel.p
    b = channel.entries[mode, place, c.BANK]
    total = p[c.RANKS] * p[c.GROUPS] * p[c.BANKS]
    queue = channel.queues[mode * total + b]
    after = channel.following[access]
    if queue[c.HEAD] == access:
        queue[c.HEAD] = after
    else:
        before = queue[c.HEAD]
        while channel.following[before] != access:
            before = channel.following[before]
        channel.following[before] = after
        if after < 0:
            queue[c.TAIL] = before
    clock[c.WAITING + mode] -= 1
    clock[c.SERVED] += 1
    if queue[c.HEAD] >= 0:
        _refer(channel, mode, place)
        return
    last = clock[c.QUEUES + mode] - 1
    clock[c.QUEUES + mode] = last
    if place != last:
        for k in range(4):
            channel.entries[mode, place, k] = channel.entries[mode, last, k]
        moved = channel.entries[mode, place, c.BANK]
        channel.queues[mode * total + moved, c.PLACE] = place


@inlined
def _open(channel: Channel, mode: int, place: int, now: int) -> None:
    """Give a row command and note what its access waited for."""
    p = channel.p
    access, b = channel.entries[mode, place, c.ACCESS], channel.entries[mode, place, c.BANK]
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
    if bank[c.CLOSED_FOR] == access:
        closing = min(own, p[c.T_RP])
    bank[c.OPENED_FOR] = access
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


@lean_part
def _pending(channel: Channel, r: int) -> bool:
    """Return whether a bank of a rank was opened for an access that is still to come."""
    mode = channel.clock[c.MODE]
    columns = c.ROW * channel.p[c.RANKS] * channel.p[c.GROUPS]
    for place in range(channel.clock[c.QUEUES + mode]):
        entry = channel.entries[mode, place]
        bank = channel.banks[entry[c.BANK]]
        if bank[c.RANK] == r and entry[c.LIMIT] < columns and bank[c.HITS] == 0:
            return True
    return False


@lean_part
def _refresh(channel: Channel, r: int) -> None:
    """Refresh a rank that is due and has no access left whose row is open."""
    rank = channel.ranks[r]
    rank[c.DUE] = 0
    channel.clock[c.RANKS_DUE] -= 1
    close_for_refresh(channel, r, max(rank[c.BLOCKED_FROM], channel.clock[c.NOW]))
    _limit_rows(channel, r, rank[c.BLOCKED_TO])
    _refer_all(channel, channel.clock[c.MODE])


@lean_part
def _limit_rows(channel: Channel, r: int, time: int) -> None:
    p = channel.p
    first = (c.ROW * p[c.RANKS] + r) * p[c.GROUPS]
    for at in range(first, first + p[c.GROUPS]):
        channel.limits[at] = time


@lean_part
def _refresh_due(channel: Channel, time: int) -> int:
    """Let the rank that is due give no more row commands; return when the next one is due."""
    p = channel.p
    following = NEVER
    for r in range(p[c.RANKS]):
        rank = channel.ranks[r]
        if rank[c.REFRESH_AT] == time:
            rank[c.REFRESH_AT] += p[c.T_REFI]
            rank[c.DUE] = 1
            rank[c.BLOCKED_FROM] = time
            rank[c.BLOCKED_TO] = NEVER
            channel.clock[c.RANKS_DUE] += 1
            _limit_rows(channel, r, NEVER)
        following = min(following, rank[c.REFRESH_AT])
    return following


@lean_part
def _begin_refreshes(channel: Channel) -> None:
    for r in range(channel.p[c.RANKS]):
        if channel.ranks[r, c.DUE] and not _pending(channel, r):
            _refresh(channel, r)


@lean
def run_channel(channel: Channel) -> int:
    """Serve all accesses of a channel; return the time of the last command."""
    clock, limits = channel.clock, channel.limits
    size = channel.p[c.ACCESSES]
    column_limits = c.ROW * channel.p[c.RANKS] * channel.p[c.GROUPS]
    row_limits = c.CLOSE * channel.p[c.RANKS] * channel.p[c.GROUPS]
    refresh = NEVER
    for r in range(channel.p[c.RANKS]):
        refresh = min(refresh, channel.ranks[r, c.REFRESH_AT])
    while clock[c.SERVED] < size:
        # Of the commands that may be given first, a column command goes before others, then the
        # command of the oldest access.
        mode = clock[c.MODE]
        now = clock[c.NOW]
        entries = channel.entries[mode]
        best, best_access, best_place = 2 * NEVER, size, -1
        place = 0
        arrival = channel.arrival[clock[c.CAME]]
        while True:
            while place < clock[c.QUEUES + mode]:
                limit = entries[place, c.LIMIT]
                time = max(max(entries[place, c.OWN], limits[limit]), now)
                key = 2 * time + (limit >= column_limits)
                access = entries[place, c.ACCESS]
                if key < best or (key == best and access < best_access):
                    best, best_access, best_place = key, access, place
                place += 1
            if arrival > best >> 1 or arrival == NEVER or refresh <= arrival:
                break
            if _admit(channel):
                best_place = -2
                break
            arrival = channel.arrival[clock[c.CAME]]
        if best_place == -2:
            if clock[c.RANKS_DUE]:
                _begin_refreshes(channel)
            continue
        time = best >> 1
        if refresh <= min(time, arrival):
            refresh = _refresh_due(channel, refresh)
            _begin_refreshes(channel)
            continue
        clock[c.NOW] = time + 1
        limit = entries[best_place, c.LIMIT]
        if limit < column_limits:
            limit_columns(channel, entries[best_place, c.BANK], mode, time)
            record(channel, entries[best_place, c.BANK], mode, best_access, time)
            _remove(channel, mode, best_place, best_access)
            _direction(channel)
            if clock[c.RANKS_DUE]:
                _begin_refreshes(channel)
        else:
            if limit < row_limits:
                _open(channel, mode, best_place, time)
                if channel.p[c.T_RCD] == 0:
                    clock[c.NOW] = time  # both commands are one
            else:
                bank = channel.banks[entries[best_place, c.BANK]]
                bank[c.OPEN_ROW] = -1
                bank[c.ROW_AT] = max(bank[c.ROW_AT], time + channel.p[c.T_RP])
                bank[c.CLOSED_FOR] = best_access
            _refer(channel, mode, best_place)
    return clock[c.NOW]
