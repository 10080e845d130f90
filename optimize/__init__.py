"""Exploration of any model over the fields of any dataclass.

`Space` says which designs there are; `explore` evaluates them (all, along a search path, or those
that bounds do not exclude) and finds the exact Pareto front; `two_stage` adds a simulation where
the model is not sure. `choose`, `exact_front`, `sum_front` and `choose_by_gain` combine tabulated
parts under budgets; `place` and `assign` put parts on nodes,
`place_dma` cores on shared DMA channels; `sensitivity`, `tornado` and `sobol`
say which field matters, `size` which value meets a target. Nothing here knows what a design is:
specs are (nested) dataclasses, models are callables.
"""

# A package of qmodels-toolkit: `import cases` looks for this line.

from __future__ import annotations

from optimize.assignment import Assignment, assign
from optimize.components import Component, chosen_spec, tabulate
from optimize.congestion import CongestedChoice, choose_congested
from optimize.dma_placement import place_dma
from optimize.dma_problem import DmaProblem
from optimize.epsilon_constraint import ExactFront, exact_front
from optimize.exploration import Exclusion, Exploration
from optimize.explore import explore
from optimize.fields import field_paths, find_field, get_field, replace_fields
from optimize.gains import choose_by_gain
from optimize.greedy import Step, simplex_weights
from optimize.milp import Choice, choose
from optimize.pareto import (
    FrontComparison,
    compare_fronts,
    epsilon_thin,
    hypervolume,
    knee_index,
    nondominated,
    pareto_ranks,
)
from optimize.piecewise import Curve, PiecewiseLinear
from optimize.placement import Placement, place
from optimize.proof import Proof, Violation
from optimize.sensitivity import Elasticity, sensitivity
from optimize.sizing import Size, size
from optimize.sobol import SobolIndices, sobol
from optimize.space import Space
from optimize.sums import SumFront, sum_front
from optimize.tornado import Tornado, tornado
from optimize.two_stage import TwoStage, two_stage
from optimize.uncertain import Membership, front_membership, front_probability

__all__ = [
    "Assignment",
    "Choice",
    "Component",
    "CongestedChoice",
    "Curve",
    "DmaProblem",
    "Elasticity",
    "ExactFront",
    "Exclusion",
    "Exploration",
    "FrontComparison",
    "Membership",
    "PiecewiseLinear",
    "Placement",
    "Proof",
    "Size",
    "SobolIndices",
    "Space",
    "Step",
    "SumFront",
    "Tornado",
    "TwoStage",
    "Violation",
    "assign",
    "choose",
    "choose_by_gain",
    "choose_congested",
    "chosen_spec",
    "compare_fronts",
    "epsilon_thin",
    "exact_front",
    "explore",
    "field_paths",
    "find_field",
    "front_membership",
    "front_probability",
    "get_field",
    "hypervolume",
    "knee_index",
    "nondominated",
    "pareto_ranks",
    "place",
    "place_dma",
    "replace_fields",
    "sensitivity",
    "simplex_weights",
    "size",
    "sobol",
    "sum_front",
    "tabulate",
    "tornado",
    "two_stage",
]
