"""Channels of two banks: each holds the table, half of it in either bank.

A request goes to an idle bank that has its part of the table, in an idle channel if there is one; if no
such bank is idle it waits in the queue of that part. Channels are listed by their busy banks: 0 none,
1 and 2 one of them, 3 both.
"""

from __future__ import annotations

from validate.engine.jit import lean
from validate.engine.streams import uniform
from validate.llc_processor.state import PARTS, World

BOTH = 3


@lean
def enter_memory(w: World, part: int, core: int) -> None:
    """Give a core's request for a part of the table to a bank, or to the queue."""
    other = 2 - part  # the state in which the other bank alone is busy
    if w.in_state[0] > 0:
        channel = w.by_state[0, w.in_state[0] - 1]
    elif w.in_state[other] > 0:
        channel = w.by_state[other, w.in_state[other] - 1]
    else:
        length = w.parts[part]["length"]
        w.part_queue[part, (w.parts[part]["head"] + length) % w.part_queue.shape[1]] = core
        w.parts[part]["length"] = length + 1
        return
    w.banks[channel, part] = core
    _move(w, channel, w.channels[channel]["busy"] | (1 << part))


@lean
def leave_memory(w: World, kind: int, place: int) -> int:
    """End a service in the channel at this place of a list; return its core.

    If both banks are busy it is either one's.
    """
    channel = w.by_state[kind, place]
    part = kind - 1
    if kind == BOTH:
        part = int(uniform(w.streams, PARTS) * 2)
    core = w.banks[channel, part]
    if w.parts[part]["length"] > 0:
        w.banks[channel, part] = w.part_queue[part, w.parts[part]["head"]]
        w.parts[part]["head"] = (w.parts[part]["head"] + 1) % w.part_queue.shape[1]
        w.parts[part]["length"] -= 1
    else:
        _move(w, channel, kind & ~(1 << part))
    return core


@lean
def _move(w: World, channel: int, state: int) -> None:
    channels, by_state, in_state = w.channels, w.by_state, w.in_state
    old, place = channels[channel]["busy"], channels[channel]["place"]
    in_state[old] -= 1
    last = by_state[old, in_state[old]]
    by_state[old, place] = last
    channels[last]["place"] = place
    by_state[state, in_state[state]] = channel
    channels[channel]["busy"], channels[channel]["place"] = state, in_state[state]
    in_state[state] += 1
