"""What a study found, in sentences and small tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cases.check import half_widths
from cases.packet_processor import CHOICES, MAXIMIZE, MINIMIZE
from cases.section import Section
from cases.stated_error import LEGEND, UNKNOWN, cell, not_validated
from cases.stream import peak_gbps, trace_section
from cases.tables import number

if TYPE_CHECKING:
    from cases.analysis import Analysis
    from cases.check import Check
    from cases.study import Part, Study

SHORT = {
    "interleaving_step": "step",
    "alloc_trial_count": "trials",
    "link_width": "link B",
    "packet_latency": "latency ns",
    "packet_latency_p99": "p99 ns",
    "saturation_throughput": "saturates Gb/s",
    "energy_per_packet": "energy nJ",
    "cost": "cost mm2",
    "write_conflict_probability": "write conflicts",
}
SHOWN = (*MINIMIZE, *MAXIMIZE, "packet_latency_p99")


def describe(analysis: Analysis, row: int) -> str:
    """Return ``design 7 (step 1, channels 2, ...)``."""
    table = analysis.exploration.table
    fields = ", ".join(f"{SHORT.get(name, name)} {number(table[name][row])}" for name in CHOICES)
    return f"design {table['design'][row]} ({fields})"


def part_sections(part: Part) -> list[Section]:
    """Return what the study of one workload found, what is recommended and contradicted first."""
    analysis, check = part.analysis, part.check
    sections = [recommendation(part), *_stream(analysis), _overview(analysis)]
    if analysis.exploration.knee is None:
        return sections
    sections += [_front(part), _greedy(analysis), _budget(part)]
    return sections + (_check(part, check) if check is not None else [])


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
        lines.append(_values(part, star.row))
    if star.contradicted:
        lines.append(f"{len(star.contradicted)} of {star.simulated} simulated designs contradict the model:")
        by_words: dict[str, list[str]] = {}
        for design, words in star.contradicted.items():
            by_words.setdefault(words, []).append(str(design))
        lines += [f"  {', '.join(designs)}: {words}" for words, designs in by_words.items()]
    peak, base = float(peak_gbps(analysis.exploration.space.base.workload)), analysis.exploration.space.base
    if table["saturation_throughput"][knee] < peak:
        mean = float(base.workload.offered_gbps * base.workload.load_factor)
        lines.append(
            f"the model takes the mean rate, {number(mean)} Gb/s; the busiest twentieth of the trace offers "
            f"{number(peak)} Gb/s, and the knee sustains {number(table['saturation_throughput'][knee])} Gb/s"
        )
    return Section(title=title, lines=lines)


def _values(part: Part, row: int) -> str:
    """Return the objectives of a design: analytic with the stated error, simulated with the interval."""
    table, check = part.analysis.exploration.table, part.check
    objectives = part.analysis.exploration.objectives
    text = "analytic: " + ", ".join(f"{SHORT[name]} {number(cell(table, name, row))}" for name in objectives)
    if check is None or row not in check.rows:
        return text + "; not simulated"
    k = int(np.flatnonzero(check.rows == row)[0])
    said = [f"{SHORT[name]} {_estimate(check, name, k)}" for name in objectives]
    return f"{text}; simulated: {', '.join(said)}"


def _estimate(check: Check, metric: str, k: int) -> str:
    """Return a simulated value with half the width of its interval."""
    spread = float(half_widths(check.simulated.table, metric)[k])
    interval = f" ± {number(spread)}" if np.isfinite(spread) and spread > 0 else ""
    return number(check.simulated.table[metric][k]) + interval


def _stream(analysis: Analysis) -> list[Section]:
    section = trace_section(analysis.exploration.space.base.workload)
    return [] if section is None else [section]


def _overview(analysis: Analysis) -> Section:
    exploration = analysis.exploration
    table = exploration.table
    workload = exploration.space.base.workload
    saturated = int((~table["stable"]).sum())
    goals = f"least {', '.join(MINIMIZE)} and most {', '.join(MAXIMIZE)}"
    lines = [
        f"{number(float(workload.offered_gbps * workload.load_factor))} Gb/s offered in packets of "
        f"{number(workload.sizes.mean_bytes)} bytes on average",
        f"{len(table['design'])} designs solved in {analysis.seconds:.1f} s (analytic); "
        f"{saturated} saturated, "
        f"{len(exploration.front)} on the Pareto front of {goals}",
    ]
    lines += [str(exclusion) for exclusion in exploration.excluded if exclusion.designs]
    return Section(title=f"Workload {analysis.name}", lines=[line.replace("_", " ") for line in lines])


def _nothing_keeps_up(analysis: Analysis) -> Section:
    """Return which constraint excludes what, by how much, and the design that misses least."""
    exploration = analysis.exploration
    table, row = exploration.table, exploration.closest
    offered = exploration.space.base.workload
    lines = [str(exclusion).replace("_", " ") for exclusion in exploration.excluded if exclusion.designs]
    if row is not None:
        lines += [
            f"the nearest is {describe(analysis, row)}: {verdict(table, row)}",
            f"it sustains {number(table['saturation_throughput'][row])} Gb/s of "
            f"{number(float(offered.offered_gbps * offered.load_factor))} Gb/s offered",
        ]
    return Section(title=f"No design is feasible for {analysis.name}", lines=lines)


def verdict(table: Any, row: int) -> str:
    """Return which resource fills up first and how far it is."""
    word = "stable" if table["stable"][row] else "saturated"
    return f"{word}: {table['bottleneck'][row]} at {100 * table['bottleneck_load'][row]:.0f} %"


def _front(part: Part) -> Section:
    analysis = part.analysis
    exploration, star = analysis.exploration, part.star.row
    table = exploration.table
    shown = analysis.chosen if star is None else np.union1d(analysis.chosen, [star])
    rows = [
        [
            int(table["design"][row]),
            *(table[name][row] for name in CHOICES),
            *(cell(table, name, row) for name in SHOWN),
            f"{table['bottleneck'][row]} {100 * table['bottleneck_load'][row]:.0f} %",
            not_validated(table, row),
            marks(part, int(row)),
        ]
        for row in shown
    ]
    headings = [
        "design",
        *(SHORT.get(name, name) for name in (*CHOICES, *SHOWN)),
        "fills up first",
        "validated",
        "",
    ]
    lines = [
        f"{len(rows)} of {len(exploration.front)} points, chosen to stand for all of them",
        LEGEND + (f"; {UNKNOWN}" if not all(table["validated"][shown]) else ""),
    ]
    return Section(title="Pareto front (analytic)", lines=lines, headings=headings, rows=rows)


def marks(part: Part, row: int) -> str:
    """Return what a design is to the study: starred, knee of the model, contradicted by its simulation."""
    exploration, star = part.analysis.exploration, part.star
    words = [
        "starred" if row == star.row else "",
        "knee" if row == exploration.knee else "",
        "contradicted" if int(exploration.table["design"][row]) in star.contradicted else "",
    ]
    return ", ".join(filter(None, words))


def _greedy(analysis: Analysis) -> Section:
    objectives, table = analysis.exploration.objectives, analysis.exploration.table
    designs = table["design"]
    rows = [
        [
            step.field.replace("_", " ") if step.field else "start",
            "" if step.value is None else str(step.value),
            step.design,
            *(cell(table, name, int(np.searchsorted(designs, step.design))) for name in objectives),
            "kept" if step.kept else "",
        ]
        for step in analysis.greedy_path
    ]
    lines = [f"one path, all objectives weighed alike; a field is scanned until it gets no better; {LEGEND}"]
    if analysis.greedy is not None and analysis.against is not None:
        lines.append(
            f"all paths: {len(analysis.greedy.table['design'])} designs looked at; "
            f"{len(analysis.against.missed)} of {analysis.against.exact_points} points of the front missed, "
            f"hypervolume ratio {analysis.against.hypervolume_ratio:.3f}"
        )
    headings = ["field", "value", "design", *(SHORT[name] for name in objectives), ""]
    return Section(title="Greedy search (analytic)", lines=lines, headings=headings, rows=rows)


def _budget(part: Part) -> Section:
    analysis = part.analysis
    budget, table = analysis.budget, analysis.exploration.table
    title = "Least latency within a cost budget, by integer programming (analytic)"
    if budget is None or budget.row is None:
        limit = "" if budget is None else f" for at most {number(budget.limit)} mm2"
        return Section(title=title, lines=[f"no feasible design{limit}"])
    found = "equals" if budget.agrees else f"differs from ({number(budget.exhaustive)} ns)"
    against = part.star.contradicted.get(int(table["design"][budget.row]))
    return Section(
        title=title,
        lines=[
            *([f"contradicted: {against}"] if against else []),
            f"at most {number(budget.limit)} mm2: {describe(analysis, budget.row)}",
            _values(part, budget.row),
            f"{budget.choice.status}, gap {number(float(budget.choice.gap or 0.0))}; "
            f"{found} the best of all designs; {budget.choice.solver}",
        ],
    )


def _check(part: Part, check: Check) -> list[Section]:
    table, simulated = part.analysis.exploration.table, check.simulated.table
    lines = [
        f"{len(check.rows)} of {check.asked} designs simulated"
        + (" (interrupted)" if check.interrupted else "")
    ]
    if not len(check.rows):
        return [Section(title="Simulated check", lines=lines)]
    if any(simulated["short"]):
        lines.append("some runs were too short for their warm-up: use more packets")
    for model, other in (("stable", "saturated"), ("saturated", "stable")):
        designs = [
            str(table["design"][row])
            for row in check.rows
            if table["design"][row] in check.disputed and table["stable"][row] == (model == "stable")
        ]
        if designs:
            lines.append(f"{model} by the model, {other} in the simulation: {', '.join(designs)}")
    lines.append(f"analytic {LEGEND}; simulated ±: half of the 95 % interval")
    shown = ("packet_latency", "saturation_throughput", "energy_per_packet", "write_conflict_probability")
    rows = []
    for k, row in enumerate(check.rows):
        line: list[Any] = [int(table["design"][row])]
        for name in shown:
            line += [cell(table, name, row), _estimate(check, name, k)]
        rows.append([*line, f"{100 * table['bottleneck_load'][row]:.0f} %", marks(part, int(row))])
    headings = ["design"]
    for name in shown:
        headings += [f"{SHORT[name]}", "simulated"]
    points = Section(
        title="Simulated check: analytic value | simulated value",
        lines=lines,
        headings=[*headings, "load", ""],
        rows=rows,
    )
    return [points, _errors(check)]


def _errors(check: Check) -> Section:
    rows = []
    for error, in_range in zip(check.errors, check.errors_in_range, strict=True):
        row: list[Any] = [error.metric.replace("_", " "), "%" if error.relative else "points"]
        for one in (error, in_range):
            row += [_percent(one.mean), _percent(one.largest), f"{one.finite} of {one.designs}"]
        rows.append([*row, f"{error.covered} of {error.designs}"])
    headings = [
        "metric",
        "unit",
        "mean",
        "largest",
        "finite",
        "mean to 80 %",
        "largest to 80 %",
        "finite",
        "inside",
    ]
    return Section(
        title="Error of the model against the simulation",
        lines=[
            "in % of the simulated value, or percentage points of a probability; over all simulated designs "
            "and over those whose busiest resource is at most 80 % loaded",
            "mean: of the finite errors; largest: infinite where only one of the two is saturated; "
            "inside: within the 95 % interval, of all",
        ],
        headings=headings,
        rows=rows,
    )


def _percent(share: float) -> float:
    return round(100 * share, 2)


def moved_star(study: Study) -> Section | None:
    """Return how the starred design differs between the workloads, or nothing to compare."""
    main, *others = study.parts
    lines = []
    for part in others:
        own = part.analysis
        if main.star.row is None or part.star.row is None:
            continue
        design = int(main.analysis.exploration.table["design"][main.star.row])
        row = part.row_of(design)
        lines.append(f"{main.name}: {describe(main.analysis, main.star.row)}")
        lines.append(f"{part.name}: {describe(own, part.star.row)}")
        if row is not None and row != part.star.row:
            on_front = "on the front" if row in own.exploration.front else "not on the front"
            table, best = own.exploration.table, part.star.row
            values = "; ".join(
                f"{SHORT[name]} {number(cell(table, name, row))}, not {number(cell(table, name, best))}"
                for name in own.exploration.objectives
            )
            lines.append(
                f"the one of {main.name} under {part.name} is {on_front} ({verdict(table, row)}): {values}"
            )
    return Section(title="The starred design by workload (values analytic)", lines=lines) if lines else None


def study_text(study: Study) -> str:
    """Return the findings for a terminal: first of every workload what is recommended and contradicted."""
    main, *others = study.parts
    first, *rest = part_sections(main)
    sections = [first, *(recommendation(part) for part in others), *rest]
    for part in others:
        sections += [*_stream(part.analysis), _overview(part.analysis)]
        sections += [_front(part)] if part.analysis.exploration.knee is not None else []
    moved = moved_star(study)
    return "\n\n".join(section.text() for section in [*sections, *([moved] if moved else [])])
