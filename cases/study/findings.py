"""What a study found, in sentences and small tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases.study.advice import SHORT, describe, estimate, marks, moved_star, recommendation, values_of
from cases.study.analysis import Analysis
from cases.study.check import Check
from cases.study.packet_processor import CHOICES, MAXIMIZE, MINIMIZE
from cases.study.parts import Part, Study
from cases.study.searches import search_section
from cases.study.section import Section
from cases.study.stated_error import LEGEND, UNKNOWN, cell, not_validated
from cases.study.stream import trace_section
from cases.tables import number

SHOWN = (*MINIMIZE, *MAXIMIZE, "packet_latency_p99")


def part_sections(part: Part) -> list[Section]:
    """Return what the study of one workload found, what is recommended and contradicted first."""
    analysis, check = part.analysis, part.check
    sections = [recommendation(part), *_stream(analysis), _overview(analysis)]
    if analysis.exploration.knee is None:
        return sections
    sections += [_front(part), _greedy(analysis), _budget(part)]
    return sections + (_check(part, check) if check is not None else [])


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
    title = "Least latency within a cost budget, by every method (analytic)"
    if budget is None or budget.row is None:
        limit = "" if budget is None else f" for at most {number(budget.limit)} mm2"
        return Section(title=title, lines=[f"no feasible design{limit}"])
    found = "equals" if budget.agrees else f"differs from ({number(budget.exhaustive)} ns)"
    against = part.star.contradicted.get(int(table["design"][budget.row]))
    return search_section(
        analysis,
        title,
        [
            *([f"contradicted: {against}"] if against else []),
            f"at most {number(budget.limit)} mm2: {describe(analysis, budget.row)}",
            values_of(part, budget.row),
            f"the exact program {found} the best of all designs; {budget.choice.solver}; it rests on: "
            f"{budget.choice.rests_on}",
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
    shown = ("packet_latency", "saturation_data_rate", "energy_per_packet", "write_conflict_probability")
    rows = []
    for k, row in enumerate(check.rows):
        line: list[Any] = [int(table["design"][row])]
        for name in shown:
            line += [cell(table, name, row), estimate(check, name, k)]
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
