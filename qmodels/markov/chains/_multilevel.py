"""Multilevel aggregation and disaggregation: the iterative solver for chains too large to eliminate.

States that exchange much flow are lumped, four at a time, down to a chain small enough for the
elimination; the lumped solution rescales the states of each lump, and Gauss-Seidel sweeps
smooth what lumping cannot see. Every step multiplies or adds positive numbers, so the iterate
stays a probability vector (horton1994 of ``qmodels/evidence/sources.txt``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.libraries import sparse
from qmodels.markov.chains._dissection import Int32
from qmodels.numerics.kernels import compiled

COARSEST = 48  # states at which lumping stops
FLOOR = 1e-250  # the smallest probability kept, relative to 1: lumps must not lose all their weight

Rates = tuple[Int32, Int32, FloatArray, FloatArray]
"""Where the inflows of each state begin, where they come from, their rates, and the states' exit rates."""


@compiled
def _sweep(rates: Rates, x: FloatArray, backward: bool) -> None:
    """One Gauss-Seidel sweep over the balance equations."""
    ptr, source, rate, exit_rate = rates
    n = x.size
    for k in range(n):
        j = n - 1 - k if backward else k
        inflow = 0.0
        for e in range(ptr[j], ptr[j + 1]):
            inflow += rate[e] * x[source[e]]
        if exit_rate[j] > 0.0:  # a lump of underflowed flows keeps its weight
            x[j] = inflow / exit_rate[j]


@compiled
def imbalance(rates: Rates, x: FloatArray) -> float:
    """Sum over states of |inflow - outflow|, relative to the total flow."""
    ptr, source, rate, exit_rate = rates
    error = 0.0
    total = 0.0
    for j in range(x.size):
        inflow = 0.0
        for e in range(ptr[j], ptr[j + 1]):
            inflow += rate[e] * x[source[e]]
        outflow = exit_rate[j] * x[j]
        error += abs(inflow - outflow)
        total += outflow
    return error / total


@compiled
def _pairs(ptr: Int32, adj: Int32, flow: FloatArray, outflow: FloatArray) -> Int32:
    """Match every state with the free neighbour it exchanges most of its flow with."""
    n = ptr.size - 1
    lump = np.full(n, -1, np.int32)
    lumps = 0
    for i in range(n):
        if lump[i] >= 0:
            continue
        partner = -1
        strongest = 0.0
        host = -1
        host_strength = 0.0
        for e in range(ptr[i], ptr[i + 1]):
            j = adj[e]
            strength = flow[e] / min(outflow[i], outflow[j])
            if lump[j] < 0 and j != i and strength > strongest:
                strongest = strength
                partner = j
            if lump[j] >= 0 and strength > host_strength:
                host_strength = strength
                host = j
        if partner < 0 and host >= 0:  # no free neighbour, as around a hub: join a pair
            lump[i] = lump[host]
            continue
        lump[i] = lumps
        if partner >= 0:
            lump[partner] = lumps
        lumps += 1
    return lump


@compiled
def _lumped_flows(
    rates: Rates, x: FloatArray, lump: Int32, target: Int32, coarse_flow: FloatArray, coarse_out: FloatArray
) -> None:
    """Flows between lumps when the states hold the weights x."""
    ptr, source, rate, _ = rates
    coarse_flow[:] = 0.0
    coarse_out[:] = 0.0
    for j in range(x.size):
        for e in range(ptr[j], ptr[j + 1]):
            if target[e] >= 0:
                flow = rate[e] * x[source[e]]
                coarse_flow[target[e]] += flow
                coarse_out[lump[source[e]]] += flow


@compiled
def _eliminate_lumps(ptr: Int32, source: Int32, flow: FloatArray) -> FloatArray:
    """GTH elimination of the coarsest chain."""
    n = ptr.size - 1
    rates = np.zeros((n, n))
    for j in range(n):
        for e in range(ptr[j], ptr[j + 1]):
            rates[source[e], j] = flow[e]
    for k in range(n - 1, 0, -1):
        exit_rate = rates[k, :k].sum()
        for i in range(k):
            factor = rates[i, k] / exit_rate
            rates[i, k] = factor
            for j in range(k):
                rates[i, j] += factor * rates[k, j]
    z = np.zeros(n)
    z[0] = 1.0
    for k in range(1, n):
        for i in range(k):
            z[k] += z[i] * rates[i, k]
    return z


