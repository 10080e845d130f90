"""What a study is: the workloads explored, with what was simulated and what is recommended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cases.study.analysis import Analysis
from cases.study.check import Check, Runs
from cases.study.deciding import decision_of
from cases.study.recommendation import Recommendation, recommend
from optimize.decisions.decision import Decision


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One workload of a study.

    Parameters
    ----------
    analysis : Analysis
        Every design solved.
    check : Check or None
        Some designs simulated; None without simulation.
    """

    analysis: Analysis
    check: Check | None

    @property
    def name(self) -> str:
        """The workload's name."""
        return self.analysis.name

    @cached_property
    def star(self) -> Recommendation:
        """Which design is recommended, see `recommend`."""
        return recommend(self.analysis, self.check)

    @cached_property
    def decision(self) -> Decision:
        """What was decided, with an interval on every number."""
        return decision_of(self.analysis, self.check, self.star)

    def row_of(self, design: int) -> int | None:
        """Return the row of a design in the analytic table."""
        designs = self.analysis.exploration.table["design"]
        row = int(np.searchsorted(designs, design))
        return row if row < len(designs) and designs[row] == design else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The explorations of the joint case under one workload or several.

    Parameters
    ----------
    parts : tuple of Part
        The first is the main one.
    runs : Runs
        How designs were simulated.
    """

    parts: tuple[Part, ...]
    runs: Runs

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the simulations."""
        return any(part.check is not None and part.check.interrupted for part in self.parts)
