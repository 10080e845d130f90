"""Normalising constants of closed networks by convolution, without overflow or cancellation.

The normalising constant of a closed network is, up to a known factor, the probability that the
same network opened to Poisson arrivals holds exactly that population. Here the arrival rates are
chosen so that this population is the open network's mean. All numbers are then probabilities of
likely events, all terms positive, and what underflows cannot matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.networks.closed.inputs import Network
from qmodels.systems.spec.cost import afford

MAX_STATES = 20_000_000  # populations in the lattice; about 0.5 GB


class Station(NamedTuple):
    """A station of the opened network."""

    place: int  # its index in the network
    share: FloatArray  # share of each class in the station's load
    # busy, idle: with rates shifted by t = 0, 1, ... jobs: the probability that the station is not empty, and
    # that it is. The last pair describes a geometric queue; a last ``busy`` of 0 ends it.
    busy: FloatArray
    idle: FloatArray
    log_total: float  # log of the sum of the station's unnormalised probabilities


class Lattice:
    """All populations up to the given one, and convolution over them."""

    def __init__(self, population: IntArray) -> None:
        self.population = population
        self.single = population.size == 1
        self.shape = tuple(int(n) + 1 for n in population)
        states = math.prod(self.shape)
        if states > MAX_STATES:
            raise ValueError(
                f"population must span at most {MAX_STATES} combinations to be solved exactly, got {states}; "
                "see bard_schweitzer and linearizer"
            )

    @property
    def padded_size(self) -> int:
        """Number of populations with the empty layer of every class."""
        return math.prod(n + 1 for n in self.shape)

    @cached_property
    def strides(self) -> IntArray:
        """Distance of populations that differ by one job of a class, in the padded lattice."""
        padded = np.array(self.shape) + 1
        return np.append(np.cumprod(padded[:0:-1])[::-1], 1)

    def jobs(self, flat: IntArray, r: int) -> IntArray:
        """Return the number of jobs of class r in populations given by their padded indices."""
        return np.asarray(flat // self.strides[r] % (self.shape[r] + 1) - 1)

    @cached_property
    def planes(self) -> list[tuple[IntArray, list[IntArray]]]:
        """Populations of equal total, with those one job of a class less, as flat indices.

        The indices are those of a lattice with an empty layer in front of every class, which spares
        the test for a class without jobs.
        """
        totals = np.zeros(1, dtype=np.int64)
        flat = np.zeros(1, dtype=np.int64)
        for size, stride in zip(self.shape, self.strides, strict=True):
            n = np.arange(size)
            totals = (totals[:, None] + n).ravel()
            flat = (flat[:, None] + (n + 1) * stride).ravel()
        order = np.argsort(totals, kind="stable")
        cuts = np.cumsum(np.bincount(totals))[:-1]
        return [(plane, [plane - s for s in self.strides]) for plane in np.split(flat[order], cuts)]

    def geometric(self, source: FloatArray, ratios: FloatArray) -> FloatArray:
        """Return h with ``h(n) = source(n) + sum_r ratios[r] * h(n - e_r)``."""
        if self.single:
            from scipy.linalg.blas import dtbsv

            band = np.ones((2, source.size), order="F")
            band[1] = -ratios[0]
            return np.asarray(dtbsv(1, band, source, lower=1, diag=1))
        padded = np.zeros(tuple(k + 1 for k in self.shape))
        inner = tuple(slice(1, None) for _ in self.shape)
        padded[inner] = source
        flat = padded.ravel()
        for plane, before in self.planes[1:]:
            total = flat[plane]
            for ratio, index in zip(ratios, before, strict=True):
                total += ratio * flat[index]
            flat[plane] = total
        return padded[inner]

    def shifted(self, values: FloatArray, shares: FloatArray) -> FloatArray:
        """Return ``sum_r shares[r] * values(n - e_r)``."""
        result = np.zeros(self.shape)
        for axis, share in enumerate(shares):
            ahead = tuple(slice(1, None) if k == axis else slice(None) for k in range(len(self.shape)))
            behind = tuple(slice(None, -1) if k == axis else slice(None) for k in range(len(self.shape)))
            result[ahead] += share * values[behind]
        return result

    def with_station(self, g: FloatArray, station: Station) -> FloatArray:
        """Return the distribution of the population of the stations in `g` and one more.

        Horner's scheme: an empty station adds nothing, a busy one holds a job more than the
        station whose rates are shifted by one.
        """
        busy, idle, share = station.busy, station.idle, station.share
        h = self.geometric(idle[-1] * g, busy[-1] * share) if busy[-1] > 0 else g
        for t in range(busy.size - 2, -1, -1):
            h = idle[t] * g + busy[t] * self.shifted(h, share)
        return h

    def without_each(self, g: FloatArray, stations: list[Station]) -> Iterator[tuple[Station, FloatArray]]:
        """Yield each station with `g` convolved with all others; log2 of their number passes each."""
        if len(stations) == 1:
            yield stations[0], g
            return
        even, odd = stations[::2], stations[1::2]
        for half, other in ((even, odd), (odd, even)):
            rest = g
            for station in other:
                rest = self.with_station(rest, station)
            yield from self.without_each(rest, half)

    def impulse(self) -> FloatArray:
        """Return the distribution of an empty network."""
        g = np.zeros(self.shape)
        g[(0,) * len(self.shape)] = 1.0
        return g


class Opened(NamedTuple):
    """A closed network opened to Poisson arrivals that keep its population on the average."""

    rate: FloatArray  # arrival rate of each class; near the closed network's throughput
    lattice: Lattice  # populations
    # fixed, varying: single servers of fixed rate, and all others that queue.
    fixed: list[Station]
    varying: list[Station]
    delays: FloatArray  # distribution of the jobs at delays and thinking, up to a factor
    log_scale: float  # log of the normalising constant of the closed network over the opened one's `total`

    def total(self) -> FloatArray:
        """Return the distribution of the population, at every population of the lattice."""
        return self.with_all(self.delays, [*self.fixed, *self.varying])

    def with_all(self, g: FloatArray, stations: list[Station]) -> FloatArray:
        """Return `g` convolved with every station given."""
        for station in stations:
            g = self.lattice.with_station(g, station)
        return g


def open_up(net: Network) -> Opened:
    """Open a closed network of which every class has jobs."""
    delay = net.delay
    queueing = np.flatnonzero(~delay & (net.demand.sum(axis=1) > 0))
    thinking = net.think_time + net.demand[delay].sum(axis=0)
    demand = net.demand[queueing]
    people = int(net.population.sum())
    multipliers = [net.multipliers[i][:people] for i in queueing]
    # With as many rates as jobs, what happens beyond the population is ours to choose: nothing.
    ended = np.array([m.size >= people for m in multipliers], dtype=bool)
    lattice = Lattice(net.population)
    rates = sum(m.size for m in multipliers)
    afford("servers", max((m.size for m in multipliers), default=1), operations=rates * lattice.padded_size)
    rate = _rates(demand, thinking, multipliers, ended, net.population.astype(float))
    fixed: list[Station] = []
    varying: list[Station] = []
    log_scale = -float(net.population @ np.log(rate))
    for place, load, multiplier, end in zip(queueing, demand * rate, multipliers, ended, strict=True):
        station = _station(int(place), load, multiplier, bool(end))
        (varying if multiplier.size > 1 or end else fixed).append(station)
        log_scale += station.log_total
    delays, log_peak = poisson_law(rate * thinking, net.population)
    return Opened(rate, lattice, fixed, varying, delays, log_scale + log_peak + float(rate @ thinking))


def poisson_law(means: FloatArray, population: IntArray) -> tuple[FloatArray, float]:
    """Return independent Poisson probabilities over the largest of them, and its log."""
    law, log_peak = np.ones(()), 0.0
    for mean, jobs in zip(means, population, strict=True):
        weights, log_one = _poisson(float(mean), int(jobs))
        law = np.multiply.outer(law, weights)
        log_peak += log_one
    return law, log_peak


def _poisson(mean: float, last: int) -> tuple[FloatArray, float]:
    """Return Poisson probabilities 0..last over the largest of them, and its log.

    Products from the peak outwards: each digit is right, where exp(n log m - m) has lost some.
    """
    peak = min(int(mean), last)
    up = np.cumprod(mean / np.arange(peak + 1.0, last + 1)) if last > peak else np.empty(0)
    down = np.cumprod(np.arange(float(peak), 0, -1) / mean) if peak else np.empty(0)
    weights = np.concatenate([down[::-1], [1.0], up])
    log_peak = peak * math.log(mean) - mean - math.lgamma(peak + 1) if mean > 0 else 0.0
    return weights, log_peak


def _station(place: int, load: FloatArray, multiplier: FloatArray, ended: bool) -> Station:
    a = float(load.sum())
    steps = (a / multiplier).tolist()
    idle, busy, log_total = [1.0], [0.0], 0.0
    if not ended:
        last = steps.pop()
        idle, busy, log_total = [1 - last], [last], -math.log1p(-last)
    for step in reversed(steps):
        norm = idle[-1] + step
        busy.append(step / norm)
        idle.append(idle[-1] / norm)
        log_total += math.log(norm)
    return Station(place, load / a, np.array(busy[::-1]), np.array(idle[::-1]), log_total)


def _rates(
    demand: FloatArray,
    thinking: FloatArray,
    multipliers: list[FloatArray],
    ended: npt.NDArray[np.bool_],
    population: FloatArray,
) -> FloatArray:
    """Return arrival rates at which the open network holds the population on the average.

    They minimise a convex function of their logarithms, the log normalising constant of the open
    network less population times log rate; Newton's method with step halving. A mean that is off
    by a tenth of the standard deviation is good enough: the rates scale, they do not approximate.
    """
    single = np.array([m.size == 1 for m in multipliers], dtype=bool) & ~ended
    top = np.array([np.inf if end else m[-1] for m, end in zip(multipliers, ended, strict=True)])

    def evaluate(u: FloatArray) -> Any:
        load = demand * np.exp(u)
        a = load.sum(axis=1)
        if np.any(a >= top):
            return None
        log_sum, mean, variance = np.zeros(a.size), np.zeros(a.size), np.zeros(a.size)
        rho = a[single] / top[single]
        log_sum[single], mean[single] = -np.log1p(-rho), rho / (1 - rho)
        variance[single] = mean[single] / (1 - rho)
        for i in np.flatnonzero(~single):
            log_sum[i], mean[i], variance[i] = number_moments(a[i], multipliers[i], ended=bool(ended[i]))
        value = float(np.exp(u) @ thinking + log_sum.sum() - population @ u)
        share = load / a[:, None] if a.size else load
        own = np.exp(u) * thinking + share.T @ mean
        return value, own - population, np.diag(own) + (share.T * (variance - mean)) @ share

    with np.errstate(divide="ignore"):
        cap = np.min(top[:, None] / np.where(demand > 0, demand, 0.0), axis=0, initial=np.inf)
    u = np.log(np.minimum(0.5 * cap / len(population), population / (thinking + demand.sum(axis=0))))
    state = evaluate(u)
    for _ in range(200):
        value, gradient, hessian = state
        step = -np.linalg.solve(hessian + 1e-12 * np.diag(np.diag(hessian) + 1e-300), gradient)
        decrement = -float(gradient @ step)
        if decrement < 0.01:
            return np.asarray(np.exp(u))
        size = 1.0 / max(1.0, float(np.abs(step).max()) / 2)
        while True:
            trial = evaluate(u + size * step)
            if trial is not None and trial[0] <= value - 1e-4 * size * decrement:
                break
            size /= 2
            if size < 1e-12:
                return np.asarray(np.exp(u))
        u, state = u + size * step, trial
    return np.asarray(np.exp(u))


def number_moments(a: float, multiplier: FloatArray, *, ended: bool) -> tuple[float, float, float]:
    """Return log sum, mean and variance of the number at a station with state-dependent rate."""
    log_weight = np.concatenate([[0.0], np.cumsum(np.log(a / multiplier))])
    peak = float(log_weight.max())
    weight = np.exp(log_weight - peak)
    n = np.arange(weight.size, dtype=float)
    total, first, second = weight.sum(), weight @ n, weight @ n**2
    if not ended:
        ratio, last = a / multiplier[-1], n[-1]
        tail = weight[-1] * ratio / (1 - ratio)
        beyond, spread = 1 / (1 - ratio), ratio / (1 - ratio) ** 2
        total += tail
        first += tail * (last + beyond)
        second += tail * (spread + (last + beyond) ** 2)
    mean = first / total
    return peak + math.log(total), float(mean), float(max(second / total - mean**2, 0.0))
