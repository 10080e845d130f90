"""Oracles that share no formula with the models: Markov chains solved as linear systems."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest


class PhaseType:
    """A phase-type law: initial probabilities, rates of leaving, where to (the rest leaves the law)."""

    def __init__(self, start, rates, moves=None):
        self.start, self.rates = np.array(start, float), np.array(rates, float)
        n = len(self.rates)
        self.moves = np.zeros((n, n)) if moves is None else np.array(moves, float)
        self.exit = 1 - self.moves.sum(axis=1)

    @classmethod
    def of(cls, mean: float, scv: float) -> PhaseType:
        """Erlang for 1/scv whole, exponential, or hyperexponential with balanced means."""
        if scv <= 1:
            k = round(1 / scv)
            return cls([1] + [0] * (k - 1), [k / mean] * k, np.eye(k, k=1))
        p = (1 + np.sqrt((scv - 1) / (scv + 1))) / 2
        return cls([p, 1 - p], [2 * p / mean, 2 * (1 - p) / mean])


def gi_g_c(arrival: PhaseType, service: PhaseType, servers: int) -> float:
    """Mean number waiting of PH/PH/c, from the quasi birth-death process of phases and counts."""
    kinds = len(service.rates)

    def counts(total):
        return [c for c in itertools.product(range(total + 1), repeat=kinds) if sum(c) == total]

    levels = [
        [(a, c) for a in range(len(arrival.rates)) for c in counts(min(n, servers))]
        for n in range(servers + 2)
    ]
    index = [{state: i for i, state in enumerate(level)} for level in levels]

    def shifted(c, out=None, into=None):
        c = list(c)
        if out is not None:
            c[out] -= 1
        if into is not None:
            c[into] += 1
        return tuple(c)

    def blocks(n):
        """Rates from level n down, within, and up; level `servers` + 1 stands for all above."""
        here = levels[n]
        up = np.zeros((len(here), len(levels[min(n + 1, servers + 1)])))
        inside = np.zeros((len(here), len(here)))
        down = np.zeros((len(here), len(levels[n - 1]) if n else 0))
        for i, (a, c) in enumerate(here):
            rate = arrival.rates[a]
            for b in range(len(arrival.rates)):
                inside[i, index[n][b, c]] += rate * arrival.moves[a, b]
                for s in range(kinds if n < servers else 1):
                    share = service.start[s] if n < servers else 1.0
                    target = shifted(c, into=s) if n < servers else c
                    up[i, index[min(n + 1, servers + 1)][b, target]] += (
                        rate * arrival.exit[a] * arrival.start[b] * share
                    )
            for s in range(kinds):
                speed = c[s] * service.rates[s]
                if speed == 0:
                    continue
                for t in range(kinds):
                    inside[i, index[n][a, shifted(c, s, t)]] += speed * service.moves[s, t]
                done = speed * service.exit[s]
                if n <= servers:
                    down[i, index[n - 1][a, shifted(c, s)]] += done
                else:
                    for t in range(kinds):
                        down[i, index[n - 1][a, shifted(c, s, t)]] += done * service.start[t]
        total = up.sum(axis=1) + inside.sum(axis=1) + down.sum(axis=1)
        return down, inside - np.diag(total), up

    down, inside, up = blocks(servers + 1)
    identity = np.eye(len(inside))
    # Logarithmic reduction (Latouche and Ramaswami) for G, then R.
    inverse = np.linalg.inv(-inside)
    high, low = inverse @ up, inverse @ down
    g, t = low.copy(), high.copy()
    for _ in range(60):
        u = high @ low + low @ high
        inverse = np.linalg.inv(identity - u)
        high, low = inverse @ high @ high, inverse @ low @ low
        g, t = g + t @ low, t @ high
        if np.abs(t).max() < 1e-16:
            break
    r = up @ np.linalg.inv(-(inside + up @ g))
    sizes = [len(level) for level in levels[: servers + 1]]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    matrix = np.zeros((begins[-1], begins[-1]))
    for n in range(servers + 1):
        below, same, above = blocks(n)
        at = slice(begins[n], begins[n + 1])
        matrix[at, at] += same
        if n:
            matrix[at, begins[n - 1] : begins[n]] += below
        if n < servers:
            matrix[at, begins[n + 1] : begins[n + 2]] += above
    last = slice(begins[servers], begins[servers + 1])
    matrix[last, last] += r @ down
    beyond = np.linalg.inv(identity - r)
    mass = np.ones(begins[-1])
    mass[last] = beyond.sum(axis=1)
    system = np.vstack([matrix.T[1:], mass])
    p = np.linalg.solve(system, np.eye(begins[-1])[-1])
    return float(p[last] @ r @ beyond @ beyond @ np.ones(len(r)))


def stationary(transitions: Callable[[Any], Iterator[tuple[Any, float]]], start: Any) -> dict[Any, float]:
    """Stationary law of the chain reached from a state; `transitions` yields targets and rates."""
    from scipy.sparse import csr_matrix, diags, vstack
    from scipy.sparse.linalg import spsolve

    number, stack, entries = {start: 0}, [start], []
    while stack:
        state = stack.pop()
        for target, rate in transitions(state):
            if rate <= 0:
                continue
            if target not in number:
                number[target] = len(number)
                stack.append(target)
            entries.append((number[state], number[target], rate))
    rows, columns, rates = (np.array(v) for v in zip(*entries, strict=True))
    n = len(number)
    q = csr_matrix((rates, (rows, columns)), shape=(n, n))
    q = q - diags(np.asarray(q.sum(axis=1)).ravel())
    system = vstack([q.T.tocsr()[1:], csr_matrix(np.ones((1, n)))]).tocsc()
    p = spsolve(system, np.eye(1, n, n - 1).ravel())
    return {state: float(p[i]) for state, i in number.items()}


@pytest.fixture(scope="session")
def ph_queue():
    """Mean wait of GI/G/c from means and SCVs, by a chain of phases."""

    def mean_waiting_time(*, arrival_rate, arrival_scv, service_scv, servers=1, service_mean=1.0):
        arrival = PhaseType.of(1 / arrival_rate, arrival_scv)
        return gi_g_c(arrival, PhaseType.of(service_mean, service_scv), servers) / arrival_rate

    return mean_waiting_time


@pytest.fixture(scope="session")
def chain():
    """The stationary law of a Markov chain given by its transitions."""
    return stationary
