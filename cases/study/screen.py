"""The first screen of an exploration of any kind: at most 25 lines of 80 columns, and the same as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cases.study.details import front_doubts, trace_warnings
from cases.study.goals import SUBJECT_TO, choice_word, words
from cases.study.study import Part, Study, several
from cases.tables import many, sentence
from optimize.decisions.decision import (
    LEVEL,
    TIED,
    Alternative,
    Decision,
    RobustChoice,
    alternative,
    bottleneck,
    moves,
    nearest,
)
from optimize.search.exploration import said_distinct
from qmodels.systems.memory.dram_power import channel_price
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.conditions import plain, quantity
from qmodels.systems.traffic.arrivals import Recorded

WIDTH, LINES = 80, 25  # columns and lines of a terminal that the screen takes at most
FEW, FEW_LINES = 12, 15
"""Designs of a question rather than an exploration, and the lines of its answer: without the front."""

VALUES, CHANGES, COLUMNS = 5, 4, 3  # most metrics of the best design, neighbours of it, and columns of these
TOGETHER, BESIDE, NAME = 3, 2, 17
"""Most workloads side by side, those of which there is room for intervals, and letters of their names."""

MEAN = "packet_latency"

TECHNOLOGY = "area and energy of the DRAM interface do not follow the technology"


@dataclass(frozen=True, kw_only=True, eq=False)
class Screen:
    """The answer of one exploration of a system of any kind."""

    part: Part
    study: str = "study"  # directory of the study, for the command that shows a design

    @property
    def decision(self) -> Decision:
        """The decision on its designs."""
        return self.part.decision

    def data(self) -> dict[str, Any]:
        """Return every number of the screen, in the units of the metrics."""
        decision, row = self.decision, self.decision.chosen
        found: dict[str, Any] = {
            "name": self.part.name,
            "designs": decision.model.solved,
            "distinct": decision.model.distinct_designs,
            "simulated": len(decision.simulated),
            "seconds": decision.seconds,
            "preliminary": self._preliminary(),
            "warnings": [*self._technology(), *front_doubts(decision), *self._misfits()],
            "best": None,
        }
        if row is None:
            return found | {"excluded": decision.model.excluded, "nearest": self._nearest()}
        resource, load = bottleneck(decision, row)
        return found | {
            "best": {
                "design": int(decision.table["design"][row]),
                "source": self._source(row),
                "fields": self._fields(row),
                "values": {name: decision.interval(name, row) for name in self.metrics},
                "limits": {name: decision.subject_to.get(name) for name in self.metrics},
            },
            "bottleneck": {"resource": resource, "load": load},
            "growth": None if self.part.growth is None else self.part.growth.change,
            "changes": self._changes(),
            "front": {
                "designs": len(decision.front),
                "distinct": decision.distinct_front,
                **{name: self._span(name) for name in decision.model.objectives},
            },
            "open": len(decision.open),
            "rivals": len(decision.rivals),
        }

    def text(self) -> str:
        """Return the screen for a terminal."""
        found = self.data()
        above = _head([self.part.name], [found], found["preliminary"])
        best = found["best"]
        shown = (best or found["nearest"])["design"]
        below = _warned(found["warnings"]) + _next(self.study, shown)
        room = (FEW_LINES if _few(found) else LINES) - len(above) - len(below)
        if best is None:
            said = [line for head, what in self.nothing(found) for line in _said(f"{head:7}", what)][:room]
        else:
            said = self._answer(found, room)
        return "\n".join([*above, *said, *below])

    @property
    def metrics(self) -> list[str]:
        """The metrics of the best design: objectives, limits that were asked for, the latency of packets."""
        model, limits = self.decision.model, self.decision.subject_to
        asked = (name for name, ends in limits.items() if SUBJECT_TO.get(name) != ends)
        names = dict.fromkeys((*model.objectives, *asked))
        names |= dict.fromkeys(name for name in (MEAN,) if name in self.decision.table)
        return list(names)[:VALUES]

    def _source(self, row: int) -> str:
        return "simulated" if row in self.decision.results else "model"

    def _fields(self, row: int) -> dict[str, Any]:
        space = self.decision.model.space
        point = space.point(int(self.decision.table["design"][row]))
        return {name: choice_word(value) for name, value in point.items() if len(space.choices[name]) > 1}

    def _span(self, metric: str) -> tuple[float, float]:
        values = self.decision.table[metric][self.decision.front].astype(float)
        return float(values.min()), float(values.max())

    def _changes(self) -> list[dict[str, Any]]:
        """Return the neighbours of the best design that keep every limit, those simulated first."""
        decision = self.decision
        if not decision.model.complete:
            return []
        near = [one for one in moves(decision) if not one.to.fails]
        sized = {id(one): max(map(abs, self._shares(one.to).values()), default=0.0) for one in near}
        near.sort(key=lambda one: (one.to.row not in decision.results, -sized[id(one)]))
        fields = ("field", "before", "after")
        return [
            {name: getattr(one, name) for name in fields}
            | {"shares": self._shares(one.to), "source": self._source(one.to.row)}
            for one in near[:CHANGES]
        ]

    def _shares(self, to: Alternative) -> dict[str, float]:
        names = [name for name in self.decision.model.objectives if name in to.changes][:COLUMNS]
        return {name: to.gain(name) for name in names}

    def _preliminary(self) -> list[tuple[str, str]]:
        """Return why the answer may not stand, and what settles it; the weightiest first."""
        decision, found = self.decision, []
        arrivals = getattr(getattr(decision.model.space.base, "workload", None), "arrivals", None)
        if isinstance(arrivals, Recorded):
            seen = arrivals.trace.description
            if seen.steadiness.steady is False:
                found.append(("the rate of the trace changes", "a study of each part of it"))
            elif seen.steadiness.steady is None or not np.isfinite(seen.slowest_ns):
                found.append(("bursts may outlast the trace", "a longer trace"))
        if decision.interrupted:
            found.append(("the simulations were interrupted", "the same command again, which goes on"))
        if not len(decision.simulated):
            found.append(("no design was simulated", "--budget 60s"))
        elif len(decision.rivals):
            rivals, lead = many(len(decision.rivals), "design"), ""
            if decision.chosen is not None and len(decision.model.objectives) > 1:
                lead = f" by up to {100 * decision.rivals_lead:.2g} % of the front's ranges"
            found.append((f"{rivals} could still be better{lead}", "a longer --budget"))
        if (
            decision.chosen is not None
            and decision.chosen not in decision.results
            and len(decision.simulated)
        ):
            found.append(("the best design was not simulated", "a longer --budget"))
        return found

    def _technology(self) -> list[str]:
        """Return the metrics that ignore the memory's technology, where no preset has its devices."""
        model = self.decision.model
        base = model.space.base
        asked = isinstance(base, PacketProcessor) and {"cost", "energy_per_packet"} & {*model.objectives}
        unknown = asked and isinstance(base.dram, DramSystem) and channel_price(base.dram) is None
        return [TECHNOLOGY] if unknown else []

    def _misfits(self) -> list[str]:
        """Return the features of a trace that do not fit the system."""
        row, most = self.decision.chosen, self.decision.table.get("saturation_data_rate")
        capacity = None if row is None or most is None else most[row]
        return trace_warnings(self.decision.model.space.base, capacity)

    def _nearest(self) -> dict[str, Any]:
        """Return the design that comes nearest to keeping every limit, and what it misses."""
        near = alternative(self.decision, nearest(self.decision))
        return {
            "design": int(self.decision.table["design"][near.row]),
            "source": self._source(near.row),
            "fields": self._fields(near.row),
            "missed": {f"{one.metric} {one.sign} {one.bound:.6g}": one.best for one in near.missed},
            "stable": near.stable,
            "bottleneck": {"resource": near.resource, "load": near.load},
            "words": [
                *(
                    f"{words(one.metric)} {self.quantity(one.metric, one.best)} instead of {one.sign} "
                    f"{self.quantity(one.metric, one.bound)}"
                    for one in near.missed
                ),
                *([] if near.stable else [f"does not keep up: {near.resource} {_load(near.load)}"]),
            ],  # fmt: skip
        }

    def nothing(self, found: dict[str, Any]) -> list[tuple[str, str]]:
        """Return which design comes nearest where none is feasible, and what excludes how many."""
        near = found["nearest"]
        fields = ", ".join(f"{words(name)} {_said_value(value)}" for name, value in near["fields"].items())
        counts = "; ".join(f"{one.constraint} excludes {one.designs}" for one in self.decision.model.excluded)
        return [
            ("Best", f"none: {self.decision.reason}"),
            ("Near", f"design {near['design']} ({fields}), {near['source']}"),
            *[("Misses", one) for one in near["words"]],
            *([("Limits", counts)] if counts else []),
        ]

    def _answer(self, found: dict[str, Any], room: int) -> list[str]:
        """Return the lines of the best design, and of as many neighbours as there is room for."""
        best = found["best"]
        fields = "   ".join(f"{words(name)} {_said_value(value)}" for name, value in best["fields"].items())
        few, load = _few(found), self.load_words(found)
        lines = _said("Best   ", f"{fields}   design {best['design']}" + (f"   {load}" if few else ""))
        first, *rows = self.value_rows(found)
        lines += _table([first, *(["  " + what, *cells] for what, *cells in rows)])
        lines += _said("  ", load) if load and not few else []
        last = _said("Sure?  ", self.sure(found))
        last = last if few else ["", *last, *_said("Front  ", self.front(found))]
        changes = _changes(found["changes"], room - len(lines) - len(last) - (not few))
        return [*lines, *([""] if changes and not few else []), *changes, *last]

    def value_rows(self, found: dict[str, Any]) -> list[list[str]]:
        """Return the metrics of the best design, with a row of headings."""
        best = found["best"]
        rows = [["", best["source"], f"{100 * LEVEL:.0f} % interval", "limit"]]
        for name, (low, value, high) in best["values"].items():
            ends = "exact" if low == high else self._span_text(name, low, high)
            rows.append([words(name), self.quantity(name, value), ends, self._limit(name)])
        return rows

    def _limit(self, metric: str) -> str:
        ends = zip((">=", "<="), self.decision.subject_to.get(metric, (None, None)), strict=True)
        return ", ".join(f"{sign} {self.quantity(metric, end)}" for sign, end in ends if end is not None)

    def load_words(self, found: dict[str, Any]) -> str:
        """Return the bottleneck, and the growth of traffic that the best design takes."""
        resource, load = found["bottleneck"].values()
        said = [f"bottleneck {resource} {_load(load)}"] if resource else []
        if found["growth"] is not None:
            by = "simulated" if getattr(self.part.growth, "simulated", None) is not None else "by the model"
            said.append(f"traffic may grow by {_percent(found['growth']).lstrip('+')} ({by})")
        return "; ".join(said)

    def sure(self, found: dict[str, Any]) -> str:
        """Return the certainty that no other design is better."""
        sure = "Simulated" if found["best"]["source"] == "simulated" else "The model's word, not simulated"
        if found["rivals"]:
            return f"{sure}; {many(found['rivals'], 'other design')} could be better within the intervals."
        rest = "no other design is better within the intervals"
        near = f" by more than {100 * TIED:.0f} % of the front's ranges"
        return f"{sure}; {rest}{near if len(self.decision.model.objectives) > 1 else ''}."

    def front(self, found: dict[str, Any]) -> str:
        """Return the number of designs on the front, and its ends."""
        goals = self.decision.model.objectives
        spans = [f"{words(name)} {self._span_text(name, *found['front'][name])}" for name in goals]
        more = f" ({found['open']} more could be on it)" if found["open"] else ""
        return f"{_counted(found['front'])}{more}: {', '.join(spans)}"

    def _measured(self, metric: str, design: int, beside: int) -> str:
        """Return a metric of a design, with its interval where there is room."""
        low, value, high = self.decision.interval(metric, self.part.row(design))
        if low == high and beside <= BESIDE:
            return f"{self.quantity(metric, value)} (exact)"
        if not low < high < np.inf or beside > BESIDE:
            return self.quantity(metric, value)
        if not value:
            return self._span_text(metric, value, high)
        return f"{self.quantity(metric, value)} ± {50 * (high - low) / abs(value):.2g} %"

    def _span_text(self, metric: str, low: float, high: float) -> str:
        """Return two values, their unit once if it is the same."""
        first, last = (self.quantity(metric, end) for end in (low, high))
        same = first.partition(" ")[2] == last.partition(" ")[2]
        return first if first == last else f"{first.partition(' ')[0] if same else first} to {last}"

    def quantity(self, metric: str, value: float) -> str:
        """Return a value of a metric with its unit."""
        return quantity(self.decision.model.space.base, metric, value)


