"""What a recorded trace is like, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.traffic.steadiness import BLOCKS, Steadiness, steadiness
from qmodels.systems.traffic.trace_statistics import WINDOWS, TraceStatistics, blocks_of

LAGS = (1, 10, 100)
"""Packets apart whose sizes are correlated."""

GROWTH = 2.5
"""Standard errors by which a dispersion must be larger to count as grown."""

PART = {20: "twentieth"}[WINDOWS]
"""Of a recording, a window."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TraceFacts:
    r"""Packets, rate over time, bursts over time scales, sizes and gaps of a trace.

    Notes
    -----
    With the index of dispersion of bytes :math:`I_w` at the longest scale and n packets, the relative
    standard error of the byte rate is :math:`\sqrt{I_w / n}`. The dispersion has levelled off at the first
    scale after which it grows no more: on no longer one, of b blocks, is the logarithm of its ratio more than
    `GROWTH` times its standard error :math:`\sqrt{2 / (b - 1)}`.
    """

    source: str  # Where the packets came from
    packets: int  # How many
    duration_ns: float  # From the first to the last. [ns]
    packet_rate: float  # Gaps over duration. [packets/ns]
    mean_gbps: float  # Packet rate times mean size. [Gb/s]
    statistics: TraceStatistics  # Rate window by window, and indices of dispersion over time scales
    # Whether windows and halves are compatible with one rate, given the spread inside them
    steadiness: Steadiness
    # Half of the 95 % interval of the byte rate over the rate: what a longer trace might have said
    rate_error: float
    # Time scale on which the dispersion of bytes has levelled off; infinite if it still grows at the longest.
    # [ns]
    slowest_ns: float
    # mean_bytes, size_scv: Mean of the sizes [bytes] and their squared coefficient of variation
    mean_bytes: float
    size_scv: float
    # least_bytes, most_bytes: Smallest and largest size. [bytes]
    least_bytes: int
    most_bytes: int
    # Correlation of sizes 1, 10 and 100 packets apart; 0 where all are equal, NaN beyond the trace
    size_correlation: tuple[float, ...]
    # train, train_alone: Mean number of packets of one size in a row, and what it were if sizes did not
    # depend on each other
    train: float
    train_alone: float
    gap_scv: float  # Squared coefficient of variation of the gaps (Poisson: 1)
    gap_correlation: float  # Correlation of a gap with the next (Poisson: 0)
    # Largest difference between the distribution of the gaps and the exponential of their mean
    gap_distance: float
    equal_times: float  # Share of packets that have the time of the one before
    resolution_ns: float  # Largest power of ten of which all times are multiples, 0 below 1 ps. [ns]
    # times_ns, bytes: The packets themselves. [ns], [bytes]
    times_ns: FloatArray
    bytes: IntArray

    @property
    def title(self) -> str:
        """The trace in one line."""
        return f"Trace {self.source}: {self.packets} packets in {time_text(self.duration_ns)}"

    @classmethod
    def of(cls, times_ns: FloatArray, bytes: IntArray, statistics: TraceStatistics, **known: Any) -> Self:
        """Measure packets; what a trace says of them itself is given."""
        sizes, gaps = bytes.astype(float), np.diff(times_ns)
        _, counts = np.unique(bytes, return_counts=True)
        alike = float(((counts / sizes.size) ** 2).sum())
        octets = blocks_of(times_ns, bytes, float(times_ns[-1]), WINDOWS * BLOCKS)[1]
        return cls(
            packets=sizes.size,
            duration_ns=float(times_ns[-1]),
            statistics=statistics,
            steadiness=steadiness(octets, sizes.size),
            rate_error=_rate_error(statistics, sizes.size),
            slowest_ns=_slowest(statistics, float(times_ns[-1])),
            mean_bytes=float(sizes.mean()),
            size_scv=float(sizes.var() / sizes.mean() ** 2),
            least_bytes=int(sizes.min()),
            most_bytes=int(sizes.max()),
            size_correlation=tuple(_correlation(sizes, lag) for lag in LAGS),
            train=sizes.size / (1 + int(np.count_nonzero(np.diff(sizes)))),
            train_alone=1 / (1 - alike) if alike < 1 else float(sizes.size),
            gap_correlation=_correlation(gaps, 1),
            gap_distance=_exponential_distance(gaps),
            equal_times=float(np.mean(gaps == 0)),
            resolution_ns=_resolution(times_ns),
            times_ns=times_ns,
            bytes=bytes,
            **known,
        )


def _correlation(values: FloatArray, lag: int) -> float:
    """Return the correlation of values so many apart."""
    if values.size < lag + 2:
        return float("nan")
    around = values - values.mean()
    whole = float(around @ around)
    return float(around[:-lag] @ around[lag:]) / whole if whole > 0 else 0.0


def _rate_error(found: TraceStatistics, packets: int) -> float:
    if not found.byte_dispersion.size:
        return float("inf")
    return float(1.96 * np.sqrt(found.byte_dispersion[-2:].max() / packets))


def _slowest(found: TraceStatistics, duration: float) -> float:
    """Return the scale from which on the dispersion of bytes grows no more; infinite for the last two."""
    values = found.byte_dispersion
    most = np.exp(GROWTH * np.sqrt(2 / np.maximum(duration / found.scale_ns - 1, 1)))
    for k in range(values.size - 2):
        if np.all(values[k + 1 :] <= most[k + 1 :] * values[k]):
            return float(found.scale_ns[k])
    return float("inf")


def _exponential_distance(gaps: FloatArray) -> float:
    """Return the Kolmogorov distance of gaps from the exponential law of their mean."""
    law = -np.expm1(-np.sort(gaps) / gaps.mean())
    steps = np.arange(gaps.size + 1) / gaps.size
    return float(max((law - steps[:-1]).max(), (steps[1:] - law).max()))


def _resolution(times: FloatArray) -> float:
    """Return the largest power of ten, from 1 s to 1 ps, of which all times [ns] are multiples."""
    for power in range(9, -4, -1):
        step = 10.0**power
        for some in (times[:100], times):
            # Times of a float are this good, however far from the first.
            if np.any(np.abs(some - np.rint(some / step) * step) > 1e-5 + 1e-13 * some):
                break
        else:
            return step
    return 0.0


def time_text(ns: float) -> str:
    """Return a time in a unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.4g} ns"
