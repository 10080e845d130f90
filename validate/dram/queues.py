"""Waiting accesses: one queue for each direction and bank, and the command that the next of each needs."""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.state import Channel
from validate.engine.jit import inlined, lean_part


@inlined
def number_of(channel: Channel, access: int) -> int:
    """Return the number of an access in the order of arrival."""
    return channel.number[access] if channel.number.size else access


@inlined
def limit_rows_after(channel: Channel, b: int, now: int) -> None:
    """Keep the row commands of a rank apart from one to bank ``b``."""
    p, limits, bank = channel.p, channel.limits, channel.banks[b]
    rank = channel.ranks[bank[c.RANK]]
    rank[c.GIVEN + rank[c.OLDEST]] = now
    rank[c.OLDEST] = (rank[c.OLDEST] + 1) & 3
    first = c.ROW * p[c.RANKS] * p[c.GROUPS]
    of_rank = first + bank[c.RANK] * p[c.GROUPS]
    next_row = max(now + p[c.T_RRD_S], rank[c.GIVEN + rank[c.OLDEST]] + p[c.T_FAW])
    for at in range(of_rank, of_rank + p[c.GROUPS]):
        limits[at] = max(limits[at], next_row)
    at = first + bank[c.GROUP]
    limits[at] = max(limits[at], now + p[c.T_RRD_L])


@inlined
def limit_columns(channel: Channel, b: int, mode: int, now: int) -> None:
    """Keep column commands of the channel apart from one to bank ``b``."""
    p, limits, bank = channel.p, channel.limits, channel.banks[b]
    groups = p[c.RANKS] * p[c.GROUPS]
    if mode == 0:
        turn = max(p[c.BURST], p[c.CL] + p[c.BURST] + p[c.T_RTRS] - p[c.CWL])
        turn_rank, turn_group = turn, turn
    else:
        turn = max(p[c.BURST], p[c.CWL] + p[c.BURST] + p[c.T_RTRS] - p[c.CL])
        turn_rank = p[c.CWL] + p[c.BURST] + p[c.T_WTR_S]
        turn_group = p[c.CWL] + p[c.BURST] + p[c.T_WTR_L]
    for g in range(groups):
        if g == bank[c.GROUP]:
            again, other = p[c.T_CCD_L], turn_group
        elif g // p[c.GROUPS] == bank[c.RANK]:
            again, other = p[c.BURST], turn_rank
        else:
            again, other = p[c.BURST] + p[c.T_RTRS], turn
        at = (c.COLUMN + mode) * groups + g
        limits[at] = max(limits[at], now + again)
        at = (c.COLUMN + 1 - mode) * groups + g
        limits[at] = max(limits[at], now + other)


@inlined
def record(channel: Channel, b: int, mode: int, access: int, number: int, now: int) -> None:
    """Give the column command of an access: when its bank may be closed, and the sums."""
    p, bank = channel.p, channel.banks[b]
    delay = p[c.CL] if mode == 0 else p[c.CWL]
    end = now + delay + p[c.BURST]
    free = now + p[c.T_RTP] if mode == 0 else end + p[c.T_WR]
    bank[c.HITS] += 1
    bank[c.CLOSE_AT] = max(bank[c.CLOSE_AT], free)
    if p[c.CLOSED]:
        bank[c.OPEN_ROW] = -1
        bank[c.ROW_AT] = max(bank[c.ROW_AT], bank[c.CLOSE_AT] + p[c.T_RP])
    if channel.end.size:
        channel.end[access] = end + p[c.CONTROLLER]
    latency = end - channel.arrival[access]
    batch = number >> p[c.SHIFT]
    sums = channel.sums[mode, batch]
    sums[c.COUNT] += 1
    sums[c.LATENCY] += latency
    bus = latency - delay - p[c.BURST]
    if bank[c.OPENED_FOR] == number:
        sums[c.OPENED] += 1
        sums[c.ROWS] += bank[c.ROW_TIME]
        sums[c.BANK_WAIT] += bank[c.BANK_TIME]
        sums[c.SLOT_WAIT] += bank[c.SLOT_TIME]
        sums[c.REFRESH_WAIT] += bank[c.REFRESH_TIME]
        bus -= bank[c.ROW_TIME] + bank[c.BANK_TIME] + bank[c.SLOT_TIME] + bank[c.REFRESH_TIME]
    else:
        own = min(bus, max(0, bank[c.COLUMN_AT] - channel.arrival[access]))
        sums[c.BANK_WAIT] += own
        bus -= own
    sums[c.BUS_WAIT] += bus
    if batch > 0:
        channel.counts[mode, min(latency, c.LONGEST)] += 1


@inlined
def keep_ended(channel: Channel, first: int, last: int) -> None:
    """Put accesses that follow one another, and are in no queue any more, behind those that ended."""
    clock = channel.clock
    if clock[c.ENDED] < 0:
        clock[c.ENDED] = first
    else:
        channel.following[clock[c.LAST_ENDED]] = first
    clock[c.LAST_ENDED] = last


