"""What the page of a study shows, as JSON: every number on it is from here."""

from __future__ import annotations

from typing import Any

import numpy as np

from cases.plots import label
from cases.study.check import model_error
from cases.study.packet_processor import ERROR, LOAD, PART
from cases.study.page.packing import packed
from cases.study.page.system import system
from cases.study.page.traffic import traffic
from cases.study.parts import Part, Study
from cases.study.words.findings import how_simulated, part_sections
from cases.study.words.screen import screen_of
from cases.study.words.section import Section
from cases.tables import heading, number
from optimize.decisions.decision import LEVEL, Decision
from optimize.search.pareto import FloatArray
from qmodels.systems.spec.metrics import METRICS, is_relative


def page_data(study: Study) -> dict[str, Any]:
    """Return everything the page of a study shows.

    A workload has ``columns`` over its designs, see `cases.study.page.packing`: the varied fields, the flags,
    each metric by its best value (``packet_latency``), by the ends of its interval if it has one
    (``packet_latency_low``, ``_high``) and then by the model alone (``model: packet_latency``), the
    model's shares of the latency and its loads. ``simulation`` has what only a simulation says of the designs
    that were simulated, in the order of ``rows["simulated"]``.
    """
    done = [how_simulated(part.decision) for part in study.parts if part.decision.results]
    return {
        "title": "Packet processor study",
        "effort": done[0] if done else "none",
        "workloads": [_workload(part) for part in study.parts],
    }


def _workload(part: Part) -> dict[str, Any]:
    decision = part.decision
    choices = decision.model.space.choices
    return {
        "name": part.name,
        "verdict": _section(screen_of(part).section()),
        "unsettled": _section(unsettled(part)),
        "details": [_section(section) for section in part_sections(part)],
        "interval": f"{100 * LEVEL:.0f} % interval",
        "count": len(decision.feasible),
        "fields": [
            {"name": name, "label": heading(name).replace("_", " "), "choices": list(values)}
            for name, values in choices.items()
        ],
        "metrics": [_metric(decision, name) for name in metrics_of(decision)],
        "parts": _stems(decision, PART),
        "loads": _stems(decision, LOAD),
        "columns": _columns(decision),
        "rows": {
            "chosen": decision.chosen,
            "knee": decision.model.knee,
            "simulated": decision.simulated.tolist(),
        },
        "simulation": _simulation(part),
        "traffic": traffic(decision.model.space.base.workload),
        "system": system(decision.model.space.base),
    }


def _section(section: Section) -> dict[str, Any]:
    rows = [[number(value) for value in row] for row in section.rows]
    return {
        "title": section.title,
        "lines": list(section.lines),
        "headings": list(section.headings),
        "rows": rows,
    }


def metrics_of(decision: Decision) -> list[str]:
    """Return the metrics of the table, the objectives first."""
    names = [name for name in decision.model.table if name in METRICS]
    return list(dict.fromkeys((*decision.model.objectives, *names)))


def _metric(decision: Decision, name: str) -> dict[str, Any]:
    model = decision.model
    return {
        "name": name,
        "label": label(name),
        "unit": METRICS[name].unit,
        "meaning": METRICS[name].meaning,
        "goal": "least" if name in model.minimize else "most" if name in model.maximize else "",
        "better": METRICS[name].better,
        "corrected": name in decision.corrected,
        "error_unit": "%" if is_relative(name) else "percentage points",
    }


def _stems(decision: Decision, prefix: str) -> list[str]:
    return [name.removeprefix(prefix) for name in decision.model.table if name.startswith(prefix)]


def _columns(decision: Decision) -> dict[str, Any]:
    table, model = decision.table, decision.model.table
    rows = np.arange(len(decision.feasible))
    flags: dict[str, Any] = {
        **{name: table[name] for name in ("stable", "simulated", "validated") if name in table},
        "feasible": decision.feasible,
        "front": np.isin(rows, decision.front),
        "open": np.isin(rows, decision.open),
    }
    found = {name: packed(np.asarray(values, dtype=bool)) for name, values in flags.items()}
    found["design"] = packed(table["design"], words=table["design"].tolist())
    for name, values in decision.model.space.choices.items():
        found[name] = packed(table[name], words=list(values))
    for name in metrics_of(decision):
        found[name] = packed(table[name])
        if name in decision.corrected:
            found |= {f"{name}_{end}": packed(table[f"{name}_{end}"]) for end in ("low", "high")}
            found[f"model: {name}"] = packed(model[name])
    found["bottleneck"] = packed(model["bottleneck"])
    found["bottleneck_load"] = packed(model["bottleneck_load"])
    return found | {name: packed(model[name]) for name in model if name.startswith((PART, LOAD))}


def _simulation(part: Part) -> dict[str, Any]:
    """Return what was simulated, in the order of the simulated rows.

    The shares of the latency, the loads, and the model's error by metric: in percent of the simulated value,
    or in percentage points, with what it is against either end of the simulation's interval.
    """
    decision = part.decision
    results = [decision.results[row] for row in decision.simulated.tolist()]
    if not results:
        return {}
    found = {}
    for name in _stems(decision, PART):
        found[PART + name] = _best([one.latency_parts[name] for one in results])
    for name in _stems(decision, LOAD):  # none of a group that a design has no member of
        found[LOAD + name] = _best([one.utilization.get(name, 0.0) for one in results])
    for name in set(results[0].metrics).intersection(metrics_of(decision)):
        model = decision.model.table[name][decision.simulated]
        for end in ("low", "best", "high"):
            simulated = np.array([getattr(one.metrics[name], end) for one in results])
            ending = "" if end == "best" else f"_{end}"
            found[ERROR + name + ending] = 100 * model_error(name, model, simulated)
    return {name: packed(values) for name, values in sorted(found.items())}


def _best(values: list[Any]) -> FloatArray:
    return np.array([float(getattr(value, "best", value)) for value in values])


def unsettled(part: Part) -> Section:
    """Return what the study leaves open, in sentences."""
    decision, check = part.decision, part.check
    table = decision.table
    lines = []
    if not len(decision.simulated):
        lines.append(
            "No design was simulated: every number is the model's, with the error it states of itself."
        )
    if decision.interrupted:
        lines.append("The simulations were interrupted.")
    if not len(decision.front):
        lines.append("No design is feasible: there is no front.")
    elif decision.settled:
        lines.append(
            "The front is settled: no design that was not simulated could enter it within its interval."
        )
    else:
        lines.append(
            f"The front is not settled: {len(decision.open)} of "
            f"{int((~table['simulated']).sum())} designs that were not simulated could be on it within their "
            f"intervals, beside {len(decision.simulated)} simulated ones."
        )
    beyond = int((~np.asarray(table["validated"], dtype=bool)[decision.front]).sum())
    if beyond:
        lines.append(
            f"{beyond} of {len(decision.front)} designs of the front lie outside the range in which the "
            "model's error was measured."
        )
    if check is not None and check.disputed:
        designs = ", ".join(map(str, check.disputed))
        lines.append(f"Stable by one, saturated by the other of model and simulation: {designs}.")
    return Section(title="What was not settled", lines=lines)
