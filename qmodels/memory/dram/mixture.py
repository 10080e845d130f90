"""Several kinds of packets at a DRAM system at the same time, and what each of them meets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.memory.dram.access_pattern import AccessPattern, access_pattern
from qmodels.memory.dram.channel_visits import Visits, channel_visits
from qmodels.memory.dram.channel_waits import ChannelWaits, channel_waits
from qmodels.memory.dram.command_times import numbers, serve_ready_first
from qmodels.memory.dram.limits import binding, bus_time, channel_limits
from qmodels.memory.dram.packet_waits import PacketTimes, met_visits, packet_times, times_with_open_rows
from qmodels.memory.dram.refresh_waits import closed_by_refresh
from qmodels.systems.memory.dram_system import DramSystem, Packets

ONE_BLOCK = Packets(arrival_rate=1.0, blocks=1)
PAIRS = 1024
"""Pairs of packets of two kinds that are followed."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Packets of one kind."""

    blocks: int  # consecutive blocks of a packet
    write: bool  # whether they are written
    rate: float  # accesses of the whole system [blocks/cycle]
    # Consecutive blocks, mean, before a packet begins anywhere: of more than its own it begins where the one
    # of this kind before it ended, ``inf`` always does.
    run: float = 0.0

    @property
    def follows(self) -> bool:
        """Whether a packet begins where the one before it ended."""
        return self.run > self.blocks


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixed:
    """Waits and conflicts of several kinds of packets."""

    find: Callable[[], tuple[ChannelWaits, ...]]  # finds the waits of the accesses of each kind
    row_hit_ratio: tuple[float, ...]  # accesses of each kind whose row is open
    opened: tuple[float, ...]  # share of the packets of each kind that find open the first row they need
    # Accesses per cycle and channel that each resource sustains of such a mixture [blocks/cycle].
    limits: dict[str, float]
    rate: float  # accesses per cycle of the fullest channel

    @cached_property
    def waits(self) -> tuple[ChannelWaits, ...]:
        """Waits of the accesses of each kind."""
        return self.find()

    @cached_property
    def load(self) -> float:
        """Accesses over what the channel sustains of them."""
        return self.rate / binding(self.limits)[1]


def mixed_waits(spec: DramSystem, kinds: Sequence[Kind], largest_load: float = 0.999) -> Mixed:
    r"""Return waits and conflicts of several kinds of packets, without the traffic of the system itself.

    ``kinds``: all packets, which arrive as Poisson processes; ``largest_load``: load beyond which waits are
    those at this one.

    The model of packets (`qmodels.memory.dram.channel_waits.packet_waits`) with the moments of all visits:
    one kind of packets waits as `qmodels.memory.dram.solve.solve_dram` says. What visits of kind :math:`j` do
    to the accesses of kind :math:`i` at low load is followed for each pair of kinds as for one kind, so
    that the wait of each kind is exact to first order.

    Packets that follow each other find a row open if nobody else has been at the bank since, at the rates of
    the others :math:`e^{-\lambda_o / \lambda}` where the map goes round the banks: an approximation; the
    first in a row of each run does not. Such a packet then meets the others at the bus alone.

    Nine mixtures of random accesses, batches of 2 to 32 and streams, on DDR4 with open and closed pages and
    on HBM2, were compared with simulation at 0.3, 0.5 and 0.7 of what they sustain. Without writes and
    streams reads were within 3, 5 and 10 %; of all by 2.4, 3.9 and 7.7 % on average, 6, 9 and 25 % at most.
    Writes: see `qmodels.memory.dram.write_queue`.
    """
    total = sum(kind.rate for kind in kinds)
    tables, patterns, met = _met(spec, tuple((kind.blocks, kind.write) for kind in kinds))
    found = [_stays_open(spec, kind, total, p) for kind, p in zip(kinds, patterns, strict=True)]
    opened, refreshed = ([one[k] for one in found] for k in (0, 1))
    times = [_with_hits(spec, kind, one, hits) for kind, one, hits in zip(kinds, tables, opened, strict=True)]
    hits = [h + (1 - h) * p.row_hit_ratio for h, p in zip(opened, patterns, strict=True)]
    share = float(patterns[0].channel_share.max())
    visits = np.array([kind.rate * share / one.size for kind, one in zip(kinds, times, strict=True)])
    slopes = _slopes(spec, met, times, np.array(opened))
    part = visits / visits.sum()
    writes = sum(kind.rate for kind in kinds if kind.write) / total
    mean_hits = sum(k.rate * h for k, h in zip(kinds, hits, strict=True)) / total
    mixture = _writing(spec, min(writes, 1.0))
    closed = [k.rate * r * (1 - p.row_hit_ratio) for k, r, p in zip(kinds, refreshed, patterns, strict=True)]
    together = replace(
        _combined(times, part, slopes),
        directions=_directions(kinds, times, visits),
        refreshed=sum(closed) / total,
        anywhere=sum(kind.rate for kind in kinds if not kind.follows) / total,
    )
    repeats = sum(k.rate * p.bank_repeat for k, p in zip(kinds, patterns, strict=True)) / total
    pattern = replace(
        patterns[0],
        row_hit_ratio=mean_hits,
        bank_repeat=repeats,
        bank_share=_bank_share(patterns, kinds, total),
    )
    limits = channel_limits(mixture, pattern, together)
    rate = min(total * share, largest_load * binding(limits)[1])

    def waits() -> tuple[ChannelWaits, ...]:
        found = channel_waits(mixture, pattern, 0, rate, together)
        return tuple(_of_kind(found, k, h, mean_hits) for k, h in enumerate(hits))

    return Mixed(
        find=waits, row_hit_ratio=tuple(hits), opened=tuple(opened), limits=limits, rate=total * share
    )


