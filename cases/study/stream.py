"""What a recorded trace offers beyond its mean rate, in numbers and in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases.study.section import Section
from cases.tables import number
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.trace_statistics import WINDOWS
from qmodels.systems.traffic.workload import Workload


def peak_gbps(workload: Workload) -> Any:
    """Return the rate [Gb/s] offered in the busiest twentieth of a trace; of a generator, the mean rate."""
    offered = workload.offered_gbps * workload.load_factor
    if not isinstance(workload.arrivals, Recorded):
        return offered
    return offered * workload.arrivals.trace.statistics.peak_to_mean


def trace_section(workload: Workload) -> Section | None:
    """Return how steady the trace of a workload is; None without one."""
    if not isinstance(workload.arrivals, Recorded):
        return None
    trace = workload.arrivals.trace
    found = trace.statistics
    lines = [
        f"{len(trace)} packets recorded in {number(float(trace.times_ns[-1] / 1e9))} s "
        f"at {number(trace.mean_gbps)} Gb/s; the model takes the mean rate, the simulation the packets",
        f"bytes in each {_PART} of the recording, mean 1: "
        + " ".join(f"{share:.2f}" for share in found.byte_share),
        f"peak to mean {found.peak_to_mean:.2f}{_in_gbps(workload)}",
    ]
    rows = []
    if len(found.scale_ns):
        scv = float(trace.bytes.var() / trace.bytes.mean() ** 2)
        lines.append(
            "index of dispersion by time scale (independent packets of these sizes: "
            f"1 for packets, {1 + scv:.2f} for bytes, at every scale)"
        )
        scales = np.rint(found.scale_ns * trace.packet_rate).astype(int)
        rows = [
            [int(scale), float(packets), float(octets)]
            for scale, packets, octets in zip(
                scales, found.packet_dispersion, found.byte_dispersion, strict=True
            )
        ]
    headings = ["scale in mean gaps", "dispersion of packets", "dispersion of bytes"]
    return Section(title=f"Trace {trace.source}", lines=lines, headings=headings, rows=rows)


_PART = {20: "twentieth"}[WINDOWS]


def _in_gbps(workload: Workload) -> str:
    peak = peak_gbps(workload)
    return f": {number(float(peak))} Gb/s in the busiest {_PART}" if np.ndim(peak) == 0 else ""


def trace_summary(workload: Workload) -> dict[str, Any] | None:
    """Return the same for a program; None without a trace."""
    if not isinstance(workload.arrivals, Recorded):
        return None
    trace = workload.arrivals.trace
    found = trace.statistics
    return {
        "source": trace.source,
        "packets": len(trace),
        "mean_gbps": trace.mean_gbps,
        "peak_to_mean": found.peak_to_mean,
        "peak_gbps": peak_gbps(workload),
        "byte_share": found.byte_share,
        "packet_share": found.packet_share,
        "scale_mean_gaps": found.scale_ns * trace.packet_rate,
        "packet_dispersion": found.packet_dispersion,
        "byte_dispersion": found.byte_dispersion,
    }