def change_rows(changes: list[dict[str, Any]]) -> list[list[str]]:
    """Return the effects of neighbouring choices, with a row of headings."""
    rows = [["Change", *map(words, changes[0]["shares"]), ""]]
    for one in changes:
        what = f"{words(one['field'])} {_said_value(one['before'])} -> {_said_value(one['after'])}"
        rows.append([what, *(_percent(share) for share in one["shares"].values()), one["source"]])
    return rows


def _changes(changes: list[dict[str, Any]], room: int) -> list[str]:
    """Return the table of what neighbouring choices change, in so many lines at most."""
    if not changes or room < 2:
        return []
    first, *rest = change_rows(changes[: room - 1])
    rows = [first, *(["  " + what, *cells] for what, *cells in rest)]
    while sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True)) > WIDTH + 2:
        rows = [[*row[:-2], row[-1]] for row in rows]
    return _table(rows)


def _few(found: dict[str, Any]) -> bool:
    return bool(found["designs"] <= FEW)


def _counted(found: dict[str, Any]) -> str:
    """Return a number of designs, and how many of them are distinct where some are not."""
    tied = found["distinct"] is not None and found["distinct"] < found["designs"]
    return many(found["designs"], "design") + (said_distinct(found["distinct"]) if tied else "")


def _head(names: list[str], known: list[dict[str, Any]], reasons: list[tuple[str, str]]) -> list[str]:
    """Return the line on the exploration, and the weightiest reason why the answer may not stand."""
    done = f"{_counted(known[0])}, {sum(one['simulated'] for one in known)} simulated, "
    done += f"{sum(one['seconds'] for one in known):.0f} s"
    head = ", ".join(names)[: WIDTH - len(done) - 2]
    said = [f"Preliminary: {why}. Settled by {settles}." for why, settles in reasons[:1]]
    blank = [] if _few(known[0]) else [""]
    return [head + done.rjust(WIDTH - len(head)), *blank, *(line for one in said for line in _said("", one))]


