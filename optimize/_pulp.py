"""The one place that knows PuLP: what its generations 3 and 4 have in common, solved by HiGHS.

Models are always minimised: the generations report the bound of a maximisation with
different signs. Everything about the outcome is read from HiGHS itself, as PuLP 3 calls a
time limit optimal. The calls used here emit no warning in either generation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

TOLERANCE = 1e-9
"""Feasibility and integrality tolerance asked of HiGHS, for models scaled to about 1."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What the solver says.

    Parameters
    ----------
    status : {"optimal", "feasible", "infeasible", "time limit"}
        "feasible" has a solution that was not proven optimal in time, "time limit" has none.
    values : list of float
        The variables; empty without a solution.
    bound : float
        Proven lower bound of the objective; infinite if there is none.
    """

    status: str
    values: list[float]
    bound: float


class Model:
    """A minimisation over binary variables; wraps the PuLP problem."""

    def __init__(self, objective: Sequence[float]) -> None:
        import pulp  # before highspy: PuLP 4 must be the one that loads it

        self._pulp = pulp
        self._problem = pulp.LpProblem("model", pulp.LpMinimize)
        self._variables = [
            self._problem.add_variable(f"x{k}", 0, 1, pulp.LpBinary) for k in range(len(objective))
        ]
        self._problem += self._sum(objective)

    def _sum(self, coefficients: Sequence[float]) -> Any:
        terms = zip(coefficients, self._variables, strict=True)
        return self._pulp.lpSum(float(coefficient) * x for coefficient, x in terms if coefficient)

    def at_most(self, coefficients: Sequence[float], bound: float) -> None:
        """Require sum(coefficients * x) <= bound."""
        self._problem += self._sum(coefficients) <= float(bound)

    def equal(self, coefficients: Sequence[float], value: float) -> None:
        """Require sum(coefficients * x) == value."""
        self._problem += self._sum(coefficients) == float(value)

    def solve(self, time_limit: float | None = None) -> Outcome:
        """Run HiGHS to proven optimality, or until the time limit in seconds."""
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
        info = highs.getInfo()
        status = highs.getModelStatus()
        solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
        names = {
            highspy.HighsModelStatus.kOptimal: "optimal",
            highspy.HighsModelStatus.kInfeasible: "infeasible",
            highspy.HighsModelStatus.kUnboundedOrInfeasible: "infeasible",
            highspy.HighsModelStatus.kTimeLimit: "feasible" if solved else "time limit",
        }
        if status not in names:
            raise RuntimeError(f"HiGHS stopped with status {highs.modelStatusToString(status)!r}")
        values = [self._pulp.value(x) for x in self._variables] if solved else []
        return Outcome(status=names[status], values=values, bound=float(info.mip_dual_bound))


def solver_name() -> str:
    """Return solver and modeller with their versions."""
    from importlib.metadata import version

    return f"HiGHS {version('highspy')} through PuLP {version('pulp')}"
