"""Effects of a command to a DRAM bank: limits on later ones, sums of its access, its end."""

from __future__ import annotations

from validate.dram import state as c
from validate.dram.state import Channel
from validate.engine.jit import inlined


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
