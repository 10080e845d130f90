"""Where an access to a DRAM channel waits: bus, row commands, bank, refresh, writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmodels.memory.access_pattern import AccessPattern
from qmodels.memory.dram_limits import bank_times, bus_time, refresh_time, turnaround
from qmodels.memory.order_waits import order_times
from qmodels.memory.packet_waits import PacketTimes, packet_times
from qmodels.memory.stream_waits import StreamTimes, stream_times
from qmodels.queues.mg1 import mg1_waiting_time
from qmodels.systems.dram_system import DramSystem
from qmodels.systems.dram_traffic import Packets, RandomBlocks

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
    bank_conflict : array or None
        Probability that an access finds its bank busy; None where it follows from the waits.
    refreshed : array
        Probability that an access is delayed by a refresh.
    alone : float
        Part of ``bus``: by those of its own packet, the memory otherwise idle.
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
    alone: float
    reach: dict[str, Any]


def channel_waits(spec: DramSystem, pattern: AccessPattern, channel: int, rate: Any) -> ChannelWaits:
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

    That is for random accesses; see `_packets` and `qmodels.memory.stream_waits` for the others, and
    `qmodels.memory.order_waits.OrderTimes` for accesses in order.
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
        return _in_order(spec, pattern, channel, rate, opening, row_open, shut)
    if random:
        own = _random(spec, pattern, rate)
    elif isinstance(spec.traffic, Packets):
        own = _packets(spec, packet_times(spec), rate)
    else:
        own = _stream(spec, stream_times(spec, channel), rate)
    if t.t_rp == 0 and not closed and not isinstance(spec.traffic, Packets):
        # The commands to close a row and to open another take a cycle each.
        own = replace(own, bank=own.bank + miss * row_open)
    slot, gap = bus_time(spec), t.row_gap
    rows = rate * miss / g.ranks
    block = refresh_time(spec, rows)
    refresh, backlog, late = 0.0 * rate, 0.0 * rate, 0.0 * rate
    if t.t_rfc:
        share = block / t.t_refi
        narrowest = np.maximum(rows * gap, own.bank_load)
        narrowest = np.minimum(np.maximum(narrowest, rate * slot / g.ranks) / (1 - share), 1 - 1e-9)
        refresh = block**2 / (2 * t.t_refi)
        backlog = refresh * narrowest / (1 - narrowest)
        late = np.minimum(share / (1 - narrowest), 1.0)
    queue, write_queue = _writes(
        spec, rate, opening + own.bank + own.activation + own.bus, max(slot, gap * miss / g.ranks)
    )
    return ChannelWaits(
        row=opening,
        row_hit_ratio=pattern.row_hit_ratio - shut + 0.0 * rate,
        bank=own.bank,
        activation=own.activation,
        bus=own.bus + own.alone,
        refresh=refresh,
        backlog=backlog,
        queue=queue,
        write_queue=write_queue,
        row_open=row_open,
        bank_conflict=own.conflict,
        refreshed=late,
        alone=own.alone,
        reach=own.reach | {"refresh": block},
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Waits:
    """Parts of `ChannelWaits` without refresh, and the load of the busiest bank."""

    bus: Any
    activation: Any
    bank: Any
    bank_load: Any
    reach: dict[str, Any]
    conflict: Any = None
    alone: float = 0.0


def _random(spec: DramSystem, pattern: AccessPattern, rate: Any) -> _Waits:
    t, g = spec.timing, spec.geometry
    miss = 1 - pattern.row_hit_ratio
    slot, gap = bus_time(spec), t.row_gap
    bus = mg1_waiting_time(rate, slot, t.burst**2)
    # Row hits of one bank group are further apart; row commands keep others apart anyway.
    group = np.minimum(rate * pattern.group_repeat * t.t_ccd_l, 1 - 1e-9)
    apart = (1 - miss**2) * (1 - (t.burst / t.t_ccd_l) ** 2)
    bus = bus + apart * group * t.t_ccd_l / (2 * (1 - group))

    rows = rate * miss / g.ranks
    load = np.minimum(rows * gap, 1 - 1e-9)
    apart = ((g.groups - 1) * t.t_rrd_s**2 + t.t_rrd_l**2) / g.groups
    square = (1 - load) * max(apart, 1.0) + load * gap**2
    activation = miss * rows * square / (2 * (1 - load))
    activation = activation * (1 - min(t.burst / gap, 1.0) ** 2) if g.ranks * gap > t.burst else 0 * rate

    mean, second = bank_times(spec, pattern)
    held = _HELD_BACK * activation
    second = second + 2 * mean * held + held**2
    mean = mean + held
    bank_rate = rate * pattern.bank_share
    bank = bank_rate * second / (2 * np.maximum(1 - bank_rate * mean, 1e-9))
    # Pairs that meet at a bank would have met at its rank or the bus.
    bank = bank * (1 - np.minimum(max(gap * miss, t.burst) ** 2 / second, 1.0))
    return _Waits(
        bus=bus,
        activation=activation,
        bank=bank,
        bank_load=bank_rate * bank_times(spec, pattern)[0],
        reach={"bank": mean, "activation": gap, "bus": slot},
    )


def _packets(spec: DramSystem, packets: PacketTimes, rate: Any) -> _Waits:
    r"""Return the waits of packets: exact to first order, beyond it each resource as a queue of its own.

    With the wait :math:`w_i` of M/G/1 at resource :math:`i`, of which :math:`w_i^0` is linear in the rate,
    and the linear delay :math:`w^0` of pairs,

    .. math:: W = w^0 + w_{bus} - w_{bus}^0 + \sum_i f_i (w_i - w_i^0)

    over row commands and banks. Their factors share :math:`w^0 - w_{bus}^0` as those of `channel_waits`
    do; that of row commands, of which a few may come at once, goes to 1 with their load.
    """
    t, g = spec.timing, spec.geometry
    slot, gap = bus_time(spec), t.row_gap
    visits = rate / packets.size
    count, count2 = packets.bus
    bus0 = visits * count2 * slot**2 / 2
    bus = mg1_waiting_time(visits, count * slot, count2 * slot**2)
    rows, rows2 = packets.row_commands
    act0 = visits * rows2 * gap**2 / 2
    load = np.minimum(visits * rows * gap, 1 - 1e-9)
    act = act0 / (1 - load)
    kept, kept2 = packets.bank
    at_bank = visits * packets.banks / g.channel_banks
    bank0 = at_bank * kept2 / 2
    miss = rows * g.ranks / count
    of_act = miss * (1 - (t.burst / gap) ** 2) if gap > t.burst else 0.0
    of_bank = 1 - min(max(gap * miss / g.ranks, t.burst) / kept, 1.0) ** 2
    rest = np.maximum(visits * packets.delay - bus0, 0.0)
    factor = rest / np.maximum(of_bank * bank0 + of_act * act0, 1e-300)
    activation = ((1 - load) * factor + load) * of_act * act
    held = _HELD_BACK * activation
    busy = np.minimum(at_bank * (kept + held), 1 - 1e-9)
    bank = factor * of_bank * at_bank * (kept2 + 2 * kept * held + held**2) / (2 * (1 - busy))
    # What pairs find is exact, also where packets whose accesses are spread over time meet less.
    bus = np.maximum(bus - np.maximum(bus0 - visits * packets.delay, 0.0), 0.0)
    # Beyond pairs an access keeps its bank busy while it waits for the bus behind packets to other banks.
    if packets.spread:
        each = rate / g.channel_banks
    else:
        each = at_bank * (1 - packets.banks / g.channel_banks) / max(1 - 1 / g.channel_banks, 1e-9)
    waiting = each * (bus + activation)
    first = 1 - packets.conflict_alone
    met = visits * packets.conflict / max(first, 1e-9)
    found = packets.conflict_alone + first * np.minimum((met + waiting) / (1 + waiting), 1.0)
    return _Waits(
        bus=bus,
        activation=activation,
        bank=bank,
        bank_load=at_bank * kept,
        reach={
            "bank": kept + held,
            "activation": gap * rows2 / max(rows, 1e-300),
            "bus": slot * count2 / count,
        },
        conflict=found,
        alone=packets.alone,
    )


def _stream(spec: DramSystem, stream: StreamTimes, rate: Any) -> _Waits:
    t = spec.timing
    bus = stream.waiting_time("bus", rate) + stream.waiting_time("group", rate)
    load = rate * (1 - stream.row_hit_ratio) * t.row_gap / spec.geometry.ranks
    few, many = (stream.waiting_time(name, rate) for name in ("few rows", "many rows"))
    # As for random accesses: a few row commands may come at once, and the bank's next access is held back.
    load = np.minimum(load, 1.0)
    activation = (1 - load) * few + load * many
    bank_load = rate * stream.bank_time
    held = _HELD_BACK * activation / t.read_cycle
    bank = stream.waiting_time("bank", rate) * (1 + held) ** 2
    busy = np.clip(np.maximum(np.maximum(rate * t.burst, load), bank_load), 0.0, 1.0)
    return _Waits(
        bus=bus,
        activation=activation,
        bank=bank,
        bank_load=bank_load,
        reach={"bank": float(t.read_cycle), "activation": t.row_gap, "bus": bus_time(spec)},
        conflict=stream.conflict_probability(rate, bus + activation + bank, busy),
    )


def _row_open(spec: DramSystem, bank_rate: Any) -> Any:
    """Return the probability that a bank was used since the last refresh closed its rows."""
    if not spec.timing.t_rfc:
        return 1.0
    x = np.maximum(bank_rate * spec.timing.t_refi, 1e-9)
    return 1 + np.expm1(-x) / x


def _in_order(
    spec: DramSystem,
    pattern: AccessPattern,
    channel: int,
    rate: Any,
    opening: Any,
    row_open: Any,
    shut: Any,
) -> ChannelWaits:
    r"""Return the parts where accesses use the bus in their order.

    Refreshes that block the rank for a share :math:`\sigma` of the time raise the load :math:`\rho` to
    :math:`\rho' = \rho / (1 - \sigma)` and the wait by :math:`(1-\rho) / (1-\rho') (1-\sigma)`, as
    interruptions do in M/G/1; what gathers during one drains as a fluid, at the speed :math:`1 - \rho`.
    """
    t = spec.timing
    found = order_times(spec, channel)
    closing = 0 if spec.page_policy == "closed" else t.t_rp
    own = max(found.alone - (1 - found.row_hit_ratio) * (t.t_rcd + closing), 0.0)
    block = refresh_time(spec, rate)
    share = block / max(t.t_refi, 1)
    load = np.minimum(rate / found.max_rate, 1 - 1e-9)
    left = np.maximum(1 - load / (1 - share), 1e-9)
    wait = found.waiting_time(rate) * (1 - load) / (left * (1 - share))
    # What the bus alone would make of as many visits.
    bursts = found.size * t.burst
    bus = np.minimum(mg1_waiting_time(rate / found.size, bursts, bursts**2), wait)
    late = np.minimum(share / left, 1.0)
    longest = max(found.saturated / found.time, found.pairs / found.time)
    zero = 0.0 * rate
    return ChannelWaits(
        row=opening,
        row_hit_ratio=pattern.row_hit_ratio - shut + zero,
        bank=wait - bus,
        activation=zero,
        bus=bus + own,
        refresh=block * share / 2,
        backlog=block * share / 2 * load / (1 - load),
        queue=zero,
        write_queue=zero,
        row_open=row_open,
        bank_conflict=found.conflict_probability(rate),
        refreshed=late,
        alone=own,
        reach={"bank": longest, "activation": 1.0, "bus": longest, "refresh": block},
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
