r"""Transient laws by uniformization: sums of non-negative terms, for stiff chains too.

With :math:`q \ge \max_i |q_{ii}|` and :math:`U = I + Q/q`,

.. math:: \pi(t) = \sum_k e^{-qt} \frac{(qt)^k}{k!}\, \pi(0) U^k, \qquad
          \int_0^t \pi(s)\,ds = \frac1q \sum_k P(N_{qt} > k)\, \pi(0) U^k .

The sum needs about qt terms. When that is too many, a small chain squares the matrix
:math:`P(2h) = P(h)^2` instead, and a large one stops where the iterates have reached the
long-run law (their distance to it never grows, so the check is rigorous).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.libraries import sparse, special
from qmodels.numerics.elimination import LARGEST_EXACT
from qmodels.numerics.poisson import poisson_pmf, terms_needed

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
