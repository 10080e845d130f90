"""The decision of a study: a model and its simulation handed to `optimize.decide`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.study.check import Progress, Runs
from cases.study.packet_processor import ERROR
from optimize.decisions.decide import decide
from optimize.decisions.decision import Decision, Interrupted
from optimize.search.exploration import Exploration
from qmodels.systems.spec.metrics import is_relative


def stated_errors(model: Exploration) -> dict[str, npt.ArrayLike | None]:
    """Return the metrics that a simulation corrects, with the mean error that the model states of each.

    Those with a stated error, and the objectives and limits that the simulator estimates; a cost is exact.
    """
    errors: dict[str, npt.ArrayLike | None] = {
        name.removeprefix(ERROR): np.asarray(column) / 100
        for name, column in model.table.items()
        if name.startswith(ERROR)
    }
    estimated = set(type(model.space.base).metric_names.both) - {"cost"}
    asked = (*model.objectives, *model.subject_to)
    return {**{name: None for name in asked if name in estimated}, **errors}


def decide_case(
    model: Exploration,
    *,
    runs: Runs,
    store: Path | None,
    budget_seconds: float | None,
    points: int | None = None,
    also: Iterable[int] = (),
    after: Decision | None = None,
    enough: int | None = None,
    progress: Progress | None = None,
) -> Decision:
    """Decide on an exploration of a system of any kind that has a simulator, see `optimize.decide`."""
    stated = stated_errors(model)
    return decide(
        model,
        Simulator(runs, store),
        stated=stated,
        bounded=[name for name in stated if not is_relative(name)],
        subject_to=model.subject_to,
        budget_seconds=budget_seconds,
        points=points,
        also=also,
        after=after,
        enough=enough,
        seed=runs.seed,
        progress=progress,
    )


class Simulator:
    """Simulates batches of designs; an interrupted one hands over what is finished."""

    def __init__(self, runs: Runs, store: Path | None) -> None:
        self._runs, self._store = runs, store

    def __call__(self, specs: list[Any]) -> list[Any]:
        """Return the result of each spec."""
        from validate import CampaignInterrupted

        if self._store is not None:
            self._store.parent.mkdir(parents=True, exist_ok=True)
        try:
            return list(self._runs.simulate(specs, store=self._store, progress=lambda done, total: None))
        except CampaignInterrupted as stop:
            campaign = stop.campaign
            raise Interrupted(dict(zip(campaign.points, campaign, strict=True))) from stop
