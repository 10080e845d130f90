"""Features of a recorded trace beyond its mean rate, and those that do not fit a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cases.study.details import Section, front_section, trust
from cases.study.study import Part
from cases.tables import number
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.description import PART
from qmodels.systems.traffic.workload import Workload


def peak_gbps(workload: Workload) -> Any:
    """Return the rate [Gb/s] offered in the busiest twentieth of a trace; of a generator, the mean rate."""
    offered = workload.offered_gbps * workload.load_factor
    if not isinstance(workload.arrivals, Recorded):
        return offered
    return offered * workload.arrivals.trace.statistics.peak_to_mean


def rescaled(spec: Any) -> str:
    """Return from which rate to which a recorded trace is rescaled; nothing of any other traffic."""
    workload = getattr(spec, "workload", None)
    if not isinstance(workload, Workload) or not isinstance(workload.arrivals, Recorded):
        return ""
    own = workload.arrivals.trace.description.mean_gbps
    offered = float(workload.offered_gbps * workload.load_factor)
    return f" (recorded at {number(own)} Gb/s, replayed at {number(offered)} Gb/s)"


def trace_limits(spec: PacketProcessor, capacity_gbps: Any = None) -> dict[str, Any]:
    """Return the numbers of a system that a trace is compared with, beside its workload."""
    store = spec.free_list.segments * spec.workload.segment_bytes
    return _single(capacity_gbps=capacity_gbps, store_bytes=store)


def trace_warnings(workload: Workload, **limits: Any) -> list[str]:
    """Return the features of a workload's trace that will not fit, and the limits of the system if given."""
    if not isinstance(workload.arrivals, Recorded):
        return []
    given = {**_single(offered_gbps=workload.offered_gbps * workload.load_factor), **limits}
    held = _single(hold=workload.hold_ns)
    times = {"time that packets are held": held["hold"]} if held.get("hold") else {}
    return workload.arrivals.trace.description.warnings(**given, times_ns=times)


def _single(**values: Any) -> dict[str, float]:
    """Return the values that are one number."""
    return {name: float(value) for name, value in values.items() if value is not None and np.ndim(value) == 0}


def trace_note(workload: Workload, **limits: Any) -> Section | None:
    """Return a trace in one sentence, and warnings of what does not fit; None without one."""
    if not isinstance(workload.arrivals, Recorded):
        return None
    found = workload.arrivals.trace.description
    warnings = (f"warning: {warning}" for warning in trace_warnings(workload, **limits))
    return Section(title=f"Trace {found.source}", lines=[found.summary, *warnings])


def trace_section(workload: Workload, **limits: Any) -> Section | None:
    """Return the same with the rate by window and the dispersion by time scale; None without a trace."""
    note = trace_note(workload, **limits)
    if note is None or not isinstance(workload.arrivals, Recorded):
        return None
    found = workload.arrivals.trace.description
    stats = found.statistics
    lines = [
        *note.lines,
        f"bytes in each {PART} of the recording, mean 1: "
        + " ".join(f"{share:.2f}" for share in stats.byte_share),
        f"peak to mean {stats.peak_to_mean:.2f}{_in_gbps(workload)}",
    ]
    rows = []
    if len(stats.scale_ns):
        lines.append(
            "index of dispersion by time scale (independent packets of these sizes: "
            f"1 for packets, {1 + found.size_scv:.2f} for bytes, at every scale)"
        )
        scales = np.rint(stats.scale_ns * found.packet_rate).astype(int)
        rows = [
            [int(scale), float(packets), float(octets)]
            for scale, packets, octets in zip(
                scales, stats.packet_dispersion, stats.byte_dispersion, strict=True
            )
        ]
    headings = ["scale in mean gaps", "dispersion of packets", "dispersion of bytes"]
    return Section(title=note.title, lines=lines, headings=headings, rows=rows)


def _in_gbps(workload: Workload) -> str:
    peak = peak_gbps(workload)
    return f": {number(float(peak))} Gb/s in the busiest {PART}" if np.ndim(peak) == 0 else ""


def trace_summary(workload: Workload, **limits: Any) -> dict[str, Any] | None:
    """Return the description for a program, with the warnings; None without a trace."""
    if not isinstance(workload.arrivals, Recorded):
        return None
    found = workload.arrivals.trace.description.to_dict()
    return {**found, "peak_gbps": peak_gbps(workload), "warnings": trace_warnings(workload, **limits)}


def part_sections(part: Part) -> list[Section]:
    """Return the sections on one workload below its screen."""
    decision, base = part.decision, part.model.space.base
    front = [front_section(decision)] if len(decision.front) else []
    stream = trace_section(base.workload, **trace_limits(base)) if isinstance(base, PacketProcessor) else None
    return [*front, trust(decision), *([] if stream is None else [stream])]


def full_text(screens: Sequence[str], parts: Sequence[Part]) -> str:
    """Return all that was found: the screens, then the fronts and how far to trust each."""
    said = list(screens)
    for part in parts:
        title = f"{{}}, {part.name}" if len(parts) > 1 else "{}"
        said += [replace(one, title=title.format(one.title)).text() for one in part_sections(part)]
    return "\n\n".join(said) + "\n"
