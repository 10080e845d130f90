"""Where an access to a DRAM channel waits: bus, row commands, bank, refresh, writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.memory.access_pattern import AccessPattern
from qmodels.memory.bank_waits import in_order_banks
from qmodels.memory.dram_limits import bank_times, bus_time, order_arguments, refresh_time, turnaround
from qmodels.queues.mg1 import mg1_waiting_time
from qmodels.systems.dram_system import DramSystem
from qmodels.systems.dram_traffic import RandomBlocks

_HELD_BACK = 0.22
"""Share of the wait for a row command by which the bank's next access starts later; fitted to cycle
simulators at DDR4-3200 with closed pages, one rank, up to 0.85 of the row commands."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelWaits:
    """Mean parts of a latency at one channel, arrays of one value for each load. [cycles].

    Parameters
    ----------
    row : float or array
        Opening the row, unloaded.
    row_hit_ratio : array
        Accesses that find their row open.
    bank, activation, bus, refresh, queue : array
        Waiting for the bank, for the rank's row commands, for the data bus, for refreshes while they
        last, and behind accesses of the other direction.
    backlog : array
        Waiting behind what refreshes have held up.
    write_queue : array
        What writes wait until it is their turn.
    row_open : float or array
        Probability that another row is open where a row is to be opened.
    bank_conflict, refreshed : array
        Probability that an access in order finds its bank busy; that one is delayed by a refresh.
    reach : dict of str to float or array
        Of bank, activation, bus and refresh: the longest time that one predecessor makes an access wait.
    """

    row: Any
    row_hit_ratio: Any
    bank: Any
    activation: Any
    bus: Any
    refresh: Any
    backlog: Any
    queue: Any
    write_queue: Any
    row_open: Any
    bank_conflict: Any
    refreshed: Any
    reach: dict[str, Any]


def channel_waits(spec: DramSystem, pattern: AccessPattern, rate: Any) -> ChannelWaits:
    r"""Return where accesses wait at a channel that gets ``rate`` of them, below its largest rate.

    Notes
    -----
    Three kinds of servers in a hierarchy, a pair of accesses meeting at the narrowest they share:
    bus (time :math:`L`), row commands of a rank (:math:`s = \max(t_{FAW}/4, t_{RRD})`), bank
    (:math:`D = t_{RC}`). With :math:`w(\lambda, m_1, m_2) = \lambda m_2 / 2 (1 - \lambda m_1)`

    .. math:: W = w_{bus} + (1 - (L/s)^2)\, w_{row} + (1 - (s/D)^2)\, w_{bank},

    exact to first order in the rate for Poisson arrivals. Two row commands only have to be
    :math:`t_{RRD}` apart, so that the second moment of :math:`s` goes from that of tRRD to
    :math:`s^2` in proportion to the load of the row commands; a bank is held back by a share of the
    wait for row commands. Row hits make the bank's time depend on the pair: see `bank_times`.

    A refresh that blocks a rank for :math:`b` leaves accesses that are served at the rate of the
    narrowest resource of the rank: as a fluid, they wait :math:`b^2 / 2 t_{REFI} (1 - \rho)` on
    average, with :math:`\rho` the load of that resource in the time that is left; the part of
    :math:`\rho` in it is the backlog.

    Batches multiply the second moments, regular streams the waits by the scv of the arrivals.
    """
    t, g = spec.timing, spec.geometry
    rate = np.asarray(rate, dtype=float)
    closed = spec.page_policy == "closed"
    miss = 1 - pattern.row_hit_ratio
    bank_rate = rate * pattern.bank_share
    row_open = 0.0 if closed else _row_open(spec, bank_rate)
    # A row that would be hit is closed where its bank was not used since the last refresh; the visits of
    # streams and packets to a row are close together.
    random = isinstance(spec.traffic, RandomBlocks)
    shut = pattern.row_hit_ratio * (1 - row_open) if random and not closed else 0.0
    opening = miss * (t.t_rcd + t.t_rp * row_open) + shut * t.t_rcd
    if spec.scheduler == "in-order":
        return _in_order(spec, pattern, rate, opening, row_open, shut)
    batch, batch2 = pattern.bus_batch
    slot = bus_time(spec)
    bus = pattern.channel_scv * (rate / batch) * (batch2 * t.burst**2) / (2 * (1 - rate * slot))
    # Row hits of one bank group are further apart; row commands keep others apart anyway.
    group = np.minimum(rate * pattern.group_repeat * t.t_ccd_l, 1 - 1e-9)
    apart = (1 - miss**2) * (1 - (t.burst / t.t_ccd_l) ** 2)
    bus = bus + pattern.channel_scv * apart * group * t.t_ccd_l / (2 * (1 - group))

    rows = rate * miss / g.ranks
    batch, batch2 = pattern.row_batch
    gap = t.row_gap
    load = np.minimum(rows * gap, 1 - 1e-9)
    apart = ((g.groups - 1) * t.t_rrd_s**2 + t.t_rrd_l**2) / g.groups
    square = (1 - load) * max(apart, 1.0) + load * gap**2 if batch2 == 1 else batch2 * gap**2
    activation = pattern.channel_scv * miss * (rows / batch) * square / (2 * (1 - load))
    activation = activation * (1 - min(t.burst / gap, 1.0) ** 2) if g.ranks * gap > t.burst else 0 * rate

    mean, second = bank_times(spec, pattern)
    held = _HELD_BACK * activation
    batch, batch2 = pattern.bank_batch
    if batch2 > 1:
        # Accesses of one packet to one bank: the first opens the row, the others hit or open another.
        again = pattern.bank_repeat * t.t_ccd_l + (1 - pattern.bank_repeat) * t.read_cycle
        first = float(t.read_cycle)
        mean = (first + (batch - 1) * again) / batch
        second = first**2 + 2 * first * again * (batch - 1) + again**2 * (batch2 - 2 * batch + 1)
    second = second + 2 * mean * held + held**2
    mean = mean + held
    own = np.maximum(1 - bank_rate * mean, 1e-9)
    # What is regular or bursty is accesses; a burst of row hits does not hold up its bank.
    scv = 1 + (pattern.bank_scv - 1) * (miss if pattern.bank_scv > 1 else 1.0)
    bank = scv * (bank_rate / batch) * second / (2 * own)
    bank = bank * (1 - np.minimum(gap * miss / mean, 1.0) ** 2)

    block = refresh_time(spec, rows)
    refresh, backlog, late = 0.0 * rate, 0.0 * rate, 0.0 * rate
    if t.t_rfc:
        share = block / t.t_refi
        narrowest = np.maximum(rows * gap, bank_rate * bank_times(spec, pattern)[0])
        narrowest = np.minimum(np.maximum(narrowest, rate * slot / g.ranks) / (1 - share), 1 - 1e-9)
        refresh = block**2 / (2 * t.t_refi)
        backlog = refresh * narrowest / (1 - narrowest)
        late = np.minimum(share / (1 - narrowest), 1.0)
    queue, write_queue = _writes(
        spec, rate, opening + bank + activation + bus, max(slot, gap * miss / g.ranks)
    )
    return ChannelWaits(
        row=opening,
        row_hit_ratio=pattern.row_hit_ratio - shut + 0.0 * rate,
        bank=bank,
        activation=activation,
        bus=bus + pattern.alone,
        refresh=refresh,
        backlog=backlog,
        queue=queue,
        write_queue=write_queue,
        row_open=row_open,
        bank_conflict=0.0 * rate,
        refreshed=late,
        reach={"bank": mean, "activation": gap, "bus": slot, "refresh": block},
    )