def _warned(warnings: list[str]) -> list[str]:
    """Return the first of some warnings, and how many more there are."""
    more = len(warnings) - 1
    rest = f" ({many(more, 'more warning')} with --full)" if more > 0 else ""
    return [line for one in warnings[:1] for line in _said("", f"warning: {one}{rest}")]


def _next(study: str, design: int | None) -> list[str]:
    show = "" if design is None else f"qmodels show {study} --design {design}"
    page = f"{study}/report.html" if len(show) + len(study) < WIDTH // 2 else "report.html there"
    return _said("Next   ", "   ".join(filter(None, [show, page, "--full"])))


def _said_value(value: Any) -> str:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return plain(float(value)) if number else str(choice_word(value))[:16]


def _load(load: float) -> str:
    return f"{100 * load:.0f} %" if np.isfinite(load) else ""


def _percent(share: float) -> str:
    """Return a signed share as a reader takes it in.

    >>> [_percent(share) for share in (-0.000866, 0.016, -0.18, 1.7, 34.0)]
    ['0 %', '+2 %', '-18 %', '+170 %', 'x 35']
    """
    if not np.isfinite(share):
        return "inf"
    if share > 10:
        return f"x {1 + share:.0f}"
    return f"{100 * share:+.0f} %" if abs(share) >= 0.005 else "0 %"


