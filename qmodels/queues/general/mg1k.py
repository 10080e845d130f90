"""M/G/1/K and M/D/1/K: one server, finite room, any service law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import renewal
from qmodels.queues.distributions import tabulated
from qmodels.queues.words import described
from qmodels.result import QueueResult
from qmodels.systems.laws.times import Deterministic, Law

_LONGEST = 1 << 20


def arrival_tails(law: Formulas, rate: FloatArray, size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P(A = 0), P(A > l) and E[(A - l)+] for l >= 0 along the last axis, A arrivals during a service.

    At least `size` values of l, and as many more as the tail needs to end below 1e-305; loads whose tail is
    too long for that are told by what is below.
    """
    load = np.asarray(rate * law.moment(1))
    length = max(64, 2 * size)
    while True:
        counts = law.poisson_counts(rate, length)
        ended = (counts[..., -1] < 1e-305) & (load < length / 2)
        if np.all(ended | (load >= _LONGEST / 2)) or length >= max(_LONGEST, size):
            break
        length *= 2
    at_least = np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]
    more = np.concatenate([at_least[..., 1:], np.zeros((*at_least.shape[:-1], 1))], axis=-1)
    excess = np.cumsum(more[..., ::-1], axis=-1)[..., ::-1]
    if not np.all(ended):
        missing = np.where(ended[..., None], 0.0, np.maximum(1 - at_least[..., :1], 0.0))
        more = more + missing
        below = np.maximum(load[..., None] - np.cumsum(more, axis=-1) + more, excess)
        excess = np.where(ended[..., None], excess, below)
    return counts[..., 0], more, excess


def embedded_weights(none: float, more: FloatArray, size: int) -> tuple[FloatArray, float]:
    r"""Return w, w_0 = 1, and log z: w_j z^-j is the stationary weight of j < `size` jobs left behind.

    Up- and down-crossings of a level balance,

    .. math:: a_0 \pi_{j+1} = \pi_0 \bar{A}_j + \sum_{k=1}^j \pi_k \bar{A}_{j-k+1},

    a sum of positive terms. The weights grow or decay like :math:`z^{-j}` with z the root of
    :math:`\sum_l \bar{A}_l z^l = a_0`; the recursion runs on :math:`\pi_j z^j`, which tends to
    a constant, so that nothing overflows and a short window of coefficients suffices.
    """
    from scipy.signal import lfilter

    if size == 1:
        return np.ones(1), 0.0
    none = max(none, 1e-290)
    order = np.arange(1, len(more))
    log_z = decay_root(none, more)
    with np.errstate(divide="ignore"):
        log_more = np.log(more)
    coefficients = np.exp(log_more[1:size] + order[: size - 1] * log_z) / none
    rest = np.cumsum(coefficients[::-1])[::-1]
    window = max(1, int(np.searchsorted(-rest, -1e-18)))
    known = min(len(more), size - 1)
    source = np.zeros(size - 1)
    source[:known] = np.exp(log_more[:known] + np.arange(1, known + 1) * log_z) / none
    scaled = lfilter([1.0], np.concatenate([[1.0], -coefficients[:window]]), source)
    return np.concatenate([[1.0], scaled]), log_z


def decay_root(none: float, more: FloatArray) -> float:
    """Return log z at which the sum of more[l] z^l over l >= 1 is `none`; close is good enough."""
    order = np.flatnonzero(more[1:] > 0) + 1
    if not len(order):
        return 0.0
    log_more, log_none = np.log(more[order]), np.log(none)

    def too_large(log_z: float) -> bool:
        exponents = log_more + order * log_z
        top = exponents.max()
        return bool(top + np.log(np.exp(exponents - top).sum()) > log_none)

    low, high = -1500.0, 1500.0
    for _ in range(70):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return low


