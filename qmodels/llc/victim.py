"""A shared victim cache behind private ones: filled by what they evict, left by what they fetch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

NODES = 10
"""Points of each of two panels: ages up to the private caches' characteristic time, and above."""
DISTINCT_STAGES = 32
"""Stages of the time to eviction from which it is taken as constant."""
SPREAD = 8.0
"""Standard deviations of that time beyond which nothing is left."""
LIGHT = 1e-3
"""Requests in a dead time below which the age's law is that of so many."""
TINY = 1e-300


def victim_level(
    *, rate: FloatArray, out: FloatArray, cores: int, time: npt.ArrayLike, stages: int = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Where a line is when a core misses it, if a hit takes it out of the shared level.

    ``rate``: requests of one core for the line, a Poisson stream [1/time]; ``out``: probability that a core's
    private caches, one LRU cache, do not hold it; ``cores``: cores, all alike and independent of each other;
    ``time``: mean time that the line stays in the shared level if no core fetches or pushes it; may be
    ``inf`` [time]; ``stages``: that time is Erlang with n stages; 0 for constant. Returns hit, present,
    expired: probability that a core that misses the line finds it in the shared level, that the line is there
    at a random moment, and that a push out of a private cache is the last event before the shared level drops
    the line.

    To a core a line is in turn fetched and, after a busy period of requests closer than the private
    caches' characteristic time, pushed out. The shared level holds it if the last of these events of
    all cores was a push, and is not longer ago than the time: duplicates in other private caches
    neither help nor harm until they are pushed or another core fetches the line, and a fetch takes it
    away from all. With :math:`a` the rate, :math:`o` the probability of being out and :math:`h = 1 - o`,
    a core has had no event for :math:`u` with probability
    :math:`S(u) = h A(u) + o e^{-a u}`, A the survival of a busy period's age, and a line
    pushed :math:`u` ago is of density :math:`C o a e^{-a u} S(u)^{C-1}`, whence

    .. math::

        \text{present} = C o \int a e^{-a u} S^{C-1} R\, du, \qquad
        \text{hit} = \int a e^{-a u} \left(S^{C-1} + (C-1) o e^{-a u} S^{C-2}\right) R\, du

    with R the survival of the time to eviction: a core that misses is :math:`\text{Exp}(a)` after its
    own push, and finds it, or a later one of another core. With one core this is LRU of all lines.
    Approximation (the busy periods are those of a constant characteristic time :math:`T_1`; A is exact up
    to it, and then an exponential that has the exact mean), derived here.
    """
    a, o, t = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (rate, out, time)))
    shape = a.shape
    a, o, t = (np.ravel(v) for v in (a, o, t))
    wanted = (a > 0) & (o > 0)
    if not wanted.all():
        parts = np.zeros((3, a.size))
        if wanted.any():
            parts[:, wanted] = victim_level(
                rate=a[wanted], out=o[wanted], cores=cores, time=t[wanted], stages=stages
            )
        hit, present, expired = parts
        return hit.reshape(shape), present.reshape(shape), expired.reshape(shape)
    random = 0 < stages < DISTINCT_STAGES
    load, others = np.maximum(-np.log(o), 1e-15), cores - 1
    dead = load / a
    end = t * (1.0 + SPREAD / np.sqrt(stages)) if random else t
    ages = _busy_age(a, load)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = (nodes + 1.0) / 2.0, weights / 2.0
    a_, o_, columns = a[:, None], o[:, None], tuple(v[:, None] for v in (dead, *ages))
    found, held = np.zeros_like(a), np.zeros_like(a)
    # Each panel by a clock at which the integrand changes about evenly.
    first = np.minimum(dead, end)
    for begin, until, pace in (
        (np.zeros_like(a), first, a + others * 2.0 * a * o),
        (first, end, a + others * np.minimum(a, ages[2])),
    ):
        top = -np.expm1(-pace * (until - begin))
        left = 1.0 - top[:, None] * nodes
        age = begin[:, None] - np.log(np.maximum(left, TINY)) / pace[:, None]
        alone = np.exp(-a_ * age)
        step = (a * top / pace)[:, None] * weights / left * alone
        if random:
            step *= _staying(age / t[:, None], stages)
        if not others:
            held += step.sum(axis=1)
            continue
        quiet = _quiet(o_, columns, age, alone)
        step *= np.exp((others - 1) * np.log(quiet))
        held += (step * quiet).sum(axis=1)
        found += others * o * (step * alone).sum(axis=1)
    hit, present = np.minimum(found + held, 1.0), np.minimum(cores * o * held, 1.0)
    finite = np.isfinite(t)
    stay = np.where(finite, t, 0.0)
    alone = np.exp(-a * stay)
    expired = np.where(finite, alone * _quiet(o, (dead, *ages), stay, alone) ** others, 0.0)
    return hit.reshape(shape), present.reshape(shape), expired.reshape(shape)


def _busy_age(rate: FloatArray, load: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Return the decay of a busy period's age up to the dead time, what is left there, its decay then.

    The first two moments of the time between misses, :math:`e^\rho` and :math:`2 (1 - \rho e^{-\rho})
    e^{2\rho}`, and thus the mean age are exact.
    """
    rho = np.clip(load, LIGHT, 300.0)
    mean = np.expm1(rho)
    age = ((1.0 - rho * np.exp(-rho)) * np.exp(2.0 * rho) - mean - 1.0) / mean
    left = 1.0 - rho / mean
    decay = left / (age - rho + rho**2 / (2.0 * mean))
    return rate / mean * np.where(load < LIGHT, LIGHT / load, 1.0), left, rate * decay * rho / load


def _quiet(o: FloatArray, ages: tuple[FloatArray, ...], age: FloatArray, alone: FloatArray) -> FloatArray:
    """Return the probability that a core has neither pushed nor fetched the line for an age."""
    dead, falling, left, decay = ages
    survival = np.where(age <= dead, 1.0 - falling * age, left * np.exp(-decay * np.maximum(age - dead, 0.0)))
    return np.asarray(np.maximum((1.0 - o) * survival + o * alone, TINY))


def _staying(age: FloatArray, stages: int) -> FloatArray:
    """Return the probability that an Erlang time of mean 1 is longer than this."""
    x = np.where(np.isfinite(age), stages * age, 0.0)
    term = np.ones_like(x)
    total = np.ones_like(x)
    for k in range(1, stages):
        term = term * (x / k)
        total = total + term
    return np.asarray(np.exp(-x) * total)


def occupied_lines(
    *,
    lines: npt.ArrayLike,
    held: FloatArray,
    usual: FloatArray,
    private: FloatArray,
    hit: FloatArray,
    expired: FloatArray,
    share: FloatArray,
) -> FloatArray:
    r"""Mean lines in a slice: one that lost a line to a hit waits for the next victim.

    ``lines``: lines that fit into each slice; ``held``: lines it holds, at which ``hit`` and ``expired`` were
    found; ``usual``, ``private``: mean lines it holds as far as known, and mean lines of the slice in all
    private caches; ``hit``, ``expired``: of the requests that reach the slice, which find their line; of the
    lines pushed to it, which are dropped by the slice in the end; ``share``: share of all requests that go to
    the slice.

    A birth-death chain. A victim comes with every request; of :math:`n` lines the next victim is
    one of them with probability :math:`(1 - \alpha) n / \bar n`, where
    :math:`\alpha = \text{hit} + \text{expired}` since what comes must go, and the next request
    finds one with probability :math:`\text{hit}\, n / \bar n`. The victim of a hit may go to the same slice,
    which changes nothing. Where a slice has d lines less than usual the private caches have so many
    more of its :math:`p`, of which victims come :math:`1 + d/p` times as often. Births equal deaths at
    :math:`\bar n / (1 - \text{expired})`: a slice with more room than that is never full. Approximation: all
    lines alike.
    """
    size, n, mean, away, found, lost, part = np.broadcast_arrays(
        lines, held, usual, private, hit, expired, share
    )
    most = int(size.max())
    window = np.arange(min(most, 64 + int(12.0 * np.sqrt(most))) + 1)
    number = size[..., None] - window
    possible = number >= 0
    ratio = np.maximum(number, 0) / np.maximum(n, TINY)[..., None]
    new = np.clip(1.0 - (1.0 - np.minimum(found + lost, 1.0))[..., None] * ratio, 0.0, 1.0)
    taken = np.minimum(found[..., None] * ratio, 1.0)
    fewer = (1.0 - part[..., None]) * (mean[..., None] - number) / np.maximum(away, 1e-9)[..., None]
    births = new * (1.0 - part[..., None] * taken) * np.maximum(1.0 + fewer, 0.0)
    deaths = taken * (1.0 - part[..., None] * new)
    with np.errstate(divide="ignore"):
        steps = np.log(np.maximum(deaths[..., :-1], TINY)) - np.log(np.maximum(births[..., 1:], TINY))
    log_weight = np.concatenate((np.zeros((*size.shape, 1)), np.cumsum(steps, axis=-1)), axis=-1)
    log_weight = np.where(possible, log_weight, -np.inf)
    weight = np.exp(log_weight - log_weight.max(axis=-1, keepdims=True))
    mean = (weight * np.maximum(number, 0)).sum(axis=-1) / weight.sum(axis=-1)
    balanced = n / np.maximum(1.0 - lost, TINY)
    far = balanced < size - window[-1] / 2.0
    return np.asarray(np.where(far & (window[-1] < size), balanced, mean))


def next_lines(usual: FloatArray, now: FloatArray, change: FloatArray | None) -> FloatArray:
    """Return the limit of `occupied_lines`, from what went in, came out, and the change before (Aitken)."""
    step = now - usual
    if change is None:
        return now
    ratio = np.divide(step, change, out=np.zeros_like(step), where=np.abs(change) > TINY)
    return np.asarray(np.maximum(usual + step / (1.0 - np.clip(ratio, 0.0, 0.7)), now / 2.0))
