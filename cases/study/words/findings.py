"""What a study found, in sentences and small tables: the answer, the front, the trust, the rest."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from cases.study.check import Check, half_widths
from cases.study.parts import Part, Study
from cases.study.words.doubts import front_doubts
from cases.study.words.screen import screen_of, study_text
from cases.study.words.section import SHORT, Section
from cases.study.words.stated_error import LEGEND, cell
from cases.study.words.stream import trace_limits, trace_section
from cases.tables import heading, many, number
from optimize.decisions.decision import LEVEL, Decision
from optimize.search.exploration import said_distinct
from optimize.search.feasibility import objective_values
from optimize.search.pareto import IntArray, epsilon_thin
from optimize.spaces.evaluation import significant
from optimize.spaces.stability import LOAD, RESOURCE
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.traffic.arrivals import Recorded

SURE = 40
LESS = "80 to 90 %"
"""Simulated designs from which intervals were found to cover, and what they cover with 5 to 20 of them: of
the 2,700 designs of the default study under four workloads, all simulated."""

POINTS = 12
"""Rows of the table of the front."""

DISTINCT = 3
"""Significant digits in which points of the front are told apart: simulations do not resolve more."""


@lru_cache(maxsize=16)
def detail_sections(part: Part) -> tuple[Section, ...]:
    """Return what else was found: of the trace, and in each simulated design."""
    base = part.analysis.exploration.space.base
    stream = trace_section(base.workload, **trace_limits(base))
    sections = [] if stream is None else [stream]
    return (*sections, *(_check(part, part.check) if part.check is not None else ()))


def part_sections(part: Part) -> list[Section]:
    """Return what the study of one workload found below its screen."""
    front = [front_section(part.decision)] if len(part.decision.front) else []
    return [*front, trust(part.decision), *detail_sections(part)]


def front_section(decision: Decision) -> Section:
    """Return the front of a decision, of systems of any kind: best values with half of their intervals."""
    table, model = decision.table, decision.model
    shown = front_rows(decision, POINTS)
    fields = [name for name, choices in model.space.choices.items() if len(choices) > 1]
    metrics = [name for name in dict.fromkeys((*model.objectives, *model.subject_to)) if name not in fields]
    rows = []
    for row in shown:
        line = [int(table["design"][row]), *(table[name][row] for name in fields)]
        line += [_with_interval(decision, name, int(row)) for name in metrics]
        line += [f"{table[RESOURCE][row]} {100 * table[LOAD][row]:.0f} %"] if RESOURCE in table else []
        said = [
            "recommended" if row == decision.chosen else "",
            "simulated" if table["simulated"][row] else "",
        ]
        rows.append([*line, ", ".join(filter(None, said))])
    headings = ["design", *(SHORT.get(name, heading(name)) for name in (*fields, *metrics))]
    headings += ["fullest"] if RESOURCE in table else []
    values = objective_values(table, model.objectives)[decision.front]
    distinct = len(np.unique(significant(values, DISTINCT), axis=0))
    ties = len(decision.front) - distinct + (0 if model.complete else model.duplicates)
    lines = [f"{many(distinct, 'distinct point')} and {many(ties, 'tie')} in {DISTINCT} significant digits"]
    lines[0] += "; shown are some that stand for all" if len(rows) < len(decision.front) else ""
    if decision.corrected:
        source = "the model corrected by the simulations" if len(decision.simulated) else "the model"
        lines.append(
            f"±: half of the {LEVEL:.0%} interval, of {source} or, where it says so, of the simulation"
        )
    return Section(title="Pareto front", lines=lines, headings=[*headings, ""], rows=rows)


def front_rows(decision: Decision, points: int) -> IntArray:
    """Return at most so many rows of the front that stand for all of it, the recommended one among them."""
    kept = [] if decision.chosen is None else [decision.chosen]
    values, tolerance = objective_values(decision.table, decision.model.objectives)[decision.front], 0.0
    while True:
        few = decision.front[epsilon_thin(values, tolerance, maximize=decision.model.maximized)]
        if len(few) <= max(points - len(kept), 1):
            return np.union1d(few, kept).astype(np.int64)
        tolerance += 0.05


def _with_interval(decision: Decision, metric: str, row: int) -> Any:
    low, best, high = decision.interval(metric, row)
    if low == high or not np.isfinite(best):
        return best
    return f"{number(best)} ± {number((high - low) / 2)}"


def how_simulated(decision: Decision) -> str:
    """Return what was run of each simulated design; of a recorded trace whole rotations."""
    one = next(iter(decision.results.values()))
    effort = "".join(f", {count} {name}" for name, count in one.effort.items() if name != "events")
    workload = getattr(decision.model.space.base, "workload", None)
    recorded = isinstance(getattr(workload, "arrivals", None), Recorded)
    whole = " in whole rotations of the trace" * recorded
    return f"{one.replications} replications{effort}{whole}, seed {one.seed}"


def trust(decision: Decision) -> Section:
    """Return how far to trust the numbers: what was simulated, and how far the model was off there."""
    model, rows = decision.model, decision.simulated
    solved, feasible = model.solved, model.feasible_designs
    if model.complete:
        feasible = int(decision.feasible.sum())
    lines = [
        f"{solved} designs solved{said_distinct(model.distinct_designs)}, {solved - feasible} not feasible"
    ]
    lines[0] += f"; {len(rows)} simulated"
    lines[0] += f" in {decision.seconds:.0f} s" + (" (interrupted)" if decision.interrupted else "")
    if not model.complete:
        lines.append(
            f"of so many designs {len(decision.feasible)} of the model's front were looked at: one beside"
        )
        lines[-1] += " it that a simulation would put on it is missed"
    lines += model.hole_lines
    doubts = front_doubts(decision)
    lines += [f"the model doubts its numbers: {'; '.join(doubts)}"] if doubts else []
    if not len(rows):
        stated = ": ± is the error that the model states of itself" if decision.corrected else ""
        lines.append(f"no design was simulated{stated}")
        return Section(title="How far to trust it", lines=lines)
    for metric in (name for name in (*model.objectives, *model.subject_to) if name in decision.corrected):
        ours, true = model.table[metric][rows].astype(float), decision.table[metric][rows].astype(float)
        known = np.isfinite(ours) & np.isfinite(true) & (true != 0 if is_relative(metric) else True)
        if known.any():
            off = (ours[known] - true[known]) / (true[known] if is_relative(metric) else 1.0)
            unit = "%" if is_relative(metric) else "points"
            mean, size, most = (100 * value for value in (off.mean(), np.abs(off).mean(), np.abs(off).max()))
            lines.append(
                f"{metric.replace('_', ' ')}: the model alone is off by {size:.1f} {unit} on average "
                f"({mean:+.1f} signed, {most:.1f} at most) in {many(known.sum(), 'simulated design')}"
            )
    if len(rows) < SURE:
        lines.append(
            f"intervals from fewer than {SURE} simulated designs cover less than they say: {LESS} where "
            f"{LEVEL:.0%} is meant"
        )
    lines.append(f"a simulation: {how_simulated(decision)}")
    turned = decision.feasible[rows] != model.feasible[rows]
    if turned.any():
        named = ", ".join(str(design) for design in decision.table["design"][rows[turned]][:POINTS])
        lines.append(f"feasible by only one of model and simulation: {named}")
    return Section(title="How far to trust it", lines=lines)


def marks(part: Part, row: int) -> str:
    """Return what a design is to the study: starred, knee of the model, contradicted by its simulation."""
    decision = part.decision
    simulated = bool(decision.table["simulated"][row])
    words = [
        "starred" if row == decision.chosen else "",
        "knee" if row == decision.model.knee else "",
        "contradicted" if simulated and decision.feasible[row] != decision.model.feasible[row] else "",
    ]
    return ", ".join(filter(None, words))


def _estimate(check: Check, metric: str, k: int) -> str:
    """Return a simulated value with half the width of its interval."""
    spread = float(half_widths(check.simulated.table, metric)[k])
    interval = f" ± {number(spread)}" if np.isfinite(spread) and spread > 0 else ""
    return number(check.simulated.table[metric][k]) + interval


def _check(part: Part, check: Check) -> list[Section]:
    table, simulated = part.analysis.exploration.table, check.simulated.table
    interrupted = " (interrupted)" if part.decision.interrupted else ""
    lines = [f"{len(check.rows)} designs simulated{interrupted}"]
    if any(simulated["short"]):
        lines.append("some runs were too short for their warm-up: use more packets")
    if any(simulated["undecided"]):
        designs = [str(number) for number in simulated["design"][simulated["undecided"]]]
        lines.append(f"undecided in the simulation whether they keep up: {', '.join(designs)}")
    for model, other in (("stable", "saturated"), ("saturated", "stable")):
        designs = [
            str(table["design"][row])
            for row in check.rows
            if table["design"][row] in check.disputed and table["stable"][row] == (model == "stable")
        ]
        if designs:
            lines.append(f"{model} by the model, {other} in the simulation: {', '.join(designs)}")
    lines.append(f"analytic {LEGEND}; simulated ±: half of the 90 % interval")
    shown = ("packet_latency", "saturation_data_rate", "energy_per_packet", "write_conflict_probability")
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
            "inside: within the 90 % interval, of all",
        ],
        headings=headings,
        rows=rows,
    )


def _percent(share: float) -> float:
    return round(100 * share, 2)


def full_text(study: Study, where: str = "study") -> str:
    """Return all that was found: the screens, then the fronts, the trust and the errors."""
    parts = study.parts if len(study.parts) > 1 else ()
    said = [study_text(study, where), *(screen_of(part, where).text() for part in parts)]
    for part in study.parts:
        title = f"{{}}, {part.name}" if parts else "{}"
        said += [replace(one, title=title.format(one.title)).text() for one in part_sections(part)]
    return "\n\n".join(said) + "\n"
