"""Recorded traces described before any model uses them: numbers, a table in words, warnings, a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.result import table_html, table_text
from qmodels.systems.traffic.trace_statistics import (
    LEAST_PACKETS,
    LEVEL,
    WINDOW_BLOCKS,
    WINDOWS,
    Steadiness,
    TraceStatistics,
    blocks_of,
    correlation,
    exponential_distance,
    rate_error,
    resolution,
    slowest,
    steadiness,
    time_text,
    trace_figure,
)

Row = tuple[str, float | str, str, str]
"""What, its value, its unit, and what that says."""

LAGS = (1, 10, 100)
"""Packets apart whose sizes are correlated."""

PART = {20: "twentieth"}[WINDOWS]
"""Of a recording, a window."""

PRECISION = 0.03
"""Relative half-width of a 95 % interval that a trace should allow."""

MANY = 100
"""How often the slowest time of a design should pass in a trace."""

COARSE = 0.1
"""Step of the clock over the mean gap above which order and bursts are lost."""

FEW_EQUAL = 0.01
"""Share of equal times that is no warning."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TraceDescription:
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
        octets = blocks_of(times_ns, bytes, float(times_ns[-1]), WINDOWS * WINDOW_BLOCKS)[1]
        return cls(
            packets=sizes.size,
            duration_ns=float(times_ns[-1]),
            statistics=statistics,
            steadiness=steadiness(octets, sizes.size),
            rate_error=rate_error(statistics, sizes.size),
            slowest_ns=slowest(statistics, float(times_ns[-1])),
            mean_bytes=float(sizes.mean()),
            size_scv=float(sizes.var() / sizes.mean() ** 2),
            least_bytes=int(sizes.min()),
            most_bytes=int(sizes.max()),
            size_correlation=tuple(correlation(sizes, lag) for lag in LAGS),
            train=sizes.size / (1 + int(np.count_nonzero(np.diff(sizes)))),
            train_alone=1 / (1 - alike) if alike < 1 else float(sizes.size),
            gap_correlation=correlation(gaps, 1),
            gap_distance=exponential_distance(gaps),
            equal_times=float(np.mean(gaps == 0)),
            resolution_ns=resolution(times_ns),
            times_ns=times_ns,
            bytes=bytes,
            **known,
        )

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
        """Return the facts, a line each: name, value, unit, and meaning."""
        return _rows(self)

    def warnings(
        self,
        *,
        offered_gbps: float | None = None,
        capacity_gbps: float | None = None,
        store_bytes: float | None = None,
        times_ns: Mapping[str, float] | None = None,
        precision: float = PRECISION,
    ) -> list[str]:
        """Return the features of a trace that will not fit, a sentence each.

        ``offered_gbps``: mean rate at which the trace is played, its own when left out; ``capacity_gbps``:
        what the design sustains [Gb/s]; ``store_bytes``: what its packet store holds; ``times_ns``: the slow
        times of the design, by name; ``precision``: half of a wanted 95 % interval over its value.

        >>> from qmodels.systems.traffic.trace import Trace
        >>> clock = Trace(times_ns=np.arange(20_000) * 10.0, bytes=np.full(20_000, 125), source="a clock")
        >>> clock.description.warnings(offered_gbps=50, capacity_gbps=40)
        ['the mean of 50 Gb/s is more than the 40 Gb/s that the design sustains']
        """
        offered = self.mean_gbps if offered_gbps is None else offered_gbps
        said = [*_overload(self, offered, capacity_gbps), *_change(self), *_length(self, precision)]
        played = self.duration_ns * self.mean_gbps / offered
        for name, time in (times_ns or {}).items():
            if played < MANY * time:
                said.append(
                    f"too short for the {name} of {time_text(time)}: at {offered:.4g} Gb/s the trace lasts "
                    f"{time_text(played)}, {played / time:.2g} of them ({MANY} wanted)"
                )
        if store_bytes is not None and self.most_bytes > store_bytes:
            above = float(np.mean(self.bytes > store_bytes))
            said.append(
                f"{_percent(above)} of the packets do not fit the store of {store_bytes:.0f} bytes, "
                f"the largest has {self.most_bytes}"
            )
        return [*said, *_clock(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return every number by name; those of the windows and scales as arrays."""
        found, steady = self.statistics, self.steadiness
        named = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("statistics", "steadiness", "times_ns", "bytes"):
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
        return trace_figure(self)

    def __repr__(self) -> str:
        return table_text(self.title, self._cells(), self._remarks())

    def _repr_html_(self) -> str:
        return table_html(self.title, self._cells(), self._remarks())

    def _cells(self) -> Iterator[tuple[str, str, str, str]]:
        for what, value, unit, said in self.rows():
            yield what, value if isinstance(value, str) else f"{value:.4g}", unit, said

    def _remarks(self) -> list[str]:
        return [f"warning: {line}" for line in self.warnings()]


def _rows(found: TraceDescription) -> list[Row]:
    """Return the lines of the table: what, value, unit, what that says."""
    share = found.statistics.byte_share
    return [
        ("packets", str(found.packets), "", ""),
        ("duration", found.duration_ns / 1e9, "s", ""),
        ("packet rate", found.packet_rate * 1e9, "1/s", f"a packet every {time_text(1 / found.packet_rate)}"),
        ("byte rate", found.mean_gbps, "Gb/s", _known(found)),
        ("peak to mean", found.statistics.peak_to_mean, "",
         f"bytes of the busiest {PART}; the idlest has {share.min():.3g} of the mean"),
        ("bytes by window", f"{WINDOWS}", "windows", "mean 1: " + " ".join(f"{one:.2f}" for one in share)),
        ("steady", _steady_word(found), "", _steady(found)),
        *_dispersion(found),
        ("sizes", f"{found.least_bytes}..{found.most_bytes}", "bytes",
         f"mean {found.mean_bytes:.4g}, SCV {found.size_scv:.3g}"),
        ("size correlation", " ".join(f"{value:.2f}" for value in found.size_correlation), "",
         f"{', '.join(map(str, LAGS))} packets apart; {found.train:.3g} of one size in a row, "
         f"{found.train_alone:.3g} if independent"),
        ("gap SCV", found.gap_scv, "", _gaps(found)),
        ("clock", f"{time_text(found.resolution_ns)}" if found.resolution_ns else "below 1 ps", "",
         f"of which times are multiples; {100 * found.equal_times:.3g} % equal to the one before"),
    ]  # fmt: skip


def _known(found: TraceDescription) -> str:
    if not np.isfinite(found.rate_error):
        return "too few packets to say how well it is known"
    return f"known within {_percent(found.rate_error)} (95 %), bursts considered"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _steady_word(found: TraceDescription) -> str:
    return {True: "yes", False: "no", None: "unknown"}[found.steadiness.steady]


def _steady(found: TraceDescription) -> str:
    tests = found.steadiness
    if tests.steady is None:
        return f"fewer than {LEAST_PACKETS} packets a block: not tested"
    said = "compatible with one rate" if tests.steady else "not compatible with one rate"
    return (
        f"windows p = {tests.windows_p:.2g}, halves p = {tests.halves_p:.2g}: {said} "
        f"(two tests at {100 * LEVEL:.0f} %)"
    )


def _dispersion(found: TraceDescription) -> list[Row]:
    scales = found.statistics.scale_ns
    if not scales.size:
        return [("dispersion", "unknown", "", "too few packets for a time scale")]
    over = f"from {time_text(scales[0])} to {time_text(scales[-1])}"
    alone = 1 + found.size_scv
    level = (
        f"levelled off at {time_text(found.slowest_ns)}"
        if np.isfinite(found.slowest_ns)
        else "not levelled off"
    )
    return [
        ("dispersion of packets", _span(found.statistics.packet_dispersion), "", f"{over}; Poisson: 1"),
        ("dispersion of bytes", _span(found.statistics.byte_dispersion), "",
         f"{level}; Poisson packets of these sizes: {alone:.3g}"),
    ]  # fmt: skip


def _span(values: FloatArray) -> str:
    return f"{values[0]:.3g} .. {values[-1]:.3g}"


def _gaps(found: TraceDescription) -> str:
    kind = "burstier than Poisson" if found.gap_scv > 1.1 else "about as Poisson"
    kind = "more regular than Poisson" if found.gap_scv < 0.9 else kind
    return (
        f"{kind}; at most {100 * found.gap_distance:.2g} % from exponential gaps, correlation with the next "
        f"{found.gap_correlation:.2f}"
    )


def _overload(found: TraceDescription, offered: float, capacity: float | None) -> list[str]:
    if capacity is None:
        return []
    limit = f"more than the {capacity:.4g} Gb/s that the design sustains"
    if offered > capacity:
        return [f"the mean of {offered:.4g} Gb/s is {limit}"]
    over = int(np.count_nonzero(found.statistics.byte_share * offered > capacity))
    if not over:
        return []
    return [
        f"{over} of {WINDOWS} windows offer {limit}, the busiest "
        f"{found.statistics.peak_to_mean * offered:.4g} Gb/s: it falls behind there, although the mean is "
        f"{offered:.4g} Gb/s"
    ]


def _change(found: TraceDescription) -> list[str]:
    tests, share = found.steadiness, found.statistics.byte_share
    if tests.steady is not False:
        return []
    return [
        f"the rate changes: {WINDOWS} windows have {share.min():.3g} to {share.max():.3g} of the mean, "
        f"the second half {tests.change:.3g} times the bytes of the first; a mean describes no part of it"
    ]


def _length(found: TraceDescription, precision: float) -> list[str]:
    if found.statistics.scale_ns.size < 3:
        return [f"too short for bursts over time scales to be seen: {found.packets} packets"]
    said = []
    if not np.isfinite(found.slowest_ns):
        said.append(
            "bursts or changes may outlast the recording: the dispersion of bytes has not levelled off at "
            f"the longest time scale, {time_text(found.statistics.scale_ns[-1])}"
        )
    if found.rate_error > precision:
        times = (found.rate_error / precision) ** 2
        least = "" if np.isfinite(found.slowest_ns) else "at least "
        said.append(
            f"too short for a precision of {_percent(precision)}: its byte rate alone is known within "
            f"{_percent(found.rate_error)}; that takes {least}{times:.2g} times as long a recording"
        )
    return said


def _clock(found: TraceDescription) -> list[str]:
    gap, step = 1 / found.packet_rate, found.resolution_ns
    share = f"{_percent(found.equal_times)} of the packets have the time of the one before"
    if found.equal_times > FEW_EQUAL and step > COARSE * gap:
        return [
            f"the clock is coarse: times are multiples of {time_text(step)}, the mean gap is "
            f"{time_text(gap)} and {share}; bursts below that are lost"
        ]
    if found.equal_times > max(FEW_EQUAL, 3 * step / gap):  # more than rounding makes of Poisson packets
        return [f"{share}: batches, or a clock that is coarser than its digits"]
    return []
