"""Largest rates of a DRAM channel, and the resource that limits it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from qmodels.memory.dram.access_pattern import AccessPattern
from qmodels.memory.dram.order_waits import order_times
from qmodels.memory.dram.packet_waits import PacketTimes, packet_times
from qmodels.memory.dram.stream_waits import stream_times
from qmodels.memory.dram.write_queue import Turns
from qmodels.systems.memory.dram_system import AddressTrace, DramSystem, Packets, RandomBlocks


def refresh_time(spec: DramSystem, row_rate: Any, rate: Any = 0.0) -> Any:
    r"""Time for which a refresh keeps a rank from opening rows. [cycles].

    ``row_rate``, ``rate``: row commands and accesses of a rank [1/cycle].

    The refresh itself and, before it, the rest of the row cycle of the last row command: with Poisson
    row commands at rate :math:`\nu`, :math:`t_{RC} - (1 - e^{-\nu t_{RC}})/\nu`; with open pages at
    least the time to close the rows and before it, likewise, the rest of the time from the last read or
    write until its row may be closed.
    """
    t = spec.timing
    if not t.t_rfc:
        return np.zeros_like(np.asarray(row_rate, dtype=float))
    rest = _rest(row_rate, t.t_rc)
    if spec.page_policy != "closed":
        write = spec.traffic.write_fraction
        for share, least in ((1 - write, t.t_rtp), (write, t.cwl + t.burst + t.t_wr)):
            rest = np.maximum(rest, t.t_rp + _rest(share * np.asarray(rate), least))
    return t.t_rfc + rest


def blocked_in_order(spec: DramSystem, rate: Any, block: Any) -> Any:
    r"""Return the share of the time in which refreshes hold accesses in order up, which take a time each.

    That of another rank holds one up once one to that rank has come: of a refresh of :math:`b` in which
    :math:`x` come on average :math:`2 \int_0^b (b - t) (1 - e^{-x t / b}) dt / b^2` count. Ranks are taken to
    be refreshed independently of each other.
    """
    come = np.maximum(rate / spec.geometry.ranks * block, 1e-6)
    met = np.clip(1 - 2 / come - 2 * np.expm1(-come) / come**2, 0.0, 1.0)
    share = np.minimum(block / max(spec.timing.t_refi, 1), 1 - 1e-9)
    return 1 - (1 - share) ** (1 + (spec.geometry.ranks - 1) * met)


def _rest(rate: Any, time: float) -> Any:
    """Return the mean rest of a time that began with the last of Poisson events."""
    rate = np.maximum(rate, 1e-12)
    return np.maximum(time + np.expm1(-rate * time) / rate, 0.0)


def bank_times(spec: DramSystem, pattern: AccessPattern) -> tuple[float, float]:
    """Return mean and second moment of how long a bank keeps the next access from starting. [cycles].

    An access to another row keeps the next such one for a row cycle, and a hit to its row until its
    column command; a hit keeps others for the time until the row may be closed.
    """
    t, write = spec.timing, spec.traffic.write_fraction
    h = pattern.row_hit_ratio
    miss = 1 - h
    opening = t.t_rcd + (0 if spec.page_policy == "closed" else t.t_rp)
    pairs = [
        (miss * miss * (1 - write), t.read_cycle),
        (miss * miss * write, t.write_cycle),
        (miss * h, opening + t.t_ccd_l),
        (h * miss * (1 - write), t.t_rtp),
        (h * miss * write, t.cwl + t.burst + t.t_wr),
        (h * h, t.t_ccd_l),
    ]
    return sum(p * x for p, x in pairs), sum(p * x**2 for p, x in pairs)


def channel_limits(
    spec: DramSystem, pattern: AccessPattern, packets: PacketTimes | None = None
) -> dict[str, float]:
    """Return the largest rate of a channel by each of its resources. [accesses/cycle].

    ``pattern``: what reaches its channels; ``packets``: what packets make of the channel, where they are not
    those of the spec's traffic. Returns ``bus``: its data bus, the gaps between ranks included.
    ``turnaround``: the first of the others, with turns between reads and writes that are forced out.
    ``group``: the column commands of the busiest bank group (tCCD_L). ``bank``: the busiest bank.
    ``activation``: the row commands of its ranks (tFAW, tRRD). ``order``: accesses in order, whose bank is
    not ready. ``refresh``: the smallest of the others, less the time its rank or bank is refreshed.
    """
    t, g = spec.timing, spec.geometry
    write = spec.traffic.write_fraction
    slot = bus_time(spec)
    if spec.scheduler == "in-order":
        # What follows from the order of the accesses includes their groups, ranks and directions.
        order = _slowest(spec, pattern, lambda k: 1 / order_times(spec, k).max_rate)
        limits = {"bus": 1 / t.burst, "order": order}
    else:
        limits = {"bus": 1 / slot, "group": 1 / (pattern.group_share * t.t_ccd_l)}
        limits["bank"] = _bank_limit(spec, pattern, packets)
        miss = 1 - pattern.row_hit_ratio
        limits["activation"] = g.ranks / (t.row_gap * miss) if miss > 0 else np.inf
        if write > 0:
            turns = Turns(spec=spec, miss=miss, each=1 / min(limits.values()))
            limits["turnaround"] = turns.limit(write)
    if t.t_rfc:
        most = min(limits.values())
        block = refresh_time(spec, most / g.ranks)
        share = float(block) / t.t_refi
        if spec.scheduler == "in-order":
            share = float(blocked_in_order(spec, most, block))
        # With several ranks the bus works on while one is refreshed, if accesses may pass each other.
        free = ("bus", "turnaround") if g.ranks > 1 and spec.scheduler != "in-order" else ()
        limits["refresh"] = min(
            limit if name in free else limit * (1 - share) for name, limit in limits.items()
        )
    return {name: float(value) for name, value in limits.items()}


def bus_time(spec: DramSystem) -> float:
    """Return the mean bus time of an access, the gap after another rank's included. [cycles]."""
    ranks = spec.geometry.ranks
    return spec.timing.burst + spec.timing.t_rtrs * (ranks - 1) / ranks


def _bank_limit(spec: DramSystem, pattern: AccessPattern, packets: PacketTimes | None) -> float:
    if isinstance(spec.traffic, RandomBlocks):
        return 1 / (pattern.bank_share * bank_times(spec, pattern)[0])
    if isinstance(spec.traffic, Packets):
        return 1 / (pattern.bank_share * (packets or packet_times(spec)).bank_time)
    return _slowest(spec, pattern, lambda k: stream_times(spec, k).bank_time)


def _slowest(spec: DramSystem, pattern: AccessPattern, time: Callable[[int], float]) -> float:
    """Return the rate of the most loaded channel when one is full of accesses that take it a time."""
    alike = not isinstance(spec.traffic, AddressTrace)
    full = min(1 / (time(k) * share) for k, share, _ in pattern.channels(alike=alike))
    return full * float(pattern.channel_share.max())


def binding(limits: dict[str, float]) -> tuple[str, float]:
    """Bottleneck of a channel and its largest rate; refresh takes its share of any."""
    name = min((n for n in limits if n != "refresh"), key=lambda n: limits[n])
    return name, min(limits.values())
