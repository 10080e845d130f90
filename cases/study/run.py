"""The study of the joint case: one exploration or several, with a decision for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cases.study.analysis import Analysis, analyse
from cases.study.check import Runs, check
from cases.study.compiling import background_compile
from cases.study.deciding import decide_case
from cases.study.goals import chosen_space, goals_of
from cases.study.packet_processor import default_space, solved_columns
from cases.study.parts import Part, Study
from cases.study.proving import proven_case
from cases.study.words.several import several
from optimize.decisions.changes import Growth
from optimize.decisions.decision import Decision
from qmodels import checks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.text.toml import to_toml

Progress = Callable[[str, int, int], None]

STORE = "simulated.sqlite"
"""The file of a study's directory that keeps finished simulations."""


MAIN = 0.75
"""Share of the time for simulations that the main workload of several gets."""

ROBUST_TRIES = 3
"""How often the design that is robust over several workloads is simulated: each may make another the best."""


def explore_case(
    specs: Mapping[str, PacketProcessor],
    *,
    given: Iterable[str] = (),
    choices: Mapping[str, Iterable[Any]] | None = None,
    goals: Mapping[str, Any] | None = None,
    budget_seconds: float | None = 60.0,
    points: int | None = None,
    enough: int | None = None,
    runs: Runs | None = None,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Explore the packet processor under one workload or several, and simulate where that decides.

    ``specs``: the base spec of each workload by name; the first is the main one; ``given``: varied fields
    whose values in the specs are their only choices, see `default_space`; ``choices``: the fields to vary and
    their choices, instead of the default space; ``goals``: ``minimize``, ``maximize`` and ``subject_to``, see
    `cases.study.goals.goals_of`; ``budget_seconds``: time for simulations, 0 for none; None if only `points`
    limits. Of several workloads the main one gets three quarters, the others share the rest; the design
    chosen for it is simulated under each, and so is the robust one [s]; ``points``: most designs to simulate
    under each workload; ``enough``: designs after which simulation may end earlier, see `optimize.decide`;
    ``runs``: how designs are simulated; ``store``: file that keeps finished simulations; its directory is
    made when the first one starts. Required to simulate; ``progress``: called with (what, finished, in
    all). If the user interrupts the simulations, what is done comes back.
    """
    runs = runs or Runs()
    if points is not None:
        checks.count("points", points, minimum=0)
    if budget_seconds is not None:
        checks.nonnegative("budget_seconds", budget_seconds)
    simulate = budget_seconds != 0 and points != 0
    if simulate and store is None:
        raise ValueError("store must be the path of a file when designs are simulated, got None")
    spaces = {}
    for name, spec in specs.items():
        to_toml(spec)  # refuses a trace that is in no file before any work is done
        spaces[name] = default_space(spec, given) if choices is None else chosen_space(spec, choices)
    wanted = goals_of(next(iter(specs.values())), goals)
    space = next(iter(spaces.values()))
    one = space.first() if simulate else None
    compiler = None if one is None else background_compile(space.spec(one))
    analyses: list[Analysis] = []
    for name, space in spaces.items():
        if progress:
            progress("designs solved", len(analyses), len(spaces))
        analyses.append(analyse(name, space, wanted))
    if compiler:
        compiler.wait()
    parts: list[Part] = []
    simulated = _Simulated(runs=runs, store=store, points=points, enough=enough, progress=progress)
    for analysis in analyses:
        share = 1.0 if len(analyses) == 1 else MAIN if not parts else (1 - MAIN) / (len(analyses) - 1)
        stopped = any(part.decision.interrupted for part in parts)
        seconds = 0.0 if stopped else None if budget_seconds is None else budget_seconds * share
        parts.append(simulated.part(analysis, seconds, also=_row_of_star(analysis, parts)))
    study = Study(parts=tuple(parts), runs=runs)
    for _ in range(ROBUST_TRIES if simulate else 0):
        missing = _robust_unseen(study, points)
        if study.interrupted or not missing:
            break
        again = (
            part if row is None else simulated.more(part, row)
            for part, row in ((part, missing.get(part.name)) for part in study.parts)
        )
        study = replace(study, parts=tuple(again))
    return study


@dataclass(frozen=True, kw_only=True)
class _Simulated:
    """How the parts of a study are simulated."""

    runs: Runs
    store: Path | None
    points: int | None
    enough: int | None
    progress: Progress | None

    def part(self, analysis: Analysis, seconds: float | None, *, also: list[int]) -> Part:
        """Return the decision on one workload, and what its answer says, simulated."""
        decision, growth = proven_case(
            analysis.exploration,
            solved_columns,
            runs=self.runs,
            store=self.store,
            budget_seconds=seconds,
            points=self.points,
            also=also,
            enough=self.enough,
            progress=_named(self.progress, f"{analysis.name}: simulation"),
        )
        return _part(analysis, decision, growth)

    def more(self, part: Part, row: int) -> Part:
        """Return the same with one more design simulated."""
        before = part.decision
        decision = decide_case(
            part.analysis.exploration,
            runs=self.runs,
            store=self.store,
            budget_seconds=None,
            points=1,
            also=[row],
            after=before,
            progress=_named(self.progress, f"{part.name}: simulation"),
        )
        return _part(part.analysis, decision, part.growth if decision.chosen == before.chosen else None)


def _part(analysis: Analysis, decision: Decision, growth: Growth | None) -> Part:
    found = check(analysis.exploration, decision.results) if decision.results else None
    return Part(analysis=analysis, decision=decision, check=found, growth=growth)


def _robust_unseen(study: Study, points: int | None) -> dict[str, int]:
    """Return the row of the robust design by the workloads under which it is still to be simulated."""
    found = several(study)
    if found is None or found.choice.chosen is None:
        return {}
    design = found.choice.chosen
    rows = {part: found.row(part.name, design) for part in study.parts}
    return {
        part.name: row
        for part, row in rows.items()
        if design not in found.simulated[part.name]
        and row not in part.decision.failed
        and (points is None or len(part.decision.simulated) < points)
    }


def _named(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(what, done, total)


def _row_of_star(analysis: Analysis, parts: list[Part]) -> list[int]:
    """Return the row of the design chosen for the main workload, if it exists here."""
    if not parts or parts[0].decision.chosen is None:
        return []
    main = parts[0].decision
    designs = analysis.exploration.table["design"]
    return np.flatnonzero(designs == main.table["design"][main.chosen]).tolist()
