"""The study of systems of any kind: designs solved, those simulated that decide, a choice by workload."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.study import PACKETS
from cases.study.goals import goals_of, solved_columns, space_of, traffic_field, vectorized_fields, words
from cases.tables import ERROR
from optimize.decisions.decide import decide
from optimize.decisions.decision import (
    LEVEL,
    TRIES,
    Decision,
    Growth,
    Interrupted,
    RobustChoice,
    robust_choice,
    simulated_growth,
)
from optimize.search.exploration import Exploration
from optimize.search.explore import announced, explore
from optimize.spaces.numbering import STOPS
from optimize.spaces.running import spread
from optimize.spaces.space import Space
from qmodels import checks
from qmodels.numerics.kernels import another_python
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.conditions import quantity
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.spec.text.toml import to_toml
from qmodels.systems.traffic.arrivals import Recorded

Counted = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Options of the simulations of designs."""

    # packets: length of a replication, by default the simulator's own, but `PACKETS` of a packet processor; a
    # recorded trace is simulated whole in any case.
    packets: int | None = None
    # replications, seed: as `validate.simulate` takes them
    replications: int = 4
    seed: int = 0
    workers: int | None = None  # threads; None for one per core. Results do not depend on it

    def __post_init__(self) -> None:
        if self.packets is not None:
            checks.count("packets", self.packets, minimum=1000)
        checks.count("replications", self.replications, minimum=2)
        checks.seed(self.seed)
        if self.workers is not None:
            checks.count("workers", self.workers)

    def simulate(
        self, specs: Any, *, store: Path | None = None, progress: Counted | None = None, **options: Any
    ) -> Any:
        """Simulate one design or several, as `validate.simulate` does with these and other options."""
        from validate import simulate

        one = specs[0] if isinstance(specs, list) else specs
        packets = self.packets or (PACKETS if isinstance(one, PacketProcessor) else None)
        own: dict[str, Any] = {"replications": self.replications, "seed": self.seed, "confidence": LEVEL}
        own |= {} if packets is None else {"packets": packets}
        with ThreadPoolExecutor(self.workers or os.cpu_count()) as pool:
            return simulate(specs, executor=pool, store=store, progress=progress, **(own | options))

    def batch(self, specs: list[Any], store: Path | None) -> list[Any]:
        """Simulate designs; an interrupted batch hands over what is finished."""
        from validate import CampaignInterrupted

        if store is not None:
            store.parent.mkdir(parents=True, exist_ok=True)
        try:
            return list(self.simulate(specs, store=store, progress=lambda done, total: None))
        except CampaignInterrupted as stop:
            campaign = stop.campaign
            raise Interrupted(dict(zip(campaign.points, campaign, strict=True))) from stop


def stated_errors(model: Exploration) -> dict[str, npt.ArrayLike | None]:
    """Return the metrics that a simulation corrects, with the mean error that the model states of each.

    Those with a stated error, and the objectives and limits that the simulator estimates; a cost is exact.
    """
    estimated = set(type(model.space.base).metric_names.both) - {"cost"}
    errors: dict[str, npt.ArrayLike | None] = {
        name.removeprefix(ERROR): np.asarray(column) / 100
        for name, column in model.table.items()
        if name.startswith(ERROR) and name.removeprefix(ERROR) in estimated
    }
    asked = (*model.objectives, *model.subject_to)
    return {**{name: None for name in asked if name in estimated}, **errors}


def how_simulated(decision: Decision) -> str:
    """Return the length of each design's simulation; of a recorded trace whole rotations."""
    one = next(iter(decision.results.values()))
    effort = "".join(f", {count} {name}" for name, count in one.effort.items() if name != "events")
    workload = getattr(decision.model.space.base, "workload", None)
    recorded = isinstance(getattr(workload, "arrivals", None), Recorded)
    whole = " in whole rotations of the trace" * recorded
    return f"{one.replications} replications{effort}{whole}, seed {one.seed}"


CODE = """
import pickle, sys
from validate import simulate
simulate(pickle.load(sys.stdin.buffer), packets=1000, replications=2, saturation=False)
"""


