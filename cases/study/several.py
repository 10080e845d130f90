"""Several workloads in one study: how the best design moves, what each choice regrets, the robust one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optimize.decisions.decision import RobustChoice, robust_choice
from optimize.search.exploration import Exploration


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
    def candidates(self) -> dict[int, str]:
        """Designs to lay beside each other, with what each is: robust, best or starred under a workload."""
        named = [(self.choice.chosen, "robust")]
        best = zip(self.choice.names, self.choice.best, strict=True)
        named += [(design, f"best for {name}") for name, design in best]
        named += [(design, f"starred for {name}") for name, design in self.starred.items()]
        words: dict[int, list[str]] = {}
        for design, said in named:
            if design is not None:
                words.setdefault(design, []).append(said)
        shared = set(self.choice.designs.tolist())
        return {design: ", ".join(every) for design, every in words.items() if design in shared}

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


def several(study: Any) -> Several | None:
    """Return the workloads of a study side by side; None for a single one, or where spaces differ."""
    if len(study.parts) < 2:
        return None
    main = study.parts[0].model
    if any(part.model.space.choices != main.space.choices or not part.model.complete for part in study.parts):
        return None
    explorations = {
        part.name: replace(part.model, table=part.decision.table, feasible=part.decision.feasible)
        for part in study.parts
    }
    choice = robust_choice(
        {name: one.table for name, one in explorations.items()},
        {name: one.feasible for name, one in explorations.items()},
        minimize=main.minimize,
        maximize=main.maximize,
    )
    chosen = {part.name: part.design(part.decision.chosen) for part in study.parts}
    starred = {name: design for name, design in chosen.items() if design is not None}
    simulated = {
        part.name: set(part.model.table["design"][part.decision.simulated].tolist()) for part in study.parts
    }
    return Several(explorations=explorations, choice=choice, starred=starred, simulated=simulated)


def several_summary(study: Any) -> dict[str, Any] | None:
    """Return the same for a program."""
    found = several(study)
    if found is None:
        return None
    choice = found.choice
    regrets = {str(design): choice.regret_of(design) for design in found.candidates}
    best = dict(zip(choice.names, choice.best, strict=True))
    return {"robust": choice.chosen, "best": best, "feasible_under_all": choice.feasible, "regret": regrets}
