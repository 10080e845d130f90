"""Which design a study recommends and what speaks against others, in sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases.study.analysis import Analysis
from cases.study.check import Check, half_widths
from cases.study.packet_processor import CHOICES
from cases.study.parts import Part
from cases.study.section import Section
from cases.study.stated_error import cell
from cases.study.stream import peak_gbps
from cases.tables import number

SHORT = {
    "interleaving_step": "step",
    "alloc_trial_count": "trials",
    "link_width": "link B",
    "packet_latency": "latency ns",
    "packet_latency_p99": "p99 ns",
    "saturation_data_rate": "saturates Gb/s",
    "energy_per_packet": "energy nJ",
    "cost": "cost mm2",
    "write_conflict_probability": "write conflicts",
}


def describe(analysis: Analysis, row: int) -> str:
    """Return ``design 7 (step 1, channels 2, ...)``."""
    table = analysis.exploration.table
    fields = ", ".join(f"{SHORT.get(name, name)} {number(table[name][row])}" for name in CHOICES)
    return f"design {table['design'][row]} ({fields})"


def verdict(table: Any, row: int) -> str:
    """Return which resource fills up first and how far it is."""
    word = "stable" if table["stable"][row] else "saturated"
    return f"{word}: {table['bottleneck'][row]} at {100 * table['bottleneck_load'][row]:.0f} %"


def recommendation(part: Part) -> Section:
    """Return which design is starred, and what its simulation contradicts: the first thing to read."""
    star, analysis = part.star, part.analysis
    table, knee = analysis.exploration.table, analysis.exploration.knee
    if knee is None:
        return _nothing_keeps_up(analysis)
    lines = []
    title = f"Recommended for {part.name}"
    if star.against_knee:
        by = "simulation" if part.check is not None and knee in part.check.rows else "trace"
        title = f"The {by} contradicts the model's best design for {part.name}"
        lines.append(
            f"not starred: {describe(analysis, knee)}, the knee of the analytic front "
            f"({verdict(table, knee)} by the model): {star.against_knee}"
        )
    if star.row is None:
        lines.append(f"no design is starred: {star.basis}")
    else:
        lines.append(f"starred: {describe(analysis, star.row)}: {star.basis}")
        lines.append(values_of(part, star.row))
    if star.contradicted:
        lines.append(f"{len(star.contradicted)} of {star.simulated} simulated designs contradict the model:")
        by_words: dict[str, list[str]] = {}
        for design, words in star.contradicted.items():
            by_words.setdefault(words, []).append(str(design))
        lines += [f"  {', '.join(designs)}: {words}" for words, designs in by_words.items()]
    peak, base = float(peak_gbps(analysis.exploration.space.base.workload)), analysis.exploration.space.base
    if table["saturation_data_rate"][knee] < peak:
        mean = float(base.workload.offered_gbps * base.workload.load_factor)
        lines.append(
            f"the model takes the mean rate, {number(mean)} Gb/s; the busiest twentieth of the trace offers "
            f"{number(peak)} Gb/s, and the knee sustains {number(table['saturation_data_rate'][knee])} Gb/s"
        )
    return Section(title=title, lines=lines)


def values_of(part: Part, row: int) -> str:
    """Return the objectives of a design: analytic with the stated error, simulated with the interval."""
    table, check = part.analysis.exploration.table, part.check
    objectives = part.analysis.exploration.objectives
    text = "analytic: " + ", ".join(f"{SHORT[name]} {number(cell(table, name, row))}" for name in objectives)
    if check is None or row not in check.rows:
        return text + "; not simulated"
    k = int(np.flatnonzero(check.rows == row)[0])
    said = [f"{SHORT[name]} {estimate(check, name, k)}" for name in objectives]
    return f"{text}; simulated: {', '.join(said)}"


def estimate(check: Check, metric: str, k: int) -> str:
    """Return a simulated value with half the width of its interval."""
    spread = float(half_widths(check.simulated.table, metric)[k])
    interval = f" ± {number(spread)}" if np.isfinite(spread) and spread > 0 else ""
    return number(check.simulated.table[metric][k]) + interval


def _nothing_keeps_up(analysis: Analysis) -> Section:
    """Return which constraint excludes what, by how much, and the design that misses least."""
    exploration = analysis.exploration
    table, row = exploration.table, exploration.closest
    offered = exploration.space.base.workload
    lines = [str(exclusion).replace("_", " ") for exclusion in exploration.excluded if exclusion.designs]
    if row is not None:
        lines += [
            f"the nearest is {describe(analysis, row)}: {verdict(table, row)}",
            f"it sustains {number(table['saturation_data_rate'][row])} Gb/s of "
            f"{number(float(offered.offered_gbps * offered.load_factor))} Gb/s offered",
        ]
    return Section(title=f"No design is feasible for {analysis.name}", lines=lines)


def marks(part: Part, row: int) -> str:
    """Return what a design is to the study: starred, knee of the model, contradicted by its simulation."""
    exploration, star = part.analysis.exploration, part.star
    words = [
        "starred" if row == star.row else "",
        "knee" if row == exploration.knee else "",
        "contradicted" if int(exploration.table["design"][row]) in star.contradicted else "",
    ]
    return ", ".join(filter(None, words))
