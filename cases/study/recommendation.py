"""Which design of a study is starred: one that its own simulation, or its trace, does not contradict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cases.study.analysis import Analysis
from cases.study.check import Check, half_widths, model_error
from cases.study.stream import peak_gbps
from cases.tables import number
from optimize.search.pareto import IntArray, knee_index, nondominated
from qmodels.packet_processor.error_map import ERRORS
from qmodels.systems.spec.metrics import is_relative

SATURATED = "saturated in the simulation"

FAR = "off by more than the largest error measured at such loads (in brackets)"


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """The starred design of one workload, and what speaks against the others.

    Parameters
    ----------
    row : int or None
        Row of the starred design in the analytic table; None if no design holds.
    basis : str
        Why that one, in words.
    against_knee : str
        What contradicts the knee of the analytic front; empty if nothing does.
    contradicted : dict of int to str
        For each simulated design that contradicts the model, by number: how.
    simulated : int
        How many designs were simulated.
    by_simulation : bool
        Whether the starred design was chosen by its simulated values.
    """

    row: int | None
    basis: str
    against_knee: str
    contradicted: dict[int, str]
    simulated: int
    by_simulation: bool = False


def recommend(analysis: Analysis, check: Check | None) -> Recommendation:
    """Choose the design to star.

    Notes
    -----
    The knee of the analytic front, unless it is contradicted. Its simulation contradicts it if it
    saturates, violates a constraint of the study, or if the model's value of an objective is
    farther from the simulated one (beyond half the width of its interval) than any design of the
    error map was at such loads. Without its simulation, a trace contradicts it whose busiest
    twentieth offers more than the design sustains.

    A contradicted knee is replaced by the knee, in simulated values, of the simulated designs that
    hold; if none does, of those that are at least stable in their simulation. Without simulation,
    by the knee of those points of the front that sustain the busiest twentieth.
    """
    exploration = analysis.exploration
    knee, table = exploration.knee, exploration.table
    checked = np.zeros(0, dtype=np.int64) if check is None else check.rows
    words = {} if check is None else contradictions(analysis, check)
    facts: dict[str, Any] = {
        "contradicted": {int(table["design"][row]): said for row, said in words.items()},
        "simulated": len(checked),
    }
    if knee is None:
        return Recommendation(row=None, basis="no design is feasible", against_knee="", **facts)
    if check is None or knee not in checked:
        peak = float(peak_gbps(exploration.space.base.workload))
        if table["saturation_data_rate"][knee] >= peak:
            return Recommendation(row=knee, basis=f"{KNEE}, not simulated", against_knee="", **facts)
        against = (
            f"sustains {number(table['saturation_data_rate'][knee])} Gb/s, "
            f"the busiest twentieth of the trace offers {number(peak)} Gb/s"
        )
        rows = exploration.front[table["saturation_data_rate"][exploration.front] >= peak]
        best = knee_index(exploration.values[rows], maximize=exploration.maximized)
        basis = "knee of the front's points that sustain the busiest twentieth of the trace, not simulated"
        row = None if best is None else int(rows[best])
        return Recommendation(row=row, basis=basis, against_knee=against, **facts)
    if knee not in words:
        basis = f"{KNEE}, which its simulation bears out"
        return Recommendation(row=knee, basis=basis, against_knee="", **facts)
    keeps_up = exploration.feasible[checked] & np.array([_keeps_up(check, k) for k in range(len(checked))])
    holds = keeps_up & ~np.isin(checked, list(words))
    places = np.flatnonzero(holds if holds.any() else keeps_up)
    basis = (
        f"best by simulation of {len(places)} simulated designs that bear the model out"
        if holds.any()
        else f"best by simulation of {len(places)} simulated designs that keep up; "
        "none bears the model out, so its values say nothing here"
    )
    return Recommendation(
        row=_best(check, places), basis=basis, against_knee=words[knee], by_simulation=True, **facts
    )


KNEE = "knee of the analytic front"


def _best(check: Check, places: IntArray) -> int | None:
    """Return the row of the knee of simulated designs, by their simulated objectives."""
    simulated = check.simulated
    values = simulated.values[places]
    front = np.flatnonzero(nondominated(values, maximize=simulated.maximized))
    best = knee_index(values[front], maximize=simulated.maximized)
    return None if best is None else int(check.rows[places[front[best]]])


def contradictions(analysis: Analysis, check: Check) -> dict[int, str]:
    """Return how the simulation contradicts the model, for the rows of the designs where it does."""
    table, simulated = analysis.exploration.table, check.simulated.table
    found: dict[int, str] = {}
    for k, row in enumerate(check.rows.tolist()):
        said = []
        if not simulated["stable"][k]:
            said = [SATURATED] if table["stable"][row] else []
        elif not table["stable"][row]:
            said = ["saturated by the model, not in the simulation"]
        else:
            said = [*_violated(check, k), *_too_far(analysis, check, k, row)]
        if said:
            found[row] = "; ".join(said)
    return found


def _keeps_up(check: Check, k: int) -> bool:
    return bool(check.simulated.table["stable"][k]) and not _violated(check, k)


def _violated(check: Check, k: int) -> list[str]:
    """Return the constraints of the study that a simulated design violates for sure."""
    table, said = check.simulated.table, []
    for metric, (least, most) in check.subject_to.items():
        low, best, high = (float(table[name][k]) for name in (f"{metric}_low", metric, f"{metric}_high"))
        if (most is not None and low > most) or (least is not None and high < least):
            said.append(f"{metric.replace('_', ' ')} {number(best)} in the simulation")
    return said


def _too_far(analysis: Analysis, check: Check, k: int, row: int) -> list[str]:
    """Return the objectives in which the model is farther off than it ever was at such loads."""
    table, simulated = analysis.exploration.table, check.simulated.table
    load, said = float(table["bottleneck_load"][row]), []
    for metric in analysis.exploration.objectives:
        most = largest_error(metric, load)
        if most is None:
            continue
        model, best = float(table[metric][row]), float(simulated[metric][k])
        error = 100 * abs(float(model_error(metric, model, best)))
        spread = 100 * float(half_widths(simulated, metric)[k]) / (abs(best) if is_relative(metric) else 1)
        if error - spread > most:
            unit = "%" if is_relative(metric) else "points"
            said.append(f"{metric.replace('_', ' ')} {error:.1f} {unit} ({most:.1f})")
    return [f"{FAR}: {', '.join(said)}"] if said else []


def largest_error(metric: str, load: float) -> float | None:
    """Return the largest error of a metric in the error map at such loads; None if it has none.

    Percent of the simulated value, or percentage points of a probability.

    Examples
    --------
    >>> largest_error("packet_latency", 0.4) > largest_error("packet_latency", 0.1) > 1
    True
    >>> largest_error("cost", 0.4) is None
    True
    """
    # Several arrivals were measured at one load: the widest of them counts.
    errors = (ERRORS.at(region=region, load=load).get(metric) for region in ERRORS.regions)
    return max((error.largest for error in errors if error and error.known), default=None)
