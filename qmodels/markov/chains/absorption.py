"""Where a chain ends that is stopped in some states, how long it takes and what it earns on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.libraries import sparse
from qmodels.numerics.elimination import LARGEST_EXACT, solve_transient


def absorbed(
    rates: Any, groups: Sequence[IntArray], lost: IntArray, earn: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean time, probability of each group of states to stop in, and reward, from every state.

    From states that lead to the `lost` ones it may go on for ever.
    """
    group_of = np.full(rates.shape[0], -1)
    for g, group in enumerate(groups):
        group_of[group] = g
    passing = np.setdiff1d(np.flatnonzero(group_of < 0), lost)
    probabilities = np.zeros((group_of.size, len(groups)))
    final = np.flatnonzero(group_of >= 0)
    probabilities[final, group_of[final]] = 1.0
    mean_time, collected = np.zeros(group_of.size), np.zeros(group_of.size)
    if passing.size:
        onward = rates[passing]
        into = onward[:, final]
        entries = into.tocoo()
        right = np.zeros((passing.size, len(groups) + 2))
        np.add.at(right, (entries.row, group_of[final][entries.col]), entries.data)
        right[:, -2] = 1.0
        right[:, -1] = 0.0 if earn is None else earn[passing]
        leave = np.asarray(into.sum(axis=1) + onward[:, lost].sum(axis=1)).ravel()
        solution = _solve_passing(onward[:, passing], leave, right)
        probabilities[passing] = solution[:, :-2]
        mean_time[passing], collected[passing] = solution[:, -2], solution[:, -1]
    mean_time[_can_reach(rates, lost)] = np.inf
    return mean_time, probabilities, collected


def _can_reach(rates: Any, targets: IntArray) -> IntArray:
    """Return the states with a path into the targets, these included."""
    found = np.zeros(rates.shape[0], dtype=bool)
    found[targets] = True
    back = rates.T.tocsr()
    edge = targets
    while edge.size:
        edge = np.unique(back[edge].indices)
        edge = edge[~found[edge]]
        found[edge] = True
    return np.flatnonzero(found)


def _solve_passing(rates: Any, leave: FloatArray, right: FloatArray) -> FloatArray:
    if rates.shape[0] <= LARGEST_EXACT:
        return solve_transient(rates.toarray(), leave, right)
    from scipy.sparse.linalg import splu

    matrix = (sparse.diags_array(np.asarray(rates.sum(axis=1)).ravel() + leave) - rates).tocsc()
    factor = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    x = factor.solve(right)
    return np.asarray(x + factor.solve(right - matrix @ x))
