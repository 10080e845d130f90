"""Waits of accesses in order: between those of two visits that meet and those under saturation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.memory.dram.bank_waits import in_order_banks
from qmodels.memory.dram.channel_visits import Visits, channel_visits
from qmodels.memory.dram.recursions.order import numbers, serve_in_order
from qmodels.memory.dram.recursions.sequence import Steps
from qmodels.memory.dram.visit_pairs import pair_slopes
from qmodels.systems.memory.dram_system import DramSystem, Packets, RandomBlocks

MOST_LAGS = 64
MOST_BURSTS = 7
"""Bursts of a bank time up to which `in_order_banks` solves its chain exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderTimes:
    r"""Service of accesses in order, from the sequence of banks, rows and directions.

    Visits arrive as a Poisson process with rate :math:`\nu`; the load is :math:`\rho = \nu E[X]`, with
    the time :math:`X` of a visit that follows without a pause. A visit meets at most one other at low
    load, which gives :math:`m_0` exactly, see `qmodels.memory.dram.visit_pairs.pair_slopes`; near
    saturation the channel is a single server whose times are correlated, of asymptotic variance
    :math:`V`, which gives :math:`m_1 = E[X]^2 + V`. Between them (as in `in_order_banks`)

    .. math:: W = \nu \, \frac{(1 - \rho) m_0 + \rho m_1}{2 (1 - \rho)}.

    The largest rate is exact but for the sample. A known sequence is not a sample: there the law of the
    wait is followed along it, with the differences that two accesses have alone and those under
    saturation, and the results are weighed by :math:`1 - \rho` and :math:`\rho`, see
    `qmodels.memory.dram.recursions.sequence`.
    """

    # size, time: accesses of a visit of the channel, and the time that it takes under saturation, means
    # [cycles].
    size: float
    time: float
    # pairs, saturated: second moments that stand for the time of a visit at low load and under saturation
    # [cycles^2].
    pairs: float
    saturated: float
    # Mean delay of an access in an idle system: opening its row, and those of its own packet [cycles].
    alone: float
    # Accesses that find their bank busy: alone, what each unit of load adds to it, under saturation.
    conflicts: tuple[float, float, float]
    row_hit_ratio: float  # accesses of a visit alone whose row is open
    steps: tuple[Steps, ...] = ()  # of a known sequence: as pairs make them, and under saturation
    part: float = 1.0  # share of the accesses of the system that the channel gets of such a sequence
    only_banks: dict[str, Any] | None = None  # what `in_order_banks` needs, where it is exact

    @property
    def max_rate(self) -> float:
        """Accesses per cycle that can be served."""
        if self.only_banks is not None:
            return in_order_banks(arrival_rate=0.0, **self.only_banks).max_rate
        return self.size / self.time

    def waits(self, rate: Any) -> tuple[FloatArray, FloatArray]:
        """Wait of accesses for other visits, and the share of them that finds its bank busy.

        Parameters
        ----------
        rate : float or array
            Accesses of the channel, below the largest rate. [accesses/cycle]

        Returns
        -------
        tuple of array
            Mean wait, in cycles, and the share of those whose bank is busy when their turn has come.
        """
        rate = np.asarray(rate, dtype=float)
        if self.only_banks is not None:
            found = in_order_banks(arrival_rate=rate, **self.only_banks)
            return np.asarray(found.mean_waiting_time), np.asarray(found.conflict_probability)
        load = np.minimum(rate / self.max_rate, 1 - 1e-9)
        square = (1 - load) * self.pairs + load * self.saturated
        wait = rate / self.size * square / (2 * (1 - load))
        alone, slope, full = self.conflicts
        if not self.steps:
            met = slope * load + (full - alone - slope) * load**2
            return wait, np.clip(alone + met, 0.0, 1.0)
        both = np.zeros((2, load.size))
        for point, (x, w, r) in enumerate(zip(load.ravel(), wait.ravel(), rate.ravel(), strict=True)):
            low, high = (np.array(step.waits(r / self.part, 0.2 + w)) for step in self.steps)
            both[:, point] = (1 - x) * low + x * high
        along, met = both.reshape(2, *rate.shape)
        return along, np.clip(alone + met, 0.0, 1.0)


def order_times(spec: DramSystem, channel: int) -> OrderTimes:
    """Service of the accesses of a channel; their sequence is followed once for all loads."""
    unloaded = replace(spec, controller_cycles=0, traffic=replace(spec.traffic, arrival_rate=1.0))
    return _order_times(unloaded, channel)


