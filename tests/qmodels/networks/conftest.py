"""Markov chains of whole networks: oracles that know nothing of product forms."""

import itertools

import numpy as np
import pytest

from qmodels.markov import CTMC


def _jump(state, i, r, change):
    counts = [list(row) for row in state]
    counts[i][r] += change
    return tuple(map(tuple, counts))


def shared_network(*, population, times, routing, think_time, rate, arrivals=None, room=0):
    """Stations that share their rate among all jobs, by the balance of every population.

    `times` has shape (stations, classes); `rate(i, n)` is the rate of station i with n jobs as a
    multiple of a server's; `routing[r][i]` gives where class r goes after station i (index
    `len(times)` is the think state of closed classes and the outside of open ones). Open classes
    have arrivals `arrivals[r]` at station 0 and are cut off at `room` jobs.
    """
    stations, classes = np.shape(times)
    arrivals = arrivals or [0.0] * classes
    outside = stations

    def moves(state):
        for r in range(classes):
            inside = sum(row[r] for row in state)
            start = 0.0
            if arrivals[r] and inside < room:
                start = arrivals[r]
            elif inside < population[r]:
                start = (population[r] - inside) / think_time[r]
            if start:
                for j, p in enumerate(routing[r][outside]):
                    if p:
                        yield _jump(state, j, r, 1), start * p
        for i, row in enumerate(state):
            total = sum(row)
            for r, n in enumerate(row):
                if not n:
                    continue
                speed = rate(i, total) * n / total / times[i][r]
                for j, p in enumerate(routing[r][i]):
                    if p and j == outside and arrivals[r] == 0 and think_time[r] == 0:
                        # A cycle without think time starts over at once.
                        for k, q in enumerate(routing[r][outside]):
                            if q:
                                yield _jump(_jump(state, i, r, -1), k, r, 1), speed * p * q
                    elif p and j == outside:
                        yield _jump(state, i, r, -1), speed * p
                    elif p:
                        yield _jump(_jump(state, i, r, -1), j, r, 1), speed * p

    start = [[0] * classes for _ in range(stations)]
    for r in range(classes):
        if not arrivals[r] and think_time[r] == 0:
            start[int(np.argmax(routing[r][outside]))][r] = population[r]
    law = CTMC.from_transitions(initial_state=tuple(map(tuple, start)), transitions=moves).stationary()
    states = np.array(law.states)
    return states, law.probabilities


@pytest.fixture(scope="session")
def chain():
    """Return mean numbers and throughputs of a shared network, shape (stations, classes)."""

    def solve(**network):
        states, law = shared_network(**network)
        number = np.tensordot(law, states, axes=1)
        times, rate = np.asarray(network["times"]), network["rate"]
        speed = np.array(
            [[rate(i, n) / n if n else 0.0 for i, n in enumerate(s)] for s in states.sum(axis=2)]
        )
        flow = np.tensordot(law, speed[:, :, None] * states / times, axes=1)
        return number, flow

    return solve


@pytest.fixture(scope="session")
def marginal():
    """Return the law of the number of jobs at a station of a shared network with one class."""

    def solve(station, **network):
        states, law = shared_network(**network)
        return np.bincount(states[:, station, 0], weights=law)

    return solve


def _served(queue, discipline, rank):
    """Return the positions of a queue (in order of arrival) that are in service, one server."""
    if not queue:
        return None
    if discipline == "preemptive":
        return min(range(len(queue)), key=lambda k: (rank[queue[k]], k))
    return 0


@pytest.fixture(scope="session")
def ordered_chain():
    """Return mean numbers of a closed cyclic network of single servers that serve in some order.

    State: per station the classes of its jobs, the one in service first, the others in order of
    arrival. After the last station jobs think and start over at the first.
    """

    def solve(*, population, rates, think_time, discipline, rank):
        stations, classes = np.shape(rates)

        def arrive(queue, r):
            return (*queue, r)

        def depart(queue, k, discipline):
            rest = list(queue[:k] + queue[k + 1 :])
            if discipline == "priority" and rest:
                best = min(range(len(rest)), key=lambda m: (rank[rest[m]], m))
                rest.insert(0, rest.pop(best))
            return tuple(rest)

        def moves(state):
            inside = list(itertools.chain.from_iterable(state))
            for r in range(classes):
                away = population[r] - inside.count(r)
                if away:
                    yield (arrive(state[0], r), *state[1:]), away / think_time[r]
            for i, queue in enumerate(state):
                k = _served(queue, discipline, rank)
                if k is None:
                    continue
                r = queue[k]
                after = list(state)
                after[i] = depart(queue, k, discipline)
                if i + 1 < stations:
                    after[i + 1] = arrive(after[i + 1], r)
                yield tuple(after), rates[i][r]

        law = CTMC.from_transitions(initial_state=((),) * stations, transitions=moves).stationary()
        number = np.zeros((stations, classes))
        for state, p in zip(law.states, law.probabilities, strict=True):
            for i, queue in enumerate(state):
                for r in queue:
                    number[i, r] += p
        return number

    return solve
