"""Memories inside a system: banks in order behind one bus a channel, and banks that slow each other down."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.composed.lower import block_bytes
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved
from qmodels.systems.memory.dram_system import Dram, DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from validate.composed.state import ACCESSING, ARRIVED, BANKED, BANKING, CHANNEL, MEMORY, OPENING, ROWS, Core
from validate.composed.strands import enter, line_up, wake_at
from validate.data_queueing.free_lists import BlockPools, end_access
from validate.engine.calendar import EARLY, drop, put
from validate.engine.jit import lean_part
from validate.engine.sampling import draw
from validate.engine.streams import uniform
from validate.network.service import unlink
from validate.network.state import NONE, QUEUE, World
from validate.network.world import Sources


class Located(NamedTuple):
    """Fields of a memory for lists, address books and scoreboards, behind controllers or not."""

    geometry: DramGeometry
    address_map: Any
    page_policy: str
    clock_ghz: float
    in_order: bool


def named(spec: System, kind: type[Any]) -> dict[str, Any]:
    """Return the parts of a kind."""
    return {name: part for name, part in spec.parts.items() if isinstance(part, kind)}


def memories(spec: System) -> dict[str, Located]:
    """Return the memories of a system, those behind controllers first."""
    found = {
        name: Located(part.geometry, part.address_map, part.page_policy, float(part.clock_ghz), False)
        for name, part in spec.parts.items()
        if isinstance(part, DramSystem)
    }
    for name, part in spec.parts.items():
        if isinstance(part, Dram):
            found[name] = _located(part, block_bytes(spec, name))
    return found


def _located(part: Dram, block: int) -> Located:
    geometry = DramGeometry(
        channels=int(part.channels),
        groups=1,
        banks=int(part.banks),
        row_blocks=max(1, int(part.row_bytes) // block),
        block_bytes=block,
    )
    address_map = Interleaved(step=int(part.interleaving_step), bank_step=int(part.bank_step))
    return Located(geometry, address_map, part.page_policy, float(part.clock_ghz), True)


UNOPENED, REFRESHED = -1, -(2**62)
"""No row yet, and none since a refresh: those of lines are from -2 down."""


def new_memories(spec: System) -> dict[str, Any]:
    """Return channels, memories and banks, idle: those behind controllers first."""
    found = memories(spec)
    rows = np.zeros(len(found), dtype=MEMORY)
    channels: list[tuple[Any, ...]] = []
    banks = 0
    for number, (row, (name, one)) in enumerate(zip(rows, found.items(), strict=True)):
        at = spec.place.get(name) or (NONE,)
        row["first"], row["first_bank"] = len(channels), banks
        row["channels"], row["banks"] = one.geometry.channels, one.geometry.channel_banks
        row["open_pages"] = one.page_policy == "open"
        part = spec.parts[name]
        if isinstance(part, Dram):
            _fill_times(row, part)
        channels += [
            (one.clock_ghz, at[k % len(at)], number, 0.0, 0.0, 0.0, 0) for k in range(one.geometry.channels)
        ]
        banks += row["channels"] * row["banks"]
    states = np.zeros(banks, dtype=ROWS)
    for field in ("queued_row", "open_row"):
        states[field] = UNOPENED
    for field in ("serving", "head", "tail"):
        states[field] = NONE
    states["refreshes"] = 1  # time begins after an interval, see `_after_refresh`
    return {
        "channels": np.array(channels, dtype=CHANNEL),
        "memories": rows,
        "rows": states,
        "arrived": np.zeros(3 * len(found), dtype=ARRIVED),
    }


def controlled(found: dict[str, Located]) -> int:
    """Return the channels behind controllers."""
    return sum(one.geometry.channels for one in found.values() if not one.in_order)


def _fill_times(row: Any, part: Dram) -> None:
    for name in ("precharge", "burst", "recovery", "access", "refresh"):
        row[name] = getattr(part, f"{name}_cycles") / part.clock_ghz
    row["interval"] = part.refresh_interval_cycles / part.clock_ghz
    if part.page_policy != "open":
        row["precharge"] = 0.0


@lean_part
def come(c: Core, j: int, idle: bool) -> None:
    """Count an access that comes to its bank, and whether it finds it busy with another row."""
    strand = c.strands[j]
    m = c.channels[strand["channel"]]["memory"]
    memory, bank = c.memories[m], c.rows[bank_of(c, j)]
    conflict = not idle and not (memory["open_pages"] and strand["row"] == bank["queued_row"])
    arrived = c.arrived[3 * m + c.code[strand["at"] - 1]["stream"]]
    arrived["number"] += 1
    arrived["conflicts"] += conflict
    bank["queued_row"] = strand["row"]


@lean_part
def bank_of(c: Core, j: int) -> int:
    """Return the number of the bank of a strand among all."""
    strand = c.strands[j]
    memory = c.memories[c.channels[strand["channel"]]["memory"]]
    channel = strand["channel"] - memory["first"]
    return memory["first_bank"] + channel * memory["banks"] + strand["bank"]


@lean_part
def join_bank(w: World, c: Core, j: int) -> None:
    """Let an access join the queue of its bank."""
    number = bank_of(c, j)
    bank = c.rows[number]
    idle = bank["serving"] == NONE
    come(c, j, idle)
    if idle:
        _start(w, c, number, j)
    else:
        line_up(w, bank, j)


@lean_part
def _start(w: World, c: Core, number: int, j: int) -> None:
    """Let a free bank begin an access: it is ready for the data bus at once or after a precharge."""
    strand, bank, now = c.strands[j], c.rows[number], w.state[0]["now"]
    memory = c.memories[c.channels[strand["channel"]]["memory"]]
    begin = _after_refresh(c, number, j, now) if memory["refresh"] > 0 else now
    bank["waited"] += begin - strand["asked"]
    bank["served"] += 1
    hit = memory["open_pages"] and strand["row"] == bank["open_row"]
    if not hit and bank["open_row"] != REFRESHED:
        begin += memory["precharge"]
        bank["busy"] += memory["precharge"]
    bank["busy"] += memory["burst"] + (0.0 if hit else memory["recovery"])
    bank["serving"], bank["open_row"] = j, strand["row"]
    memory["accesses"] += 1
    memory["hits"] += hit
    strand["done"] = hit
    if begin > now:
        wake_at(w, j, OPENING, begin)
    else:
        use_bus(w, c, j)


@lean_part
def _after_refresh(c: Core, number: int, j: int, now: float) -> float:
    """Return when a bank may begin an access; a refresh since its last one has closed its row."""
    m = c.channels[c.strands[j]["channel"]]["memory"]
    memory, bank = c.memories[m], c.rows[number]
    channel = c.strands[j]["channel"] - memory["first"]
    since = now + (1.0 + channel / memory["channels"]) * memory["interval"]
    refreshes = np.int64(since / memory["interval"])
    if refreshes != bank["refreshes"]:
        bank["refreshes"] = refreshes
        if memory["open_pages"]:
            bank["open_row"] = REFRESHED
    return now + max(0.0, memory["refresh"] - (since - refreshes * memory["interval"]))


@lean_part
def use_bus(w: World, c: Core, j: int) -> None:
    """Let a ready access join the queue for the data bus of its channel."""
    channel, now = c.channels[c.strands[j]["channel"]], w.state[0]["now"]
    memory = c.memories[channel["memory"]]
    begin = max(now, channel["free_at"])
    end = begin + memory["burst"]
    channel["free_at"] = end
    channel["waited"] += begin - now
    channel["served"] += 1
    channel["busy"] += memory["burst"]
    free = end if c.strands[j]["done"] else end + memory["recovery"]
    event = w.classes.size + c.state[0]["stations"] + c.channels.size + bank_of(c, j)
    put(w.heap, w.places, event, free, EARLY)
    wake_at(w, j, ACCESSING, end + memory["access"])


@lean_part
def free_bank(w: World, c: Core, b: BlockPools, event: int, number: int) -> None:
    """End the access of a bank, also on its score, and let it begin the next one that waits."""
    drop(w.heap, w.places, event)
    m = 0
    while m + 1 < c.memories.size and c.memories[m + 1]["first_bank"] <= number:
        m += 1
    place, memory, bank = number - c.memories[m]["first_bank"], c.memories[m], c.rows[number]
    if m < b.boards.shape[0]:
        end_access(b, m, place // memory["banks"], place % memory["banks"])
    bank["serving"] = NONE
    j = bank["head"]
    if j != NONE:
        unlink(w, bank, j)
        _start(w, c, number, j)


def new_banks(spec: System, sources: Sources) -> dict[str, Any]:
    """Return the arrays of all such memories, idle."""
    parts = named(spec, BankedChannels)
    rows = np.zeros(len(parts), dtype=BANKED)
    channels = banks = queues = 0
    speeds: list[float] = []
    for row, (name, part) in zip(rows, parts.items(), strict=True):
        row["channels"], row["banks"] = part.channels, part.banks
        row["law"] = sources.law(f"banks {name}", part.service)
        row["stream"] = sources.stream(f"bank {name}")
        row["busy_at"], row["jobs_at"], row["queues_at"] = channels, banks, queues
        row["speeds_at"] = len(speeds) - 1
        speeds += part.speed_of_all
        channels, banks, queues = (
            channels + part.channels,
            banks + part.channels * part.banks,
            queues + part.banks,
        )
    return {
        "banked": rows,
        "bank_busy": np.zeros(channels, dtype=np.int64),
        "bank_jobs": np.full(banks, NONE, dtype=np.int64),
        "bank_queues": np.full(queues, NONE, dtype=QUEUE),
        "bank_speeds": np.array(speeds),
    }


@lean_part
def come_to_bank(w: World, c: Core, j: int, part: int) -> None:
    """Give a strand that wants a random part a bank that has it, or let it wait for one."""
    b, strand = c.banked[c.parts[part]["member"]], c.strands[j]
    enter(w, c, part, j)
    strand["bank"] = int(uniform(w.streams, b["stream"]) * b["banks"])
    strand["left"] = draw(w.laws, w.numbers, w.streams, b["law"])
    found, least = NONE, b["banks"]
    for channel in range(b["channels"]):
        busy = c.bank_busy[b["busy_at"] + channel]
        if busy < least and c.bank_jobs[b["jobs_at"] + channel * b["banks"] + strand["bank"]] < 0:
            found, least = channel, busy
            if busy == 0:
                break
    if found >= 0:
        _set_pace(w, c, part, found, 1)
        _begin(w, c, part, found, j)
        return
    line_up(w, c.bank_queues[b["queues_at"] + strand["bank"]], j)


@lean_part
def leave_bank(w: World, c: Core, j: int, part: int) -> None:
    """End the service of a strand; the first that waits for its part is next."""
    b, strand = c.banked[c.parts[part]["member"]], c.strands[j]
    c.bank_jobs[b["jobs_at"] + strand["channel"] * b["banks"] + strand["bank"]] = NONE
    queue = c.bank_queues[b["queues_at"] + strand["bank"]]
    first = queue["head"]
    if first < 0:
        _set_pace(w, c, part, strand["channel"], -1)
        return
    unlink(w, queue, first)
    _begin(w, c, part, strand["channel"], first)


@lean_part
def _begin(w: World, c: Core, part: int, channel: int, j: int) -> None:
    b, strand, now = c.banked[c.parts[part]["member"]], c.strands[j], w.state[0]["now"]
    c.bank_jobs[b["jobs_at"] + channel * b["banks"] + strand["bank"]] = j
    strand["channel"], strand["paced"] = channel, now
    speed = c.bank_speeds[b["speeds_at"] + c.bank_busy[b["busy_at"] + channel]]
    wake_at(w, j, BANKING, now + strand["left"] / speed)


@lean_part
def _set_pace(w: World, c: Core, part: int, channel: int, more: int) -> None:
    """Let n more banks of a channel be busy; those that were are slower or faster from now on."""
    b, now = c.banked[c.parts[part]["member"]], w.state[0]["now"]
    busy = c.bank_busy[b["busy_at"] + channel]
    c.bank_busy[b["busy_at"] + channel] = busy + more
    b["busy"] += more
    b["busy_sum"] -= more * now
    if busy == 0 or busy + more == 0:
        return
    before, after = c.bank_speeds[b["speeds_at"] + busy], c.bank_speeds[b["speeds_at"] + busy + more]
    if before == after:
        return
    for place in range(channel * b["banks"], (channel + 1) * b["banks"]):
        j = c.bank_jobs[b["jobs_at"] + place]
        if j >= 0:
            strand = c.strands[j]
            strand["left"] = max(strand["left"] - (now - strand["paced"]) * before, 0.0)
            strand["paced"] = now
            wake_at(w, j, BANKING, now + strand["left"] / after)
