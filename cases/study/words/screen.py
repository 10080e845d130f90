"""The first screen of an exploration of any kind: at most 25 lines of 80 columns, and the same as data."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from cases.study.parts import Part, Study
from cases.study.words.advice import SHORT
from cases.study.words.answer import question_of
from cases.study.words.doubts import front_doubts
from cases.tables import many
from optimize.decisions.changes import Growth
from optimize.decisions.decision import LEVEL, Decision
from optimize.decisions.reasons import Alternative
from qmodels.systems.spec.conditions import plain, quantity
from qmodels.systems.traffic.arrivals import Recorded

WIDTH, LINES = 80, 25
"""Columns and lines of a terminal that the screen takes at most."""

VALUES, CHANGES, COLUMNS = 5, 4, 3
"""Most metrics of the best design, neighbours of it, and columns of these."""

WIDE, NARROW = (14, 24, 18), (16, 16, 16, 6)
"""Columns that the cells of the two tables take."""

SHORTEST = 1000
"""Packets of a trace from which its p99 rests on ten packets or more."""

UNSTEADY = 2.0
"""Rate of the busiest twentieth of a trace over its mean from which the mean alone says too little."""

MEAN = "packet_latency"


@dataclass(frozen=True, kw_only=True, eq=False)
class Screen:
    """The answer of one exploration.

    Parameters
    ----------
    decision : Decision
        What was decided, of a system of any kind.
    name : str
        The workload, or the system.
    growth : Growth, optional
        The traffic that simulations of the choice bear out.
    study : str
        Directory of the study, for the command that shows a design.
    page : bool
        Whether the study has a page.
    """

    decision: Decision
    name: str
    growth: Growth | None = None
    study: str = "study"
    page: bool = False

    def data(self) -> dict[str, Any]:
        """Return every number of the screen, in the units of the metrics."""
        decision, row = self.decision, self.decision.chosen
        found: dict[str, Any] = {
            "name": self.name,
            "designs": decision.model.solved,
            "simulated": len(decision.simulated),
            "seconds": decision.seconds,
            "preliminary": self._preliminary(),
            "warnings": list(front_doubts(decision)),
            "best": None,
        }
        if row is None:
            return found
        resource, load = question_of(decision).bottleneck(row)
        return found | {
            "best": {
                "design": int(decision.table["design"][row]),
                "source": self._source(row),
                "fields": self._fields(row),
                "values": {name: decision.interval(name, row) for name in self._metrics},
                "limits": {name: decision.subject_to.get(name) for name in self._metrics},
            },
            "bottleneck": {"resource": resource, "load": load},
            "growth": None if self.growth is None else self.growth.change,
            "changes": self._changes(),
            "front": {
                "designs": len(decision.front),
                **{name: self._span(name) for name in decision.model.objectives},
            },
            "open": int((decision.open != row).sum()),
        }

    def text(self) -> str:
        """Return the screen for a terminal."""
        found = self.data()
        done = f"{many(found['designs'], 'design')}, {found['simulated']} simulated, {found['seconds']:.0f} s"
        head = self.name[: WIDTH - len(done) - 2]
        above = [head + done.rjust(WIDTH - len(head)), ""]
        for why, settles in found["preliminary"][:1]:
            above += _said("", f"Preliminary: {why}. Settled by {settles}.")
        below = [line for one in found["warnings"][:1] for line in _said("", f"warning: {one}")]
        more = len(found["warnings"]) - 1
        below += [f"{more} more in --full"] if more > 0 else []
        best = found["best"]
        show = "" if best is None else f"qmodels show {self.study} --design {best['design']}"
        page = f"{self.study}/report.html" if self.page else ""
        below += _said("Next   ", "   ".join(filter(None, [show, page, "--full"])))
        room = LINES - len(above) - len(below)
        lines = [*above, *(self._nothing() if best is None else self._answer(found, room)), *below]
        return "\n".join(line.rstrip() for line in lines)

    @property
    def _metrics(self) -> list[str]:
        """The metrics of the best design: objectives and limits, and the mean latency of packets."""
        model = self.decision.model
        names = dict.fromkeys((*model.objectives, *self.decision.subject_to))
        names |= dict.fromkeys(name for name in (MEAN,) if name in self.decision.table)
        return list(names)[:VALUES]

    def _source(self, row: int) -> str:
        return "simulated" if row in self.decision.results else "model"

    def _fields(self, row: int) -> dict[str, Any]:
        space = self.decision.model.space
        point = space.point(int(self.decision.table["design"][row]))
        return {name: value for name, value in point.items() if len(space.choices[name]) > 1}

    def _span(self, metric: str) -> tuple[float, float]:
        values = self.decision.table[metric][self.decision.front].astype(float)
        return float(values.min()), float(values.max())

    def _changes(self) -> list[dict[str, Any]]:
        """Return the neighbours of the best design that keep every limit, those simulated first."""
        decision = self.decision
        if not decision.model.complete:
            return []
        moves = [one for one in question_of(decision).moves() if not one.to.fails]
        sized = {id(one): max(map(abs, self._shares(one.to).values()), default=0.0) for one in moves}
        moves.sort(key=lambda one: (one.to.row not in decision.results, -sized[id(one)]))
        return [
            {
                "field": one.field,
                "before": one.before,
                "after": one.after,
                "shares": self._shares(one.to),
                "source": self._source(one.to.row),
            }
            for one in moves[:CHANGES]
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
            if len(arrivals.trace) < SHORTEST:
                found.append(("the trace is too short for a p99", f"a trace of {SHORTEST} packets or more"))
            if seen.statistics.peak_to_mean > UNSTEADY:
                peak = plain(seen.statistics.peak_to_mean)
                found.append((f"the traffic is unsteady, peaks {peak} times its mean", "a longer trace"))
        if decision.interrupted:
            found.append(("the simulations were interrupted", "the same command again, which goes on"))
        if not len(decision.simulated):
            found.append(("no design was simulated", "--budget 60s"))
        elif len(decision.open):
            open_designs = many(len(decision.open), "design")
            found.append((f"{open_designs} could still enter the front", "a longer --budget"))
        if (
            decision.chosen is not None
            and decision.chosen not in decision.results
            and len(decision.simulated)
        ):
            found.append(("the best design was not simulated", "a longer --budget"))
        return found

    def _nothing(self) -> list[str]:
        """Return which design comes nearest where none is feasible."""
        question = question_of(self.decision)
        lines = _said("Best   ", f"none: {self.decision.reason}")
        near = question.alternative(question.nearly(1)[0])
        design = int(self.decision.table["design"][near.row])
        why = [f"{_words(one.metric)} {self._quantity(one.metric, one.best)}" for one in near.missed]
        why += [] if near.stable else [f"does not keep up; {near.resource} {_load(near.load)}"]
        fields = ", ".join(f"{_words(name)} {value}" for name, value in self._fields(near.row).items())
        return lines + _said("Near   ", f"design {design} ({fields}): {', '.join(why)}")

    def _answer(self, found: dict[str, Any], room: int) -> list[str]:
        """Return the lines of the best design, and of as many neighbours as there is room for."""
        best = found["best"]
        fields = "   ".join(f"{_words(name)} {value}" for name, value in best["fields"].items())
        lines = _said("Best   ", f"{fields}   design {best['design']}")
        lines.append(_row("", [best["source"], f"{100 * LEVEL:.0f} % interval", "limit"], 24, WIDE))
        for name, (low, value, high) in best["values"].items():
            ends = "" if low == high else f"{self._quantity(name, low)} to {self._quantity(name, high)}"
            least, most = best["limits"][name] or (None, None)
            limits = [f">= {self._quantity(name, least)}"] if least is not None else []
            limits += [f"<= {self._quantity(name, most)}"] if most is not None else []
            cells = [self._quantity(name, value), ends, ", ".join(limits)]
            lines.append(_row("  " + _words(name), cells, 24, WIDE))
        resource, load = found["bottleneck"].values()
        said = [f"bottleneck {resource} {_load(load)}"] if resource else []
        if found["growth"] is not None:
            by = "simulated" if self.growth and self.growth.simulated is not None else "model"
            said.append(f"traffic may grow by {_percent(found['growth'])} ({by})")
        lines += _said("  ", "; ".join(said)) if said else []
        sure = "Simulated" if best["source"] == "simulated" else "The model's word, not simulated"
        rest = "within the intervals no other design enters the front"
        if found["open"]:
            rest = f"{many(found['open'], 'other design')} could be as good within the intervals"
        spans = [
            f"{_words(name)} "
            + " to ".join(dict.fromkeys(self._quantity(name, end) for end in found["front"][name]))
            for name in self.decision.model.objectives
        ]
        front = f"{many(found['front']['designs'], 'design')}: {', '.join(spans)}"
        last = ["", *_said("Sure?  ", f"{sure}; {rest}."), *_said("Front  ", front)]
        return [*lines, *_changes(found["changes"], room - len(lines) - len(last)), *last]

    def _quantity(self, metric: str, value: float) -> str:
        return quantity(self.decision.model.space.base, metric, value)


def _changes(changes: list[dict[str, Any]], room: int) -> list[str]:
    """Return the table of what neighbouring choices change, in so many lines at most."""
    if not changes or room < 3:
        return []
    lines = ["", _row("Change", map(_words, changes[0]["shares"]), 26, NARROW)]
    for one in changes[: room - 2]:
        what = f"  {_words(one['field'])} {_said_value(one['before'])} -> {_said_value(one['after'])}"
        cells = [_percent(share) for share in one["shares"].values()]
        lines.append(_row(what, [*cells, "model" * (one["source"] == "model")], 26, NARROW))
    return lines


def _words(name: str) -> str:
    """Return a field or metric in words of at most 20 letters, without units."""
    short = {"cost": "area", MEAN: "latency", "packet_latency_p99": "latency p99"}
    short |= {"saturation_data_rate": "saturates", "link_width": "link B"}
    stem = name.rpartition(".")[2]
    return (short.get(stem) or (SHORT[stem] if stem in ("interleaving_step", "alloc_trial_count") else stem))[
        :20
    ].replace("_", " ")


def _said_value(value: Any) -> str:
    return plain(value) if isinstance(value, (int, float, np.number)) else str(value)[:8]


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


def _row(first: str, cells: Any, start: int, widths: tuple[int, ...]) -> str:
    line = first[: start - 1].ljust(start)
    line += "".join(cell[: width - 1].ljust(width) for cell, width in zip(cells, widths, strict=False))
    return line[:WIDTH].rstrip()


def _said(first: str, text: str) -> list[str]:
    """Return a sentence in at most two lines."""
    rest = " " * len(first)
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, max_lines=2, placeholder=" ...")


def screen_of(part: Part, study: str = "study") -> Screen:
    """Return the screen of one workload of a study."""
    return Screen(decision=part.decision, name=part.name, growth=part.growth, study=study, page=True)


def study_screens(study: Study, where: str) -> str:
    """Return the screens of all workloads, of several the one design for all of them first."""
    from cases.study.words.several import several

    together, screens = several(study), [screen_of(part, where).text() for part in study.parts]
    if together is None:
        return "\n\n".join(screens)
    chosen = together.choice.chosen
    if chosen is None:
        first = "No design is feasible under all workloads."
    else:
        seen = [name for name, designs in together.simulated.items() if chosen in designs]
        first = f"For all {len(study.parts)} workloads {together.described(chosen)}; "
        first += f"simulated under {len(seen)} of {len(study.parts)}."
    return "\n\n".join(["\n".join(_said("", first)), *screens])
