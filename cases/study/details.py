"""The findings of a study below its screen, in sentences and small tables: front, trust, doubts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from cases.study.goals import vectorized_fields
from cases.study.study import Part, how_simulated
from cases.tables import BIAS, ERROR, heading, many, number, sentence, text_table
from optimize.decisions.decision import LEVEL, Decision
from optimize.search.feasibility import objective_values
from optimize.search.pareto import IntArray, epsilon_thin
from optimize.spaces.evaluation import LOAD, RESOURCE, significant
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.traffic.arrivals import Recorded, Workload
from qmodels.systems.traffic.description import PART

WIDTH = 110  # columns of a terminal that sentences take
SURE = 40
LESS = "80 to 90 %"
"""Simulated designs from which intervals were found to cover, and what they cover with 5 to 20 of them
(of the 2,700 designs of the default study, all simulated under four workloads)."""

POINTS = 12  # rows of the table of the front
DISTINCT = 3
"""Significant digits in which points of the front are told apart: simulations do not resolve more."""

LEGEND = "±: mean size (signed mean) of the error against simulation at such loads"
"""What stands beside an analytic value in a table."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, sentences and a table."""

    title: str
    lines: Sequence[str] = ()  # above the table
    headings: Sequence[str] = ()  # with units; empty without a table
    rows: Sequence[Sequence[Any]] = ()

    def text(self) -> str:
        """Return the section for a terminal."""
        lines = [one for line in self.lines for one in sentence(line, WIDTH, "  ", "    ")]
        table = [text_table(self.headings, self.rows)] if self.rows else []
        return "\n".join([self.title, *lines, *table])


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
        said = ["recommended" * int(row == decision.chosen), "simulated" * int(table["simulated"][row])]
        rows.append([*line, ", ".join(filter(None, said))])
    headings = ["design", *map(heading, (*fields, *metrics)), *(["bottleneck"] if RESOURCE in table else [])]
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


def trust(decision: Decision) -> Section:
    """Return the trust in the numbers: the designs simulated, and the model's errors there."""
    model, rows = decision.model, decision.simulated
    solved, feasible = model.solved, model.feasible_designs
    if model.complete:
        feasible = int(decision.feasible.sum())
    lines = [f"{solved} designs solved, {solved - feasible} not feasible; {len(rows)} simulated"]
    lines[0] += f" in {decision.seconds:.0f} s" + (" (interrupted)" if decision.interrupted else "")
    if not model.complete:
        lines.append(
            f"of so many designs {len(decision.feasible)} of the model's front were looked at: one beside"
            " it that a simulation would put on it is missed"
        )
    lines += model.hole_lines
    doubts = front_doubts(decision)
    lines += [f"the model doubts its numbers: {'; '.join(doubts)}"] if doubts else []
    if not len(rows):
        stated = ": ± is the error that the model states of itself" if decision.corrected else ""
        return Section(title="How far to trust it", lines=[*lines, f"no design was simulated{stated}"])
    lines += filter(None, (_off(decision, name) for name in (*model.objectives, *model.subject_to)))
    if len(rows) < SURE:
        lines.append(
            f"intervals from fewer than {SURE} simulated designs cover less than they say: {LESS} where "
            f"{LEVEL:.0%} is meant"
        )
    lines.append(f"a simulation: {how_simulated(decision)}")
    turned = decision.feasible[rows] != model.feasible[rows]
    if turned.any():
        named = ", ".join(map(str, decision.table["design"][rows[turned]][:POINTS]))
        lines.append(f"feasible by only one of model and simulation: {named}")
    return Section(title="How far to trust it", lines=lines)


def _off(decision: Decision, metric: str) -> str:
    """Return the errors of the model alone in the simulated designs; nothing where it is exact."""
    if metric not in decision.corrected:
        return ""
    rows, relative = decision.simulated, is_relative(metric)
    ours, true = (table[metric][rows].astype(float) for table in (decision.model.table, decision.table))
    known = np.isfinite(ours) & np.isfinite(true) & ((true != 0) | (not relative))
    if not known.any():
        return ""
    off = 100 * (ours[known] - true[known]) / (true[known] if relative else 1.0)
    return (
        f"{metric.replace('_', ' ')}: the model alone is off by {np.abs(off).mean():.1f} "
        f"{'%' if relative else 'points'} on average ({off.mean():+.1f} signed, {np.abs(off).max():.1f} at "
        f"most) in {many(known.sum(), 'simulated design')}"
    )


