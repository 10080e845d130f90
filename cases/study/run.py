"""The study of the joint case: one exploration or several, checked by simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cases.study.analysis import Analysis, analyse
from cases.study.check import Runs, check
from cases.study.goals import chosen_space, goals_of
from cases.study.packet_processor import default_space
from cases.study.parts import Part, Study
from optimize.search.pareto import IntArray
from qmodels import checks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.toml import to_toml

Progress = Callable[[str, int, int], None]

STORE = "simulated.sqlite"
"""The file of a study's directory that keeps finished simulations."""


def explore_case(
    specs: Mapping[str, PacketProcessor],
    *,
    given: Iterable[str] = (),
    choices: Mapping[str, Iterable[Any]] | None = None,
    goals: Mapping[str, Any] | None = None,
    budget_seconds: float | None = None,
    runs: Runs | None = None,
    simulate: bool = True,
    points: int = 12,
    budget: float | None = None,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Study:
    """Explore the packet processor under one workload or several and check the front by simulation.

    Parameters
    ----------
    specs : mapping of str to PacketProcessor
        The base spec of each workload by name; the first is the main one. Of the others only the
        knee and the starred design of the main one are simulated, to show whether the best moves.
    given : iterable of str
        Varied fields whose values in the specs are their only choices, see `default_space`.
    choices : mapping, optional
        The fields to vary and their choices, instead of the default space.
    goals : mapping, optional
        ``minimize``, ``maximize`` and ``subject_to``, see `cases.study.goals.goals_of`.
    budget_seconds : float, optional
        Time for simulations; 0 for none. [s]
    runs : Runs, optional
        How designs are simulated.
    simulate : bool
        Whether to simulate at all.
    points : int
        Most points of the main front to simulate.
    budget : float, optional
        Cost budget for the choice by integer programming; by default the cost of the knee. [mm2]
    store : Path, optional
        File that keeps finished simulations; its directory is made when the first one starts.
        Required to simulate.
    progress : callable, optional
        Called with (what, finished, in all).

    Returns
    -------
    Study
        With what is done if the user interrupts the simulations.
    """
    runs = runs or Runs()
    checks.count("points", points, minimum=0)
    if budget is not None:
        checks.nonnegative("budget", budget)
    simulate = simulate and budget_seconds != 0
    if simulate and store is None:
        raise ValueError("store must be the path of a file when designs are simulated, got None")
    spaces = {}
    for name, spec in specs.items():
        to_toml(spec)  # refuses a trace that is in no file before any work is done
        spaces[name] = default_space(spec, given) if choices is None else chosen_space(spec, choices)
    wanted = goals_of(next(iter(specs.values())), goals)
    analyses: list[Analysis] = []
    for name, space in spaces.items():
        if progress:
            progress("designs solved", len(analyses), len(spaces))
        analyses.append(analyse(name, space, wanted, budget=budget, points=points))
    parts: list[Part] = []
    for analysis in analyses:
        stopped = any(part.check is not None and part.check.interrupted for part in parts)
        done = None
        if simulate and store is not None and not stopped:
            rows = analysis.chosen if not parts else _two(analysis, parts[0])
            if len(rows):
                store.parent.mkdir(parents=True, exist_ok=True)
                report = _named(progress, f"{analysis.name}: simulation runs")
                done = check(analysis.exploration, rows, runs=runs, store=store, progress=report)
        parts.append(Part(analysis=analysis, check=done))
    return Study(parts=tuple(parts), runs=runs)


def _named(progress: Progress | None, what: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(what, done, total)


def _two(analysis: Analysis, main: Part) -> IntArray:
    """Return the rows of the analysis' own knee and of the design starred in the main part, if they exist."""
    own, star = analysis.exploration, main.star.row
    designs: list[Any] = [] if own.knee is None else [own.table["design"][own.knee]]
    designs += [] if star is None else [main.analysis.exploration.table["design"][star]]
    return np.flatnonzero(np.isin(own.table["design"], designs))
