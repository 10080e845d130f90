"""One workload explored analytically: every design, and the front."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cases.study.packet_processor import solved_columns
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.spaces.numbering import Columns
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import get_field

DIGITS = 5
"""Significant digits in which designs are compared: the model's iterations are good to six."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Analysis:
    """One workload explored analytically."""

    name: str  # the workload
    exploration: Exploration  # every design with its metrics, the exact front and its knee
    seconds: float  # time for solving all designs [s]


def analyse(name: str, space: Space, goals: Mapping[str, Any]) -> Analysis:
    """Explore a space with the analytic model.

    ``name``: the workload, for the reports; ``goals``: ``minimize``, ``maximize`` and ``subject_to``, as
    `explore` takes them.
    """
    started = time.perf_counter()
    exploration = explore(space, solved_columns, **goals, vectorized=True, digits=DIGITS)
    seconds = time.perf_counter() - started
    return Analysis(
        name=name,
        exploration=exploration,
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
