"""The table of instructions under construction, and what is numbered in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from qmodels.systems.composed.steps import SEGMENTS, Acquire, Hold
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Deterministic
from validate.composed import state
from validate.composed.state import BY_SEGMENTS, CHOICE, INSTRUCTION
from validate.network.world import Sources


class Code:
    """Instructions one behind the other, and the numbers of choices, streams, laws, sequences and uses.

    Parameters
    ----------
    system : System
        Whose programs are assembled.
    sources : Sources
        Where the laws of holds and choices get their streams.
    """

    def __init__(self, system: System, sources: Sources) -> None:
        self.system, self.sources = system, sources
        self.numbers = {name: number for number, name in enumerate(system.parts)}
        self.flow = ""
        self.most_branches = self.most_slots = 0
        self.sequences: list[tuple[str, str]] = []
        self.stages: list[tuple[str, str]] = []
        self.owns = False
        self._instructions: list[dict[str, Any]] = []
        self._choices: list[tuple[float, int]] = []
        self._uses: dict[str, list[str]] = {}
        self._visitors: Counter[str] = Counter()
        self._laws: dict[str, int] = {}
        self._holds = 0

    @property
    def table(self) -> Any:
        """The instructions."""
        table = np.zeros(len(self._instructions), dtype=INSTRUCTION)
        columns = {name: table[name] for name in INSTRUCTION.names or ()}
        for row, fields in enumerate(self._instructions):
            for name, value in fields.items():
                columns[name][row] = value
        return table

    @property
    def choices(self) -> Any:
        """Where choices and branches begin."""
        return np.array([*self._choices, (1.0, 0)], dtype=CHOICE)

    @property
    def here(self) -> int:
        """The number of the next instruction."""
        return len(self._instructions)

    def begin(self, flow: str) -> int:
        """Begin the program of a flow; return its first instruction."""
        self.flow, self._holds = flow, 0
        return self.here

    def put(self, op: Any, **fields: Any) -> dict[str, Any]:
        """Add an instruction; what it returns may be completed later."""
        self._instructions.append({"op": op, **fields})
        return self._instructions[-1]

    def add_choices(self, count: int) -> int:
        """Make room for so many beginnings; return the place of the first."""
        self._choices += [(1.0, 0)] * count
        return len(self._choices) - count

    def begin_choice(self, at: int, *, below: float = 1.0) -> None:
        """Let what is chosen below a number begin with the next instruction."""
        self._choices[at] = (below, self.here)

    def needs_slots(self, depth: int) -> None:
        """Have places for what strands remember so deep inside of steps."""
        self.most_slots = max(self.most_slots, depth)

    def needs_branches(self, count: int) -> None:
        """Have places for so many branches."""
        self.most_branches = max(self.most_branches, count)

    def count(self, count: Any) -> Any:
        """Return a number of times as instructions say it."""
        return BY_SEGMENTS if count == SEGMENTS else count

    def split(self, count: Any, *, column: Any) -> dict[str, Any]:
        """Begin so many branches that do the same."""
        most = count
        if count == SEGMENTS:
            flow = self.system.flow(self.flow)
            most = int(flow.sizes.segments(flow.segment_bytes)[0].max()) if flow.sizes else 1
        self.needs_branches(most)
        return self.put(state.EACH, at=-1, size=self.count(count), column=column)

    def visitor(self, part: str) -> int:
        """Return the number of a visit to a part among all visits to it."""
        self._visitors[part] += 1
        return self._visitors[part] - 1

    def use(self, step: Acquire) -> int:
        """Return the number of the use of tokens."""
        uses = self._uses.setdefault(step.part, [])
        if step.use not in uses:
            uses.append(step.use)
        return uses.index(step.use)

    def sequence(self, part: str, stream: str) -> int:
        """Return the number of the stream of addresses in a part with a name, or of one step's own."""
        name = (part, stream)
        if not stream or name not in self.sequences:
            self.sequences.append(name)
            return len(self.sequences) - 1
        return self.sequences.index(name)

    def stage(self, name: str) -> int:
        """Return the number of a stage of a flow."""
        if (self.flow, name) not in self.stages:
            self.stages.append((self.flow, name))
        return self.stages.index((self.flow, name))

    def law(self, step: Hold) -> int:
        """Return the number of the law of a hold."""
        self._holds += 1
        name = f"hold {self.flow} {self._holds}"
        if isinstance(step.time, Deterministic):  # draws nothing: one law for all of the same time
            name = f"hold {step.time.mean}"
        if name not in self._laws:
            self._laws[name] = self.sources.law(name, step.time)
        return self._laws[name]