@dataclass(kw_only=True)
class _Level:
    """One chain of the hierarchy: flows into each lump, and how it is lumped again."""

    ptr: Int32
    source: Int32
    rate: FloatArray
    exit_rate: FloatArray
    lump: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    target: Int32 = field(default_factory=lambda: np.empty(0, np.int32))

    @property
    def rates(self) -> Rates:
        """What the kernels take."""
        return self.ptr, self.source, self.rate, self.exit_rate


def _level(flows: Any) -> _Level:
    flows = flows.tocsc()
    flows.sort_indices()
    return _Level(
        ptr=flows.indptr.astype(np.int32),
        source=flows.indices.astype(np.int32),
        rate=flows.data,
        exit_rate=np.asarray(flows.sum(axis=1)).ravel(),
    )


def _lump_twice(flows: Any) -> tuple[Any, Int32]:
    """Lump pairs and then pairs of pairs; the flows between the lumps and the lump of each state."""
    lump = np.arange(flows.shape[0], dtype=np.int32)
    for _ in range(2):
        exchange = (flows + flows.T).tocsr()
        outflow = np.asarray(flows.sum(axis=1)).ravel()
        pair = _pairs(
            exchange.indptr.astype(np.int32), exchange.indices.astype(np.int32), exchange.data, outflow
        )
        n = pair.size
        gather = sparse.csr_array((np.ones(n), (np.arange(n), pair)), shape=(n, int(pair.max()) + 1))
        flows = (gather.T @ flows @ gather).tocsc()
        flows = (flows - sparse.diags_array(flows.diagonal())).tocsc()
        flows.eliminate_zeros()
        lump = pair[lump]
    return flows, lump


def _hierarchy(rates: Any, x: FloatArray) -> list[_Level]:
    """Lump by the flows under the weights x until few lumps are left."""
    levels = [_level(rates)]
    flows = (sparse.diags_array(x) @ rates).tocsc()
    while flows.shape[0] > COARSEST:
        coarse, lump = _lump_twice(flows)
        count = coarse.shape[0]
        fine = levels[-1]
        fine.lump = lump
        into = np.repeat(lump, np.diff(fine.ptr)).astype(np.int64)
        key = into * count + lump[fine.source]
        level = _level(coarse)
        known = np.repeat(np.arange(count, dtype=np.int64), np.diff(level.ptr)) * count + level.source
        crossing = into != lump[fine.source]
        fine.target = np.full(key.size, -1, np.int32)
        fine.target[crossing] = np.searchsorted(known, key[crossing])
        levels.append(level)
        flows = coarse
    return levels


def _cycle(levels: list[_Level], depth: int, x: FloatArray) -> None:
    """One W-cycle; x is rescaled in place."""
    here = levels[depth]
    if depth == len(levels) - 1:
        x[:] = _eliminate_lumps(here.ptr, here.source, here.rate)
        return
    below = levels[depth + 1]
    rates = here.rates
    for backward in (False, True):
        _sweep(rates, x, backward)
    for _ in range(2 if depth else 1):
        _lumped_flows(rates, x, here.lump, here.target, below.rate, below.exit_rate)
        z = np.ones(below.exit_rate.size)
        _cycle(levels, depth + 1, z)
        x *= z[here.lump]
        x /= x.sum()
        np.maximum(x, FLOOR, out=x)
        for backward in (True, False):
            _sweep(rates, x, backward)


def multilevel(rates: Any, *, tolerance: float, max_iterations: int) -> tuple[FloatArray, float, int]:
    """Stationary law of an irreducible chain, its relative residual and the cycles it took."""
    n = rates.shape[0]
    x = np.full(n, 1.0 / n)
    levels = _hierarchy(rates, x)
    residual = np.inf
    for iteration in range(1, max_iterations + 1):
        _cycle(levels, 0, x)
        x /= x.sum()
        residual = imbalance(levels[0].rates, x)
        if residual <= tolerance:
            return x, residual, iteration
        if iteration == 2:  # now the flows are roughly known, lump by them
            levels = _hierarchy(rates, x)
    raise RuntimeError(
        f"the iteration stopped after {max_iterations} cycles at a residual of {residual:.2g}, above the "
        f"tolerance {tolerance:.2g}: allow more max_iterations, or use method='direct' if memory permits"
    )
