"""From the programs of flows to one table of instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.composed.steps import (
    ADDRESSES,
    SEGMENTS,
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
    all_steps,
    step_name,
)
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic, Law
from qmodels.systems.memory.banked_channels import BankedChannels
from qmodels.systems.stations.parts import Station
from validate.composed import state
from validate.composed.state import BY_SEGMENTS, CHOICE, INSTRUCTION
from validate.network.world import Sources


class Program(NamedTuple):
    """The programs of a system as instructions, and the laws and streams that they need."""

    code: Any
    choices: Any
    entries: list[int]
    sequences: list[tuple[str, str]]
    most_branches: int
    most_slots: int
    repeats: bool
    laws: list[Law]
    names: list[str]


_last: list[tuple[System, Program]] = []


def program_of(system: System) -> Program:
    """Return the programs of a system; those of the last one are kept, for its replications."""
    if not _last or _last[0][0] is not system:
        sources = Sources()
        assembler = Assembler(system, sources)
        entries = [assembler.flow(flow.name) for flow in system.flows]
        program = Program(
            code=assembler.code,
            choices=assembler.choices,
            entries=entries,
            sequences=assembler.sequences,
            most_branches=assembler.most_branches,
            most_slots=assembler.most_slots,
            repeats=any(getattr(s, "same", False) for f in system.flows for s in all_steps(f.program)),
            laws=sources.laws,
            names=sources.names,
        )
        _last[:] = [(system, program)]
    return _last[0][1]


class Assembler:
    """Puts the programs of a system one behind the other.

    Parameters
    ----------
    system : System
        What to assemble.
    sources : Sources
        Where the laws of holds and choices get their streams.
    """

    def __init__(self, system: System, sources: Sources) -> None:
        self.system, self.sources = system, sources
        self.numbers = {name: number for number, name in enumerate(system.parts)}
        self.most_branches = self.most_slots = 0
        self.foreseen = {name for name, part in system.parts.items() if _foreseen(system, name, part)}
        self.uses: dict[str, list[str]] = {}
        self.sequences: list[tuple[str, str]] = []
        self._code: list[dict[str, Any]] = []
        self._choices: list[tuple[float, int]] = []
        self._streams: Counter[str] = Counter()
        self._laws: dict[str, int] = {}
        self._flow = ""
        self._holds = 0

    @property
    def code(self) -> Any:
        """The instructions."""
        table = np.zeros(len(self._code), dtype=INSTRUCTION)
        columns = {name: table[name] for name in INSTRUCTION.names or ()}
        for row, fields in enumerate(self._code):
            for name, value in fields.items():
                columns[name][row] = value
        return table

    @property
    def choices(self) -> Any:
        """Where choices and branches begin."""
        return np.array([*self._choices, (1.0, 0)], dtype=CHOICE)

    def flow(self, name: str) -> int:
        """Assemble the program of a flow; return its first instruction."""
        self._flow, self._holds = name, 0
        entry = len(self._code)
        self._steps(self.system.flow(name).program, 0)
        self._put(state.END)
        return entry

    def _put(self, op: Any, **fields: Any) -> dict[str, Any]:
        self._code.append({"op": op, **fields})
        return self._code[-1]

    def _steps(self, steps: Sequence[Any], depth: int) -> None:
        self.most_slots = max(self.most_slots, depth)
        passed = False
        for step, following in zip_longest(steps, steps[1:]):
            if passed:
                passed = False
            elif isinstance(step, Visit) and step.part in self.foreseen:
                passed = isinstance(following, Hold) and isinstance(following.time, Deterministic)
                self._pass(step, following if passed else None)
            else:
                self._step(step, depth)

    def _pass(self, step: Visit, hold: Any) -> None:
        """Visit a station that knows when it will be done, and let the time pass that comes after."""
        time, counted = (0.0, True) if hold is None else (float(hold.time.mean), hold.counted)
        column = len(self.numbers) + (state.HELD_TIME if counted else state.UNCOUNTED_TIME)
        law = self.system.parts[step.part].service_law(self._flow)
        service = float(law.mean) if isinstance(law, Deterministic) else -1.0
        part = self.numbers[step.part]
        self._put(state.PASS, part=part, time=time, column=column, service=service, at=step.same)

    def _step(self, step: Any, depth: int) -> None:
        match step:
            case Visit():
                self._there(step.part, step.bytes, depth)
                self._visit(step)
                self._back(step.part, step.reply_bytes, depth)
            case Send():
                self._pick(step.to)
                self._travel(step.bytes)
            case Allocate():
                self._put(state.ALLOCATE, part=self.numbers[step.part], size=self._count(step.blocks))
            case Free():
                self._put(state.FREE, part=self.numbers[step.part])
            case Lookup():
                self._lookup(step, depth)
            case Read() | Write():
                self._access(step, depth)
            case Hold():
                self._hold(step)
            case Acquire() | Release():
                self._pick(step.part)
                if isinstance(step, Release):
                    self._put(state.RELEASE, part=self.numbers[step.part], size=step.tokens)
                else:
                    use = self._use(step)
                    self._put(state.ACQUIRE, part=self.numbers[step.part], size=step.tokens, at=use)
            case Branch():
                self._branch(step, depth)
            case Repeat():
                self._put(state.COUNT, at=depth, size=self._count(step.count))
                first = len(self._code)
                self._steps(step.steps, depth + 1)
                self._put(state.REPEAT, at=depth, resume=first)
            case Fork():
                self._fork(step, depth)
            case Each():
                self._each(step.steps, step.count, depth, column=len(self.numbers))
            case _:
                raise TypeError(f"the simulation of {step_name(step)!r} needs a step it knows, got {step!r}")

    def _count(self, count: Any) -> Any:
        return BY_SEGMENTS if count == SEGMENTS else count

    def _pick(self, part: str) -> None:
        if not self.system.place:
            return  # every part is there once
        several = len(self.system.place.get(part, ())) > 1
        stream = self.sources.stream(f"copies {self._flow} {part}") if several else 0
        self._put(state.PICK, part=self.numbers[part], stream=stream)

    def _use(self, step: Acquire) -> int:
        """Return the number of the use of tokens."""
        uses = self.uses.setdefault(step.part, [])
        if step.use not in uses:
            uses.append(step.use)
        return uses.index(step.use)

    def _visit(self, step: Visit) -> None:
        """Be served by a station, a bank, or by a part of others, whose streams are numbered."""
        part = step.part
        if isinstance(self.system.parts[part], Station):
            self._put(state.SERVE, part=self.numbers[part], at=step.same)
        elif isinstance(self.system.parts[part], BankedChannels):
            self._put(state.BANK, part=self.numbers[part])
        else:
            self._put(state.ENQUIRE, part=self.numbers[part], stream=self._streams[part])
            self._streams[part] += 1

    def _there(self, part: str, payload: int, depth: int) -> None:
        """Go to a copy of a part, and remember from where."""
        if self.system.place.get(part):
            self._put(state.SAVE, at=depth)
            self.most_slots = max(self.most_slots, depth + 1)
        self._pick(part)
        if self.system.place.get(part):
            self._travel(payload)

    def _back(self, part: str, payload: int, depth: int) -> None:
        """Return to where the strand went to a part from."""
        if self.system.place.get(part):
            self._put(state.RECALL, at=depth)
            self._travel(payload)

    def _travel(self, payload: int) -> None:
        network = self.system.network
        self._put(state.TRAVEL, size=network.flits(payload) if network is not None else 0)

    def _access(self, step: Read | Write, depth: int) -> None:
        self._put(
            state.ADDRESS,
            part=self.numbers[step.part],
            size=self._count(step.blocks),
            at=ADDRESSES.index(step.addresses),
            stream=self.sources.stream(f"blocks {self._flow} {step.part}"),
            resume=self._sequence(step.part) if step.addresses == "sequential" else 0,
        )
        if step.blocks == 1:
            self._block(step, depth, branch=False)
        else:
            split = self._split(step.blocks, column=state.PART_TIME)
            self._block(step, depth, branch=True)
            self._put(state.JOIN)
            split["resume"] = len(self._code)

    def _sequence(self, part: str) -> int:
        name = (self._flow, part)
        if name not in self.sequences:
            self.sequences.append(name)
        return self.sequences.index(name)

    def _block(self, step: Read | Write, depth: int, *, branch: bool) -> None:
        """Go to the channel of a block, read or write it, and come back with what was read."""
        number, placed = self.numbers[step.part], bool(self.system.place.get(step.part))
        payload = self.system.parts[step.part].geometry.block_bytes
        writes = isinstance(step, Write)
        self._put(state.LOCATE, part=number, at=ADDRESSES.index(step.addresses), size=branch)
        if placed:
            self._put(state.SAVE, at=depth)
            self.most_slots = max(self.most_slots, depth + 1)
            self._travel(payload if writes else 0)
        self._put(state.ACCESS, part=number, at=writes)
        if placed and writes:
            self._put(state.RETURN, at=depth)
        elif placed:
            self._put(state.RECALL, at=depth)
            self._travel(payload)

    def _hold(self, step: Hold) -> None:
        self._holds += 1
        column = state.HELD_TIME if step.counted else state.UNCOUNTED_TIME
        name = f"hold {self._flow} {self._holds}"
        if isinstance(step.time, Deterministic):  # draws nothing: one law for all of the same time
            name = f"hold {step.time.mean}"
        if name not in self._laws:
            self._laws[name] = self.sources.law(name, step.time)
        self._put(state.HOLD, law=self._laws[name], column=len(self.numbers) + column)

    def _branch(self, step: Branch, depth: int) -> None:
        stream = self.sources.stream(f"branches {self._flow}")
        at = len(self._choices)
        sums = np.cumsum(step.probabilities)
        # The last one that can be chosen, and all after it, take what rounding leaves.
        sums[np.flatnonzero(step.probabilities)[-1] :] = 1.0
        self._choices += [(below, 0) for below in sums]
        self._put(state.CHOOSE, at=at, size=sums.size, stream=stream)
        ends = []
        for number, choice in enumerate(step.choices):
            self._choices[at + number] = (sums[number], len(self._code))
            self._steps(choice, depth)
            ends.append(self._put(state.JUMP))
        for jump in ends:
            jump["at"] = len(self._code)

    def _lookup(self, step: Lookup, depth: int) -> None:
        placed, at = bool(self.system.place.get(step.part)), len(self._choices)
        private = len(self.system.parts[step.part].private)
        programs = (*(step.private for _ in range(private)), step.hit, step.miss)
        self._choices += [(1.0, 0)] * len(programs)
        if placed:
            self._put(state.SAVE, at=depth)
        self._put(state.LOOK, part=self.numbers[step.part], at=at)
        ends = []
        for level, steps in enumerate(programs):
            self._choices[at + level] = (1.0, len(self._code))
            for _ in range(min(level, private - 1)):
                self._steps(step.further, depth + 1)
            if placed and level >= private:
                self._travel(0)
            self._steps(steps, depth + 1)
            if placed and level >= private:
                self._put(state.RECALL, at=depth)
                self._travel(step.reply_bytes)
            ends.append(self._put(state.JUMP))
        for jump in ends:
            jump["at"] = len(self._code)

    def _fork(self, step: Fork, depth: int) -> None:
        at = len(self._choices)
        self._choices += [(1.0, 0)] * len(step.branches)
        self.most_branches = max(self.most_branches, len(step.branches))
        fork = self._put(state.FORK, at=at, size=len(step.branches), column=len(self.numbers))
        for number, branch in enumerate(step.branches):
            self._choices[at + number] = (1.0, len(self._code))
            self._steps(branch, depth)
            self._put(state.JOIN)
        fork["resume"] = len(self._code)

    def _each(self, steps: Sequence[Any], count: Any, depth: int, *, column: Any) -> None:
        """Assemble branches that do the same."""
        split = self._split(count, column=column)
        self._steps(steps, depth)
        self._put(state.JOIN)
        split["resume"] = len(self._code)

    def _split(self, count: Any, *, column: Any) -> dict[str, Any]:
        most = count
        if count == SEGMENTS:
            flow = self.system.flow(self._flow)
            most = int(flow.sizes.segments(flow.segment_bytes)[0].max()) if flow.sizes else 1
        self.most_branches = max(self.most_branches, most)
        return self._put(state.EACH, at=-1, size=self._count(count), column=column)


def _foreseen(system: System, name: str, part: Any) -> bool:
    """Return whether a station knows when a visit will be over as it begins, and nobody looks before."""
    if not isinstance(part, Station) or not system.ends or name in system.place:
        return False
    plain = Station(name=part.name, service=part.service)
    return bool(part == plain)