def background_compile(spec: Any) -> subprocess.Popen[bytes] | None:
    """Start a process that compiles the simulation of a packet processor; None if it is on the disk.

    Whoever simulates waits for it first. One that fails leaves the work to who waited.
    """
    from validate.engine.jit import PACKAGE, PLACE, cache_name

    kept = PLACE / cache_name(PACKAGE / "composed" / "machine.py")
    if any(kept.rglob("*.nbc")) or getattr(sys, "frozen", False):
        return None
    try:
        process = another_python(CODE, stdin=subprocess.PIPE)
        with process.stdin as file:  # type: ignore[union-attr]
            file.write(pickle.dumps(spec))
    except OSError:
        return None
    return process


Progress = Callable[[str, int, int], None]

SOLVED, SIMULATED = "solved.sqlite", "simulated.sqlite"
"""The files of a study's directory that keep finished answers and simulations."""

DIGITS = 5  # significant digits in which designs are compared: the model's iterations are good to six
MANY = 100_000  # designs from which the front alone is kept: distinct points, and how many designs tie there
MAIN = 0.75  # share of the time for simulations that the main workload of several gets
ROBUST_TRIES = 3
"""How often the design that is robust over several workloads is simulated: each may make another the best."""

SHARE = 1 / 3  # of the time for simulations that is kept for the traffic that the choice bears


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One workload of a study."""

    name: str
    decision: Decision  # every design solved, those simulated, the choice, and an interval on every number
    solve_seconds: float = 0.0
    growth: Growth | None = None  # the traffic that simulations bear out; None if that is the model's word

    @property
    def model(self) -> Exploration:
        """Every design by the model."""
        return self.decision.model

    def design(self, row: int | None) -> int | None:
        """Return the number of the design in a row."""
        return None if row is None else int(self.model.table["design"][row])

    def row(self, design: int) -> int:
        """Return the row of a design."""
        return int(np.searchsorted(self.model.table["design"], design))


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """The explorations of a system under one workload or several."""

    parts: tuple[Part, ...]  # the first is the main one
    runs: Runs  # how designs were simulated

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped the simulations."""
        return any(part.decision.interrupted for part in self.parts)


def several(study: Study) -> RobustChoice | None:
    """Return the choice for all workloads of a study; None for a single one, or where spaces differ."""
    main = study.parts[0].model
    alike = (part.model.space.choices == main.space.choices and part.model.complete for part in study.parts)
    if len(study.parts) < 2 or not all(alike):
        return None
    return robust_choice(
        {part.name: part.decision.table for part in study.parts},
        {part.name: part.decision.feasible for part in study.parts},
        minimize=main.minimize,
        maximize=main.maximize,
    )


def several_summary(study: Study) -> dict[str, Any] | None:
    """Return the same for a program, with the regrets of what is best, or chosen, under a workload."""
    choice = several(study)
    if choice is None:
        return None
    starred = (part.design(part.decision.chosen) for part in study.parts)
    shared = set(choice.designs.tolist())
    named = [design for design in dict.fromkeys((choice.chosen, *choice.best, *starred)) if design in shared]
    regrets = {str(design): choice.regret_of(design) for design in named if design is not None}
    best = dict(zip(choice.names, choice.best, strict=True))
    return {"robust": choice.chosen, "best": best, "feasible_under_all": choice.feasible, "regret": regrets}


def our_version() -> str:
    """Return the version of qmodels."""
    try:
        return version("qmodels-toolkit")
    except PackageNotFoundError:  # a source tree that was not installed
        return "unknown"


