"""Features of a recorded trace beyond its mean rate, and those that do not fit a system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cases.study.details import Section, front_section, trust
from cases.study.study import Part
from cases.tables import number
from qmodels.systems.traffic.arrivals import Recorded, Workload
from qmodels.systems.traffic.description import PART


def rescaled(spec: Any) -> str:
    """Return from which rate to which a recorded trace is rescaled; nothing of any other traffic."""
    workload = _recorded(spec)
    if workload is None:
        return ""
    own, offered = workload.arrivals.trace.description.mean_gbps, float(_offered(workload))
    return f" (recorded at {number(own)} Gb/s, replayed at {number(offered)} Gb/s)"


def _recorded(spec: Any) -> Any:
    """Return the workload of a system, or that itself, if it is recorded."""
    workload = getattr(spec, "workload", spec)
    recorded = isinstance(workload, Workload) and isinstance(workload.arrivals, Recorded)
    return workload if recorded else None


def _offered(workload: Workload) -> Any:
    return workload.offered_gbps * workload.load_factor


def trace_warnings(spec: Any, capacity_gbps: Any = None) -> list[str]:
    """Return the features of a recorded workload, or of that of a system, that do not fit it."""
    workload = _recorded(spec)
    if workload is None:
        return []
    store = None if workload is spec else spec.free_list.segments * workload.segment_bytes
    limits = _single(offered_gbps=_offered(workload), capacity_gbps=capacity_gbps, store_bytes=store)
    held = _single(hold=workload.hold_ns)
    times = {"time that packets are held": held["hold"]} if held.get("hold") else {}
    found: list[str] = workload.arrivals.trace.description.warnings(**limits, times_ns=times)
    return found


def _single(**values: Any) -> dict[str, float]:
    """Return the values that are one number."""
    return {name: float(value) for name, value in values.items() if value is not None and np.ndim(value) == 0}


def trace_note(spec: Any, capacity_gbps: Any = None) -> Section | None:
    """Return a trace in one sentence, and warnings of what does not fit; None without one."""
    workload = _recorded(spec)
    if workload is None:
        return None
    found = workload.arrivals.trace.description
    warnings = (f"warning: {warning}" for warning in trace_warnings(spec, capacity_gbps))
    return Section(title=f"Trace {found.source}", lines=[found.summary, *warnings])


def trace_section(spec: Any) -> Section | None:
    """Return the same with the rate by window and the dispersion by time scale; None without a trace."""
    note, workload = trace_note(spec), _recorded(spec)
    if note is None:
        return None
    found = workload.arrivals.trace.description
    stats, peak = found.statistics, _offered(workload) * found.statistics.peak_to_mean
    shares = " ".join(f"{share:.2f}" for share in stats.byte_share)
    rate = f": {number(float(peak))} Gb/s in the busiest {PART}" if np.ndim(peak) == 0 else ""
    lines = [
        *note.lines,
        f"bytes in each {PART} of the recording, mean 1: {shares}",
        f"peak to mean {stats.peak_to_mean:.2f}{rate}",
    ]
    if len(stats.scale_ns):
        lines.append(
            "index of dispersion by time scale (independent packets of these sizes: "
            f"1 for packets, {1 + found.size_scv:.2f} for bytes, at every scale)"
        )
    scales = np.rint(stats.scale_ns * found.packet_rate).astype(int).tolist()
    columns = scales, stats.packet_dispersion.tolist(), stats.byte_dispersion.tolist()
    headings = ["scale in mean gaps", "dispersion of packets", "dispersion of bytes"]
    return Section(title=note.title, lines=lines, headings=headings, rows=list(zip(*columns, strict=True)))


def trace_summary(spec: Any, capacity_gbps: Any = None) -> dict[str, Any] | None:
    """Return the description for a program, with the warnings; None without a trace."""
    workload = _recorded(spec)
    if workload is None:
        return None
    found = workload.arrivals.trace.description
    peak = _offered(workload) * found.statistics.peak_to_mean
    return {**found.to_dict(), "peak_gbps": peak, "warnings": trace_warnings(spec, capacity_gbps)}


def part_sections(part: Part) -> list[Section]:
    """Return the sections on one workload below its screen."""
    decision, base = part.decision, part.model.space.base
    front = [front_section(decision)] if len(decision.front) else []
    stream = trace_section(base)
    return [*front, trust(decision), *([] if stream is None else [stream])]


def full_text(screens: Sequence[str], parts: Sequence[Part]) -> str:
    """Return all that was found: the screens, then the fronts and how far to trust each."""
    said = list(screens)
    for part in parts:
        title = f"{{}}, {part.name}" if len(parts) > 1 else "{}"
        said += [replace(one, title=title.format(one.title)).text() for one in part_sections(part)]
    return "\n\n".join(said) + "\n"
