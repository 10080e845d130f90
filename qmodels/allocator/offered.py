"""How much the offered work varies over the time in which a memory fills."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.packets.data_queueing_traffic import LineRate, QueueTraffic, SelfSimilar
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled
from qmodels.systems.traffic.sizes import segment_count

FEWEST_WINDOWS = 16
"""Windows a trace must have for a variance between them."""
STEADY = 1e-9
"""Variance of what arrives at line rate, in place of 0. [segments^2 / slot]"""
NEAR = 16
"""Mean gaps around a packet in which the other ports' packets count as near."""


def offered_variability(traffic: QueueTraffic, *, segment_bytes: int, load: float, packets: float) -> float:
    r"""Return the variance of the offered segments per drain slot, in segments^2 / slot.

    ``segment_bytes``: size of a segment [bytes]; ``load``: segments offered a slot; ``packets``: time scale,
    in mean gaps between packets, for arrivals whose variance grows with it.

    Renewal arrivals with gaps of squared coefficient of variation :math:`c^2` and sizes S:
    :math:`V = \rho (\mathrm{Var} S + c^2 E[S]^2)/E[S]`, exact over long times. Self-similar
    arrivals: the variance of the counts of an M/G/infinity input over the time scale in place of
    :math:`c^2`. A trace: the variance of the segments in windows of the time scale, of which
    there must be 16.
    """
    arrivals = modelled("traffic.arrivals", traffic.arrivals)
    if isinstance(arrivals, Recorded):
        return load * _recorded(arrivals, segment_bytes, packets)
    if isinstance(arrivals, LineRate):
        return STEADY
    counts, share = traffic.segment_law(segment_bytes)
    mean = float(counts @ share)
    scv = _self_similar(arrivals, packets) if isinstance(arrivals, SelfSimilar) else _scv(arrivals)
    return load * float((counts - mean) ** 2 @ share + scv * mean**2) / mean


def seen_load(traffic: QueueTraffic, *, segment_bytes: int, load: float) -> float:
    r"""Return the load around a packet's arrival.

    In bursts the ports find each other busier than on average, and the load may exceed 1. ON-OFF
    arrivals: the load while ON. Self-similar ones: that of one more session than on average. A
    trace: the mean load around its segments in windows of 16 mean gaps, less what a window's own
    few packets add to it by chance. An estimate; exact for Poisson arrivals.

    >>> seen_load(QueueTraffic(), segment_bytes=64, load=0.5)
    0.5
    >>> bursts = QueueTraffic(arrivals=OnOff(on_packets=10, peak_to_mean=1.5))
    >>> seen_load(bursts, segment_bytes=64, load=0.5)
    0.75
    """
    arrivals = modelled("traffic.arrivals", traffic.arrivals)
    factor = 1.0
    if isinstance(arrivals, OnOff):
        factor = float(arrivals.peak_to_mean)
    elif isinstance(arrivals, SelfSimilar):
        factor = 1.0 + 1.0 / arrivals.sessions
    elif isinstance(arrivals, Recorded):
        factor = _recorded_crowding(arrivals, segment_bytes)
    return load * max(factor, 1.0)


@lru_cache(maxsize=64)
def _recorded_crowding(arrivals: Recorded, segment_bytes: int) -> float:
    segments, sums = _window_sums(arrivals, segment_bytes, len(arrivals.trace) // NEAR)
    mean = sums.mean()
    return float((sums**2).mean() / mean**2 - (segments**2).sum() / sums.size / mean**2)


def _window_sums(arrivals: Recorded, segment_bytes: int, windows: int) -> tuple[FloatArray, FloatArray]:
    trace = arrivals.trace
    segments = segment_count(trace.bytes, segment_bytes).astype(float)
    count = max(windows, 1)
    edges = np.linspace(0.0, float(trace.times_ns[-1]), count + 1)
    which = np.clip(np.searchsorted(edges, trace.times_ns, side="right") - 1, 0, count - 1)
    return segments, np.bincount(which, weights=segments, minlength=count).astype(float)


def _scv(arrivals: object) -> float:
    return float(arrivals.scv) if isinstance(arrivals, OnOff) else 1.0


def _self_similar(arrivals: SelfSimilar, packets: float) -> float:
    """Return the variance of the packets in a window over their mean number."""
    shape, sessions = arrivals.shape, arrivals.sessions
    # A session sends a packet every ``sessions`` gaps and lasts that many times its packets.
    window = max(packets / sessions, 1.0)
    grid = np.concatenate((np.linspace(0.0, 1.0, 65)[:-1], np.geomspace(1.0, max(window, 1.01), 256)))
    tail = np.where(grid < 1.0, 1.0, np.maximum(grid, 1.0) ** -shape)
    mean = shape / (shape - 1.0)
    left = 1.0 - _cumulative(grid, tail) / mean
    kept = (1.0 - grid / grid[-1]) * np.maximum(left, 0.0)
    return float(max(2.0 * _cumulative(grid, kept)[-1], 1.0))


def _cumulative(grid: FloatArray, values: FloatArray) -> FloatArray:
    steps = np.diff(grid) * (values[1:] + values[:-1]) / 2.0
    return np.concatenate(([0.0], np.cumsum(steps)))


@lru_cache(maxsize=64)
def _recorded(arrivals: Recorded, segment_bytes: int, packets: float) -> float:
    windows = int(max(len(arrivals.trace) / max(packets, 1.0), FEWEST_WINDOWS))
    _, sums = _window_sums(arrivals, segment_bytes, windows)
    return float(max(sums.var() / sums.mean(), 1e-9))
