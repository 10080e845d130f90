"""One DRAM channel, command by command: of the banks' next commands the first that may be given.

All times are whole cycles. A command is given at the latest of what its bank, bank group, rank and
the buses allow; between commands nothing is computed, so that idle time costs nothing.

Channels of a system meet their accesses as a simulation goes on. All of a simulation, also of several
systems, stand side by side in one `Channels`. The caller numbers the accesses under way (places below
``capacity``, which it may use again once they have ended) and keeps the time:

- `offer` hands a channel an access that arrives in a cycle. `advance` gives the commands of all cycles before
  one, to which the caller's time has come. Both return the cycle at which `advance` is to be called next, or
  `NEVER` if no call is needed but those that were asked for before: a channel without accesses costs
  nothing. Calls that came to nothing because an earlier one was asked for later do no harm.
- `take_ended` returns one after the other the accesses whose end is known, then -1; ``channels.end`` has the
  cycle in which the data are there, the controller's time included, see `DramSystem.controller_cycles`. It
  is never before the cycle of the call: the caller keeps it in its calendar.
- Accesses come to a channel in the order of their cycles. A time ``t`` between two cycles counts as the one
  that has begun, ``floor(t * clock_ghz)``; if the access then ends ``end - cycle`` cycles after ``t``, its
  latency is as in `validate.dram.experiment`. A call for a cycle is made at ``cycle / clock_ghz``.
- Before an access has no place left the caller takes `with_room`, outside of compiled code.

``channels.sums[channel, direction, 0]`` counts what `validate.dram.state` names: accesses that have had their
turn on the bus (`COUNT`), their latency without the controller's time, row hits (``COUNT - OPENED``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from qmodels.systems.memory.dram_system import DramSystem
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


NEVER = c.NEVER
ONE_BATCH = 62
"""The exponent of a batch that holds all accesses."""
BY_ACCESS = ("arrival", "bank_of", "row", "write", "number", "following", "end")
BY_CHANNEL = ("banks", "queues", "entries", "limits", "ranks", "clock")


class Channels(NamedTuple):
    """The arrays of `validate.dram.state.Channel`: of accesses for all channels, others by channel."""

    p: Annotated[Any, "i8", 2]
    arrival: Annotated[Any, "i8", 1]
    bank_of: Annotated[Any, "i8", 1]
    row: Annotated[Any, "i8", 1]
    write: Annotated[Any, "i8", 1]
    number: Annotated[Any, "i8", 1]
    following: Annotated[Any, "i8", 1]
    end: Annotated[Any, "i8", 1]
    banks: Annotated[Any, "i8", 3]
    queues: Annotated[Any, "i8", 3]
    entries: Annotated[Any, "i8", 4]
    limits: Annotated[Any, "i8", 2]
    ranks: Annotated[Any, "i8", 3]
    clock: Annotated[Any, "i8", 2]
    sums: Annotated[Any, "i8", 4]
    counts: Annotated[Any, "i8", 2]
    # Of each channel: accesses it was offered, the cycle before which it was advanced, the one for which the
    # next call was asked.
    asked: Annotated[Any, "i8", 2]


OFFERED, UNTIL, NEXT = range(3)


def new_channels(specs: Sequence[DramSystem], *, capacity: int, start: float) -> Channels:
    """Return the idle channels of some systems: those of the first one, those of the second one, and so on.

    ``specs``: the systems; their traffic does not matter; ``capacity``: accesses that may be under way;
    ``start``: when in the first refresh interval the run begins, as a share of it.
    """
    each = [(spec, c.idle_state(spec, start)) for spec in specs for _ in range(spec.geometry.channels)]
    asked = np.zeros((len(each), 3), dtype=np.int64)
    asked[:, NEXT] = NEVER
    channels = Channels(
        p=np.array([c.parameters(spec, ONE_BATCH) for spec, _ in each]),
        **dict.fromkeys(BY_ACCESS, c.NONE),
        **{name: _stacked([state[name] for _, state in each]) for name in BY_CHANNEL},
        sums=np.zeros((len(each), 2, 1, c.SUMS), dtype=np.int64),
        counts=np.zeros((2, 1), dtype=np.int64),
        asked=asked,
    )
    return with_room(channels, capacity)


def with_room(channels: Channels, capacity: int) -> Channels:
    """Return the channels with room for more accesses under way; those there are keep their places."""
    wider = {}
    for name in BY_ACCESS:
        wider[name] = np.zeros(capacity + (name == "arrival"), dtype=np.int64)
        held = getattr(channels, name)[:capacity]
        wider[name][: held.size] = held
    wider["arrival"][channels.end.size :] = NEVER
    return channels._replace(**wider)


def _stacked(arrays: Sequence[Any]) -> Any:
    """Return arrays of one dimension more; smaller ones fill the front of theirs."""
    stack = np.zeros((len(arrays), *np.max([array.shape for array in arrays], axis=0)), dtype=np.int64)
    for whole, array in zip(stack, arrays, strict=True):
        whole[tuple(map(slice, array.shape))] = array
    return stack


@inlined
def _channel(channels: Channels, k: int) -> Channel:
    return Channel(
        channels.p[k],
        channels.arrival,
        channels.bank_of,
        channels.row,
        channels.write,
        channels.number,
        channels.following,
        channels.end,
        channels.banks[k],
        channels.queues[k],
        channels.entries[k],
        channels.limits[k],
        channels.ranks[k],
        channels.clock[k],
        channels.sums[k],
        channels.counts,
    )


@lean
def offer(channels: Channels, k: int, access: int, bank: int, row: int, write: int, cycle: int) -> int:
    """Let an access come to a channel; return the cycle of a call of `advance` to add, or `NEVER`.

    It comes no earlier than accesses before it, or than the channel was advanced: times that are sums of
    periods may come out a little early.
    """
    clock, asked = channels.clock[k], channels.asked[k]
    last = clock[c.LAST]
    came = max(cycle, asked[UNTIL])
    if clock[c.CAME] >= 0:
        came = max(came, channels.arrival[last])
        channels.following[last] = access
    else:
        clock[c.CAME] = access
    clock[c.LAST] = access
    clock[c.LEFT] += 1
    channels.arrival[access] = came
    channels.bank_of[access] = bank
    channels.row[access] = row
    channels.write[access] = write
    channels.number[access] = asked[OFFERED]
    channels.following[access] = -1
    asked[OFFERED] += 1
    first = came + channels.p[k, c.LEAST]
    if first >= asked[NEXT]:
        return NEVER
    asked[NEXT] = first
    return first


@lean
def advance(channels: Channels, k: int, until: int) -> int:
    """Give the commands of a channel before a cycle; return that of a call to add, or `NEVER`.

    All accesses that come before that cycle must have been offered.
    """
    asked = channels.asked[k]
    if until < asked[NEXT]:
        return NEVER
    asked[UNTIL] = until
    channel = _channel(channels, k)
    if channels.p[k, c.IN_ORDER]:
        serve_in_order(channel)
        asked[NEXT] = NEVER
    else:
        asked[NEXT] = step_until(channel, until)
    return asked[NEXT]


@lean
def take_ended(channels: Channels, k: int) -> int:
    """Return the next access of a channel whose end is known, or -1; its place may then be used again."""
    clock = channels.clock[k]
    access = clock[c.ENDED]
    if access >= 0:
        clock[c.ENDED] = -1 if access == clock[c.LAST_ENDED] else channels.following[access]
    return access