def explore_case(
    specs: Mapping[str, Any],
    *,
    given: Iterable[str] = (),
    choices: Mapping[str, Iterable[Any]] | None = None,
    goals: Mapping[str, Any] | None = None,
    budget_seconds: float | None = 60.0,
    points: int | None = None,
    enough: int | None = None,
    runs: Runs | None = None,
    out: Path | None = None,
    progress: Progress | None = None,
    then: str = "",
) -> Study:
    """Explore a system of any kind under one workload or several, and simulate where that decides.

    ``specs``: the base spec of each workload by name; the first is the main one; ``given``: varied fields
    whose values in the specs are their only choices, see `default_space`; ``choices``: the fields to vary and
    their choices, instead of the default space of packet processors; ``goals``: ``minimize``, ``maximize``
    and ``subject_to``, see `goals_of`; ``budget_seconds``: time for simulations, 0 for none; None if only
    `points` limits. Of several workloads the main one gets three quarters, the others share the rest; the
    design chosen for it is simulated under each, and so is the robust one [s]; ``points``: most designs to
    simulate under each workload; ``enough``: designs after which simulation may end earlier, see
    `optimize.decide`; ``runs``: how designs are simulated; ``out``: directory that keeps finished answers
    and simulations, made when the first one starts. Required to simulate; ``progress``: called with (what,
    finished, in all); ``then``: words behind the time that a terminal is told. If the user interrupts the
    simulations, what is done comes back.
    """
    runs = runs or Runs()
    if points is not None:
        checks.count("points", points, minimum=0)
    if budget_seconds is not None:
        checks.nonnegative("budget_seconds", budget_seconds)
    simulate = budget_seconds != 0 and points != 0
    if simulate and out is None:
        raise ValueError("out must be a directory when designs are simulated, got None")
    spaces = {}
    for name, spec in specs.items():
        to_toml(spec)  # refuses a trace that is in no file before any work is done
        spaces[name] = space_of(spec, choices, given)
    wanted = goals_of(next(iter(specs.values())), goals)
    space = next(iter(spaces.values()))
    one = space.first() if simulate and isinstance(space.base, PacketProcessor) else None
    compiler = None if one is None else background_compile(space.spec(one))
    if compiler:
        _tell("compiling the models and the simulator, once")
    models = []
    for name, space in spaces.items():
        started, label = (
            time.perf_counter(),
            f"{name}: designs solved" if len(spaces) > 1 else "designs solved",
        )
        shown = None if progress is None else partial(progress, label)
        model = solved(space, wanted, out=out, progress=shown, then=then)
        models.append((name, model, time.perf_counter() - started))
        if simulate:
            _tell(f"{name}: {model_verdict(model)}; simulations say whether it stays")
    if compiler:
        compiler.wait()
    parts: list[Part] = []
    simulated = _Simulated(runs=runs, out=out, points=points, enough=enough, progress=progress)
    for name, model, seconds in models:
        share = 1.0 if len(models) == 1 else MAIN if not parts else (1 - MAIN) / (len(models) - 1)
        stopped = any(part.decision.interrupted for part in parts)
        budget = 0.0 if stopped else None if budget_seconds is None else budget_seconds * share
        main = parts[0].design(parts[0].decision.chosen) if parts else None
        also = np.flatnonzero(model.table["design"] == main).tolist()
        decision, growth = simulated.decide(name, model, budget, also=also)
        parts.append(Part(name=name, decision=decision, solve_seconds=seconds, growth=growth))
    study = Study(parts=tuple(parts), runs=runs)
    for _ in range(ROBUST_TRIES if simulate else 0):
        missing = _robust_unseen(study, points)
        if study.interrupted or not missing:
            break
        again = (simulated.more(part, missing.get(part.name)) for part in study.parts)
        study = replace(study, parts=tuple(again))
    return study


