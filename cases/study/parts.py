"""What a study is: the workloads explored, with what was simulated and what is recommended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cases.study.analysis import Analysis
from cases.study.check import Check, Runs
from cases.study.recommendation import Recommendation, recommend
from optimize.decisions.changes import Growth
from optimize.decisions.decision import Decision


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One workload of a study."""

    analysis: Analysis  # every design solved
    # What was simulated, and what follows: the recommended design and an interval on every number.
    decision: Decision
    check: Check | None  # the model's error on the simulated designs; None without any
    growth: Growth | None = None  # the traffic that simulations bear out; None if that is the model's word

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.analysis.name

    @cached_property
    def star(self) -> Recommendation:
        """Which design is recommended, and what contradicts the model."""
        return recommend(self.decision)

    def row_of(self, design: int) -> int | None:
        """Return the row of a design in the analytic table."""
        designs = self.analysis.exploration.table["design"]
        row = int(np.searchsorted(designs, design))
        return row if row < len(designs) and designs[row] == design else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The explorations of the joint case under one workload or several."""

    parts: tuple[Part, ...]  # the first is the main one
    runs: Runs  # how designs were simulated

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the simulations."""
        return any(part.decision.interrupted for part in self.parts)
