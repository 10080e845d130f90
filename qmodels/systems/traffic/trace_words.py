"""The description of a trace in words: a table line by line, and warnings of what will not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from qmodels.systems.traffic.steadiness import LEAST, LEVEL
from qmodels.systems.traffic.trace_facts import LAGS, PART, TraceFacts, time_text
from qmodels.systems.traffic.trace_statistics import WINDOWS

if TYPE_CHECKING:
    from qmodels.checks import FloatArray

Row = tuple[str, float | str, str, str]
"""What, its value, its unit, and what that says."""

PRECISION = 0.03
"""Relative half-width of a 95 % interval that a trace should allow."""

MANY = 100
"""How often the slowest time of a design should pass in a trace."""

COARSE = 0.1
"""Step of the clock over the mean gap above which order and bursts are lost."""

FEW_EQUAL = 0.01
"""Share of equal times that is no warning."""


def rows(found: TraceFacts) -> list[Row]:
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


def _known(found: TraceFacts) -> str:
    if not np.isfinite(found.rate_error):
        return "too few packets to say how well it is known"
    return f"known within {_percent(found.rate_error)} (95 %), bursts considered"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"


def _steady_word(found: TraceFacts) -> str:
    return {True: "yes", False: "no", None: "unknown"}[found.steadiness.steady]


def _steady(found: TraceFacts) -> str:
    tests = found.steadiness
    if tests.steady is None:
        return f"fewer than {LEAST} packets a block: not tested"
    said = "compatible with one rate" if tests.steady else "not compatible with one rate"
    return (
        f"windows p = {tests.windows_p:.2g}, halves p = {tests.halves_p:.2g}: {said} "
        f"(two tests at {100 * LEVEL:.0f} %)"
    )


def _dispersion(found: TraceFacts) -> list[Row]:
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


def _gaps(found: TraceFacts) -> str:
    kind = "burstier than Poisson" if found.gap_scv > 1.1 else "about as Poisson"
    kind = "more regular than Poisson" if found.gap_scv < 0.9 else kind
    return (
        f"{kind}; at most {100 * found.gap_distance:.2g} % from exponential gaps, correlation with the next "
        f"{found.gap_correlation:.2f}"
    )


def warnings(
    found: TraceFacts,
    *,
    offered_gbps: float | None = None,
    capacity_gbps: float | None = None,
    store_bytes: float | None = None,
    times_ns: Mapping[str, float] | None = None,
    precision: float = PRECISION,
) -> list[str]:
    """Return what of a trace will not fit, a sentence each.

    ``offered_gbps``: mean rate at which the trace is to be played; its own when left out [Gb/s];
    ``capacity_gbps``: what the design sustains [Gb/s]; ``store_bytes``: what its packet store holds [bytes];
    ``times_ns``: the slow times of the design, by name [ns]; ``precision``: half of a 95 % interval over the
    value that is wanted.

    >>> from qmodels.systems.traffic.trace import Trace
    >>> clock = Trace(times_ns=np.arange(20_000) * 10.0, bytes=np.full(20_000, 125), source="a clock")
    >>> warnings(clock.description, offered_gbps=50, capacity_gbps=40)
    ['the mean of 50 Gb/s is more than the 40 Gb/s that the design sustains']
    """
    offered = found.mean_gbps if offered_gbps is None else offered_gbps
    said = [*_overload(found, offered, capacity_gbps), *_change(found), *_length(found, precision)]
    played = found.duration_ns * found.mean_gbps / offered
    for name, time in (times_ns or {}).items():
        if played < MANY * time:
            said.append(
                f"too short for the {name} of {time_text(time)}: at {offered:.4g} Gb/s the trace lasts "
                f"{time_text(played)}, {played / time:.2g} of them ({MANY} wanted)"
            )
    if store_bytes is not None and found.most_bytes > store_bytes:
        above = float(np.mean(found.bytes > store_bytes))
        said.append(
            f"{_percent(above)} of the packets do not fit the store of {store_bytes:.0f} bytes, "
            f"the largest has {found.most_bytes}"
        )
    return [*said, *_clock(found)]


def _overload(found: TraceFacts, offered: float, capacity: float | None) -> list[str]:
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


def _change(found: TraceFacts) -> list[str]:
    tests, share = found.steadiness, found.statistics.byte_share
    if tests.steady is not False:
        return []
    return [
        f"the rate changes: {WINDOWS} windows have {share.min():.3g} to {share.max():.3g} of the mean, "
        f"the second half {tests.change:.3g} times the bytes of the first; a mean describes no part of it"
    ]


def _length(found: TraceFacts, precision: float) -> list[str]:
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


def _clock(found: TraceFacts) -> list[str]:
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