def _tell(text: str) -> None:
    """Write a line to standard error if that is a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def model_verdict(model: Exploration) -> str:
    """Return the best design by the model alone, in words."""
    if model.knee is None:
        return "no design is feasible by the model"
    values = (
        f"{words(name)} {quantity(model.space.base, name, float(model.table[name][model.knee]))}"
        for name in model.objectives
    )
    return f"by the model design {int(model.table['design'][model.knee])} is best ({', '.join(values)})"


def solved(
    space: Space,
    goals: Mapping[str, Any],
    *,
    out: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    then: str = "",
) -> Exploration:
    """Return all designs of a space, solved, as a study does.

    What the model does not know of the first system that it solves (NaN) is left out of the table.
    Designs are kept in the directory as they are solved: the same study goes on where it was stopped.
    """
    first = _first_answer(space)
    known = [one for one, value in first.items() if isinstance(value, str) or not np.any(np.isnan(value))]

    def metrics(spec: Any) -> dict[str, Any]:
        found = solved_columns(spec)
        return {one: found.get(one, np.inf) for one in known}

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    return explore(
        space,
        metrics,
        **goals,
        digits=DIGITS,
        vectorized=vectorized_fields(space),
        store=None if out is None else out / SOLVED,
        identity=f"solve {our_version()} {' '.join(known)}",
        progress=announced(progress or (lambda done, total: None), then=then),
        keep="front" if space.size > MANY else "all",
    )


def _first_answer(space: Space) -> dict[str, Any]:
    """Return the columns of the first of some designs that keeps up, else of one that has any.

    An overloaded system states no error.
    """
    found, tried = {}, spread(range(space.size)).tolist()
    for k, design in enumerate(tried):
        try:
            found = solved_columns(space.spec(design))
        except STOPS:
            raise
        except Exception:  # a hole, which the exploration reports
            if k + 1 == len(tried) and not found:
                raise
        if found.get("stable"):
            break
    return found


@dataclass(frozen=True, kw_only=True)
class _Simulated:
    """Options of the simulations of a study's workloads."""

    runs: Runs
    out: Path | None = None
    points: int | None = None
    enough: int | None = None
    progress: Progress | None = None

    @property
    def store(self) -> Path | None:
        """The file of finished simulations."""
        return None if self.out is None else self.out / SIMULATED

    def decide(
        self, name: str, model: Exploration, seconds: float | None, *, also: Iterable[int] = ()
    ) -> tuple[Decision, Growth | None]:
        """Return a decision, and the traffic that simulations of its choice bear out; None: not simulated.

        Of a time for simulations a third is kept for the traffic; what does not fit stays the model's word,
        and the answer says so. Without one, or with ``points``, nothing is simulated for it.
        """
        deciding = partial(self._decided, name, model, also=also, points=self.points, enough=self.enough)
        if not seconds or self.points is not None:
            return deciding(seconds), None
        decision = deciding((1 - SHARE) * seconds)
        each = decision.seconds / max(len(decision.simulated), 1)
        end = time.perf_counter() + max(SHARE * seconds, seconds - decision.seconds)

        def fit(most: int) -> int:
            return max(0, min(most, int((end - time.perf_counter()) / each) if each else most))

        decision, grown = replace(decision, budget=seconds), None
        traffic = traffic_field(decision)
        if traffic is not None and decision.chosen in decision.results and not decision.interrupted:
            try:
                simulate = partial(self.runs.batch, store=self.store)
                grown = simulated_growth(decision, solved_columns, traffic, simulate, tries=fit(TRIES))
            except KeyboardInterrupt:
                decision = replace(decision, interrupted=True)
        return decision, grown

    def more(self, part: Part, row: int | None) -> Part:
        """Return the same with one more design simulated, if one is given."""
        if row is None:
            return part
        before = part.decision
        decision = self._decided(part.name, part.model, None, points=1, also=[row], after=before)
        kept = part.growth if decision.chosen == before.chosen else None
        return replace(part, decision=decision, growth=kept)

    def _decided(self, name: str, model: Exploration, seconds: float | None, **options: Any) -> Decision:
        stated, show = stated_errors(model), self.progress
        counted: Counted | None = None if show is None else partial(show, f"{name}: simulation")
        return decide(
            model,
            partial(self.runs.batch, store=self.store),
            stated=stated,
            bounded=[one for one in stated if not is_relative(one)],
            subject_to=model.subject_to,
            budget_seconds=seconds,
            seed=self.runs.seed,
            progress=counted,
            **options,
        )


def decided(model: Exploration, runs: Runs | None = None, **options: Any) -> tuple[Decision, Growth | None]:
    """Return the decision of a study on designs that are solved; without time or points the model's."""
    seconds = options.pop("budget_seconds", 0.0)
    return _Simulated(runs=runs or Runs(), **options).decide("", model, seconds)


def _robust_unseen(study: Study, points: int | None) -> dict[str, int]:
    """Return the row of the robust design by the workloads under which it is still to be simulated."""
    choice = several(study)
    if choice is None or choice.chosen is None:
        return {}
    rows = {part: part.row(choice.chosen) for part in study.parts}
    return {
        part.name: row
        for part, row in rows.items()
        if row not in part.decision.results
        and row not in part.decision.failed
        and (points is None or len(part.decision.simulated) < points)
    }
