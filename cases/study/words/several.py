"""Several workloads in one study: how the best design moves, what each choice regrets, the robust one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cases.study.parts import Part, Study
from cases.study.words.advice import SHORT
from cases.study.words.section import Section
from cases.tables import number
from optimize.decisions.robust import RobustChoice, robust_choice
from optimize.search.exploration import Exploration

NEAR = 0.05
"""Regret, in ranges of an objective, up to which a choice is called as good."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Several:
    """The workloads of a study side by side."""

    # Of each workload, over one space, with the values of its decision.
    explorations: Mapping[str, Exploration]
    choice: RobustChoice  # regrets of every design, and the robust one
    # The design that each workload's part of the study recommends.
    starred: Mapping[str, int] = field(default_factory=dict)
    simulated: Mapping[str, set[int]] = field(default_factory=dict)  # the designs simulated under each

    @property
    def values(self) -> str:
        """What the values are."""
        return "corrected by the simulations" if any(self.simulated.values()) else "analytic"

    @property
    def candidates(self) -> dict[int, str]:
        """Designs to lay beside each other, with what each is: robust, best or starred under a workload."""
        words: dict[int, list[str]] = {}
        if self.choice.chosen is not None:
            words.setdefault(self.choice.chosen, []).append("robust")
        for name, best in zip(self.choice.names, self.choice.best, strict=True):
            if best is not None:
                words.setdefault(best, []).append(f"best for {name}")
        for name, design in self.starred.items():
            words.setdefault(design, []).append(f"starred for {name}")
        shared = set(self.choice.designs.tolist())
        return {design: ", ".join(said) for design, said in words.items() if design in shared}

    def row(self, name: str, design: int) -> int:
        """Return the row of a design in the table of a workload."""
        return int(np.searchsorted(self.explorations[name].table["design"], design))

    def value(self, name: str, design: int, metric: str) -> Any:
        """Return a column of a design under a workload."""
        return self.explorations[name].table[metric][self.row(name, design)]

    def fields(self) -> list[str]:
        """Return the fields that vary."""
        space = next(iter(self.explorations.values())).space
        return [field for field, choices in space.choices.items() if len(choices) > 1]

    def described(self, design: int) -> str:
        """Return a design with its fields."""
        name = self.choice.names[0]
        fields = ", ".join(
            f"{SHORT.get(one, one)} {number(self.value(name, design, one))}" for one in self.fields()
        )
        return f"design {design} ({fields})"


def several(study: Study) -> Several | None:
    """Return the workloads of a study side by side; None for a single one, or where spaces differ."""
    if len(study.parts) < 2:
        return None
    explorations = {
        part.name: replace(
            part.analysis.exploration, table=part.decision.table, feasible=part.decision.feasible
        )
        for part in study.parts
    }
    main = study.parts[0].analysis.exploration
    if any(one.space.choices != main.space.choices for one in explorations.values()):
        return None
    choice = robust_choice(
        {name: one.table for name, one in explorations.items()},
        {name: one.feasible for name, one in explorations.items()},
        minimize=main.minimize,
        maximize=main.maximize,
    )
    starred = {part.name: _design(part, part.star.row) for part in study.parts if part.star.row is not None}
    simulated = {
        part.name: {_design(part, int(row)) for row in part.check.rows} if part.check is not None else set()
        for part in study.parts
    }
    return Several(explorations=explorations, choice=choice, starred=starred, simulated=simulated)


def _design(part: Part, row: int) -> int:
    return int(part.analysis.exploration.table["design"][row])


def several_section(study: Study) -> Section | None:
    """Return how the best design moves and what each choice regrets, or nothing to compare."""
    found = several(study)
    return None if found is None else section_of(found)


def section_of(found: Several) -> Section:
    """Return the workloads of a study side by side in words and a table."""
    choice = found.choice
    lines = [
        "regret: how much farther from the ideal a design is than the best for that traffic, every objective "
        f"scaled to its range on that front (0.1: a tenth of the range of one); values {found.values}"
    ]
    for k, name in enumerate(choice.names):
        lines += _moves(found, k) if k else []
        if choice.best[k] is None:
            lines.append(f"no design is feasible under {name}")
    lines += _robust(found)
    rows = []
    for design, words in found.candidates.items():
        regrets = list(choice.regret_of(design).values())
        rows.append([design, *map(_regret, regrets), _regret(max(regrets)), words])
    headings = ["design", *(f"regret under {name}" for name in choice.names), "greatest", ""]
    return Section(title="One design for all traffic", lines=lines, headings=headings, rows=rows)


