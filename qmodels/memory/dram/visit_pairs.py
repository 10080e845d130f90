"""Interference of two visits of a channel: delays and conflicts to first order in the load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.memory.dram.channel_visits import Visits
from qmodels.systems.memory.dram_system import DramSystem, Packets, RandomBlocks

Serve = Callable[[Visits, IntArray, IntArray, IntArray], Any]
"""Of accesses of visits by their numbers, their runs and arrivals: when each is served, and whether its
bank was busy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MetVisits:
    """Delays and conflicts of pairs of visits, integrated over the time between the two."""

    access: IntArray  # the accesses of all pairs, by their numbers
    # delay, conflict: delay and conflicts of each, such that their sums are those of a pair, mean [cycles^2,
    # cycles].
    delay: FloatArray
    conflict: FloatArray


def pair_slopes(
    spec: DramSystem, visits: Visits, serve: Serve, alone: IntArray, busy: Any, rng: np.random.Generator
) -> tuple[float, float]:
    r"""Slopes of the delays and conflicts of an access in the rate of visits, at low load.

    ``visits``: what the channel is asked for; ``alone``, ``busy``: what it makes of each visit in an idle
    system; ``rng``: times between the visits, one from each of as many parts of the time in which they can
    meet.

    To first order in the rate :math:`\nu` of Poisson visits only pairs meet. If :math:`\Delta(t)` is the
    sum of what two visits :math:`t` apart add to the delays of their accesses, :math:`k` in each, the mean
    delay of an access grows by :math:`\nu \int_0^\infty E[\Delta(t)]\,dt / k` (here without :math:`\nu`).
    """
    met = met_visits(spec, visits, serve, alone, busy, rng)
    return float(met.delay.sum() / visits.size), float(met.conflict.sum() / visits.size)


def met_visits(
    spec: DramSystem, visits: Visits, serve: Serve, alone: IntArray, busy: Any, rng: np.random.Generator
) -> MetVisits:
    """Delays and conflicts that pairs of visits add to each of their accesses; see `pair_slopes`.

    Packets and random accesses meet two by two, the first with the second, the third with the fourth; of
    others each meets the next. Arrivals are rounded down to whole cycles at a random phase, so that their
    mean distance is kept.
    """
    t, random = spec.timing, isinstance(spec.traffic, Packets | RandomBlocks)
    begin = np.flatnonzero(np.diff(visits.visit, prepend=-1))
    sizes = np.diff(begin, append=visits.visit.size)
    first = np.arange(0, visits.count - 1, 2 if random else 1)
    second = first + 1
    strata = rng.permutation(first.size)
    if isinstance(spec.traffic, RandomBlocks):
        # Every distance of the two banks equally often, and at all times.
        bank = visits.bank.copy()
        bank[second] = (bank[first] + first // 2) % spec.geometry.channel_banks
        visits = replace(visits, bank=bank)
        strata = np.arange(first.size)
    horizon = max(t.read_cycle, t.write_cycle if spec.traffic.write_fraction else 0, t.t_faw)
    longest = np.maximum.reduceat(alone, begin)[first] + horizon
    apart = (strata + rng.random(first.size)) / first.size * longest
    shift = np.floor(rng.random(first.size) + apart).astype(np.int64)
    chosen = np.column_stack([first, second]).ravel()
    ends = np.cumsum(sizes[chosen])
    index = np.arange(ends[-1]) - np.repeat(ends - sizes[chosen] - begin[chosen], sizes[chosen])
    run = np.repeat(np.arange(first.size), sizes[first] + sizes[second])
    later = visits.visit[index] == second[run]
    arrival = visits.offset[index] + np.where(later, shift[run], 0)
    if visits.offset.any():
        order = np.lexsort((later, arrival, run))
        index, run, arrival = index[order], run[order], arrival[order]
    column, found = serve(visits, index, run, arrival)
    weight = longest[run] / first.size
    delay = column - arrival - (alone[index] - visits.offset[index])
    return MetVisits(
        access=index, delay=weight * delay, conflict=weight * (found.astype(float) - busy[index])
    )
