"""Where an access to a DRAM channel waits: bus, row commands, bank, refresh, writes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from qmodels.evidence.constants import kept
from qmodels.memory.dram.access_pattern import AccessPattern
from qmodels.memory.dram.limits import bank_times, blocked_in_order, bus_time, refresh_time
from qmodels.memory.dram.order_waits import order_times
from qmodels.memory.dram.packet_waits import PacketTimes, packet_times
from qmodels.memory.dram.refresh_waits import (
    closed_by_refresh,
    refresh_closes,
    refresh_waits,
    used_since_refresh,
)
from qmodels.memory.dram.stream_waits import StreamTimes, stream_times
from qmodels.memory.dram.write_queue import (
    Directions,
    LastWrites,
    Queued,
    ReadVisits,
    refreshed_writes,
    write_queue,
)
from qmodels.queues.general.mg1 import mg1_waiting_time
from qmodels.systems.memory.dram_system import DramSystem, Packets, RandomBlocks


class ReadyLaw(NamedTuple):
    """Constants fitted to cycle simulators at DDR4-3200, one rank, closed pages.

    Parameters
    ----------
    held_back : float
        Share of the wait for a row command by which the bank's next access starts later.
    """

    held_back: float


LAW = kept(ReadyLaw, "memory.dram.ready")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadyWaits:
    """Parts of `ChannelWaits` without refresh, and the load of the busiest bank."""

    bus: Any
    activation: Any
    bank: Any
    bank_load: Any
    reach: dict[str, Any]
    conflict: Any = None
    alone: Any = 0.0


def _free(load: Any, held: Any) -> Any:
    """Return the idle share of a bank whose accesses are held back too.

    That is :math:`1 - load - held` to first order, and is used up by the load alone: what is held back
    does not make a bank slower that is full.
    """
    free = np.maximum(1 - load, 1e-9)
    return free**2 / (free + held)


def random_waits(spec: DramSystem, pattern: AccessPattern, rate: Any) -> ReadyWaits:
    """Return the waits of random accesses; see `qmodels.memory.dram.channel_waits.channel_waits`."""
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
    held = LAW.held_back * activation
    second = second + 2 * mean * held + held**2
    mean = mean + held
    bank_rate = rate * pattern.bank_share
    bank = bank_rate * second / (2 * _free(bank_rate * (mean - held), bank_rate * held))
    # Pairs that meet at a bank would have met at its rank or the bus.
    bank = bank * (1 - np.minimum(max(gap * miss, t.burst) ** 2 / second, 1.0))
    return ReadyWaits(
        bus=bus,
        activation=activation,
        bank=bank,
        bank_load=bank_rate * bank_times(spec, pattern)[0],
        reach={"bank": mean, "activation": gap, "bus": slot},
    )


def packet_waits(spec: DramSystem, packets: PacketTimes, rate: Any) -> ReadyWaits:
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
    held = LAW.held_back * activation
    second = kept2 + 2 * kept * held + held**2
    bank = factor * of_bank * at_bank * second / (2 * _free(at_bank * kept, at_bank * held))
    # What pairs find is exact, also where packets whose accesses are spread over time meet less.
    bus = np.maximum(bus - np.maximum(bus0 - visits * packets.delay, 0.0), 0.0)
    # Beyond pairs an access keeps its bank busy while it waits for the bus behind packets to other banks.
    if packets.spread:
        each = rate / g.channel_banks
    else:
        each = at_bank * (1 - packets.banks / g.channel_banks) / max(1 - 1 / g.channel_banks, 1e-9)
    waiting = each * (bus + activation)
    first = 1 - packets.conflict_alone
    met = visits * packets.conflict / np.maximum(first, 1e-9)
    found = packets.conflict_alone + first * np.minimum((met + waiting) / (1 + waiting), 1.0)
    return ReadyWaits(
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


def sequence_waits(spec: DramSystem, stream: StreamTimes, rate: Any) -> ReadyWaits:
    """Return the waits of a known sequence; see `qmodels.memory.dram.stream_waits`."""
    t = spec.timing
    bus = stream.waiting_time("bus", rate) + stream.waiting_time("group", rate)
    load = rate * (1 - stream.row_hit_ratio) * t.row_gap / spec.geometry.ranks
    few, many = (stream.waiting_time(name, rate) for name in ("few rows", "many rows"))
    # As for random accesses: a few row commands may come at once, and the bank's next access is held back.
    load = np.minimum(load, 1.0)
    activation = (1 - load) * few + load * many
    bank_load = rate * stream.bank_time
    held = LAW.held_back * activation / t.read_cycle
    bank = stream.waiting_time("bank", rate) * (1 + held) ** 2
    busy = np.clip(np.maximum(np.maximum(rate * t.burst, load), bank_load), 0.0, 1.0)
    return ReadyWaits(
        bus=bus,
        activation=activation,
        bank=bank,
        bank_load=bank_load,
        reach={"bank": float(t.read_cycle), "activation": t.row_gap, "bus": bus_time(spec)},
        conflict=stream.conflict_probability(rate, bus + activation + bank, busy),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelWaits:
    """Mean parts of a latency at one channel, arrays of one value for each load or each kind. [cycles]."""

    row: Any  # opening the row, unloaded
    row_hit_ratio: Any  # accesses that find their row open
    # bank, activation, bus, refresh, queue: waiting for the bank, for the rank's row commands, for the data
    # bus, for refreshes while they last, and behind accesses of the other direction.
    bank: Any
    activation: Any
    bus: Any
    refresh: Any
    backlog: Any  # waiting behind what refreshes have held up
    queue: Any
    draining: Any  # share of the time that writes take which are forced out
    residual: Any  # part of ``queue``: for the rest of such a time
    pushed: Any  # how much later reads go on after a refresh, because writes are forced out then, mean
    write_queue: Any  # what writes wait until it is their turn
    # The last of writes of each kind that come together; None where none wait, or at several loads.
    write_last: tuple[LastWrites, ...] | None
    row_open: Any  # probability that another row is open where a row is to be opened
    bank_conflict: Any  # probability that an access finds its bank busy; None where it follows from the waits
    refreshed: Any  # probability that an access is delayed by a refresh
    blocked: Any  # how long a refresh keeps a rank from opening rows
    alone: Any  # part of ``bus``: by those of its own packet, the memory otherwise idle
    # Of bank, activation, bus and refresh: the longest time that one predecessor makes an access wait.
    reach: dict[str, Any]

    @property
    def delays(self) -> tuple[Any, tuple[Any, Any], tuple[Any, Any]]:
        """Waits of reads at their banks for what drains leave; probability and longest of the others.

        Those are the rest of a drain, and a refresh with the drain that follows it. Waits for drains are the
        same in all.
        """
        block, draining = self.reach["refresh"], self.draining
        longer = block + self.pushed
        often = np.minimum(self.refreshed * longer / np.maximum(block, 1e-12), 1.0)
        behind = self.queue - self.residual - (often * longer - self.refreshed * block) / 2
        rest = 2 * self.residual / np.maximum(draining, 1e-12)
        return np.maximum(behind, 0.0), (draining, rest), (often, longer)


def channel_waits(
    spec: DramSystem, pattern: AccessPattern, channel: int, rate: Any, packets: PacketTimes | None = None
) -> ChannelWaits:
    r"""Return where accesses wait at a channel that gets ``rate`` of them, below its largest rate.

    Packets are those of the traffic, or others whose times are given: at one load, several kinds.

    Three kinds of servers in a hierarchy, a pair of accesses meeting at the narrowest they share:
    bus (time :math:`L`), row commands of a rank (:math:`s = \max(t_{FAW}/4, t_{RRD})`), bank
    (:math:`D = t_{RC}`). With :math:`w(\lambda, m_1, m_2) = \lambda m_2 / 2 (1 - \lambda m_1)`

    .. math:: W = w_{bus} + (1 - (L/s)^2)\, w_{row} + (1 - (s/D)^2)\, w_{bank},

    exact to first order in the rate for Poisson arrivals. Two row commands only have to be
    :math:`t_{RRD}` apart, so that the second moment of :math:`s` goes from that of tRRD to
    :math:`s^2` in proportion to the load of the row commands; a bank is held back by a share of the
    wait for row commands. Row hits make the bank's time depend on the pair: see `bank_times`.

    Refreshes: see `qmodels.memory.dram.refresh_waits`.

    That is for random accesses; see below and `qmodels.memory.dram.stream_waits`
    for the others, and `qmodels.memory.dram.order_waits.OrderTimes` for accesses in order.
    """
    t, g = spec.timing, spec.geometry
    rate = np.asarray(rate, dtype=float)
    closed = spec.page_policy == "closed"
    miss = 1 - pattern.row_hit_ratio
    bank_rate = rate * pattern.bank_share
    row_open = 0.0 if closed else used_since_refresh(spec, bank_rate)
    # A row that would be hit is closed where its bank was not used since the last refresh; the visits of
    # streams and packets to a row are close together.
    random = isinstance(spec.traffic, RandomBlocks)
    if packets is None and isinstance(spec.traffic, Packets) and spec.scheduler != "in-order":
        packets = packet_times(spec)
    shut = pattern.row_hit_ratio * (1 - row_open) if random and not closed else 0.0
    if not random and packets is None and not closed:
        changes = 1 - pattern.bank_repeat
        first = np.minimum(closed_by_refresh(spec, rate * changes), 1.0)
        shut = refresh_closes(spec, pattern) * changes * first
    refreshed = 0.0 if packets is None else packets.refreshed
    opening = miss * t.t_rcd + (miss - refreshed) * t.t_rp * row_open + shut * t.t_rcd
    if spec.scheduler == "in-order":
        return _in_order(spec, pattern, channel, rate, opening, row_open, shut)
    if random:
        own = random_waits(spec, pattern, rate)
    elif packets is not None:
        own = packet_waits(spec, packets, rate)
    else:
        own = sequence_waits(spec, stream_times(spec, channel), rate)
    if t.t_rp == 0 and not closed and not isinstance(spec.traffic, Packets):
        # The commands to close a row and to open another take a cycle each.
        own = replace(own, bank=own.bank + miss * row_open)
    held = refresh_waits(
        spec, pattern, rate, bank=own.bank, bank_load=own.bank_load, reach=own.reach,
        anywhere=packets.anywhere if packets is not None else float(random),
    )  # fmt: skip
    each = max(bus_time(spec), t.row_gap * miss / g.ranks)
    queued = _writes(spec, rate, own, opening, row_open, miss, each, (held.share, held.blocked), packets)
    write_queue = queued.writes
    if t.t_rfc and 0 < spec.traffic.write_fraction < 1:
        write_queue = write_queue + refreshed_writes(
            spec, rate * spec.traffic.write_fraction, wait=write_queue, block=held.blocked, load=held.load
        )
    return ChannelWaits(
        row=opening,
        row_hit_ratio=pattern.row_hit_ratio - shut + 0.0 * rate,
        bank=own.bank,
        activation=own.activation,
        bus=own.bus + own.alone,
        refresh=held.waits,
        backlog=held.backlog,
        queue=queued.reads,
        draining=queued.draining,
        residual=queued.residual,
        pushed=queued.pushed,
        write_queue=write_queue,
        write_last=queued.last,
        row_open=row_open,
        bank_conflict=own.conflict,
        refreshed=held.late,
        blocked=held.blocked,
        alone=own.alone,
        reach=own.reach | {"refresh": 2 * (held.waits + held.backlog) / np.maximum(held.late, 1e-12)},
    )


def _in_order(
    spec: DramSystem, pattern: AccessPattern, channel: int, rate: Any, opening: Any, row_open: Any, shut: Any
) -> ChannelWaits:
    r"""Return the parts where accesses use the bus in their order.

    Refreshes that block the ranks for a share :math:`\sigma` of the time raise the load :math:`\rho` to
    :math:`\rho' = \rho / (1 - \sigma)` and the wait by :math:`(1-\rho) / (1-\rho') (1-\sigma)`, as
    interruptions do in M/G/1; what gathers during one drains as a fluid, at the speed :math:`1 - \rho`.
    """
    t = spec.timing
    found = order_times(spec, channel)
    closing = 0 if spec.page_policy == "closed" else t.t_rp
    own = max(found.alone - (1 - found.row_hit_ratio) * (t.t_rcd + closing), 0.0)
    ranks = spec.geometry.ranks
    block = refresh_time(spec, rate, rate / ranks)
    share = blocked_in_order(spec, rate, block)
    load = np.minimum(rate / found.max_rate, 1 - 1e-9)
    left = np.maximum(1 - load / (1 - share), 1e-9)
    wait, conflict = found.waits(rate)
    wait = wait * (1 - load) / (left * (1 - share))
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
        draining=zero,
        residual=zero,
        pushed=zero,
        write_queue=zero,
        write_last=None,
        row_open=row_open,
        bank_conflict=conflict,
        refreshed=late,
        blocked=block,
        alone=own,
        reach={"bank": longest, "activation": 1.0, "bus": longest, "refresh": block},
    )


def _writes(
    spec: DramSystem,
    rate: Any,
    own: ReadyWaits,
    opening: Any,
    row_open: Any,
    miss: float,
    each: float,
    refreshes: tuple[Any, Any],
    packets: PacketTimes | None,
) -> Queued:
    """Return the waits for writes at all loads, those of writes beyond what reads wait.

    ``refreshes``: the share of the time that they take, and how long one does [cycles].
    """
    write = spec.traffic.write_fraction
    if not 0 < write < 1:
        none = 0.0 * rate
        return Queued(none, none, none, none, none, None)
    reads: tuple[tuple[float, float, float], ...] = ((1.0, 1.0, 0.0),)
    written = 1.0, 0.0
    if packets is not None:
        each_one = packets.size, packets.alone
        reads, written = packets.directions or (((1.0, *each_one),), each_one)
    accesses = sum(share * accesses for share, accesses, _ in reads)
    ahead = own.bank + own.activation + own.bus
    loads = np.broadcast_arrays(rate, row_open, *refreshes)
    shape = np.shape(ahead)
    found = []
    # At one load all kinds of accesses are one call.
    kinds = np.reshape(ahead, (loads[0].size, -1))
    for before, x, opened, out, block in zip(kinds, *(one.ravel().tolist() for one in loads), strict=True):
        visits = x * (1 - write) / accesses
        both = Directions(
            reads=tuple(ReadVisits(share * visits, accesses, alone) for share, accesses, alone in reads),
            writes=x * write / written[0],
            write_size=written[0],
            write_alone=written[1],
            miss=miss,
        )
        known = {"row_open": opened, "refreshed": out, "block": block}
        found.append(write_queue(spec, both, wait=before, each=each, **known))
    queue, draining, residual, pushed, stay = (np.reshape([one[k] for one in found], shape) for k in range(5))
    last = found[0].last if np.ndim(rate) == 0 else None
    stay = np.maximum(stay - ahead - opening - own.alone, 0.0)
    return Queued(queue, draining, residual, pushed, stay, last)