def pure_waits(spec: DramSystem, total: float, largest_load: float = 0.999) -> Mixed:
    """Return waits of accesses like those of a system's own traffic, all alike, at a rate per cycle.

    Where channels have loads of their own it is the mean over the accesses.
    """
    pattern, limits = _limits(spec)
    top, most = binding(limits)[1], float(pattern.channel_share.max())
    safe = min(total, largest_load * top / most)

    def waits() -> tuple[ChannelWaits, ...]:
        each = [
            (of_all, channel_waits(spec, pattern, channel, safe * share))
            for channel, share, of_all in pattern.channels(alike=True)
        ]
        return (each[0][1] if len(each) == 1 else _mean_waits(each),)

    hits = (pattern.row_hit_ratio,)
    return Mixed(find=waits, row_hit_ratio=hits, opened=(0.0,), limits=limits, rate=total * most)


def _mean_waits(each: Sequence[tuple[float, ChannelWaits]]) -> ChannelWaits:
    total = sum(share for share, _ in each)
    values: dict[str, Any] = {}
    for field in fields(ChannelWaits):
        column = [(share / total, getattr(waits, field.name)) for share, waits in each]
        if field.name == "reach":
            values["reach"] = {n: sum(s * np.asarray(r[n]) for s, r in column) for n in column[0][1]}
        elif field.name == "write_last" or column[0][1] is None:
            values[field.name] = column[0][1]
        else:
            values[field.name] = sum(s * v for s, v in column)
    return ChannelWaits(**values)


@lru_cache(maxsize=256)
def _limits(spec: DramSystem) -> tuple[AccessPattern, dict[str, float]]:
    pattern = access_pattern(spec)
    return pattern, channel_limits(spec, pattern)


@lru_cache(maxsize=256)
def _followed(spec: DramSystem) -> tuple[PacketTimes, AccessPattern]:
    return packet_times(spec), access_pattern(spec)


def alone_columns(spec: DramSystem, kind: Kind, opened: float = 0.0) -> tuple[float, float, float, float]:
    """Return when the accesses of a packet alone get their bus, mean and last, and how many a channel has.

    From the arrival of the packet at a channel, with the rows opened, of which it finds the share ``opened``
    open. [cycles] At last, of how many banks.
    """
    times = _alone(spec, kind.blocks, kind.write)
    mean, last = _columns(spec, kind, times, opened)
    return mean, last, times.size, times.banks


@lru_cache(maxsize=1024)
def _alone(spec: DramSystem, blocks: int, write: bool) -> PacketTimes:
    return _followed(packets_alone(spec, blocks, write))[0]


def _columns(spec: DramSystem, kind: Kind, times: PacketTimes, opened: float) -> tuple[float, float]:
    if not opened:
        return times.columns
    _, (mean, last) = times_with_open_rows(packets_alone(spec, kind.blocks, kind.write))
    closed = times.columns
    return (1 - opened) * closed[0] + opened * mean, (1 - opened) * closed[1] + opened * last


def _writing(spec: DramSystem, share: float) -> DramSystem:
    """Return a system with packets of which a share is written; both are known to be in their ranges."""
    traffic, mixture = copy(ONE_BLOCK), copy(spec)
    object.__setattr__(traffic, "write_fraction", share)
    object.__setattr__(mixture, "traffic", traffic)
    return mixture


