"""A decision whose answer is simulated: the designs that it names, and the traffic that it allows."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from cases.study.check import Progress, Runs
from cases.study.deciding import Simulator, decide_case
from cases.study.goals import question_of, traffic_field
from optimize.decisions.changes import TRIES, Evaluate, Growth, simulated_growth
from optimize.decisions.decision import Decision
from optimize.search.exploration import Exploration

SHARE = 1 / 3
"""Of the time for simulations that is kept for what the answer says beside its choice."""

ROUNDS = 4
"""How often the designs that an answer names are simulated: what is found may make it name others."""


def proven_case(
    model: Exploration,
    evaluate: Evaluate,
    *,
    runs: Runs,
    store: Path | None,
    budget_seconds: float | None,
    points: int | None = None,
    also: Iterable[int] = (),
    enough: int | None = None,
    progress: Progress | None = None,
) -> tuple[Decision, Growth | None]:
    """Return a decision, and the traffic that simulations of its choice bear out; None: not simulated.

    ``evaluate``: the model; the others: see `decide_case`. Of a time for simulations a third is kept for the
    designs that the answer names and for its traffic; what does not fit stays the model's word, and the
    answer says so. Without one, or with ``points``, nothing is simulated for them.
    """
    deciding = partial(decide_case, model, runs=runs, store=store, progress=progress)
    if not budget_seconds or points is not None:
        found = deciding(budget_seconds=budget_seconds, points=points, also=also, enough=enough)
        return found, None
    decision = deciding(budget_seconds=(1 - SHARE) * budget_seconds, also=also, enough=enough)
    each = decision.seconds / max(len(decision.simulated), 1)
    end = time.perf_counter() + max(SHARE * budget_seconds, budget_seconds - decision.seconds)

    def fit(most: int) -> int:
        return max(0, min(most, int((end - time.perf_counter()) / each) if each else most))

    for _ in range(ROUNDS):
        if decision.chosen not in decision.results:
            break
        tried = {*decision.results, *decision.failed}
        rows = [row for row in question_of(decision).named() if row not in tried]
        rows = rows[: fit(len(rows))]
        if not rows or decision.interrupted:
            break
        decision = deciding(budget_seconds=None, points=1, also=rows, after=decision)
    decision, grown = replace(decision, budget=budget_seconds), None
    traffic = traffic_field(decision)
    if traffic is not None and decision.chosen in decision.results and not decision.interrupted:
        try:
            question, simulate = question_of(decision), Simulator(runs, store)
            grown = simulated_growth(question, evaluate, traffic, simulate, tries=fit(TRIES))
        except KeyboardInterrupt:
            decision = replace(decision, interrupted=True)
    return decision, grown
