"""Grammatikakis et al.: designs of 8 nodes by step, channels and width, their front, and a greedy search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from cases.published.numbers import select
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.pareto import hypervolume
from optimize.spaces.space import Space
from qmodels.systems.noc.spec import Noc

WIDTHS, TRANSFERS = (8, 16, 32), (16, 32, 64, 128)
"""Bytes of a link, and of a transfer of an engine in Figure 4; Tables II and III have the last."""
STEPS, CHANNELS = (1, 2, 4, 8, 16, 32), (1, 2, 4)
FIELDS, ORDER = ("step", "channels", "link_width"), ("channels", "step", "link_width")
"""Of the designs, and in which order the greedy search varies them: a step needs channels."""


@dataclass(frozen=True, kw_only=True)
class Varied:
    """A design: packets to a channel before the next one, memory channels, and bytes of a link."""

    step: int = 32
    channels: int = 1
    link_width: int = 16


def knee(noc: Noc, **options: Any) -> tuple[float, float]:
    """Return between which rates the simulated packet latency passes 10 times that without load.

    With long steps the queues of sources that meet at a channel grow for hundreds of cycles long
    before they grow without end: this is where the delays of the paper's Fig. 3 rise.
    """
    from validate import simulate

    def latency(rate: float) -> float:
        one = replace(noc, injection_rate=rate)
        result = simulate(one, progress=lambda done, known: None, **options)
        return float(result.packet_latency.best) if result.stable else float("inf")

    low, high = 0.0, 1 / float(noc.flow_table().channel_load().max())
    most = 10 * latency(0.02 * high)
    for _ in range(6):
        middle = (low + high) / 2
        low, high = (middle, high) if latency(middle) <= most else (low, middle)
    return low, high


def simulate_grid(open_noc: Callable[..., Noc], **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the simulated `knee` of every design [packets/cycle/CPU]; one channel has no step."""
    for width in WIDTHS:
        for channels in CHANNELS:
            for step in STEPS if channels > 1 else STEPS[:1]:
                low, high = knee(open_noc(channels=channels, step=step, link_width=width), **options)
                for same in [step] if channels > 1 else STEPS:
                    yield {"step": same, "channels": channels, "link_width": width, "low": low, "high": high}


@cache
def _explored(known: tuple[tuple[float, ...], ...]) -> tuple[Exploration, Exploration]:
    rates = {row[:3]: row[3] for row in known}
    space = Space(Varied(), step=list(STEPS), channels=list(CHANNELS), link_width=list(WIDTHS))

    def evaluate(design: Varied) -> dict[str, float]:
        rate: Any = rates[design.step, design.channels, design.link_width]
        return {"knee_rate": rate, "link_bits": 8.0 * design.link_width}

    goals: dict[str, Any] = {"maximize": ("knee_rate",), "minimize": ("link_bits",)}
    return explore(space, evaluate, **goals), explore(space, evaluate, **goals, method="greedy", order=ORDER)


def explore_designs(grid: Iterable[Mapping[str, Any]]) -> tuple[Exploration, Exploration]:
    """Return all designs and those of the greedy search: simulated rates against wires."""
    return _explored(tuple((*(row[name] for name in FIELDS), (row["low"] + row["high"]) / 2) for row in grid))


def front_points(exploration: Exploration) -> list[tuple[int, ...]]:
    """Return the designs of a front."""
    table = exploration.table
    return [tuple(int(table[name][row]) for name in FIELDS) for row in exploration.front]


def dominated(exploration: Exploration) -> float:
    """Return the hypervolume that a front dominates."""
    table, front = exploration.table, exploration.front
    costs = np.stack([-table["knee_rate"], table["link_bits"]], axis=1)[front]
    return float(hypervolume(costs, reference=[0.0, 8.0 * 33]))


def greedy_rows(grid: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the designs that the greedy search evaluated, and whether each was kept."""
    history = explore_designs(grid)[1].history
    return [{"field": step.field, "value": step.value, "kept": step.kept} for step in history]


def design_rows(grid: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the front, and whether the greedy search found each of it."""
    every, searched = explore_designs(grid)
    rates, found = every.table["knee_rate"][every.front], front_points(searched)
    return [
        {**dict(zip(FIELDS, point, strict=True)), "rate": float(rate), "found": point in found}
        for point, rate in zip(front_points(every), rates, strict=True)
    ]


def step_rate(grid: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], float]:
    """Return the simulated rate at which delays rise with 16-byte links, by step and channels."""
    mine = select(grid, link_width=16)
    return {(row["step"], row["channels"]): (row["low"] + row["high"]) / 2 for row in mine}


def best_step(grid: Iterable[Mapping[str, Any]]) -> int:
    """Return the step with the highest rate with 4 channels."""
    rates = step_rate(grid)
    return max((step for step, channels in rates if channels == 4), key=lambda step: rates[step, 4])