@lru_cache(maxsize=1024)
def packets_alone(spec: DramSystem, blocks: int, write: bool) -> DramSystem:
    """Return a system whose traffic are packets of one kind, without its controller's time."""
    traffic = Packets(blocks=blocks, write_fraction=float(write), arrival_rate=1.0)
    return replace(spec, controller_cycles=0, traffic=traffic)


def _of_kind(waits: ChannelWaits, k: int, hits: float, mean_hits: float) -> ChannelWaits:
    """Return the waits of a kind with row hits of its own; those of rows that a refresh closed included."""

    def own(value: Any) -> Any:
        return value[k] if isinstance(value, np.ndarray) and value.ndim else value

    values = {name: own(value) for name, value in vars(waits).items()}
    row = values["row"] * (1 - hits) / (1 - mean_hits) if mean_hits < 1 else values["row"]
    values |= {"row": row, "row_hit_ratio": values["row_hit_ratio"] + hits - mean_hits}
    values["reach"] = {name: own(each) for name, each in waits.reach.items()}
    values["write_last"] = waits.write_last and waits.write_last[k : k + 1]
    return ChannelWaits(**values)


def _directions(
    kinds: Sequence[Kind], times: Sequence[PacketTimes], visits: FloatArray
) -> tuple[tuple[tuple[float, float, float], ...], tuple[float, float]]:
    """Return the kinds of visits that read and what those are that write, see `PacketTimes`."""
    reading = [(v, t) for k, t, v in zip(kinds, times, visits, strict=True) if not k.write]
    writing = [(v, t) for k, t, v in zip(kinds, times, visits, strict=True) if k.write]
    total = sum(v for v, _ in reading)
    reads = tuple((float(v / total), t.size, t.alone) for v, t in reading)
    written = sum(v * t.size for v, t in writing)
    if written <= 0:
        return reads, (1.0, 0.0)
    sums = ((v * t.size**2, v * t.size * t.alone) for v, t in writing)
    size, alone = (float(sum(each) / written) for each in zip(*sums, strict=True))
    return reads, (size, alone)


def _bank_share(patterns: Sequence[AccessPattern], kinds: Sequence[Kind], total: float) -> float:
    return sum(k.rate * p.bank_share for k, p in zip(kinds, patterns, strict=True)) / total


def _stays_open(spec: DramSystem, kind: Kind, total: float, pattern: AccessPattern) -> tuple[float, float]:
    """Return the shares of rows that a packet's first access finds open, and that only a refresh closed."""
    if not kind.follows or spec.page_policy == "closed":
        return 0.0, 0.0
    others = np.exp(-max(total - kind.rate, 0.0) / kind.rate) if kind.rate > 0 else 0.0
    opens = max((1 - pattern.row_hit_ratio) * _in_a_row(spec, kind.run), 1.0)
    changes = kind.rate * (1 - pattern.bank_repeat) / spec.geometry.channels
    refreshed = min(float(closed_by_refresh(spec, changes)), 1.0)
    opened = float(others * (1 - 1 / opens))
    return opened * (1 - refreshed), opened * refreshed


@lru_cache(maxsize=256)
def _in_a_row(spec: DramSystem, run: float) -> float:
    """Return how many blocks of a run are in one row of a bank."""
    g = spec.geometry
    if run >= g.channels * g.channel_banks * g.row_blocks:
        return float(g.row_blocks)
    return 1 / (1 - access_pattern(packets_alone(spec, max(round(run), 1), False)).row_hit_ratio)


def _with_hits(spec: DramSystem, kind: Kind, times: PacketTimes, hits: float) -> PacketTimes:
    """Service of packets at a channel if a share of them finds its rows open."""
    if not hits:
        return times
    alone, _ = times_with_open_rows(packets_alone(spec, kind.blocks, kind.write))
    each = spec.timing.t_ccd_l * times.size / times.banks
    rows, rows2 = times.row_commands
    kept, kept2 = times.bank
    return replace(
        times,
        alone=(1 - hits) * times.alone + hits * alone,
        row_commands=((1 - hits) * rows, (1 - hits) * rows2),
        bank=((1 - hits) * kept + hits * each, (1 - hits) * kept2 + hits * each**2),
    )


@lru_cache(maxsize=256)
def _met(
    spec: DramSystem, kinds: tuple[tuple[int, bool], ...]
) -> tuple[tuple[PacketTimes, ...], tuple[AccessPattern, ...], FloatArray]:
    """Return what packets of each kind are alone, and what one visit a cycle adds to them, (of, by)."""
    plain = [packets_alone(spec, blocks, write) for blocks, write in kinds]
    times, patterns = zip(*(_followed(one) for one in plain), strict=True)
    met = np.array([[(t.delay, t.conflict) for _ in kinds] for t in times])
    for i in range(len(kinds)):
        for j in range(i):
            if kinds[i] == kinds[j]:
                continue  # they meet as those of one kind do
            of_later, of_first = _cross_slopes(plain[j], plain[i])[::-1]
            met[i, j], met[j, i] = np.array(of_later) / times[i].size, np.array(of_first) / times[j].size
    return times, patterns, met


