"""What ``qmodels explore`` does: a study of the joint case, or an exploration of any other kind."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from cases.cli.console import Forms
from cases.cli.inputs import choices_of
from cases.study.check import Runs
from cases.study.files import our_version
from cases.study.proving import proven_case
from cases.study.run import STORE as SIMULATED
from cases.study.words.doubts import front_doubts
from cases.study.words.findings import front_section, trust
from cases.study.words.screen import Screen
from cases.tables import csv_text
from optimize.decisions.decision import Decision
from optimize.search.clock import announced, estimate, span
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.spaces.holes import STOPS
from optimize.spaces.running import spread
from optimize.spaces.space import Space
from optimize.spaces.stability import LOAD, RESOURCE
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.conditions import seconds
from qmodels.systems.spec.fields import find_field, replace_fields, takes_array
from qmodels.systems.spec.text.toml import read_value, spec_from_toml, to_toml
from qmodels.systems.spec.whole import whole_directory

SPEC, DESIGNS, STORE = "spec.toml", "designs.csv", "solved.sqlite"
"""What an exploration is kept in: the system, its designs with all their metrics, those solved so far."""

MANY = 100_000
"""Designs from which the front alone is kept: distinct points, and how many designs tie there."""

LONGEST = 60.0
"""Time for simulations unless it is given, if the choice is not simulated before. [s]"""

ENOUGH = 3
"""Designs after which simulation ends once the best is among them, unless a time is given."""

SAMPLE = 20
"""Designs from which it is said how long all will take."""

Progress = Callable[[str, int, int], None]


def budget_of(text: str | None) -> float:
    """Return the seconds of ``--budget``, by default the longest.

    Examples
    --------
    >>> budget_of("2min")
    120.0
    """
    if text is None:
        return LONGEST
    try:
        return seconds(text, "--budget")
    except ValueError as error:
        if text.replace(".", "", 1).isdigit():
            raise ValueError(f"{error}; a limit of the cost is --subject-to 'cost <= {text}mm2'") from None
        raise


def choices(spec: Any, vary: Iterable[str]) -> dict[str, list[Any]]:
    """Return the fields to vary with their choices; none leaves the joint case its own.

    Raises
    ------
    ValueError
        If there is none to vary of another kind, or a field is unknown or given twice.
    """
    found: dict[str, list[Any]] = {}
    for name, values in map(choices_of, vary):
        path = find_field(spec, name)
        if path in found:
            raise ValueError(f"--vary must name a field once, got {name!r} twice")
        found[path] = values
    if not found and not isinstance(spec, PacketProcessor):
        raise ValueError("--vary must name a field and its choices, such as --vary link_width=8,16, got none")
    return found


@dataclass(frozen=True, kw_only=True)
class Explored:
    """What an exploration shows: its forms, its picture, its files, and whether the user stopped it."""

    forms: Forms
    figure: Callable[[], Any]
    paths: list[Path]
    interrupted: bool = False


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What ``qmodels explore`` is asked, checked.

    Parameters
    ----------
    specs : mapping of str to spec
        What is explored, by name; several of the joint case alone.
    choices : mapping
        The fields to vary; empty for the joint case's own.
    given : list of str
        Fields of the joint case that were set.
    goals : mapping
        See `cases.study.goals.goals_of`.
    seconds : float
        Time for simulations. [s]
    enough : int or None
        Designs after which simulation ends once the choice is among them; None to spend the time.
    runs : Runs
        How designs are simulated.
    out : Path
        Where all is kept.
    full : bool
        Whether all that was found is said, not the first screen alone.
    """

    specs: Mapping[str, Any]
    choices: Mapping[str, Iterable[Any]]
    given: list[str]
    goals: Mapping[str, Any]
    seconds: float
    enough: int | None
    runs: Runs
    out: Path
    full: bool = False

    def explored(self, progress: Progress | None) -> Explored:
        """Explore and write the files."""
        joint = isinstance(next(iter(self.specs.values())), PacketProcessor)
        return self._study(progress) if joint else self._any(progress)

    def _study(self, progress: Progress | None) -> Explored:
        from cases.study.files import save_study, summary
        from cases.study.goals import chosen_space
        from cases.study.packet_processor import default_space, solved_columns
        from cases.study.plots import front_figure
        from cases.study.run import explore_case
        from cases.study.tables import design_columns
        from cases.study.words.findings import full_text
        from cases.study.words.screen import study_text

        spec = next(iter(self.specs.values()))
        space = chosen_space(spec, self.choices) if self.choices else default_space(spec, self.given)
        goals: Any = self.goals
        self._announce(
            space, lambda some: explore(space, solved_columns, designs=some, vectorized=True, **goals)
        )
        study = explore_case(
            self.specs,
            given=self.given,
            choices=self.choices or None,
            goals=self.goals,
            budget_seconds=self.seconds,
            enough=self.enough,
            runs=self.runs,
            store=self.out / SIMULATED,
            progress=progress,
        )
        paths = save_study(study, self.out)
        designs = design_columns(study.parts[0])
        forms = Forms(
            text=lambda: (full_text if self.full else study_text)(study, str(self.out)).rstrip(),
            data=lambda: summary(study),
            csv=lambda: csv_text({name: column[designs["front"]] for name, column in designs.items()}),
        )
        figure = lambda: front_figure(study)  # noqa: E731
        return Explored(forms=forms, figure=figure, paths=paths, interrupted=study.interrupted)

    def _announce(self, space: Space, solve_some: Callable[[list[int]], Any]) -> None:
        """Say on a terminal how long it will take, from the rate of some designs."""
        some = list(range(min(SAMPLE, space.size)))
        if not sys.stderr.isatty():
            return
        for _ in range(2):  # the first imports and compiles
            started = perf_counter()
            solve_some(some)
            took = (perf_counter() - started) * space.size / len(some)
        took *= len(self.specs)
        each = f" under each of {len(self.specs)} workloads" if len(self.specs) > 1 else ""
        print(estimate(f"{space.size} designs{each}", took) + self._then, file=sys.stderr)

    @property
    def _then(self) -> str:
        return f", then simulations for at most {span(self.seconds)}" if self.seconds else ""

    def _any(self, progress: Progress | None) -> Explored:
        (name, spec), *_ = self.specs.items()
        space = Space(spec, self.choices)
        solved = partial(progress or (lambda what, done, total: None), "designs solved")
        self.out.mkdir(parents=True, exist_ok=True)
        found = explored(space, self.goals, out=self.out, progress=announced(solved, then=self._then))
        decision, growth = proven_case(
            found,
            columns_of_answer,
            runs=self.runs,
            store=self.out / SIMULATED,
            budget_seconds=self.seconds,
            enough=self.enough,
            progress=None if progress is None else lambda done, total: progress("simulation", done, total),
        )
        columns = front_columns(decision)
        sections = [*([front_section(decision)] if len(decision.front) else []), trust(decision)]
        screen = Screen(decision=decision, name=name, growth=growth, study=str(self.out))
        data = {
            "screen": screen.data(),
            "doubts": front_doubts(decision),
            "front": columns,
            "designs": found.evaluations + found.restored,
            "distinct": found.distinct,
            "ties": found.duplicates,
            "holes": found.holes,
        }
        forms = Forms(
            text=lambda: "\n\n".join([screen.text(), *(one.text() for one in sections if self.full)]),
            data=lambda: data,
            csv=lambda: csv_text(columns),
        )
        return Explored(
            forms=forms,
            figure=lambda: found.plot().figure,
            paths=save(found, self.out),
            interrupted=decision.interrupted,
        )


