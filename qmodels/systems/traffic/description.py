"""What a recorded trace is like, in numbers and words, before any model uses it."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.traffic.steadiness import BLOCKS, Steadiness, steadiness
from qmodels.systems.traffic.trace_statistics import WINDOWS, TraceStatistics, blocks_of

if TYPE_CHECKING:
    from qmodels.systems.traffic.trace import Trace

LAGS = (1, 10, 100)
"""Packets apart whose sizes are correlated."""

GROWTH = 2.5
"""Standard errors by which a dispersion must be larger to count as grown."""

Row = tuple[str, float | str, str, str]
"""What, its value, its unit, and what that says."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TraceDescription:
    r"""Packets, rate over time, bursts over time scales, sizes and gaps of a trace.

    Parameters
    ----------
    source : str
        Where the packets came from.
    packets : int
        How many.
    duration_ns : float
        From the first to the last. [ns]
    packet_rate : float
        Gaps over duration. [packets/ns]
    mean_gbps : float
        Packet rate times mean size. [Gb/s]
    statistics : TraceStatistics
        Rate window by window, and indices of dispersion over time scales.
    steadiness : Steadiness
        Whether windows and halves are compatible with one rate, given the spread inside them.
    rate_error : float
        Half of the 95 % interval of the byte rate over the rate: what a longer trace might have said.
    slowest_ns : float
        Time scale on which the dispersion of bytes has levelled off; infinite if it still grows at the
        longest. [ns]
    mean_bytes, size_scv : float
        Mean of the sizes [bytes] and their squared coefficient of variation.
    least_bytes, most_bytes : int
        Smallest and largest size. [bytes]
    size_correlation : tuple of float
        Correlation of sizes 1, 10 and 100 packets apart; 0 where all are equal, NaN beyond the trace.
    train, train_alone : float
        Mean number of packets of one size in a row, and what it were if sizes did not depend on each other.
    gap_scv : float
        Squared coefficient of variation of the gaps (Poisson: 1).
    gap_correlation : float
        Correlation of a gap with the next (Poisson: 0).
    gap_distance : float
        Largest difference between the distribution of the gaps and the exponential of their mean.
    equal_times : float
        Share of packets that have the time of the one before.
    resolution_ns : float
        Largest power of ten of which all times are multiples, 0 below 1 ps. [ns]

    Notes
    -----
    With the index of dispersion of bytes :math:`I_w` at the longest scale and n packets, the relative
    standard error of the byte rate is :math:`\sqrt{I_w / n}`. The dispersion has levelled off at the first
    scale after which it grows no more: on no longer one, of b blocks, is the logarithm of its ratio more than
    `GROWTH` times its standard error :math:`\sqrt{2 / (b - 1)}`.
    """

    source: str
    packets: int
    duration_ns: float
    packet_rate: float
    mean_gbps: float
    statistics: TraceStatistics
    steadiness: Steadiness
    rate_error: float
    slowest_ns: float
    mean_bytes: float
    size_scv: float
    least_bytes: int
    most_bytes: int
    size_correlation: tuple[float, ...]
    train: float
    train_alone: float
    gap_scv: float
    gap_correlation: float
    gap_distance: float
    equal_times: float
    resolution_ns: float
    trace: Trace

    @property
    def title(self) -> str:
        """The trace in one line."""
        return f"Trace {self.source}: {self.packets} packets in {time_text(self.duration_ns)}"

    @property
    def summary(self) -> str:
        """The trace in one sentence."""
        found, steady = self.statistics, {True: "steady", False: "not steady", None: "of unknown steadiness"}
        bursts = ""
        if found.scale_ns.size:
            first, last = found.byte_dispersion[[0, -1]]
            bursts = f", dispersion of bytes {first:.3g} to {last:.3g} over time scales"
        return (
            f"{self.packets} packets in {time_text(self.duration_ns)} at {self.mean_gbps:.4g} Gb/s, busiest "
            f"{PART} {found.peak_to_mean:.2f} times the mean{bursts}, "
            f"rate {steady[self.steadiness.steady]}"
        )

    def rows(self) -> list[Row]:
        """Return what is known, a line each: what, value, unit, and what that says."""
        from qmodels.systems.traffic.description_words import rows

        return rows(self)

    def warnings(self, **limits: Any) -> list[str]:
        """Return what will not fit, a sentence each: limits as `description_words.warnings` takes them."""
        from qmodels.systems.traffic.description_words import warnings

        return warnings(self, **limits)

    def to_dict(self) -> dict[str, Any]:
        """Return every number by name; those of the windows and scales as arrays."""
        found, steady = self.statistics, self.steadiness
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("statistics", "steadiness", "trace"):
            del named[name]
        return {
            **named,
            "size_correlation": dict(zip(map(str, LAGS), self.size_correlation, strict=True)),
            "peak_to_mean": found.peak_to_mean,
            "window_ns": found.window_ns,
            "packet_share": found.packet_share,
            "byte_share": found.byte_share,
            "scale_ns": found.scale_ns,
            "scale_mean_gaps": found.scale_ns * self.packet_rate,
            "packet_dispersion": found.packet_dispersion,
            "byte_dispersion": found.byte_dispersion,
            "steady": steady.steady,
            "windows_p": steady.windows_p,
            "halves_p": steady.halves_p,
            "second_half_to_first": steady.change,
        }

    def plot(self) -> Any:
        """Return a figure: the rate over time, the dispersion over time scales, the sizes, the gaps."""
        from qmodels.systems.traffic.trace_picture import trace_figure

        return trace_figure(self)

    def __repr__(self) -> str:
        rows = [(what, _text(value), unit, said) for what, value, unit, said in self.rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = [
            f"  {what:<{widths[0]}}  {value:>{widths[1]}} {unit:<{widths[2]}}  {said}".rstrip()
            for what, value, unit, said in rows
        ]
        return "\n".join([self.title, *lines, *(f"  warning: {line}" for line in self.warnings())])

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{escape(what)}</td><td style='text-align:right'>{escape(_text(value))}</td>"
            f"<td>{escape(unit)}</td><td style='text-align:left'>{escape(said)}</td></tr>"
            for what, value, unit, said in self.rows()
        )
        footer = "<br>".join(f"warning: {escape(line)}" for line in self.warnings())
        return f"<table><caption>{escape(self.title)}</caption>{cells}</table><p>{footer}</p>"


