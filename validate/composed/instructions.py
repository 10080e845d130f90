"""The programs of a system as instructions for its kernel, from their intermediate form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np

from qmodels.systems.composed.lower import block_bytes, lower
from qmodels.systems.composed.program_form import Delay, Op, ProgramForm
from qmodels.systems.composed.steps import (
    ADDRESSES,
    SEGMENTS,
    Acquire,
    Allocate,
    Branch,
    Fork,
    Free,
    Lookup,
    Read,
    Send,
    Visit,
    Write,
)
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.stations.parts import Station
from validate.composed import state
from validate.composed.state import BY_SEGMENTS, CHOICE, INSTRUCTION
from validate.network.world import Sources

_last: list[tuple[System, Program]] = []


def program_of(system: System) -> Program:
    """Return the programs of a system; those of the last one are kept, for its replications."""
    if not _last or _last[0][0] is not system:
        _last[:] = [(system, Program(system, lower(system)))]
    return _last[0][1]


class Program:
    """The programs of a system, one behind the other.

    Attributes
    ----------
    code, choices : array
        Instructions, and where choices and branches begin.
    entries : list of int
        First instruction of each flow.
    sequences, stages : list of tuple of str
        Names of streams of addresses, by part, and of stages, by flow.
    most_branches, most_slots : int
        Branches of a fork, and places for what a strand remembers, at most.
    repeats : bool
        Whether some visits take as long as the one before.
    sources : Sources
        Laws and streams that the instructions name.
    """

    def __init__(self, system: System, form: ProgramForm) -> None:
        self.system, self.form, self.sources = system, form, Sources()
        self.numbers = {name: number for number, name in enumerate(system.parts)}
        self._choices: list[tuple[float, int]] = []
        self.sequences: list[tuple[str, str]] = []
        self.stages: list[tuple[str, str]] = []
        self.most_branches = self.most_slots = 0
        self._instructions: list[dict[str, Any]] = []
        self._foreseen = {name for name, part in system.parts.items() if _foreseen(system, name, part)}
        self._flow, self._holds, self._in_operation = "", 0, False
        self._visitors: Counter[str] = Counter()
        self._uses: dict[str, list[str]] = {}
        self._laws: dict[str, int] = {}
        self._kinds: dict[Op, Callable[..., None]] = {
            Op.VISIT: self._visit, Op.TRAVEL: self._travel, Op.HOLD: self._hold, Op.TAKE: self._take,
            Op.GIVE: self._give, Op.MARK: self._mark, Op.MOVE: self._move, Op.CHOICE: self._choice,
            Op.PARALLEL: self._fork, Op.COPIES: self._each, Op.REPEAT: self._repeat,
            Op.BLOCKS: self._operation, Op.LOOKUP: self._lookup,
        }  # fmt: skip

        self.repeats = any(getattr(site.step, "same", False) for site in form.sites)
        self.entries = [self._flow_program(flow.name) for flow in system.flows]
        self.choices = np.array([*self._choices, (1.0, 0)], dtype=CHOICE)
        self.code = np.zeros(len(self._instructions), dtype=INSTRUCTION)
        columns = {name: self.code[name] for name in INSTRUCTION.names or ()}
        for row, fields in enumerate(self._instructions):
            for name, value in fields.items():
                columns[name][row] = value

    def _flow_program(self, name: str) -> int:
        """Assemble the program of a flow; return its first instruction."""
        self._flow, self._holds = name, 0
        entry = self._here
        self._steps(self.form.programs[name], 0)
        self._put(state.END)
        return entry

    @property
    def _here(self) -> int:
        """The number of the next instruction."""
        return len(self._instructions)

    def _put(self, op: Any, **fields: Any) -> dict[str, Any]:
        """Add an instruction; what it returns may be completed later."""
        self._instructions.append({"op": op, **fields})
        return self._instructions[-1]

    def _needs_slots(self, depth: int) -> None:
        """Have places for what strands remember so deep inside of steps."""
        self.most_slots = max(self.most_slots, depth)

    def _steps(self, node: int, depth: int) -> None:
        self._needs_slots(depth)
        form, passed = self.form, False
        nodes = form.children[node] if form.op[node] == Op.SERIES else (node,)
        for each, following in zip_longest(nodes, nodes[1:]):
            row = form.rows[each]
            if passed:
                passed = False
            elif form.op[each] == Op.VISIT and row.part in self._foreseen:
                hold = form.rows[following] if following is not None else None
                passed = isinstance(hold, Delay) and isinstance(hold.step.time, Deterministic)
                self._pass_through(row.step, hold if passed else None)
            else:
                self._kinds[form.op[each]](row, form.children[each], depth)

    def _pass_through(self, step: Visit, hold: Any) -> None:
        """Visit a station that knows when it will be done, and let the time pass that comes after."""
        time, counted = (0.0, True) if hold is None else (hold.mean, hold.counted)
        column = len(self.numbers) + (state.HELD_TIME if counted else state.UNCOUNTED_TIME)
        law = self.system.parts[step.part].service_law(self._flow)
        service = float(law.mean) if isinstance(law, Deterministic) else -1.0
        part = self.numbers[step.part]
        self._put(state.PASS, part=part, time=time, column=column, service=service, at=step.same)

    def _pick(self, part: str, *, by_line: bool = False) -> None:
        """Choose a copy of a part."""
        if not self.system.place:
            return  # every part is there once
        several = len(self.system.place.get(part, ())) > 1
        stream = self.sources.stream(f"copies {self._flow} {part}") if several else 0
        self._put(state.PICK, part=self.numbers[part], stream=stream, size=by_line)

    def _send(self, payload: int, *, back: bool = False) -> None:
        """Send a packet to where the strand goes."""
        system = self.system
        network = system.parts[system.replies] if back and system.replies else system.network
        self._put(state.TRAVEL, size=network.flits(payload) if network is not None else 0, at=back)

    def _come_back(self, part: str, payload: int, depth: int) -> None:
        """Return to where the strand went to a part from."""
        if self.system.place.get(part):
            self._put(state.RECALL, at=depth)
            self._send(payload, back=True)

    def _visit(self, site: Any, nodes: tuple[int, ...], depth: int) -> None:
        """Be served by a station, a bank, or by a part of others, whose streams are numbered."""
        step = site.step
        if isinstance(step, Read | Write):
            self._access(step, depth)
        elif isinstance(step, Allocate | Free):
            self._operate(step, state.AT_ONCE)
        else:
            part, placed = step.part, bool(self.system.place.get(step.part))
            if placed:
                self._put(state.SAVE, at=depth)
                self._needs_slots(depth + 1)
            self._pick(part, by_line=step.by_line)
            if placed:
                self._send(step.bytes)
            if isinstance(self.system.parts[part], Station):
                self._put(state.SERVE, part=self.numbers[part], at=step.same)
            elif isinstance(self.system.parts[part], BankedChannels):
                self._put(state.BANK, part=self.numbers[part])
            else:
                self._put(state.ENQUIRE, part=self.numbers[part], stream=self._visitors[part])
                self._visitors[part] += 1
            self._come_back(part, step.reply_bytes, depth)

    def _access(self, step: Read | Write, depth: int) -> None:
        part = step.part
        self._put(
            state.ADDRESS,
            part=self.numbers[part],
            size=_count(step.blocks),
            at=ADDRESSES.index(step.addresses),
            stream=self.sources.stream(f"blocks {self._flow} {part}"),
            resume=self._sequence(part, step.stream) if step.addresses == "sequential" else 0,
        )
        own = int(state.OWN_BLOCK) if self._in_operation and step.addresses == "allocated" else 0
        if step.blocks == 1:
            self._block(step, depth, which=own)
        else:
            split = self._split(step.blocks, column=state.PART_TIME)
            self._block(step, depth, which=own or 1)
            self._put(state.JOIN)
            split["resume"] = self._here

    def _block(self, step: Read | Write, depth: int, *, which: int) -> None:
        """Go to the channel of a block, read or write it, and come back with what was read."""
        number, placed = self.numbers[step.part], bool(self.system.place.get(step.part))
        payload = block_bytes(self.system, step.part)
        writes, lines = isinstance(step, Write), step.addresses == "looked-up"
        self._put(state.LOCATE, part=number, at=ADDRESSES.index(step.addresses), size=which)
        if placed:
            self._put(state.SAVE, at=depth)
            self._needs_slots(depth + 1)
            self._send(payload if writes else 0)
        kind = state.WRITTEN if writes else state.READ_LINE if lines else state.READ
        self._put(state.ACCESS, part=number, at=writes, stream=kind)
        if placed and writes:
            self._put(state.RETURN, at=depth)
        else:
            self._come_back(step.part, payload, depth)

    def _operate(self, step: Allocate | Free, ways: Any) -> dict[str, Any]:
        """Take blocks or give them back."""
        takes = isinstance(step, Allocate)
        return self._put(
            state.ALLOCATE if takes else state.FREE,
            part=self.numbers[step.part],
            size=_count(step.blocks) if isinstance(step, Allocate) else 0,
            stream=ways,
        )

    def _operation(self, step: Allocate | Free, nodes: tuple[int, ...], depth: int) -> None:
        """Take blocks or give them back, and do what is to be done with each as soon as that is known."""
        takes, first = isinstance(step, Allocate), step.steps[0]
        # Several accesses have branches of their own, none of which would end the one on the score.
        scored = takes and isinstance(first, Write) and first.blocks == 1 and first.addresses == "allocated"
        operation = self._operate(step, state.BRANCHING_SCORED if scored else state.BRANCHING)
        around, self._in_operation = self._in_operation, True
        self._steps(nodes[1], depth)
        self._in_operation = around
        self._put(state.JOIN)
        operation["resume"] = self._here
        if not takes:
            self._put(state.GIVE, part=self.numbers[step.part])

    def _travel(self, packet: Any, nodes: tuple[int, ...], depth: int) -> None:
        step: Send = packet.step
        self._pick(step.to)
        self._send(step.bytes)

    def _take(self, take: Any, nodes: tuple[int, ...], depth: int) -> None:
        step: Acquire = take.step
        uses = self._uses.setdefault(step.part, [])
        if step.use not in uses:
            uses.append(step.use)
        self._pick(step.part)
        use = uses.index(step.use)
        self._put(state.ACQUIRE, part=self.numbers[step.part], size=step.tokens, at=use)

    def _give(self, step: Any, nodes: tuple[int, ...], depth: int) -> None:
        self._pick(step.part)
        self._put(state.RELEASE, part=self.numbers[step.part], size=step.tokens)

    def _hold(self, delay: Any, nodes: tuple[int, ...], depth: int) -> None:
        self._holds += 1
        law, name = delay.step.time, f"hold {self._flow} {self._holds}"
        if isinstance(law, Deterministic):  # draws nothing: one law for all of the same time
            name = f"hold {law.mean}"
        if name not in self._laws:
            self._laws[name] = self.sources.law(name, law)
        column = state.HELD_TIME if delay.counted else state.UNCOUNTED_TIME
        self._put(state.HOLD, law=self._laws[name], column=len(self.numbers) + column)

    def _mark(self, step: Any, nodes: tuple[int, ...], depth: int) -> None:
        stage = self._flow, step.name
        if stage not in self.stages:
            self.stages.append(stage)
        self._put(state.MARK, at=self.stages.index(stage))

    def _move(self, step: Any, nodes: tuple[int, ...], depth: int) -> None:
        self._put(state.MOVE, stream=self.sources.stream(f"moves {self._flow}"))

    def _sequence(self, part: str, stream: str) -> int:
        """Return the number of the stream of addresses in a part with a name, or of one step's own."""
        name = (part, stream)
        if not stream or name not in self.sequences:
            self.sequences.append(name)
            return len(self.sequences) - 1
        return self.sequences.index(name)

    def _split(self, count: Any, *, column: Any) -> dict[str, Any]:
        """Begin n branches that do the same."""
        most = count
        if count == SEGMENTS:
            flow = self.system.flow(self._flow)
            most = int(flow.sizes.segments(flow.segment_bytes)[0].max()) if flow.sizes else 1
        self.most_branches = max(self.most_branches, most)
        return self._put(state.EACH, at=-1, size=_count(count), column=column)

    def _each(self, count: Any, nodes: tuple[int, ...], depth: int) -> None:
        split = self._split(count.step.count, column=len(self.numbers))
        self._steps(nodes[0], depth)
        self._put(state.JOIN)
        split["resume"] = self._here

    def _fork(self, row: Any, nodes: tuple[int, ...], depth: int) -> None:
        step: Fork = row.step
        at = self._add_choices(len(step.branches))
        self.most_branches = max(self.most_branches, len(step.branches))
        fork = self._put(state.FORK, at=at, size=len(step.branches), column=len(self.numbers))
        for number, kind in enumerate(row.order):
            self._choices[at + number] = (1.0, self._here)
            self._steps(self.form.children[nodes[kind]][0], depth)
            self._put(state.JOIN)
        fork["resume"] = self._here

    def _repeat(self, count: Any, nodes: tuple[int, ...], depth: int) -> None:
        self._put(state.COUNT, at=depth, size=_count(count.step.count))
        first = self._here
        self._steps(nodes[0], depth + 1)
        self._put(state.REPEAT, at=depth, resume=first)

    def _add_choices(self, count: int) -> int:
        """Make room for n beginnings; return the place of the first."""
        self._choices += [(1.0, 0)] * count
        return len(self._choices) - count

    def _choice(self, row: Any, nodes: tuple[int, ...], depth: int) -> None:
        step: Branch = row.step
        stream = self.sources.stream(f"branches {self._flow}")
        sums = np.cumsum(step.probabilities)
        # The last one that can be chosen, and all after it, take what rounding leaves.
        sums[np.flatnonzero(step.probabilities)[-1] :] = 1.0
        at = self._add_choices(sums.size)
        self._put(state.CHOOSE, at=at, size=sums.size, stream=stream)
        ends = []
        for number, node in enumerate(nodes):
            self._choices[at + number] = (sums[number], self._here)
            self._steps(node, depth)
            ends.append(self._put(state.JUMP))
        for jump in ends:
            jump["at"] = self._here

    def _lookup(self, step: Lookup, nodes: tuple[int, ...], depth: int) -> None:
        """Look in all levels at once, then do what is done on the way to the level that has the line."""
        placed = bool(self.system.place.get(step.part))
        private = len(self.system.parts[step.part].private)
        ways = self._ways(nodes[0], private)
        at = self._add_choices(len(ways))
        if placed:
            self._put(state.SAVE, at=depth)
        self._put(state.LOOK, part=self.numbers[step.part], at=at)
        ends = []
        for level, (before, found) in enumerate(ways):
            self._choices[at + level] = (1.0, self._here)
            for node in before:
                self._steps(node, depth + 1)
            if placed and level >= private:
                self._send(0)
            self._steps(found, depth + 1)
            if level >= private:
                self._come_back(step.part, step.reply_bytes, depth)
            ends.append(self._put(state.JUMP))
        for jump in ends:
            jump["at"] = self._here

    def _ways(self, node: int, private: int) -> list[tuple[list[int], int]]:
        """Return for each level, and where none has the line, what is done before it and what there."""
        form = self.form
        before: list[int] = []
        ways: list[tuple[list[int], int]] = []
        while form.op[node] == Op.CHOICE:
            found, missed = form.children[node]
            ways.append(([*before], found))
            further, node = form.children[missed]
            before.append(further)
        # Without further steps all private levels are one.
        ways = (ways * max(private, 1))[:private] if len(ways) == 1 else ways
        outside = next(each for each in form.children[node] if form.op[each] == Op.CHOICE)
        return [*ways, *((before, end) for end in form.children[outside])]


def _count(count: Any) -> Any:
    """Return a number of times as instructions say it."""
    return BY_SEGMENTS if count == SEGMENTS else count


def _foreseen(system: System, name: str, part: Any) -> bool:
    """Return whether a station knows when a visit will be over as it begins, and nobody looks before."""
    if not isinstance(part, Station) or not system.ends or name in system.place:
        return False
    plain = Station(name=part.name, service=part.service)
    return bool(part == plain)
