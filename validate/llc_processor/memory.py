"""Channels of two banks: each holds the table, half of it in either bank.

A request goes to an idle bank that has its part of the table, in an idle channel if there is one; if no
such bank is idle it waits in the queue of that part. Channels are listed by their busy banks: 0 none,
1 and 2 one of them, 3 both.
"""

from __future__ import annotations

from typing import Any

from validate.engine.jit import lean
from validate.engine.streams import uniform

BOTH = 3


@lean
def enter_memory(
    channels: Any,
    by_state: Any,
    in_state: Any,
    banks: Any,
    parts: Any,
    queue: Any,
    part: int,
    core: int,
) -> None:
    """Give a core's request for a part of the table to a bank, or to the queue."""
    other = 2 - part  # the state in which the other bank alone is busy
    if in_state[0] > 0:
        channel = by_state[0, in_state[0] - 1]
    elif in_state[other] > 0:
        channel = by_state[other, in_state[other] - 1]
    else:
        length = parts[part]["length"]
        queue[part, (parts[part]["head"] + length) % queue.shape[1]] = core
        parts[part]["length"] = length + 1
        return
    banks[channel, part] = core
    _move(channels, by_state, in_state, channel, channels[channel]["busy"] | (1 << part))


@lean
def leave_memory(
    channels: Any,
    by_state: Any,
    in_state: Any,
    banks: Any,
    parts: Any,
    queue: Any,
    streams: Any,
    stream: int,
    kind: int,
    place: int,
) -> int:
    """End a service in the channel at this place of a list; return its core.

    If both banks are busy it is either one's.
    """
    channel = by_state[kind, place]
    part = kind - 1
    if kind == BOTH:
        part = int(uniform(streams, stream) * 2)
    core = banks[channel, part]
    if parts[part]["length"] > 0:
        banks[channel, part] = queue[part, parts[part]["head"]]
        parts[part]["head"] = (parts[part]["head"] + 1) % queue.shape[1]
        parts[part]["length"] -= 1
    else:
        _move(channels, by_state, in_state, channel, kind & ~(1 << part))
    return core


@lean
def _move(channels: Any, by_state: Any, in_state: Any, channel: int, state: int) -> None:
    old, place = channels[channel]["busy"], channels[channel]["place"]
    in_state[old] -= 1
    last = by_state[old, in_state[old]]
    by_state[old, place] = last
    channels[last]["place"] = place
    by_state[state, in_state[state]] = channel
    channels[channel]["busy"], channels[channel]["place"] = state, in_state[state]
    in_state[state] += 1
