"""Accesses at the controllers of a `DramSystem`, which give their commands cycle by cycle."""

from __future__ import annotations

from validate.dram.channels import NEVER, Channels, advance, offer, take_ended
from validate.engine.events import schedule
from validate.engine.jit import part
from validate.packet_processor import state as c
from validate.packet_processor.network import ACCESS_DONE, COMMANDS_DUE, KINDS, note, note_conflict
from validate.packet_processor.state import World

ROUNDING = 1e-6
"""Of a cycle: times are multiples of clocks and may come out a little early."""
TABLE_ROWS = 1 << 40
"""Rows of table entries at a controller, which knows no negative ones, begin here."""


@part
def join_controller(w: World, channels: Channels, now: float, segment: int) -> None:
    """Offer a delivered access to its channel."""
    p, access = w.parameters[0], w.segments[segment]
    bank, row = access["bank"], access["row"]
    note_conflict(w, now, segment, w.banks[bank]["present"] == 0)
    w.banks[bank]["present"] += 1
    channel = bank // p["banks"]
    note(w, now, p["first_bus"] + channel, 1)
    access["cycle"] = int(now * p["dram_ghz"] + ROUNDING)
    write = w.packets[access["packet"]]["stage"] == c.WRITE
    place = row if row >= 0 else TABLE_ROWS - row
    due = offer(channels, channel, segment, bank % p["banks"], place, int(write), access["cycle"])
    call_again(w, now, channel, due)


@part
def call_again(w: World, now: float, channel: int, cycle: int) -> None:
    """Let the calendar give the commands of a channel before a cycle, if it is to."""
    if cycle < NEVER:
        schedule(w.heap, max(cycle / w.parameters[0]["dram_ghz"], now), channel * KINDS + COMMANDS_DUE)


@part
def give_commands(w: World, channels: Channels, now: float, channel: int) -> None:
    """Give the commands of a channel up to now; accesses whose end is known then end at their time."""
    ghz = w.parameters[0]["dram_ghz"]
    call_again(w, now, channel, advance(channels, channel, int(now * ghz + 0.5)))
    segment = take_ended(channels, channel)
    while segment >= 0:
        access = w.segments[segment]
        end = access["joined"] + (channels.end[segment] - access["cycle"]) / ghz
        schedule(w.heap, max(end, now), segment * KINDS + ACCESS_DONE)
        segment = take_ended(channels, channel)


@part
def end_access(w: World, now: float, segment: int) -> None:
    """Take an access whose data are there off its bank."""
    bank = w.segments[segment]["bank"]
    w.banks[bank]["present"] -= 1
    w.banks[bank]["unfinished"] -= 1
    note(w, now, w.parameters[0]["first_bus"] + bank // w.parameters[0]["banks"], -1)
