"""The one place that knows PuLP: what its generations 3 and 4 have in common, solved by HiGHS.

Models are always minimised: the generations report the bound of a maximisation with
different signs. Everything about the outcome is read from HiGHS itself, as PuLP 3 calls a
time limit optimal. The calls used here emit no warning in either generation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

TOLERANCE = 1e-9  # feasibility and integrality tolerance asked of HiGHS, for models scaled to about 1
SUMS = "optimize, dynamic programming"  # what solved it where no solver was asked
RESOLUTION = 1e-6
"""Differences that programs tell apart, in the largest range of an objective within a component."""

Terms = Mapping[int, float]  # A linear form: the coefficient of every variable, by its number


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of the solver."""

    # "optimal" or "feasible" or "infeasible" or "time limit": "feasible" has a solution that was not proven
    # optimal in time, "time limit" has none; so does a solver that gives up on its numbers.
    status: str
    values: list[float]  # the variables; empty without a solution
    bound: float  # proven lower bound of the objective; infinite if there is none


class Model:
    """A minimisation over binary and continuous variables; wraps the PuLP problem.

    Variables are numbered from 0 in the order in which they are made. The bound of the outcome
    is that of a model with at least one binary variable.
    """

    def __init__(self) -> None:
        self._pulp = pulp = _loaded()
        self._problem = pulp.LpProblem("model", pulp.LpMinimize)
        self._variables: list[Any] = []
        self._costs: dict[int, float] | None = {}

    def binary(self, cost: float = 0.0) -> int:
        """Add a variable that is 0 or 1 and return its number."""
        return self._add(0.0, 1.0, self._pulp.LpBinary, cost)

    def continuous(self, low: float | None = 0.0, high: float | None = None, cost: float = 0.0) -> int:
        """Add a variable between two bounds and return its number."""
        return self._add(low, high, self._pulp.LpContinuous, cost)

    def _add(self, low: float | None, high: float | None, category: str, cost: float) -> int:
        if self._costs is None:
            raise RuntimeError("variables must be added before the first solve")
        number = len(self._variables)
        self._variables.append(self._problem.add_variable(f"x{number}", low, high, category))
        if cost:
            self._costs[number] = cost
        return number

    def _sum(self, terms: Terms) -> Any:
        total = self._pulp.lpSum([])
        for k, value in terms.items():
            if value:
                total.addterm(self._variables[k], float(value))  # 4 x faster than adding products
        return total

    def at_most(self, terms: Terms, bound: float) -> None:
        """Require sum(coefficient * variable) <= bound."""
        self._problem += self._sum(terms) <= float(bound)

    def equal(self, terms: Terms, value: float) -> None:
        """Require sum(coefficient * variable) == value."""
        self._problem += self._sum(terms) == float(value)

    def solve(self, time_limit: float | None = None) -> Outcome:
        """Run HiGHS to proven optimality, or until the time limit in seconds."""
        if self._costs is not None:
            self._problem += self._sum(self._costs)
            self._costs = None
        solver = self._pulp.HiGHS(
            msg=False,
            timeLimit=time_limit,
            gapRel=0,
            gapAbs=0,
            output_flag=False,
            primal_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE,
            mip_feasibility_tolerance=TOLERANCE,
        )
        self._problem.solve(solver)
        import highspy

        highs = self._problem.solverModel
        info, status, known = highs.getInfo(), highs.getModelStatus(), highspy.HighsModelStatus
        solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        names = {known.kOptimal: "optimal", known.kInfeasible: "infeasible"}
        names |= {known.kUnboundedOrInfeasible: "infeasible"}
        stopped = known.kTimeLimit, known.kSolveError, known.kUnknown
        names |= dict.fromkeys(stopped, "feasible" if solved else "time limit")
        if status not in names:
            raise RuntimeError(f"HiGHS stopped with status {highs.modelStatusToString(status)!r}")
        values = [self._pulp.value(x) for x in self._variables] if solved else []
        return Outcome(status=names[status], values=values, bound=float(info.mip_dual_bound))


@cache
def _loaded() -> Any:
    """Return PuLP; the banner that HiGHS 1.16 writes to the standard output, once a process, is not shown."""
    import pulp  # before highspy: PuLP 4 must be the one that loads it

    if sys.stdout is None:  # a program without a terminal
        return pulp
    sys.stdout.flush()
    shown, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        import highspy

        highspy.Highs()
    finally:
        os.dup2(shown, 1)
        os.close(shown)
        os.close(nowhere)
    return pulp


def solver_name() -> str:
    """Return solver and modeller with their versions."""
    from importlib.metadata import version

    return f"HiGHS {version('highspy')} through PuLP {version('pulp')}"


def seconds_of(time_limit: float | None) -> float:
    """Return a time limit in seconds, infinite if there is none."""
    if time_limit is not None and not time_limit > 0:
        raise ValueError(f"time_limit must be > 0 seconds, got {time_limit!r}")
    return inf if time_limit is None else float(time_limit)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramOutcome:
    """End of a search."""

    #: "optimal": proven, within the tolerance or resolution that the outcome states; "feasible": a solution
    #: that was not proven optimal; "infeasible": proven that there is none; "time limit": no solution in time
    status: str
    #: ``|objective - bound| / |objective|`` unless said otherwise, 0 if proven; None without both
    gap: float | None
    seconds: float  #: Wall time, model building included
    solver: str  #: What solved it
    message: str = ""  #: Why there is no solution, or empty

    @property
    def proven(self) -> bool:
        """Whether the status is proven: the solution is optimal, or there is none."""
        return self.status in ("optimal", "infeasible")


def gap_of(objective: float | None, bound: float | None) -> float | None:
    """Return the distance of an objective from its bound, relative to it; None without both.

    >>> gap_of(-4.0, -5.0), gap_of(0.0, 0.0), gap_of(3.0, None)
    (0.25, 0.0, None)
    """
    if objective is None or bound is None:
        return None
    return abs(objective - bound) / abs(objective) if objective else float(objective != bound)
