"""Waits at the resources of a channel when the oldest access goes first whose command may be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qmodels.evidence.constants import kept
from qmodels.memory.dram.access_pattern import AccessPattern
from qmodels.memory.dram.limits import bank_times, bus_time
from qmodels.memory.dram.packet_waits import PacketTimes
from qmodels.memory.dram.stream_waits import StreamTimes
from qmodels.queues.general.mg1 import mg1_waiting_time
from qmodels.systems.memory.dram_system import DramSystem


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
