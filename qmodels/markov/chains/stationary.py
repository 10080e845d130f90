"""Stationary law of an irreducible chain: which method, and how good the answer is."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.libraries import sparse
from qmodels.numerics.elimination import LARGEST_EXACT, stationary_dense

METHODS = ("auto", "gth", "direct", "iterative")

MOST_OPERATIONS = 2e11
"""Floating-point operations above which "auto" iterates instead (several seconds of one core)."""
MOST_MEMORY = 2e9
"""Bytes of factor above which "auto" iterates instead."""


def balance_residual(rates: Any, law: FloatArray) -> float:
    """Return the sum of abs(inflow - outflow) over the states, relative to the total flow.

    Free of the unit of time and of the magnitude of the rates. 0 for a single state.
    """
    outflow = law * np.asarray(rates.sum(axis=1)).ravel()
    total = float(outflow.sum())
    return float(np.abs(rates.T @ law - outflow).sum()) / total if total > 0 else 0.0


def solve_irreducible(
    rates: Any, *, method: str = "auto", tolerance: float = 1e-12, max_iterations: int = 1000
) -> tuple[FloatArray, float, str, int]:
    """Return the law, its balance residual, the method used and its iterations.

    ``rates``: off-diagonal rates (or probabilities) in compressed rows, one communicating class; ``method``:
    see `qmodels.markov.CTMC.stationary`; ``tolerance``: largest residual that the iteration accepts;
    ``max_iterations``: cycles after which the iteration gives up.
    """
    method = checks.choice("method", method, METHODS)
    limit = float(checks.positive("tolerance", tolerance))
    cycles = int(checks.count("max_iterations", max_iterations))
    n = rates.shape[0]
    if n == 1:
        return np.ones(1), 0.0, "gth", 0
    if method == "gth" or (method == "auto" and n <= LARGEST_EXACT):
        try:
            law = stationary_dense(rates.toarray())
            return law, balance_residual(rates, law), "gth", 0
        except RuntimeError:
            if method == "gth":
                raise
            method = "direct"  # dissection copes with more underflow
    if method != "iterative":
        from qmodels.markov.chains._sparse_gth import Elimination

        plan = Elimination(rates)
        if method == "direct" or (plan.operations <= MOST_OPERATIONS and plan.memory <= MOST_MEMORY):
            law = plan.solve()
            return law, balance_residual(rates, law), "direct", 0
    from qmodels.markov.chains._multilevel import multilevel

    law, residual, cycles = multilevel(rates, tolerance=limit, max_iterations=cycles)
    return law, residual, "iterative", cycles


def single_class_law(name: str, rates: FloatArray) -> FloatArray:
    """Return the stationary law of a small chain with one closed class, 0 at its transient states."""
    from qmodels.markov.chains.structure import chain_classes

    off = rates - np.diag(np.diagonal(rates))
    closed = chain_classes(sparse.csr_array(off)).closed
    if len(closed) != 1:
        raise ValueError(f"{name} must have one closed class of phases, got {len(closed)}")
    law = np.zeros(len(off))
    law[closed[0]] = stationary_dense(off[np.ix_(closed[0], closed[0])])
    return law