PART = {20: "twentieth"}[WINDOWS]


def describe(trace: Trace) -> TraceDescription:
    """Describe a trace: rate, bursts over time scales, steadiness, sizes, gaps and clock.

    Parameters
    ----------
    trace : Trace
        As `qmodels.read_trace` returns it.

    Returns
    -------
    TraceDescription
        Prints as a table in words; ``plot()``, ``warnings()``, ``to_dict()``.

    Examples
    --------
    >>> from qmodels.systems.traffic.trace import Trace
    >>> times = np.concatenate([np.arange(2000) * 100.0, 200_000 + np.arange(2000) * 1000.0])
    >>> found = describe(Trace(times_ns=times, bytes=np.full(4000, 64), source="a change by ten"))
    >>> found.steadiness.steady, round(found.statistics.peak_to_mean, 1), found.resolution_ns
    (False, 5.5, 100.0)
    """
    times, sizes = trace.times_ns, trace.bytes.astype(float)
    found, gaps = trace.statistics, np.diff(trace.times_ns)
    mean, scv = float(sizes.mean()), float(sizes.var() / sizes.mean() ** 2)
    _, counts = np.unique(trace.bytes, return_counts=True)
    alike = float(((counts / sizes.size) ** 2).sum())
    runs = 1 + int(np.count_nonzero(np.diff(sizes)))
    octets = blocks_of(times, trace.bytes, float(times[-1]), WINDOWS * BLOCKS)[1]
    return TraceDescription(
        source=trace.source,
        packets=len(trace),
        duration_ns=float(times[-1]),
        packet_rate=trace.packet_rate,
        mean_gbps=trace.mean_gbps,
        statistics=found,
        steadiness=steadiness(octets, len(trace)),
        rate_error=_rate_error(found, len(trace)),
        slowest_ns=_slowest(found, float(times[-1])),
        mean_bytes=mean,
        size_scv=scv,
        least_bytes=int(sizes.min()),
        most_bytes=int(sizes.max()),
        size_correlation=tuple(_correlation(sizes, lag) for lag in LAGS),
        train=sizes.size / runs,
        train_alone=1 / (1 - alike) if alike < 1 else float(sizes.size),
        gap_scv=trace.gap_scv,
        gap_correlation=_correlation(gaps, 1),
        gap_distance=_exponential_distance(gaps),
        equal_times=float(np.mean(gaps == 0)),
        resolution_ns=_resolution(times),
        trace=trace,
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


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
