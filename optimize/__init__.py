"""Exploration of any model over the fields of any dataclass.

`Space` says which designs there are; `explore` evaluates them (all, along a search path, or those
that bounds do not exclude) and finds the exact Pareto front; `decide` simulates where that can change
the decision and gives every number an interval; `Search` asks what to simulate next where nobody lists the
designs. `choose` and `exact_front` combine tabulated parts under
budgets; `place` puts parts on nodes;
`sensitivity`, `tornado` and `sobol` say which field matters, `size` which value meets a target. Nothing
here knows what a design is: specs are (nested) dataclasses, models are callables.
"""

# A package of qmodels-toolkit: `qmodels.beside` looks for this name.

from __future__ import annotations

from optimize.analysis.inverse import Size
from optimize.analysis.ranges import SobolIndices, Tornado, sobol, tornado
from optimize.analysis.sensitivity import Elasticity, sensitivity
from optimize.analysis.sizing import size
from optimize.blackbox import Between, Domain, Search
from optimize.decisions.decide import decide
from optimize.decisions.decision import Decision, Interrupted
from optimize.programs.components import Component, tabulate
from optimize.programs.milp import Choice, ExactFront, choose, exact_front
from optimize.programs.placement import Placement, place
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.feasibility import Exclusion
from optimize.search.greedy import Step, simplex_weights
from optimize.search.milp import Proof, ProofStep
from optimize.search.pareto import (
    FrontComparison,
    compare_fronts,
    epsilon_thin,
    hypervolume,
    knee_index,
    nondominated,
)
from optimize.spaces.space import Space
from qmodels.systems.spec.fields import field_paths, find_field, get_field, replace_fields

_GONE = {
    "Progress": "Search(...).study, which optuna.visualization draws",
    "sum_front": "exact_front",
    "front_membership": "decide, whose Decision has the open designs",
    "chosen_spec": "replace_fields(space.base, {field: space.choices[field][row], ...})",
    **dict.fromkeys(("assign", "choose_congested", "Curve", "PiecewiseLinear"), "choose, or explore"),
}


def __getattr__(name: str) -> object:
    """Say what does the work of a name that is gone."""
    if name in _GONE:
        raise ImportError(f"optimize.{name} is gone; see {_GONE[name]}")
    raise AttributeError(f"module 'optimize' has no attribute {name!r}")


__all__ = [
    "Between", "Choice", "Component", "Decision", "Domain", "Elasticity", "ExactFront", "Exclusion",
    "Exploration", "FrontComparison", "Interrupted", "Placement", "Proof", "ProofStep", "Search", "Size",
    "SobolIndices", "Space", "Step", "Tornado", "choose", "compare_fronts", "decide", "epsilon_thin",
    "exact_front", "explore", "field_paths", "find_field", "get_field", "hypervolume", "knee_index",
    "nondominated", "place", "replace_fields", "sensitivity", "simplex_weights", "size", "sobol",
    "tabulate", "tornado",
]  # fmt: skip