@inlined
def refer(channel: Channel, mode: int, place: int) -> None:
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
    entry[c.NUMBER] = number_of(channel, chosen)


@lean_part
def refer_all(channel: Channel, mode: int) -> None:
    """Find the next access of every queue of a direction."""
    for place in range(channel.clock[c.QUEUES + mode]):
        refer(channel, mode, place)


@inlined
def turn(channel: Channel) -> None:
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
        refer_all(channel, mode)


@inlined
def admit(channel: Channel) -> bool:
    """Let the next access into its queue; return whether more than a new last entry has changed."""
    clock, p = channel.clock, channel.p
    access = clock[c.CAME]
    clock[c.CAME] = channel.following[access]
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
        refer(channel, mode, place)
        changed = False
        other_row = bank[c.OPEN_ROW] >= 0 and bank[c.OPEN_ROW] != channel.row[access]
        conflict = other_row or bank[c.ROW_AT] > channel.arrival[access]
        if bank[c.OPEN_ROW] == channel.row[access]:
            conflict = False
    else:
        channel.following[queue[c.TAIL]] = access
        queue[c.TAIL] = access
        if p[c.HITS_FIRST] and bank[c.OPEN_ROW] == channel.row[access]:
            refer(channel, mode, queue[c.PLACE])
        else:
            changed = False
    batch = number_of(channel, access) >> p[c.SHIFT]
    channel.sums[mode, batch, c.CONFLICTS] += conflict
    before = clock[c.MODE]
    turn(channel)
    if clock[c.MODE] != before:
        # Accesses that waited for this turn may not be served before it.
        clock[c.NOW] = max(clock[c.NOW], channel.arrival[access])
        changed = True
    return changed


@inlined
def remove(channel: Channel, mode: int, place: int, access: int) -> None:
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
    if queue[c.HEAD] >= 0:
        refer(channel, mode, place)
        return
    last = clock[c.QUEUES + mode] - 1
    clock[c.QUEUES + mode] = last
    if place != last:
        for k in range(5):
            channel.entries[mode, place, k] = channel.entries[mode, last, k]
        moved = channel.entries[mode, place, c.BANK]
        channel.queues[mode * total + moved, c.PLACE] = place


@lean_part
def close_for_refresh(channel: Channel, r: int, start: int) -> None:
    """Close the rows of a rank as soon as they may be from ``start`` on, and refresh it."""
    p, banks = channel.p, channel.banks
    begin = start
    per_rank = p[c.GROUPS] * p[c.BANKS]
    for b in range(r * per_rank, (r + 1) * per_rank):
        if banks[b, c.OPEN_ROW] >= 0:
            begin = max(begin, max(start, banks[b, c.CLOSE_AT]) + p[c.T_RP])
        else:
            begin = max(begin, banks[b, c.ROW_AT])
    channel.ranks[r, c.BLOCKED_TO] = begin + p[c.T_RFC]
    for b in range(r * per_rank, (r + 1) * per_rank):
        banks[b, c.OPEN_ROW] = -1
        banks[b, c.ROW_AT] = begin + p[c.T_RFC]


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
    """Refresh a rank that is due."""
    rank = channel.ranks[r]
    rank[c.DUE] = 0
    channel.clock[c.RANKS_DUE] -= 1
    close_for_refresh(channel, r, max(rank[c.BLOCKED_FROM], channel.clock[c.NOW]))
    _limit_rows(channel, r, rank[c.BLOCKED_TO])
    refer_all(channel, channel.clock[c.MODE])


@lean_part
def _limit_rows(channel: Channel, r: int, time: int) -> None:
    p = channel.p
    first = (c.ROW * p[c.RANKS] + r) * p[c.GROUPS]
    for at in range(first, first + p[c.GROUPS]):
        channel.limits[at] = time


@lean_part
def refresh_due(channel: Channel, time: int) -> int:
    """Let the rank that is due give no more row commands; return when the next one is due."""
    p = channel.p
    following = c.NEVER
    for r in range(p[c.RANKS]):
        rank = channel.ranks[r]
        if rank[c.REFRESH_AT] == time:
            rank[c.REFRESH_AT] += p[c.T_REFI]
            rank[c.DUE] = 1
            rank[c.BLOCKED_FROM] = time
            rank[c.BLOCKED_TO] = c.NEVER
            channel.clock[c.RANKS_DUE] += 1
            _limit_rows(channel, r, c.NEVER)
        following = min(following, rank[c.REFRESH_AT])
    return following


@lean_part
def begin_refreshes(channel: Channel) -> None:
    """Refresh the ranks that are due and have no access left whose row is open."""
    for r in range(channel.p[c.RANKS]):
        if channel.ranks[r, c.DUE] and not _pending(channel, r):
            _refresh(channel, r)
