"""Refreshes: a rank that is due first serves the accesses whose rows it has opened."""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.queues import refer_all
from validate.dram.state import Channel
from validate.engine.jit import lean_part


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
