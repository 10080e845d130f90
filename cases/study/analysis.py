"""One workload explored analytically: all designs, the front, a greedy search, the choice under a budget."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cases.study.packet_processor import GREEDY_ORDER, solved_columns
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.greedy import Step, simplex_weights
from optimize.search.pareto import FrontComparison, compare_fronts
from optimize.spaces.numbering import Columns
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import get_field

DIGITS = 5
"""Significant digits in which designs are compared: the model's iterations are good to six."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Budget:
    """The feasible design of least mean latency within a cost budget."""

    limit: float  # the budget [mm2]
    row: int | None  # None if nothing fits
    latency: float  # infinite if nothing fits [ns]


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """One workload explored analytically."""

    name: str  # the workload
    exploration: Exploration  # every design with its metrics, the exact front and its knee
    greedy: Exploration | None  # the greedy search; None without a front
    against: FrontComparison | None  # the greedy front against the exact one
    budget: Budget | None  # the choice under a cost budget; None without a front
    seconds: float  # time for solving all designs [s]

    @property
    def greedy_path(self) -> tuple[Step, ...]:
        """The steps of the greedy search that weighs all objectives alike."""
        steps = self.greedy.history if self.greedy else ()
        return tuple(step for step in steps if len(set(step.weights)) == 1)


def analyse(name: str, space: Space, goals: Mapping[str, Any], *, budget: float | None = None) -> Analysis:
    """Explore a space with the analytic model.

    ``name``: the workload, for the reports; ``goals``: ``minimize``, ``maximize`` and ``subject_to``, as
    `explore` takes them; ``budget``: cost budget of a choice; by default the cost of the knee [mm2].
    """
    started = time.perf_counter()
    exploration = explore(space, solved_columns, **goals, vectorized=True, digits=DIGITS)
    seconds = time.perf_counter() - started
    greedy = against = chosen_within = None
    if exploration.knee is not None:
        greedy = explore(
            space,
            Recall(exploration),
            **goals,
            vectorized=True,
            method="greedy",
            digits=DIGITS,
            order=[*GREEDY_ORDER, *(name for name in space.choices if name not in GREEDY_ORDER)],
            # In steps of 1/k for k objectives, so that all alike is one of the weightings.
            weights=simplex_weights(len(exploration.objectives), len(exploration.objectives)),
        )
        against = compare_fronts(
            greedy.values[greedy.front], exploration.values[exploration.front], maximize=exploration.maximized
        )
        limit = float(exploration.table["cost"][exploration.knee]) if budget is None else budget
        chosen_within = choose_within(exploration, limit)
    return Analysis(
        name=name,
        exploration=exploration,
        greedy=greedy,
        against=against,
        budget=chosen_within,
        seconds=seconds,
    )


class Recall:
    """The model, answering from the table of an exhaustive exploration: a search need not solve again."""

    def __init__(self, exploration: Exploration) -> None:
        self._exploration = exploration

    def __call__(self, spec: PacketProcessor) -> Columns:
        """Return the columns of the table for a sweep."""
        space, table = self._exploration.space, self._exploration.table
        digits = []
        for name, choices in space.choices.items():
            order = np.argsort(choices)
            found = np.searchsorted(choices, get_field(spec, space.paths[name]), sorter=order)
            digits.append(order[found])
        rows = np.searchsorted(table["design"], np.ravel_multi_index(tuple(digits), space.shape))
        return {
            name: column[rows] for name, column in table.items() if name not in ("design", *space.choices)
        }


def choose_within(exploration: Exploration, limit: float) -> Budget:
    """Choose the feasible design of least mean latency that costs at most `limit`."""
    table = exploration.table
    affordable = exploration.feasible & (table["cost"] <= limit)
    latency = np.where(affordable, table["packet_latency"], np.inf)
    row = int(latency.argmin())
    return Budget(limit=limit, row=row if affordable[row] else None, latency=float(latency[row]))