@described("gross2008, section 5.1.8", arrival_rate="offered", returns="entering")
def mg1k(*, arrival_rate: npt.ArrayLike, service: Law, capacity: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/G/1/K: at most K jobs in the system, arrivals beyond are lost.

    Parameters
    ----------
    service : Law
        Law of the service time, see `qmodels.laws`: of those in whose formulas arrivals are counted. [time]

    Notes
    -----
    The chain embedded at departures gives :math:`\pi_0 \dots \pi_{K-1}` by balancing the
    crossings of each level; in continuous time

    .. math:: p_j = \frac{\pi_j}{1 + x} \; (j < K), \qquad P_K = \frac{x}{1 + x}, \qquad
              x = \sum_j \pi_j \, E\left[(A - K + \max(j, 1))^+\right]

    with A the arrivals during a service; x equals :math:`\pi_0 + \rho - 1` without its
    cancellation. Exact, sums of positive terms, about K times the width of the distribution
    of A operations per point; rounding grows by about 1e-16 per place of room, to 1e-10 of the
    blocking at K = 1e6.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> q = mg1k(arrival_rate=1.0, service=Exponential(mean=1.0), capacity=9)
    >>> round(float(q.blocking_probability), 12)
    0.1
    """
    lam = checks.nonnegative("arrival_rate", arrival_rate)
    places = checks.count("capacity", capacity, maximum=1_000_000)
    law = renewal("service", service)
    rates, sizes, means = np.broadcast_arrays(lam, places, law.moment(1))
    largest = int(places.max(initial=1))
    tails = [
        _per_point(v, rates.shape) for v in arrival_tails(law, np.broadcast_to(lam, rates.shape), largest)
    ]
    overflow, queue = np.zeros(rates.size), np.zeros(rates.size)
    table = np.zeros((rates.size, largest + 1))
    for i, size in enumerate(sizes.ravel().tolist()):
        none, more, excess = (v[i] for v in tails)
        table[i, : size + 1], overflow[i] = _distribution(float(none), more, excess, size)
        queue[i] = np.dot(np.arange(size), table[i, 1 : size + 1])
    accepted = 1 / (1 + overflow.reshape(rates.shape))
    throughput = rates * accepted
    return QueueResult(
        model="M/G/1/K",
        arrival_rate=rates,
        throughput=throughput,
        utilization=np.minimum(throughput * means, 1.0),
        mean_waiting_time=queue.reshape(rates.shape) / np.where(throughput > 0, throughput, 1.0),
        mean_service_time=means,
        blocking_probability=overflow.reshape(rates.shape) * accepted,
        number_pmf=tabulated(table, rates.shape),
    )


@described("gross2008, section 5.1.8", arrival_rate="offered", service_rate="constant")
def md1k(*, arrival_rate: npt.ArrayLike, service_rate: npt.ArrayLike, capacity: npt.ArrayLike) -> QueueResult:
    r"""Steady state of M/D/1/K: constant service, at most K jobs in the system.

    Returns
    -------
    As `mg1k`.

    Notes
    -----
    Exact, see `mg1k`.

    Examples
    --------
    A router port with room for 8 packets of constant length at 90 % load:

    >>> q = md1k(arrival_rate=0.9, service_rate=1.0, capacity=8)
    >>> round(float(q.blocking_probability), 6)
    0.027264
    """
    law = Deterministic(mean=1 / checks.positive("service_rate", service_rate))
    return replace(mg1k(arrival_rate=arrival_rate, service=law, capacity=capacity), model="M/D/1/K")


def _per_point(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Return the values with all points along one axis, given an optional last axis of counts."""
    rest = values.shape[len(shape) :]
    return np.broadcast_to(values, (*shape, *rest)).reshape(-1, *rest)


def _distribution(none: float, more: FloatArray, excess: FloatArray, size: int) -> tuple[FloatArray, float]:
    """Return p_0 .. p_K and x."""
    # A queue of n places never sees what of a service's arrivals is beyond them.
    scaled, log_z = embedded_weights(none, more[:size], size)
    levels = np.arange(size)
    with np.errstate(divide="ignore"):
        exponents = np.log(scaled) - levels * log_z
    top = int(np.argmax(exponents))
    weights = scaled * np.exp((top - levels) * log_z)
    weights /= weights.sum()
    x = float(np.dot(weights, excess[size - np.maximum(levels, 1)]))
    return np.concatenate([weights, [x]]) / (1 + x), x
