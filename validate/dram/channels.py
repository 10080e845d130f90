"""Channels that meet their accesses as a simulation goes on: the DRAM of a composed system.

All channels of a simulation, also of several systems, stand side by side in one `Channels`. The caller
numbers the accesses under way (places below ``capacity``, which it may use again once they have ended)
and keeps the time:

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
from validate.dram.kernel import serve_in_order, step_until
from validate.dram.state import Channel
from validate.engine.jit import inlined, lean

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