def doubt_lines(doubts: Mapping[str, int], count: int, what: str) -> list[str]:
    """Return a line for each doubt, with how many of so many rows of a table it is about.

    >>> doubt_lines({"load above 80%": 1, "short runs": 3}, 3, "systems")
    ['load above 80% (1 of 3 systems)', 'short runs']
    """
    said = {words: k for words, k in doubts.items() if k}
    return [f"{words} ({k} of {count} {what})" if k < count else words for words, k in said.items()]


def sweep_doubts(answer: Any) -> Section | None:
    """Return the doubts of a sweep; None without any."""
    lines = doubt_lines(_counts(answer), np.size(answer.stable), "systems")
    return Section(title="Doubts of the model", lines=lines) if lines else None


@lru_cache(maxsize=16)
def front_doubts(decision: Decision) -> tuple[str, ...]:
    """Return the doubts of the model about the front of a decision; of any other kind, about its choice.

    Directions along fields that do not vary there, or of metrics that are not asked for, are left out.
    """
    from qmodels import solve

    space, rows = decision.model.space, decision.front
    if isinstance(space.base, PacketProcessor):
        designs = np.sort(decision.table["design"][rows])
        arrays = vectorized_fields(space)
        specs = [space.batch(group, arrays) for group in space.groups(designs, arrays)]
    else:
        rows = rows[rows == decision.chosen]
        specs = [decision.model.spec(int(row)) for row in rows]
    counts: Counter[str] = Counter()
    for spec in specs:
        counts.update(_counts(solve(spec)))
    asked = {_ranked(words): count for words, count in counts.items() if _concerns(words, decision)}
    return tuple(doubt_lines(asked, len(rows), "designs of the front"))


def _ranked(doubt: str) -> str:
    """Return a doubt; of a wrong direction what it means for a choice.

    >>> _ranked("latency along dram.channels: the model orders 3 of 9 neighbours as simulations do")
    'the model ranks channels opposite to the simulation in latency (3 of 9 neighbours alike): simulate both'
    """
    found = re.fullmatch(r"(\w+) along (\S+): the model orders (\d+) of (\d+) neighbours .*", doubt)
    if found is None:
        return doubt
    metric, field = found[1].replace("_", " "), found[2].rpartition(".")[2].replace("_", " ")
    how = "opposite to" if 2 * int(found[3]) < int(found[4]) else "often unlike"
    alike = f"({found[3]} of {found[4]} neighbours alike)"
    return f"the model ranks {field} {how} the simulation in {metric} {alike}: simulate both"


def _concerns(words: str, decision: Decision) -> bool:
    """Return whether a doubt concerns what is asked: a direction if its metric is and its field varies."""
    model = decision.model
    metric, along, field = words.partition(" along ")
    varied = {name.rpartition(".")[2] for name, choices in model.space.choices.items() if len(choices) > 1}
    asked = {*model.objectives, *model.subject_to}
    return not along or (metric in asked and field.partition(":")[0].rpartition(".")[2] in varied)


def _counts(answer: Any) -> dict[str, int]:
    """Return the systems of a sweep that each doubt is about."""
    shape = np.shape(answer.bottleneck)
    return {words: int(np.broadcast_to(mask, shape).sum()) for words, mask in answer.against.items()}


def cell(table: Mapping[str, Any], metric: str, row: int, *, signed: bool = True) -> Any:
    """Return a metric of a table of designs with its stated error; alone if it has none, or is exact.

    >>> table = {"packet_latency": [313.3], "error: packet_latency": [3.93], "bias: packet_latency": [-2.5]}
    >>> cell(table, "packet_latency", 0), cell(table, "packet_latency", 0, signed=False)
    ('313.3 ± 3.9 % (-2.5)', '313.3 ± 3.9 %')
    >>> cell({"row_hit_ratio": [0.51], "error: row_hit_ratio": [1.8]}, "row_hit_ratio", 0)
    '0.51 ± 0.018'
    """
    value = table[metric][row]
    error, bias = (table[one + metric][row] if one + metric in table else np.nan for one in (ERROR, BIAS))
    if not error or not np.isfinite(value) or not np.isfinite(error):
        return value
    told = signed and not np.isnan(bias)
    if is_relative(metric):
        size, mean = f"{error:.1f} %", f" ({bias:+.1f})" if told else ""
    else:
        size, mean = f"{error / 100:.2g}", f" ({bias / 100:+.2g})" if told else ""
    return f"{number(float(value))} ± {size}{mean}"


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
