"""The answer to a question about a space: a design that was simulated, and how sure everything else is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.search.exploration import Exploration
from optimize.search.pareto import IntArray
from optimize.spaces.numbering import Columns

BoolArray = npt.NDArray[np.bool_]

LEVEL = 0.9
"""Share of the designs that the intervals of a decision are to cover."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Decision:
    """Every design with intervals, which of them were simulated, and the one to take.

    Parameters
    ----------
    model : Exploration
        Every design by the model.
    table : dict of str to ndarray
        The same rows. A corrected metric ``m`` has ``m`` (best), ``m_low`` and ``m_high``, the ends of its
        90 % interval: of a simulated design the simulation's, of the others calibrated on the simulated ones.
        Other metrics are the model's own. ``simulated`` says which rows were simulated.
    corrected : tuple of str
        Metrics that have intervals.
    simulated : ndarray of int
        Rows that were simulated, in their order.
    results : dict of int to object
        What the simulation returned, by row.
    feasible : ndarray of bool
        Whether the best values of a row satisfy the constraints and it keeps up.
    front : ndarray of int
        Rows that no other dominates by the best values, ascending.
    chosen : int or None
        Row of the recommended design, simulated unless nothing was; None if none is feasible.
    reason : str
        Why that one, in words.
    open : ndarray of int
        Rows, not simulated, that could enter the front within their intervals.
    settled : bool
        Whether no row is open.
    budget, seconds : float
        Time allowed for simulations, and spent. [s]
    interrupted : bool
        Whether the user stopped them.
    """

    model: Exploration
    table: Columns
    corrected: tuple[str, ...]
    simulated: IntArray
    results: dict[int, Any]
    feasible: BoolArray
    front: IntArray
    chosen: int | None
    reason: str
    open: IntArray
    settled: bool
    budget: float
    seconds: float
    interrupted: bool

    def interval(self, metric: str, row: int) -> tuple[float, float, float]:
        """Return low, best and high of a metric of a design; of one without interval its value thrice."""
        names = (f"{metric}_low", metric, f"{metric}_high") if metric in self.corrected else (metric,) * 3
        low, best, high = (float(self.table[name][row]) for name in names)
        return low, best, high
