"""Step, channels and link width of the STNoC's set-up of 8 nodes: all designs, and the papers' greedy way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cases.published.stnoc.specs import WIDTHS, open_noc
from cases.tables import text_table
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.pareto import hypervolume
from optimize.spaces.space import Space
from qmodels.systems.noc.spec import Noc

STEPS, CHANNELS = (1, 2, 4, 8, 16, 32), (1, 2, 4)
FIELDS = ("step", "channels", "link_width")
ORDER = ("channels", "step", "link_width")
"""In which the greedy search varies them: a step needs channels."""
MAXIMIZE, MINIMIZE = ("knee_rate",), ("link_bits",)


@dataclass(frozen=True, kw_only=True)
class Design:
    """What the paper varies."""

    # step, channels, link_width: packets to a channel before the next one, memory channels, and bytes of a
    # link.
    step: int = 32
    channels: int = 1
    link_width: int = 16


def space() -> Space:
    """Return the 54 designs; the base is one channel with the width of the set-up."""
    return Space(Design(), step=list(STEPS), channels=list(CHANNELS), link_width=list(WIDTHS))


def knee(noc: Noc, *, cycles: int, replications: int) -> tuple[float, float]:
    """Return between which rates the simulated packet latency passes 10 times that without load.

    With long steps the queues of sources that meet at a channel grow for hundreds of cycles long
    before they grow without end: this is where the delays of the paper's Fig. 3 rise.
    """
    from validate import simulate

    def latency(rate: float) -> float:
        one = replace(noc, injection_rate=rate)
        result = simulate(one, cycles=cycles, replications=replications, progress=lambda done, known: None)
        return result.packet_latency.best if result.stable else float("inf")

    low, high = 0.0, 1 / float(noc.flow_table().channel_load().max())
    most = 10 * latency(0.02 * high)
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if latency(middle) <= most else (low, middle)
    return low, high


def simulate_grid(*, cycles: int, replications: int) -> list[dict[str, Any]]:
    """Return the simulated `knee` of every design [packets/cycle/CPU]; one channel has no step."""
    rows: list[dict[str, Any]] = []
    for width in WIDTHS:
        for channels in CHANNELS:
            for step in STEPS if channels > 1 else STEPS[:1]:
                noc = open_noc(channels=channels, step=step, link_width=width)
                low, high = knee(noc, cycles=cycles, replications=replications)
                rows += [
                    {"step": s, "channels": channels, "link_width": width, "low": low, "high": high}
                    for s in ([step] if channels > 1 else STEPS)
                ]
    return rows


def explore_designs(grid: Iterable[Mapping[str, Any]]) -> tuple[Exploration, Exploration]:
    """Return all designs and those of the greedy search: simulated rates against wires."""
    known = {tuple(row[name] for name in FIELDS): (row["low"] + row["high"]) / 2 for row in grid}

    def evaluate(design: Design) -> dict[str, float]:
        rate = known[design.step, design.channels, design.link_width]
        return {"knee_rate": rate, "link_bits": 8.0 * design.link_width}

    every = explore(space(), evaluate, maximize=MAXIMIZE, minimize=MINIMIZE)
    greedy = explore(space(), evaluate, maximize=MAXIMIZE, minimize=MINIMIZE, method="greedy", order=ORDER)
    return every, greedy


def front_points(exploration: Exploration) -> list[tuple[int, ...]]:
    """Return the designs of a front."""
    table = exploration.table
    return [tuple(int(table[name][row]) for name in FIELDS) for row in exploration.front]


def dominated(exploration: Exploration) -> float:
    """Return the hypervolume that a front dominates."""
    table, front = exploration.table, exploration.front
    costs = np.stack([-table["knee_rate"], table["link_bits"]], axis=1)[front]
    return hypervolume(costs, reference=[0.0, 8.0 * 33])


def greedy_rows(greedy: Exploration) -> list[dict[str, Any]]:
    """Return what the greedy search looked at, and whether it was kept."""
    return [{"field": step.field, "value": step.value, "kept": step.kept} for step in greedy.history]


def designs_text(every: Exploration, greedy: Exploration) -> str:
    """Return the front, and what the greedy search found of it."""
    front, found = front_points(every), set(front_points(greedy))
    rates = every.table["knee_rate"][every.front]
    rows = [
        [*point, f"{rate:.4f}", "yes" if point in found else "no"]
        for point, rate in zip(front, rates, strict=True)
    ]
    title = (
        f"Designs: {len(every.table['design'])}, the greedy search looked at {len(greedy.table['design'])}; "
        f"it found {len(found & set(front))} of {len(front)} on the front, "
        f"hypervolume {100 * dominated(greedy) / dominated(every):.1f} %"
    )
    return f"{title}\n" + text_table(["step", "channels", "width", "rate", "greedy"], rows)