@lru_cache(maxsize=256)
def _order_times(spec: DramSystem, channel: int) -> OrderTimes:
    rng = np.random.default_rng(1)
    visits = channel_visits(spec, channel, rng)
    timing = numbers(spec)

    def serve(which: Visits, index: IntArray, run: IntArray, arrival: IntArray) -> Any:
        return serve_in_order(
            timing, run, arrival, which.bank[index], which.rows(run, index), which.write[index]
        )

    every = np.arange(visits.visit.size)
    column, busy = serve(visits, every, visits.visit, visits.offset)
    delay, conflicts = pair_slopes(spec, visits, serve, column, busy, rng)
    order, full = _saturated_order(visits, serve, every, rng)
    ends = np.sort(full[0][np.argsort(order)][np.append(np.diff(visits.visit) > 0, True)])
    times = np.diff(ends).astype(float)
    time = float(times.mean())
    result = OrderTimes(
        size=visits.size,
        time=time,
        pairs=2 * delay,
        saturated=time**2 + _asymptotic_variance(times, spec.timing.read_cycle),
        alone=float(np.mean(column - visits.offset)),
        conflicts=(float(busy.mean()), conflicts / time, float(full[1].mean())),
        row_hit_ratio=_row_hits(spec, visits),
    )
    if isinstance(spec.traffic, RandomBlocks):
        return replace(result, only_banks=_only_banks(spec))
    if isinstance(spec.traffic, Packets):
        return result
    two = np.column_stack([every[:-1], every[1:]]).ravel()
    met, found = (x.reshape(-1, 2)[:, 1] for x in serve(visits, two, np.repeat(every[:-1], 2), 0 * two))
    ahead = np.diff(visits.position)
    # One that need not wait may open its row while the one before has the bus.
    spare = np.minimum(spec.timing.burst - np.diff(column), 0)
    together = np.where(met > column[1:], met - column[1:], spare)
    others = [(together, found), (np.diff(full[0] - column), full[1][1:])]
    return replace(
        result,
        steps=tuple(
            Steps(gap=gap.astype(float), ahead=ahead, counted=(late & ~busy[1:]).astype(float))
            for gap, late in others
        ),
        part=visits.position.size / (visits.position[-1] + 1),
    )


def _only_banks(spec: DramSystem) -> dict[str, Any] | None:
    """Arguments of `in_order_banks` where only bus and banks separate random reads."""
    t, g, traffic = spec.timing, spec.geometry, spec.traffic
    if not isinstance(traffic, RandomBlocks) or traffic.write_fraction or g.ranks > 1:
        return None
    rows = t.t_faw or t.t_rrd_l > t.burst or t.t_ccd_l > t.burst or t.t_rcd or t.t_rp
    if rows or not t.t_rtp == t.read_cycle <= MOST_BURSTS * t.burst:
        return None
    hits = 0.0 if spec.page_policy == "closed" else traffic.row_hit_probability
    return {
        "burst": t.burst, "bank_busy": t.read_cycle, "banks": g.channel_banks, "row_hit_probability": hits,
    }  # fmt: skip


def _saturated_order(visits: Visits, serve: Any, every: IntArray, rng: np.random.Generator) -> Any:
    """Return the order in which accesses come at the largest rate, and what becomes of them."""
    order = every
    full = serve(visits, order, 0 * order, 0 * order)
    if visits.offset.any():
        # Packets overlap as much as they do at that rate.
        for _ in range(2):
            start = np.cumsum(rng.standard_exponential(visits.count)) * (full[0][-1] / visits.count)
            order = np.argsort(start[visits.visit] + visits.offset, kind="stable")
            full = serve(visits, order, 0 * order, 0 * order)
    return order, full


def _row_hits(spec: DramSystem, visits: Visits) -> float:
    if spec.page_policy == "closed":
        return 0.0
    if visits.row is None:
        return float(np.mean(visits.hit))
    order = np.lexsort((visits.bank, visits.visit))
    same = (np.diff(visits.visit[order]) == 0) & (np.diff(visits.bank[order]) == 0)
    return float((same & (np.diff(visits.row[order]) == 0)).sum() / visits.visit.size)


def _asymptotic_variance(times: FloatArray, memory: float) -> float:
    lags = min(int(2 * memory / times.mean()) + 1, MOST_LAGS, times.size // 4)
    d = times - times.mean()
    return float(max(d.var() + 2 * sum(float(np.mean(d[:-k] * d[k:])) for k in range(1, lags + 1)), 0.0))
