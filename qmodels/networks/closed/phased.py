"""Closed networks of one class with services made of phases, as one Markov chain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.laws.phases import Phases
from qmodels.libraries import sparse
from qmodels.markov.processes.map_queues import Composition, changed, compositions
from qmodels.networks.closed.inputs import Network, closed_result
from qmodels.networks.result import NetworkResult

MOST_STATES = 100_000
"""States up to which a network is solved as a chain."""


class Server(NamedTuple):
    """A station: the phases of its services, its servers (``inf``: none waits), whether they are shared."""

    service: Phases
    servers: float
    shared: bool

    @property
    def together(self) -> float:
        """Jobs that are in a phase of their service at the same time, at most."""
        return np.inf if self.shared else self.servers


class Moves(NamedTuple):
    """Moves between the states of a station in compressed rows: where a row begins, to where, the rate."""

    first: IntArray
    to: IntArray
    rate: FloatArray

    @property
    def total(self) -> FloatArray:
        """Rate of all moves out of each state."""
        rows = np.repeat(np.arange(self.first.size - 1), np.diff(self.first))
        return np.asarray(np.bincount(rows, weights=self.rate, minlength=self.first.size - 1), dtype=float)

    def of(self, states: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return for all moves out of several states which of these it is from, to where, at what rate."""
        count = self.first[states + 1] - self.first[states]
        of = np.repeat(np.arange(states.size), count)
        at = np.arange(of.size) - np.repeat(np.cumsum(count) - count, count) + self.first[states][of]
        return of, self.to[at], self.rate[at]


def chain_states(stations: Sequence[Server], population: int) -> int:
    """Return the states of the chain of a closed network."""
    ways = [_ways(station, population) for station in stations]
    return round(reduce(lambda a, b: np.convolve(a, b)[: population + 1], ways)[population])


def _ways(station: Server, population: int) -> FloatArray:
    """Return in how many ways the services of 0, 1, ... jobs may be in their phases."""
    inside = np.minimum(np.arange(population + 1), station.together)
    kinds = np.arange(1, station.service.phases)
    return np.prod((inside[:, None] + kinds) / kinds, axis=1)


def closed_chain(net: Network, stations: Sequence[Server], routing: FloatArray) -> NetworkResult:
    r"""Return the steady state of a closed network of one class, first come first served or shared.

    ``net``: its description; ``stations``: in the same order; ``routing``: from station to station.

    A state says how many jobs wait and how many services are in each phase, at each station. Exact.
    """
    from qmodels.markov import CTMC

    people = int(net.population[0])
    tables = [_station(station, people) for station in stations]
    radix = np.cumprod([1, *(len(jobs) for jobs, *_ in tables[:-1])])
    states, left = np.zeros((1, 0), dtype=np.int64), np.array([people])
    for jobs, *_ in tables:
        here, row = np.nonzero(jobs[None, :] <= left[:, None])
        states, left = np.column_stack([states[here], row]), left[here] - jobs[row]
    states = states[left == 0]
    keys = states @ radix
    order = np.argsort(keys)
    states, keys = states[order], keys[order]
    entries: list[tuple[IntArray, IntArray, FloatArray]] = []
    for i, (_, inside, end, _) in enumerate(tables):
        of, to, rate = inside.of(states[:, i])
        entries.append((of, keys[of] + (to - states[of, i]) * radix[i], rate))
        ended, behind, rate = end.of(states[:, i])
        for j in np.flatnonzero(routing[i] > 0):
            before = behind if i == j else states[ended, j]
            at, to, share = tables[j][3].of(before)
            of = ended[at]
            moved = keys[of] + (behind[at] - states[of, i]) * radix[i] + (to - before[at]) * radix[j]
            entries.append((of, moved, rate[at] * share * routing[i, j]))
    rows, to, rates = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    columns = np.searchsorted(keys, to)
    apart = rows != columns
    shape = (keys.size, keys.size)
    moves = sparse.coo_array((rates[apart], (rows[apart], columns[apart])), shape=shape).tocsr()
    law = CTMC(generator=moves - sparse.diags_array(moves.sum(axis=1))).stationary().probabilities
    number = np.array([law @ jobs[states[:, i]] for i, (jobs, *_) in enumerate(tables)])
    served = sum(float(law @ end.total[states[:, i]]) for i, (_, _, end, _) in enumerate(tables))
    return closed_result(
        net,
        model="closed network of phases",
        kind="exact",
        system_throughput=served / net.visits.sum(axis=0),
        mean_number=number[:, None],
    )


def _station(station: Server, population: int) -> tuple[IntArray, Moves, Moves, Moves]:
    """Return the jobs of each state of a station, and its moves: phases, ends, beginnings of services."""
    law, together = station.service, min(station.together, population)
    states = [
        (waiting, served)
        for jobs in range(int(together) + 1)
        for waiting in (range(population - jobs + 1) if jobs == station.together else (0,))
        for served in compositions(jobs, law.phases)
    ]
    place = {state: k for k, state in enumerate(states)}
    inside: list[dict[int, float]] = []
    end: list[dict[int, float]] = []
    begin: list[dict[int, float]] = []

    def started(waiting: int, served: Composition, scale: float, into: dict[int, float]) -> None:
        for j, share in enumerate(law.initial):
            if share > 0:
                to = place[waiting, changed(served, j, 1)]
                into[to] = into.get(to, 0.0) + scale * float(share)

    for waiting, now in states:
        jobs = waiting + sum(now)
        speed = min(1.0, station.servers / jobs) if station.shared and jobs else 1.0
        phase: dict[int, float] = {}
        ends: dict[int, float] = {}
        begins: dict[int, float] = {}
        for i, count in enumerate(now):
            fewer = changed(now, i, -1)
            for j in range(law.phases) if count else ():
                if i != j and law.generator[i, j] > 0:
                    phase[place[waiting, changed(fewer, j, 1)]] = speed * count * float(law.generator[i, j])
            rate = speed * count * float(law.exit_rates[i])
            if rate > 0 and waiting:
                started(waiting - 1, fewer, rate, ends)
            elif rate > 0:
                ends[place[0, fewer]] = ends.get(place[0, fewer], 0.0) + rate
        if jobs < population and sum(now) < station.together:
            started(waiting, now, 1.0, begins)
        elif jobs < population:
            begins[place[waiting + 1, now]] = 1.0
        inside.append(phase)
        end.append(ends)
        begin.append(begins)
    jobs_of = np.array([waiting + sum(now) for waiting, now in states])
    return jobs_of, _moves(inside), _moves(end), _moves(begin)


def _moves(rows: list[dict[int, float]]) -> Moves:
    first = np.cumsum([0, *map(len, rows)])
    to = np.array([k for row in rows for k in row], dtype=np.int64)
    return Moves(first, to, np.array([rate for row in rows for rate in row.values()]))
