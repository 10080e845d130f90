"""Waiting accesses: one queue for each direction and bank, and the command that the next of each needs."""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.commands import number_of
from validate.dram.state import Channel
from validate.engine.jit import inlined, lean_part


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