def _table(rows: list[list[str]]) -> list[str]:
    """Return rows of cells in columns as wide as they need, the first at least a third of the screen."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    widths[0] = max(widths[0], min(24, widths[0] + WIDTH + 2 - sum(widths)))
    lines = ("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [line.rstrip() for line in lines]


def _said(first: str, text: str) -> list[str]:
    return sentence(text, WIDTH, first)


def study_text(study: Study, where: str) -> str:
    """Return the screen of a study: of several workloads, of the one design for all of them."""
    found = several(study)
    screens = [Screen(part=part, study=where) for part in study.parts]
    if found is None:
        return "\n\n".join(one.text() for one in screens)
    return _side_by_side(found, screens, where)


def _side_by_side(found: RobustChoice, screens: list[Screen], where: str) -> str:
    """Return the one design for all workloads under each of them."""
    known = [one.data() for one in screens]
    both = list(zip(screens, known, strict=True))
    reasons = [(f"{why} ({one.part.name})", by) for one, data in both for why, by in data["preliminary"]]
    best, rows = together(found, screens)
    lines = [*_head([one.part.name for one in screens], known, reasons), *_said("Best   ", best)]
    lines += _table([rows[0], *(["  " + what, *cells] for what, *cells in rows[1:])])
    if not _few(known[0]):
        lines.append("")
        for one, data in both[:BESIDE]:
            lines += _said("Front  ", f"{one.part.name}: {one.front(data)}") if data["best"] else []
    warnings = [f"{one.part.name}: {warning}" for one, data in both for warning in data["warnings"]]
    return "\n".join([*lines, *_warned(warnings), *_next(where, found.chosen)])


def together(found: RobustChoice, screens: list[Screen]) -> tuple[str, list[list[str]]]:
    """Return the one design for all workloads, and what it is under each, with a row of headings."""
    design, shown = found.chosen, screens[:TOGETHER]
    level = f"± half of {100 * LEVEL:.0f} %" if len(shown) <= BESIDE else ""
    rows = [[level, *(one.part.name[:NAME] for one in shown)]]
    best = f"none: no design is feasible under all {len(screens)} workloads"
    if design is not None:
        first = screens[0]
        fields = first._fields(first.part.row(design))
        said = [f"{words(name)} {_said_value(value)}" for name, value in fields.items()]
        best = "   ".join([*said, f"design {design}"])
        rows.append(["for all of them", *(one._source(one.part.row(design)) for one in shown)])
        for name in first.metrics:
            rows.append([words(name), *(one._measured(name, design, len(shown)) for one in shown)])
    chosen = [one.decision.chosen for one in shown]
    alone = ["none" if row is None else f"design {one.decision.table['design'][row]}" for one, row in
             zip(shown, chosen, strict=True)]  # fmt: skip
    return best, [*rows, ["best alone", *alone]]