def _row_open(spec: DramSystem, bank_rate: Any) -> Any:
    """Return the probability that a bank was used since the last refresh closed its rows."""
    if not spec.timing.t_rfc:
        return 1.0
    x = np.maximum(bank_rate * spec.timing.t_refi, 1e-9)
    return 1 + np.expm1(-x) / x


def _in_order(
    spec: DramSystem, pattern: AccessPattern, rate: Any, opening: Any, row_open: Any, shut: Any
) -> ChannelWaits:
    """Return the parts where accesses use the bus in their order."""
    t = spec.timing
    arguments = order_arguments(spec, pattern)
    slot = arguments["burst"]
    turn = 0.0
    write = spec.traffic.write_fraction
    if write:
        turn = write * (1 - write) * turnaround(spec)
    found = in_order_banks(arrival_rate=rate, **arguments)
    bus = mg1_waiting_time(rate, slot + turn, (slot + turn) ** 2)
    batch, batch2 = pattern.bus_batch
    factor = pattern.channel_scv * batch2 / batch
    block = refresh_time(spec, rate)
    load = np.minimum(rate / found.max_rate, 1 - 1e-9)
    late = np.minimum(block / max(t.t_refi, 1) / (1 - load), 1.0)
    zero = 0.0 * rate
    return ChannelWaits(
        row=opening,
        row_hit_ratio=pattern.row_hit_ratio - shut + zero,
        bank=factor * np.maximum(found.mean_waiting_time - mg1_waiting_time(rate, slot, slot**2), 0.0),
        activation=zero,
        bus=factor * bus + pattern.alone,
        refresh=block**2 / (2 * max(t.t_refi, 1)),
        backlog=block**2 / (2 * max(t.t_refi, 1)) * load / (1 - load),
        queue=zero,
        write_queue=zero,
        row_open=row_open,
        bank_conflict=found.conflict_probability,
        refreshed=late,
        reach={"bank": float(t.read_cycle), "activation": 1.0, "bus": slot, "refresh": block},
    )


def _writes(spec: DramSystem, rate: Any, wait: Any, each: float) -> tuple[Any, Any]:
    r"""Return what reads wait for full batches of writes, and writes for their turn.

    Writes go out whenever no read waits, which takes reads no time to speak of; where that is rare
    they are forced out in batches of ``write_high - write_low``. Reads wait :math:`R` on average, so
    that moments without any come every :math:`\tau = e^{\lambda_r R}/\lambda_r`; the share that is
    forced is taken to be :math:`e^{-high/\lambda_w \tau}`. An access takes ``each`` cycles of the channel.
    """
    write = spec.traffic.write_fraction
    zero = 0.0 * rate
    if not 0 < write < 1:
        return zero, zero
    reads, writes = rate * (1 - write), np.maximum(rate * write, 1e-12)
    batch = spec.write_high - spec.write_low
    work = batch * each + turnaround(spec)
    queue = zero
    for _ in range(30):
        present = np.minimum(reads * (wait + queue), 30.0)
        between = np.exp(present) / np.maximum(reads, 1e-12)
        forced = np.exp(-spec.write_high / (writes * between))
        often = writes * forced / batch
        idle = np.maximum(1 - reads * each, 1e-9)
        new = often * work**2 / (2 * idle)
        queue = 0.5 * (queue + new)
    full = spec.write_high / writes / 2
    return queue, np.minimum(-np.expm1(-present) * between, full)