def columns_of_answer(spec: Any) -> dict[str, Any]:
    """Return what the table of an exploration of any kind holds: metrics, and what fills up first."""
    from qmodels import solve

    answer: Any = solve(spec)
    return answer.to_dict() | {RESOURCE: answer.bottleneck, LOAD: answer.bottleneck_load}


def explored(
    space: Space,
    goals: Mapping[str, Any],
    *,
    out: Path,
    progress: Callable[[int, int], None],
) -> Exploration:
    """Return the exploration of all combinations of the choices, solved.

    What the model does not know of the first system that it solves (NaN) is left out of the table. Designs
    are kept in the directory as they are solved: the same exploration goes on where it was stopped. Of more
    than `MANY` the front alone is kept.
    """
    first = _first_answer(space)
    known = [name for name, value in first.items() if isinstance(value, str) or not np.any(np.isnan(value))]

    def metrics(one: Any) -> dict[str, Any]:
        found = columns_of_answer(one)
        return {name: found[name] for name in known}

    return explore(
        space,
        metrics,
        **goals,
        vectorized=[name for name in space.numeric if takes_array(space.base, name)],
        store=out / STORE,
        identity=f"solve {our_version()} {' '.join(known)}",
        progress=progress,
        keep="front" if space.size > MANY else "all",
    )


def _first_answer(space: Space) -> dict[str, Any]:
    """Return the metrics of the first of some designs that has any."""
    *others, last = spread(range(space.size)).tolist()
    for design in others:
        try:
            return columns_of_answer(space.spec(design))
        except STOPS:
            raise
        except Exception:  # a hole, which the exploration reports
            continue
    return columns_of_answer(space.spec(last))


def front_columns(decision: Decision) -> dict[str, Any]:
    """Return the front: number, varied fields, objectives and limited metrics of each design."""
    model = decision.model
    names = dict.fromkeys(["design", *model.space.choices, *model.objectives, *model.subject_to])
    return {name: decision.table[name][decision.front] for name in names}


def save(found: Exploration, out: Path) -> list[Path]:
    """Write the system and its designs into a directory; return the paths."""
    with whole_directory(out, last=SPEC) as work:
        table = dict(found.table)
        if not found.complete:  # a field may be called ties
            table["tied_designs"] = table.pop("ties")
        replace(found, table=table).save(work / DESIGNS)
        (work / SPEC).write_text(to_toml(found.space.base, kind=True), encoding="utf-8")
    return [out / SPEC, out / DESIGNS]


def design_of(folder: Path, number_of: int) -> tuple[Any, dict[str, Any]]:
    """Return a design that `save` wrote, and the values of its varied fields.

    Raises
    ------
    ValueError
        If it is not there.
    """
    base = spec_from_toml(folder / SPEC)
    with (folder / DESIGNS).open(encoding="utf-8", newline="") as file:
        rows = {int(row["design"]): row for row in csv.DictReader(file)}
    if number_of not in rows:
        raise ValueError(f"--design must be one of {len(rows)} designs of {folder}, got {number_of}")
    varied = {}
    for name, text in rows[number_of].items():
        try:
            varied[find_field(base, name)] = read_value(text)
        except ValueError:  # a metric
            continue
    return replace_fields(base, varied), varied
