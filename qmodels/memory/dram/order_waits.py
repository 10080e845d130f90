"""Waits of accesses in order: between those of two visits that meet and those under saturation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.memory.dram.channel_visits import Visits, channel_visits
from qmodels.memory.dram.command_times import Steps, numbers, serve_in_order
from qmodels.memory.dram.packet_waits import pair_slopes
from qmodels.queues.general.mg1 import mg1_waiting_time
from qmodels.systems.memory.dram_system import DramSystem, Packets, RandomBlocks

MOST_STATES = 64
"""States up to which the chain over the ages of the banks in use is solved exactly."""
NEVER = 1e-12
"""Probability, but for rounding 0, that another bank is taken where all of them are in use."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BankWait:
    """Waits of random accesses to banks on a bus."""

    mean_waiting_time: Any  # from arrival to the start of the access; ``inf`` where the load is too high
    # Accesses that find their bank busy: in order, when their turn on the bus has come; oldest ready first,
    # on arrival.
    conflict_probability: Any
    max_rate: float  # accesses per cycle that can be served
    utilization: Any  # busy fraction of the bus, at most that of the largest rate


def _inputs(
    arrival_rate: npt.ArrayLike, burst: float, bank_busy: float, banks: int
) -> tuple[FloatArray, float, float, int]:
    rate = checks.nonnegative("arrival_rate", arrival_rate)
    slot = float(checks.positive("burst", burst))
    return rate, slot, float(checks.at_least("bank_busy", bank_busy, slot)), int(checks.count("banks", banks))


def ready_first_banks(*, arrival_rate: npt.ArrayLike, burst: float, bank_busy: float, banks: int) -> BankWait:
    r"""Return the waits of random accesses when the oldest access whose bank is free goes first.

    ``arrival_rate``: Poisson arrivals :math:`\lambda` [accesses/cycle]; ``burst``, ``bank_busy``: bus time
    :math:`L` of an access and time :math:`D \ge L` its bank is busy [cycles]; ``banks``: banks :math:`B`,
    each equally likely. Returns the wait is ``inf`` where the bus or the banks are overloaded.

    With :math:`w(\lambda, s) = \lambda s^2 / 2(1 - \lambda s)`, the wait of M/D/1,

    .. math:: W = w(\lambda, L) + (1 - (L/D)^2)\, w(\lambda/B, D).

    Approximate: exact to first order in the rate, where only pairs of accesses meet. Measured within
    0.9 % of simulation for D of 8 and 12, L of 4 and 8 banks up to 0.9 of the bus.
    """
    rate, slot, busy, b = _inputs(arrival_rate, burst, bank_busy, banks)
    top = min(1 / slot, b / busy)
    stable = rate < top
    safe = np.where(stable, rate, 0.0)
    wait = mg1_waiting_time(safe, slot, slot**2) + (1 - (slot / busy) ** 2) * mg1_waiting_time(
        safe / b, busy, busy**2
    )
    served = np.minimum(rate, top)
    return BankWait(
        mean_waiting_time=np.where(stable, wait, np.inf)[()],
        conflict_probability=np.minimum(served * busy / b, 1.0)[()],
        max_rate=top,
        utilization=(served * slot)[()],
    )


def in_order_banks(
    *,
    arrival_rate: npt.ArrayLike,
    burst: float,
    bank_busy: float,
    banks: int,
    row_hit_probability: float = 0.0,
) -> BankWait:
    r"""Return the waits of random accesses that use the bus in the order of their arrival.

    ``arrival_rate``: Poisson arrivals :math:`\lambda` [accesses/cycle]; ``burst``, ``bank_busy``: bus time
    :math:`L` of an access and time :math:`D \ge L` its bank is busy [cycles]; ``banks``: banks :math:`B`,
    each equally likely; ``row_hit_probability``: probability that an access does not have to wait for its
    bank but for the bus alone. Returns the wait is ``inf`` where accesses come faster than they can be
    started.

    The gap :math:`G` between starts under saturation is :math:`L`, or :math:`D - a` if the bank was
    last used :math:`a` ago. For :math:`D \le 2L` only the last access matters, gaps are independent
    and the wait is exactly that of Pollaczek and Khinchine, :math:`\lambda E[G^2] / 2 (1 - \rho)`
    with :math:`\rho = \lambda E[G]`. Otherwise gaps are a function of a Markov chain over the ages of
    the banks in use, solved exactly, whose covariances :math:`C = \sum_{k \ge 1} \mathrm{cov}(G_0, G_k)`
    correct the formula; at low load only pairs meet, with second moment :math:`m_0`:

    .. math:: W = \lambda \, \frac{(1 - \rho) m_0 + \rho (E[G^2] + 2 C)}{2 (1 - \rho)}.

    The largest rate, :math:`1/E[G]`, is exact. The wait is an approximation for :math:`D > 2L`,
    measured within 0.9 % of simulation for D/L from 3 to 5.5, 4 to 32 banks, up to 0.8 of the largest
    rate, and within 1.3 % at 0.9. Beyond `MOST_STATES` states (D/L above 7) the ages are kept as two
    numbers: largest rate and wait are then within 5 % for D/L up to 37.

    The conflict probability is exact for :math:`D \le 2L`; otherwise what each unit of load adds to it goes
    from what pairs add, exact at low load, to the share of delayed starts of the chain.
    """
    rate, slot, busy, b = _inputs(arrival_rate, burst, bank_busy, banks)
    miss = (1 - float(checks.probability("row_hit_probability", row_hit_probability))) / b
    mean, square, covariance, delayed = _saturated_gaps(slot, busy, miss, b)
    pairs = slot**2 + miss * (busy**2 - slot**2)
    load = rate * mean
    stable = load < 1
    x = np.where(stable, load, 0.0)
    wait = rate * ((1 - x) * pairs + x * (square + 2 * covariance)) / (2 * (1 - x))
    decay = np.exp(-rate * slot), np.exp(-rate * busy)
    found = miss * (1 - decay[1] * (1 - x) / ((1 - miss) * decay[0] + miss * decay[1]))
    if busy > 2 * slot:
        found = x * ((1 - x) * miss * busy / mean + x * delayed)
    return BankWait(
        mean_waiting_time=np.where(stable, wait, np.inf)[()],
        conflict_probability=np.where(stable, found, delayed)[()],
        max_rate=1 / mean,
        utilization=(np.minimum(rate, 1 / mean) * slot)[()],
    )