def _slopes(
    spec: DramSystem, met: FloatArray, times: Sequence[PacketTimes], opened: FloatArray
) -> FloatArray:
    """Delay added to accesses of each kind by one visit of each kind per cycle, (of, by)."""
    bus = np.array([t.bus[1] for t in times]) * bus_time(spec) ** 2 / 2
    both = np.outer(1 - opened, 1 - opened)
    return np.stack([both * met[:, :, 0] + (1 - both) * bus, both * met[:, :, 1]], axis=2)


@lru_cache(maxsize=1024)
def _cross_slopes(one: DramSystem, other: DramSystem) -> tuple[tuple[float, float], tuple[float, float]]:
    """Delays and conflicts that packets of each of two kinds add to all accesses of the other."""
    rng = np.random.default_rng(1)
    both = [channel_visits(each, 0, rng, most=PAIRS) for each in (one, other)]
    visits, kind = _alternating(both)
    spec = one if one.traffic.write_fraction else other
    timing = numbers(spec)
    passing = spec.row_hit_cap if spec.scheduler == "fr-fcfs" else 0

    def serve(which: Visits, index: Any, run: Any, arrival: Any) -> Any:
        return serve_ready_first(
            timing, passing, run, arrival, which.bank[index], which.rows(run, index), which.write[index]
        )

    every = np.arange(visits.visit.size)
    column, busy = serve(visits, every, visits.visit, visits.offset)
    met = met_visits(spec, visits, serve, column, busy, rng)
    of = kind[visits.visit[met.access]]
    found = []
    for mine in (of == 0, of == 1):
        # Either may come first: each order has half of the pairs.
        found.append((2 * float(met.delay[mine].sum()), 2 * float(met.conflict[mine].sum())))
    return found[0], found[1]


def _alternating(both: Sequence[Visits]) -> tuple[Visits, Any]:
    """Return visits of two kinds in pairs, of which either comes first in turn, and the kind of each."""
    pairs = min(PAIRS, *(v.count for v in both)) // 2 * 2
    starts = [np.flatnonzero(np.diff(v.visit, prepend=-1)) for v in both]
    sizes = [np.diff(s, append=v.visit.size) for s, v in zip(starts, both, strict=True)]
    kind = np.tile([0, 1, 1, 0], pairs // 2)
    number = np.repeat(np.arange(pairs), 2)
    size = np.where(kind == 0, sizes[0][number], sizes[1][number])
    ends = np.cumsum(size)
    within = np.arange(ends[-1]) - np.repeat(ends - size, size)
    access = [np.repeat(np.where(kind == k, starts[k][number], 0), size) + within for k in (0, 1)]
    first = np.repeat(kind == 0, size)

    def merged(name: str) -> Any:
        low, high = (getattr(v, name) for v in both)
        return np.where(
            first, low[np.minimum(access[0], low.size - 1)], high[np.minimum(access[1], high.size - 1)]
        )

    visit = np.repeat(np.arange(kind.size), size)
    return Visits(
        visit=visit,
        offset=merged("offset"),
        bank=merged("bank"),
        row=merged("row"),
        write=merged("write"),
        hit=None,
        position=np.arange(kind.size),
    ), kind


def _combined(times: Sequence[PacketTimes], part: FloatArray, slopes: FloatArray) -> PacketTimes:
    """Return the visits of all kinds as one, as the accesses of each of them meet it."""

    def mean(values: Any) -> float:
        return float(part @ np.asarray(values, dtype=float))

    banks = mean([t.banks for t in times])
    return PacketTimes(
        size=mean([t.size for t in times]),
        alone=np.array([t.alone for t in times]),
        delay=slopes[:, :, 0] @ part,
        conflict_alone=np.array([t.conflict_alone for t in times]),
        conflict=slopes[:, :, 1] @ part,
        bus=(mean([t.bus[0] for t in times]), mean([t.bus[1] for t in times])),
        row_commands=(mean([t.row_commands[0] for t in times]), mean([t.row_commands[1] for t in times])),
        bank=(
            mean([t.banks * t.bank[0] for t in times]) / banks,
            mean([t.banks * t.bank[1] for t in times]) / banks,
        ),
        banks=banks,
        spread=False,
    )
