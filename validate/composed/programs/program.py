"""The programs of a system as instructions: steps that hold others, one inside the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.composed.steps import (
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Repeat,
    Visit,
    Write,
    all_steps,
    step_name,
)
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic, Law
from qmodels.systems.stations.parts import Station
from validate.composed import state
from validate.composed.programs.code import Code
from validate.composed.programs.plain import PLAIN, come_back, pass_through, travel
from validate.network.world import Sources


class Program(NamedTuple):
    """The programs of a system as instructions, and the laws and streams that they need."""

    code: Any
    choices: Any
    entries: list[int]
    sequences: list[tuple[str, str]]
    most_branches: int
    most_slots: int
    stages: list[tuple[str, str]]
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
        code = assembler.code
        program = Program(
            code=code.table,
            choices=code.choices,
            entries=entries,
            sequences=code.sequences,
            most_branches=code.most_branches,
            most_slots=code.most_slots,
            stages=code.stages,
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
        self.system, self.code = system, Code(system, sources)
        self.foreseen = {name for name, part in system.parts.items() if _foreseen(system, name, part)}

    def flow(self, name: str) -> int:
        """Assemble the program of a flow; return its first instruction."""
        entry = self.code.begin(name)
        self._steps(self.system.flow(name).program, 0)
        self.code.put(state.END)
        return entry

    def _steps(self, steps: Sequence[Any], depth: int) -> None:
        self.code.needs_slots(depth)
        passed = False
        for step, following in zip_longest(steps, steps[1:]):
            if passed:
                passed = False
            elif isinstance(step, Visit) and step.part in self.foreseen:
                passed = isinstance(following, Hold) and isinstance(following.time, Deterministic)
                pass_through(self.code, step, following if passed else None)
            else:
                self._step(step, depth)

    def _step(self, step: Any, depth: int) -> None:
        match step:
            case Lookup():
                self._lookup(step, depth)
            case Branch():
                self._branch(step, depth)
            case Repeat():
                self.code.put(state.COUNT, at=depth, size=self.code.count(step.count))
                first = self.code.here
                self._steps(step.steps, depth + 1)
                self.code.put(state.REPEAT, at=depth, resume=first)
            case Fork():
                self._fork(step, depth)
            case Allocate() | Free():
                self._operation(step, depth)
            case Each():
                split = self.code.split(step.count, column=len(self.code.numbers))
                self._steps(step.steps, depth)
                self.code.put(state.JOIN)
                split["resume"] = self.code.here
            case _ if type(step) in PLAIN:
                PLAIN[type(step)](self.code, step, depth)
            case _:
                raise TypeError(f"the simulation of {step_name(step)!r} needs a step it knows, got {step!r}")

    def _operation(self, step: Allocate | Free, depth: int) -> None:
        """Take blocks or give them back, and do what is to be done with each as soon as that is known."""
        code, takes = self.code, isinstance(step, Allocate)
        ways = state.AT_ONCE
        if step.steps:
            first = step.steps[0]
            # Several accesses have branches of their own, none of which would end the one on the score.
            scored = (
                takes and isinstance(first, Write) and first.blocks == 1 and first.addresses == "allocated"
            )
            ways = state.BRANCHING_SCORED if scored else state.BRANCHING
        operation = code.put(
            state.ALLOCATE if takes else state.FREE,
            part=code.numbers[step.part],
            size=code.count(step.blocks) if isinstance(step, Allocate) else 0,
            stream=ways,
        )
        if not step.steps:
            return
        owned, code.owns = code.owns, True
        self._steps(step.steps, depth)
        code.owns = owned
        code.put(state.JOIN)
        operation["resume"] = code.here
        if not takes:
            code.put(state.GIVE, part=code.numbers[step.part])

    def _branch(self, step: Branch, depth: int) -> None:
        stream = self.code.sources.stream(f"branches {self.code.flow}")
        sums = np.cumsum(step.probabilities)
        # The last one that can be chosen, and all after it, take what rounding leaves.
        sums[np.flatnonzero(step.probabilities)[-1] :] = 1.0
        at = self.code.add_choices(sums.size)
        self.code.put(state.CHOOSE, at=at, size=sums.size, stream=stream)
        ends = []
        for number, choice in enumerate(step.choices):
            self.code.begin_choice(at + number, below=sums[number])
            self._steps(choice, depth)
            ends.append(self.code.put(state.JUMP))
        for jump in ends:
            jump["at"] = self.code.here

    def _lookup(self, step: Lookup, depth: int) -> None:
        code, placed = self.code, bool(self.system.place.get(step.part))
        private = len(self.system.parts[step.part].private)
        programs = (*(step.private for _ in range(private)), step.hit, step.miss)
        at = code.add_choices(len(programs))
        if placed:
            code.put(state.SAVE, at=depth)
        code.put(state.LOOK, part=code.numbers[step.part], at=at)
        ends = []
        for level, steps in enumerate(programs):
            code.begin_choice(at + level)
            for _ in range(min(level, private - 1)):
                self._steps(step.further, depth + 1)
            if placed and level >= private:
                travel(code, 0)
            self._steps(steps, depth + 1)
            if level >= private:
                come_back(code, step.part, step.reply_bytes, depth)
            ends.append(code.put(state.JUMP))
        for jump in ends:
            jump["at"] = code.here

    def _fork(self, step: Fork, depth: int) -> None:
        at = self.code.add_choices(len(step.branches))
        self.code.needs_branches(len(step.branches))
        fork = self.code.put(state.FORK, at=at, size=len(step.branches), column=len(self.code.numbers))
        for number, branch in enumerate(step.branches):
            self.code.begin_choice(at + number)
            self._steps(branch, depth)
            self.code.put(state.JOIN)
        fork["resume"] = self.code.here


def _foreseen(system: System, name: str, part: Any) -> bool:
    """Return whether a station knows when a visit will be over as it begins, and nobody looks before."""
    if not isinstance(part, Station) or not system.ends or name in system.place:
        return False
    plain = Station(name=part.name, service=part.service)
    return bool(part == plain)