@cache
def _saturated_gaps(slot: float, busy: float, miss: float, banks: int) -> tuple[float, float, float, float]:
    """Return mean, second moment, summed covariance and share of the delayed of the gaps."""
    few = 2.0 ** (busy / slot - 1) <= MOST_STATES
    # In units of the slot: rounding then does not depend on the unit of time.
    build = _gap_chain if few else _long_gap_chain
    source, target, probability, gap, late = build(busy / slot, miss, banks)
    gap = gap * slot
    size = int(source.max()) + 1
    matrix, gaps = np.zeros((size, size)), np.zeros((size, size))
    np.add.at(matrix, (source, target), probability)
    np.add.at(gaps, (source, target), probability * gap)
    # All columns of I - P + 1 1' / n are independent; with it both the law and the potential follow.
    solved = np.linalg.inv(np.eye(size) - matrix + 1 / size)
    law = solved.sum(axis=0) / size
    means = gaps.sum(axis=1)
    mean = float(law @ means)
    potential = solved @ means
    covariance = float(law @ gaps @ potential - mean * (law @ potential))
    square = float(law[source] @ (probability * gap**2))
    return mean, square, covariance, float(law[source] @ (probability * late))


def _gap_chain(busy: float, miss: float, banks: int) -> Any:
    """Return the chain over the ages of the banks in use at a start, in slots."""
    numbers: dict[tuple[float, ...], int] = {(0.0,): 0}
    todo: list[tuple[float, ...]] = [(0.0,)]
    moves = []
    while todo:
        ages = todo.pop()
        # A bank that is not in use; or one that is, whose row is hit or has to be opened: it is in use anew.
        options = [(1.0, 1 - len(ages) / banks, False, ages)]
        for k, age in enumerate(ages):
            others = ages[:k] + ages[k + 1 :]
            options.append((max(1.0, busy - age), miss, busy - age > 1 + 1e-9, others))
            options.append((1.0, 1 / banks - miss, False, others))
        for gap, probability, late, kept in options:
            if probability < NEVER:
                continue
            state = (0.0, *(round(age + gap, 9) for age in kept if age + gap < busy - 1e-9))
            if state not in numbers:
                numbers[state] = len(numbers)
                todo.append(state)
            moves.append((numbers[ages], numbers[state], probability, gap, late))
    return tuple(np.array(column) for column in zip(*moves, strict=True))


def _long_gap_chain(busy: float, miss: float, banks: int) -> Any:
    """Return a chain with two numbers for the ages: of banks used since the last long gap, and before.

    The former are taken to be one slot apart; the latter will be free after one slot, two, and so on.
    """
    most = int(np.ceil(busy - 1e-9))
    numbers = {(1, 0): 0}
    todo = [(1, 0)]
    moves = []
    while todo:
        new, old = todo.pop()
        hit, later = 1 / banks - miss, max(old - 1, 0)
        options = [
            (1.0, 1 - (new + old) / banks, False, (min(new + 1, most), later)),
            (1.0, hit * new, False, (new, later)),
            (1.0, hit * old, False, (min(new + 1, most), max(old - 2, 0))),
        ]
        for k in range(new):
            gap = max(1.0, busy - k)
            options.append((gap, miss, gap > 1 + 1e-9, (1, k)))
        for k in range(1, old + 1):
            options.append((float(k), miss, k > 1, (min(new + 1, most), old - k)))
        for gap, probability, late, state in options:
            if probability < NEVER:
                continue
            state = (state[0], min(state[1], most - state[0]))
            if state not in numbers:
                numbers[state] = len(numbers)
                todo.append(state)
            moves.append((numbers[new, old], numbers[state], probability, gap, late))
    return tuple(np.array(column) for column in zip(*moves, strict=True))


MOST_LAGS = 64
MOST_BURSTS = 7
"""Bursts of a bank time up to which `in_order_banks` solves its chain exactly."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderTimes:
    r"""Service of accesses in order, from the sequence of banks, rows and directions.

    Visits arrive as a Poisson process with rate :math:`\nu`; the load is :math:`\rho = \nu E[X]`, with
    the time :math:`X` of a visit that follows without a pause. A visit meets at most one other at low
    load, which gives :math:`m_0` exactly, see `qmodels.memory.dram.packet_waits.pair_slopes`; near
    saturation the channel is a single server whose times are correlated, of asymptotic variance
    :math:`V`, which gives :math:`m_1 = E[X]^2 + V`. Between them (as in `in_order_banks`)

    .. math:: W = \nu \, \frac{(1 - \rho) m_0 + \rho m_1}{2 (1 - \rho)}.

    The largest rate is exact but for the sample. A known sequence is not a sample: there the law of the
    wait is followed along it, with the differences that two accesses have alone and those under
    saturation, and the results are weighed by :math:`1 - \rho` and :math:`\rho`, see
    `qmodels.memory.dram.command_times`.
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
