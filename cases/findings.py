"""What a study found, in sentences and small tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cases.check import half_widths
from cases.packet_processor import CHOICES, MAXIMIZE, MINIMIZE
from cases.section import Section
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
    """Return what the study of one workload found."""
    analysis = part.analysis
    if analysis.exploration.knee is None:
        return [_overview(analysis), _nothing_keeps_up(analysis)]
    sections = [_overview(analysis), _front(analysis), _greedy(analysis), _budget(analysis)]
    if part.check is not None:
        sections += _check(analysis, part.check)
    return sections


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
    table = analysis.exploration.table
    row = int(np.argmin(table["bottleneck_load"]))
    return Section(
        title="No design is feasible",
        lines=[
            f"the least loaded is {describe(analysis, row)}: {verdict(table, row)}",
            f"it sustains {number(table['saturation_throughput'][row])} Gb/s",
        ],
    )


def verdict(table: Any, row: int) -> str:
    """Return which resource fills up first and how far it is."""
    word = "stable" if table["stable"][row] else "saturated"
    return f"{word}: {table['bottleneck'][row]} at {100 * table['bottleneck_load'][row]:.0f} %"


def _front(analysis: Analysis) -> Section:
    exploration = analysis.exploration
    table = exploration.table
    rows = [
        [
            int(table["design"][row]),
            *(table[name][row] for name in (*CHOICES, *SHOWN)),
            f"{table['bottleneck'][row]} {100 * table['bottleneck_load'][row]:.0f} %",
            "knee" if row == exploration.knee else "",
        ]
        for row in analysis.chosen
    ]
    headings = ["design", *(SHORT.get(name, name) for name in (*CHOICES, *SHOWN)), "fills up first", ""]
    lines = [f"{len(rows)} of {len(exploration.front)} points, chosen to stand for all of them"]
    return Section(title="Pareto front (analytic)", lines=lines, headings=headings, rows=rows)


def _greedy(analysis: Analysis) -> Section:
    objectives = analysis.exploration.objectives
    signs = [-1 if maximized else 1 for maximized in analysis.exploration.maximized]
    rows = [
        [
            step.field.replace("_", " ") if step.field else "start",
            "" if step.value is None else str(step.value),
            step.design,
            *(sign * cost for sign, cost in zip(signs, step.costs, strict=True)),
            "kept" if step.kept else "",
        ]
        for step in analysis.greedy_path
    ]
    lines = ["one path, all objectives weighed alike; a field is scanned until it gets no better"]
    if analysis.greedy is not None and analysis.against is not None:
        lines.append(
            f"all paths: {len(analysis.greedy.table['design'])} designs looked at; "
            f"{len(analysis.against.missed)} of {analysis.against.exact_points} points of the front missed, "
            f"hypervolume ratio {analysis.against.hypervolume_ratio:.3f}"
        )
    headings = ["field", "value", "design", *(SHORT[name] for name in objectives), ""]
    return Section(title="Greedy search (analytic)", lines=lines, headings=headings, rows=rows)


def _budget(analysis: Analysis) -> Section:
    budget = analysis.budget
    title = "Least latency within a cost budget, by integer programming (analytic)"
    if budget is None or budget.row is None:
        limit = "" if budget is None else f" for at most {number(budget.limit)} mm2"
        return Section(title=title, lines=[f"no feasible design{limit}"])
    found = "equals" if budget.agrees else f"differs from ({number(budget.exhaustive)} ns)"
    return Section(
        title=title,
        lines=[
            f"at most {number(budget.limit)} mm2: {describe(analysis, budget.row)}, "
            f"{number(float(budget.choice.objective or 0.0))} ns",
            f"{budget.choice.status}, gap {number(float(budget.choice.gap or 0.0))}; "
            f"{found} the best of all designs; {budget.choice.solver}",
        ],
    )


def _check(analysis: Analysis, check: Check) -> list[Section]:
    table, simulated = analysis.exploration.table, check.simulated.table
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
    shown = ("packet_latency", "saturation_throughput", "energy_per_packet", "write_conflict_probability")
    rows = []
    for k, row in enumerate(check.rows):
        line: list[Any] = [int(table["design"][row])]
        for name in shown:
            spread = half_widths(simulated, name)[k]
            interval = f" ± {number(float(spread))}" if np.isfinite(spread) else ""
            line += [table[name][row], number(simulated[name][k]) + interval]
        rows.append([*line, f"{100 * table['bottleneck_load'][row]:.0f} %"])
    headings = ["design"]
    for name in shown:
        headings += [f"{SHORT[name]}", "simulated"]
    points = Section(
        title="Simulated check: analytic value | simulated value ± half of its 95 % interval",
        lines=lines,
        headings=[*headings, "load"],
        rows=rows,
    )
    return [points, _errors(check)]


def _errors(check: Check) -> Section:
    rows = []
    for error, in_range in zip(check.errors, check.errors_in_range, strict=True):
        row: list[Any] = [error.metric.replace("_", " "), "%" if error.relative else "points"]
        for one in (error, in_range):
            row += [_percent(one.mean), _percent(one.largest), one.designs]
        rows.append([*row, f"{error.covered} of {error.designs}"])
    headings = [
        "metric",
        "unit",
        "mean",
        "largest",
        "designs",
        "mean to 80 %",
        "largest to 80 %",
        "designs",
        "inside",
    ]
    return Section(
        title="Error of the model against the simulation",
        lines=[
            "in % of the simulated value, or percentage points of a probability; over all simulated designs "
            "and over those whose busiest resource is at most 80 % loaded; inside: within the 95 % interval"
        ],
        headings=headings,
        rows=rows,
    )


def _percent(share: float) -> float:
    return round(100 * share, 2)


def moved_knee(study: Study) -> Section | None:
    """Return how the best design differs between the workloads, or nothing to compare."""
    main = study.parts[0].analysis
    lines = []
    for part in study.parts[1:]:
        own, knee = part.analysis, main.exploration.knee
        if knee is None or own.exploration.knee is None:
            continue
        design = int(main.exploration.table["design"][knee])
        row = part.row_of(design)
        lines.append(f"{main.name}: {describe(main, knee)}")
        lines.append(f"{own.name}: {describe(own, own.exploration.knee)}")
        if row is not None and row != own.exploration.knee:
            on_front = "still on the front" if row in own.exploration.front else "no longer on the front"
            table, best = own.exploration.table, own.exploration.knee
            values = "; ".join(
                f"{SHORT[name]} {number(table[name][row])}, not {number(table[name][best])}"
                for name in own.exploration.objectives
            )
            lines.append(
                f"the knee of {main.name} under {own.name} is {on_front} ({verdict(table, row)}): {values}"
            )
    return Section(title="The knee by workload (analytic)", lines=lines) if lines else None


def study_text(study: Study) -> str:
    """Return the findings for a terminal."""
    main, *others = study.parts
    sections = part_sections(main)
    for part in others:
        sections += [_overview(part.analysis)]
        sections += [_front(part.analysis)] if part.analysis.exploration.knee is not None else []
    moved = moved_knee(study)
    return "\n\n".join(section.text() for section in [*sections, *([moved] if moved else [])])