def _regret(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "fails"


def _moves(found: Several, k: int) -> list[str]:
    """Return how the best design of the first workload has to change for another, and what if it does not."""
    choice = found.choice
    first, name, old, new = choice.names[0], choice.names[k], choice.best[0], choice.best[k]
    if old is None or new is None:
        return []
    if old == new:
        return [f"the best design is the same for {first} and {name}: {found.described(new)}"]
    pairs = {one: (found.value(first, old, one), found.value(name, new, one)) for one in found.fields()}
    changes = ", ".join(
        f"{SHORT.get(one, one)} {number(a)} to {number(b)}" for one, (a, b) in pairs.items() if a != b
    )
    regret = choice.regret_of(old)[name]
    if not np.isfinite(regret):
        stays = f"design {old} fails under {name}: {_failure(found, name, old)}"
    else:
        word = "as good there" if regret <= NEAR else "a loss there"
        stays = f"design {old} is {word}, regret {regret:.2f}: {_against(found, name, old, new)}"
    return [f"from {first} to {name} the best design moves from {old} to {new}: {changes}", stays]


def _failure(found: Several, name: str, design: int) -> str:
    """Return why a design is not feasible under a workload."""
    table, row = found.explorations[name].table, found.row(name, design)
    if not table["stable"][row]:
        return f"saturated, {table['bottleneck'][row]} at {100 * table['bottleneck_load'][row]:.0f} %"
    for one in found.explorations[name].excluded:
        metric, sign, limit = (one.constraint.split(" ") + ["", ""])[:3]
        value = float(table[metric][row]) if metric in table else np.nan
        if (sign == "<=" and value > float(limit)) or (sign == ">=" and value < float(limit)):
            return f"{metric.replace('_', ' ')} {number(value)}, not {sign} {limit}"
    return "an objective is infinite"


def _against(found: Several, name: str, design: int, best: int) -> str:
    """Return the objectives of a design under a workload relative to those of its best."""
    words = []
    for metric in found.explorations[name].objectives:
        own, other = (float(found.value(name, one, metric)) for one in (design, best))
        if not np.isclose(own, other, rtol=5e-4):
            change = f"{100 * (own / other - 1):+.2g} %" if other else f"{number(own)}, not 0"
            words.append(f"{metric.replace('_', ' ')} {change}")
    return ", ".join(words) or "the same objectives"


def _robust(found: Several) -> list[str]:
    choice = found.choice
    chosen = choice.chosen
    if chosen is None:
        counts = np.isfinite(choice.regret).sum(axis=1)
        each = ", ".join(f"{count} under {name}" for name, count in zip(choice.names, counts, strict=True))
        return [f"no design is feasible under all {len(choice.names)}: {each}"]
    regrets = choice.regret_of(chosen)
    worst = max(regrets, key=lambda name: regrets[name])
    lines = [
        f"robust over all {len(choice.names)}, of {choice.feasible} designs feasible under all: "
        f"{found.described(chosen)}: regret at most {regrets[worst]:.2f}, under {worst}"
    ]
    for name, best in zip(choice.names, choice.best, strict=True):
        if best is not None and best != chosen:
            lines.append(f"against the best for {name}: {_against(found, name, chosen, best)}")
        elif best == chosen:
            lines.append(f"it is the best for {name}")
    missing = [name for name in choice.names if chosen not in found.simulated.get(name, set())]
    if missing:
        lines.append(f"not simulated under {' and '.join(missing)}")
    return lines


def several_summary(study: Study) -> dict[str, Any] | None:
    """Return the same for a program."""
    found = several(study)
    if found is None:
        return None
    choice = found.choice
    regrets = {str(design): choice.regret_of(design) for design in found.candidates}
    best = dict(zip(choice.names, choice.best, strict=True))
    return {"robust": choice.chosen, "best": best, "feasible_under_all": choice.feasible, "regret": regrets}
