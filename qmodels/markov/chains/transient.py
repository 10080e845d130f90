"""Transient behaviour of a finite chain: absorption, and the law after a time by uniformization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.libraries import sparse, special
from qmodels.numerics.elimination import LARGEST_EXACT, solve_transient
from qmodels.numerics.poisson import poisson_pmf, terms_needed


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


MOST_TERMS = 1_000_000
"""Terms of the sum for chains too large to square."""
_SQUARE_ABOVE = 500.0
_SETTLED = 1e-13


def transient(
    rates: Any, start: FloatArray, times: FloatArray, long_run: Callable[[], FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return the laws at the times and the mean time spent in every state until then.

    ``rates``: off-diagonal rates in compressed rows; ``start``: law at time 0; ``long_run``: gives the limit
    for this start; called only when many terms are ahead.
    """
    exits = np.asarray(rates.sum(axis=1)).ravel()
    q = float(exits.max())
    if q == 0.0 or times.size == 0:
        return np.tile(start, (times.size, 1)), np.multiply.outer(times, start)
    longest = q * float(times.max())
    if longest > _SQUARE_ABOVE and start.size <= LARGEST_EXACT:
        return _by_squaring(rates.toarray(), exits, q, start, times)
    return _by_terms(rates, exits, q, start, times, long_run)


def _by_terms(
    rates: Any,
    exits: FloatArray,
    q: float,
    start: FloatArray,
    times: FloatArray,
    long_run: Callable[[], FloatArray],
) -> tuple[FloatArray, FloatArray]:
    inflow = (rates.T / q).tocsr()
    stay = 1.0 - exits / q
    laws = np.zeros((times.size, start.size))
    spent = np.zeros((times.size, start.size))
    means = q * times
    total = terms_needed(float(means.max()))
    limit = long_run() if total > 2000 else None
    block = max(1, min(64, 4_000_000 // start.size))
    v = start
    done = 0
    while done < total:
        iterates = np.empty((block, start.size))
        for k in range(block):
            iterates[k] = v
            v = stay * v + inflow @ v
        order = np.arange(done, done + block, dtype=float)
        laws += poisson_pmf(order, means[:, None]) @ iterates
        spent += special.gammainc(order + 1.0, means[:, None]) @ iterates / q
        done += block
        v = v / v.sum()  # rounding would add up over many terms
        if limit is not None and np.abs(v - limit).sum() <= _SETTLED:
            laws += np.multiply.outer(special.gammainc(float(done), means), limit)
            spent += np.multiply.outer(np.maximum(times - spent.sum(axis=1), 0.0), limit)
            break
        if MOST_TERMS <= done < total:
            raise RuntimeError(
                f"uniformization stopped after {done} of {total} terms without settling: ask for shorter "
                f"times, lump the fastest states, or use at most {LARGEST_EXACT} states"
            )
    return laws / laws.sum(axis=1, keepdims=True), spent


def _by_squaring(
    rates: FloatArray, exits: FloatArray, q: float, start: FloatArray, times: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Write each time as a remainder below h plus multiples of h 2^j, with q h <= 1."""
    doublings = max(0, int(np.ceil(np.log2(q * times.max()))))
    h = float(times.max()) / 2.0**doublings
    steps = np.minimum(np.floor(times / h), 2.0**doublings)  # whole numbers, perhaps beyond 64 bits
    rest = np.maximum(times - steps * h, 0.0)
    laws, spent = _by_terms(sparse.csr_array(rates), exits, q, start, rest, lambda: start)
    power, within = _one_step(rates, exits, q, h)
    for bit in range(doublings + 1):
        chosen = np.floor(steps / 2.0**bit) % 2.0 == 1.0
        spent[chosen] += laws[chosen] @ within
        laws[chosen] = laws[chosen] @ power
        if bit < doublings:
            within = within + power @ within
            power = power @ power
            power /= power.sum(axis=1, keepdims=True)
    return laws / laws.sum(axis=1, keepdims=True), spent


def _one_step(rates: FloatArray, exits: FloatArray, q: float, h: float) -> tuple[FloatArray, FloatArray]:
    """Return P(h) and the integral of P over [0, h] for q h <= 1."""
    u = rates / q
    np.fill_diagonal(u, 1.0 - exits / q)
    term = np.eye(len(rates))
    power, within = np.zeros_like(u), np.zeros_like(u)
    for k in range(24):
        power += float(poisson_pmf(np.asarray(float(k)), np.asarray(q * h))) * term
        within += float(special.gammainc(k + 1.0, q * h)) / q * term
        term = term @ u
    return power / power.sum(axis=1, keepdims=True), within
