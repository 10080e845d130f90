"""Steps that hold no others: to a part and back, there and served, read and written, taken and given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qmodels.systems.composed.steps import (
    ADDRESSES,
    Acquire,
    Hold,
    Mark,
    Move,
    Read,
    Release,
    Send,
    Visit,
    Write,
)
from qmodels.systems.laws.times import Deterministic
from qmodels.systems.memory.banked_channels import BankedChannels
from qmodels.systems.stations.parts import Station
from validate.composed import state
from validate.composed.memories.located import block_bytes
from validate.composed.programs.code import Code


def pick(code: Code, part: str, *, by_line: bool = False) -> None:
    """Choose a copy of a part."""
    if not code.system.place:
        return  # every part is there once
    several = len(code.system.place.get(part, ())) > 1
    stream = code.sources.stream(f"copies {code.flow} {part}") if several else 0
    code.put(state.PICK, part=code.numbers[part], stream=stream, size=by_line)


def travel(code: Code, payload: int, *, back: bool = False) -> None:
    """Send a packet to where the strand goes."""
    system = code.system
    network = system.parts[system.replies] if back and system.replies else system.network
    code.put(state.TRAVEL, size=network.flits(payload) if network is not None else 0, at=back)


def go_there(code: Code, part: str, payload: int, depth: int, *, by_line: bool = False) -> None:
    """Go to a copy of a part, and remember from where."""
    if code.system.place.get(part):
        code.put(state.SAVE, at=depth)
        code.needs_slots(depth + 1)
    pick(code, part, by_line=by_line)
    if code.system.place.get(part):
        travel(code, payload)


def come_back(code: Code, part: str, payload: int, depth: int) -> None:
    """Return to where the strand went to a part from."""
    if code.system.place.get(part):
        code.put(state.RECALL, at=depth)
        travel(code, payload, back=True)


def pass_through(code: Code, step: Visit, hold: Any) -> None:
    """Visit a station that knows when it will be done, and let the time pass that comes after."""
    time, counted = (0.0, True) if hold is None else (float(hold.time.mean), hold.counted)
    column = len(code.numbers) + (state.HELD_TIME if counted else state.UNCOUNTED_TIME)
    law = code.system.parts[step.part].service_law(code.flow)
    service = float(law.mean) if isinstance(law, Deterministic) else -1.0
    part = code.numbers[step.part]
    code.put(state.PASS, part=part, time=time, column=column, service=service, at=step.same)


def _visit(code: Code, step: Visit, depth: int) -> None:
    """Be served by a station, a bank, or by a part of others, whose streams are numbered."""
    part = step.part
    go_there(code, part, step.bytes, depth, by_line=step.by_line)
    if isinstance(code.system.parts[part], Station):
        code.put(state.SERVE, part=code.numbers[part], at=step.same)
    elif isinstance(code.system.parts[part], BankedChannels):
        code.put(state.BANK, part=code.numbers[part])
    else:
        code.put(state.ENQUIRE, part=code.numbers[part], stream=code.visitor(part))
    come_back(code, part, step.reply_bytes, depth)


def _send(code: Code, step: Send, depth: int) -> None:
    pick(code, step.to)
    travel(code, step.bytes)


def _acquire(code: Code, step: Acquire, depth: int) -> None:
    pick(code, step.part)
    code.put(state.ACQUIRE, part=code.numbers[step.part], size=step.tokens, at=code.use(step))


def _release(code: Code, step: Release, depth: int) -> None:
    pick(code, step.part)
    code.put(state.RELEASE, part=code.numbers[step.part], size=step.tokens)


def _hold(code: Code, step: Hold, depth: int) -> None:
    column = state.HELD_TIME if step.counted else state.UNCOUNTED_TIME
    code.put(state.HOLD, law=code.law(step), column=len(code.numbers) + column)


def _mark(code: Code, step: Mark, depth: int) -> None:
    code.put(state.MARK, at=code.stage(step.name))


def _move(code: Code, step: Move, depth: int) -> None:
    code.put(state.MOVE, stream=code.sources.stream(f"moves {code.flow}"))


def _access(code: Code, step: Read | Write, depth: int) -> None:
    code.put(
        state.ADDRESS,
        part=code.numbers[step.part],
        size=code.count(step.blocks),
        at=ADDRESSES.index(step.addresses),
        stream=code.sources.stream(f"blocks {code.flow} {step.part}"),
        resume=code.sequence(step.part, step.stream) if step.addresses == "sequential" else 0,
    )
    own = int(state.OWN_BLOCK) if code.owns and step.addresses == "allocated" else 0
    if step.blocks == 1:
        _block(code, step, depth, which=own)
    else:
        split = code.split(step.blocks, column=state.PART_TIME)
        _block(code, step, depth, which=own or 1)
        code.put(state.JOIN)
        split["resume"] = code.here


def _block(code: Code, step: Read | Write, depth: int, *, which: int) -> None:
    """Go to the channel of a block, read or write it, and come back with what was read."""
    number, placed = code.numbers[step.part], bool(code.system.place.get(step.part))
    payload = block_bytes(code.system, step.part)
    writes, lines = isinstance(step, Write), step.addresses == "looked-up"
    code.put(state.LOCATE, part=number, at=ADDRESSES.index(step.addresses), size=which)
    if placed:
        code.put(state.SAVE, at=depth)
        code.needs_slots(depth + 1)
        travel(code, payload if writes else 0)
    kind = state.WRITTEN if writes else state.READ_LINE if lines else state.READ
    code.put(state.ACCESS, part=number, at=writes, stream=kind)
    if placed and writes:
        code.put(state.RETURN, at=depth)
    elif placed:
        code.put(state.RECALL, at=depth)
        travel(code, payload, back=True)


PLAIN: dict[type, Callable[[Code, Any, int], None]] = {
    Visit: _visit,
    Send: _send,
    Read: _access,
    Write: _access,
    Hold: _hold,
    Mark: _mark,
    Move: _move,
    Acquire: _acquire,
    Release: _release,
}
"""What assembles each step that holds no others, so deep inside of others."""
