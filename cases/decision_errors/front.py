"""How near the decision of a minute is to that of simulating every design of the default study.

``python -m cases.decision_errors.front`` replays studies of the main workload: the model is solved anew, the
simulations are looked up in what is kept (`cases.decision_errors.kept`), with independent noise of the size
of their intervals, and the designs found are judged by the values kept. A minute on one core.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cases.decision_errors.kept import PACKETS, REPLICATIONS, WORKLOADS, Kept
from optimize.decisions.decision import Decision
from optimize.search.pareto import FloatArray, IntArray, compare_fronts, ideal_distance

SECONDS, CORES = 60, 2
PACKETS_PER_SECOND = 37_000
"""Simulated on one core of the machine of the measurements."""

FITTING = 0.1
"""Share of the time that goes into the corrections."""

SEEDS = range(3)


def points(packets: int) -> int:
    """Return how many designs a study simulates in the time, from a trace of so many packets.

    >>> points(6000)
    83
    """
    each = 2 * REPLICATIONS * min(packets, PACKETS) / PACKETS_PER_SECOND
    return int((1 - FITTING) * SECONDS * CORES / each)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A decision by the values of the reference."""

    hypervolume: float  # of the designs of its front over that of the reference's front
    # How much farther the chosen design is from the ideal of the reference's front than the front's knee,
    # relative to the knee's distance (see `optimize.knee_index`); infinite if it is not feasible.
    regret: float


def judge(kept: Kept, front: IntArray, chosen: int | None) -> Judged:
    """Judge rows of a front and a chosen row by what was simulated."""
    truth = kept.truth
    goal: FloatArray = truth.values[truth.front]
    able = front[truth.feasible[front]]
    ratio = compare_fronts(truth.values[able], goal, maximize=truth.maximized).hypervolume_ratio
    regret = np.inf
    if chosen is not None and truth.feasible[chosen] and truth.knee is not None:
        rows = truth.values[[chosen, truth.knee]]
        own, best = ideal_distance(rows, goal, maximize=truth.maximized)
        regret = float(own / best - 1)
    return Judged(hypervolume=ratio, regret=regret)


def line(name: str, judged: Judged, decision: Decision | None = None) -> str:
    """Return the words on one decision."""
    volume, regret = 100 * judged.hypervolume, 100 * judged.regret
    text = f"{name}: hypervolume {volume:.2f} %, chosen {regret:.1f} % from the best"
    if decision is None:
        return text
    held = "simulated" if decision.chosen in decision.simulated else "not simulated"
    return f"{text}, {held}; {len(decision.simulated)} simulated, {len(decision.open)} open"


def main() -> None:
    """Print the model's front, and those of studies, against the reference."""
    kept = Kept.load(WORKLOADS[0])
    count = points(len(kept.model.space.base.workload.arrivals.trace))
    every, truth = kept.model.space.size, kept.truth
    print(
        f"{len(kept.table['design'])} of {every} designs simulated, {len(truth.front)} of them on the front"
    )
    print(line("model alone", judge(kept, kept.model.front, kept.model.knee)))
    found = []
    for seed in SEEDS:
        decision = kept.decide(count, seed, noise=True)
        found.append(judge(kept, decision.front, decision.chosen))
        print(
            line(f"{SECONDS} s on {CORES} cores ({count} designs), seed {seed}", found[-1], decision),
            flush=True,
        )
    print(
        f"least hypervolume {100 * min(one.hypervolume for one in found):.2f} % (bar 95), "
        f"chosen at most {100 * max(one.regret for one in found):.1f} % from the best (bar 3)"
    )


if __name__ == "__main__":
    main()
