"""Exploration of any model over the fields of any dataclass.

`Space` says which designs there are, `explore` evaluates them (all, or along a greedy path)
and finds the exact Pareto front, `choose` proves the best combination under budgets. Nothing
here knows what a design is: specs are (nested) dataclasses, models are callables.
"""

from __future__ import annotations

from optimize.exploration import Exclusion, Exploration
from optimize.explore import explore
from optimize.fields import field_paths, find_field, get_field, replace_fields
from optimize.greedy import Step, simplex_weights
from optimize.milp import Choice, choose
from optimize.pareto import (
    FrontComparison,
    compare_fronts,
    epsilon_thin,
    hypervolume,
    knee_index,
    nondominated,
)
from optimize.space import Space

__all__ = [
    "Choice",
    "Exclusion",
    "Exploration",
    "FrontComparison",
    "Space",
    "Step",
    "choose",
    "compare_fronts",
    "epsilon_thin",
    "explore",
    "field_paths",
    "find_field",
    "get_field",
    "hypervolume",
    "knee_index",
    "nondominated",
    "replace_fields",
    "simplex_weights",
]
