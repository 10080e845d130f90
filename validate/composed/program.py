"""From the programs of flows to one table of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qmodels.systems.composed.steps import (
    SEGMENTS,
    Acquire,
    Branch,
    Each,
    Fork,
    Hold,
    Release,
    Repeat,
    Visit,
    step_name,
)
from qmodels.systems.composed.system import System
from validate.composed import state
from validate.composed.state import BY_SEGMENTS, CHOICE, INSTRUCTION
from validate.network.world import Sources


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
        self._code: list[dict[str, Any]] = []
        self._choices: list[tuple[float, int]] = []
        self._flow = ""
        self._holds = 0

    @property
    def code(self) -> Any:
        """The instructions."""
        table = np.zeros(len(self._code), dtype=INSTRUCTION)
        for row, fields in zip(table, self._code, strict=True):
            for name, value in fields.items():
                row[name] = value
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
        for step in steps:
            self._step(step, depth)

    def _step(self, step: Any, depth: int) -> None:
        match step:
            case Visit():
                self._pick(step.part)
                self._put(state.SERVE, part=self.numbers[step.part])
            case Hold():
                self._hold(step)
            case Acquire() | Release():
                self._pick(step.part)
                op = state.ACQUIRE if isinstance(step, Acquire) else state.RELEASE
                self._put(op, part=self.numbers[step.part], size=step.tokens)
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
                self.each(step.steps, step.count, depth, column=len(self.numbers))
            case _:
                raise TypeError(f"the simulation of {step_name(step)!r} needs a step it knows, got {step!r}")

    def _count(self, count: Any) -> Any:
        return BY_SEGMENTS if count == SEGMENTS else count

    def _pick(self, part: str) -> None:
        stream = self.sources.stream(f"copies {self._flow} {part}") if self.system.copies(part) > 1 else 0
        self._put(state.PICK, part=self.numbers[part], stream=stream)

    def _hold(self, step: Hold) -> None:
        self._holds += 1
        column = state.HELD_TIME if step.counted else state.UNCOUNTED_TIME
        self._put(
            state.HOLD,
            law=self.sources.law(f"hold {self._flow} {self._holds}", step.time),
            column=len(self.numbers) + column,
        )

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

    def each(self, steps: Sequence[Any], count: Any, depth: int, *, column: Any) -> None:
        """Assemble branches that do the same."""
        most = count
        if count == SEGMENTS:
            flow = self.system.flow(self._flow)
            most = int(flow.sizes.segments(flow.segment_bytes)[0].max()) if flow.sizes else 1
        self.most_branches = max(self.most_branches, most)
        split = self._put(state.EACH, at=-1, size=self._count(count), column=column)
        self._steps(steps, depth)
        self._put(state.JOIN)
        split["resume"] = len(self._code)
