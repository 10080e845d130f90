"""Latency of a packet of each size: the lone packet's time plus the waits behind others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.quantile import mixture_quantile, wait_quantile
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.balance import returns
from qmodels.packet_processor.bursts import Bursts, burst_waits
from qmodels.packet_processor.controller_waits import Controlled
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.following.waits import followed
from qmodels.packet_processor.heavy_traffic import Waits, harmonic, interpolated
from qmodels.packet_processor.load import OperatingPoint, with_trials
from qmodels.packet_processor.lone_packet import LONGEST_WALK, walks
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled

PACE_STEP = 1 / 64
"""Of a burst: paces of a packet's segments between which lone packets are interpolated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Latency:
    """Parts of the packet latency and its spread; arrays (designs,) or (designs, sizes), in ns.

    Parameters
    ----------
    lookup : ndarray
        All lookups of a packet, mean.
    store_wait, drain_wait : ndarray
        Waits for the pointer memory.
    allocation, dequeue : ndarray
        Pointer-memory operation of a packet of each size.
    write, read : ndarray
        The rest of storing and draining, by size.
    wait : ndarray
        Part of the latency that is waiting or lookups, by size.
    tail : function
        Returns the 99th percentile: what packets are followed for where the mean is known without them.
    accesses : ndarray
        Pointer accesses of an allocation, mean over all segments.
    growth : ndarray
        Packets that pile up over the length of a trace for each that arrives.
    """

    lookup: FloatArray
    store_wait: FloatArray
    drain_wait: FloatArray
    allocation: FloatArray
    dequeue: FloatArray
    write: FloatArray
    read: FloatArray
    tail: Callable[[], FloatArray]
    accesses: FloatArray
    growth: FloatArray

    @property
    def total(self) -> FloatArray:
        """Mean latency by size."""
        return (
            (self.lookup + self.store_wait + self.drain_wait)[:, None]
            + self.allocation
            + self.dequeue
            + self.write
            + self.read
        )


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def latency(c: Columns, point: OperatingPoint) -> Latency:
    """Return the latency of all designs at their operating point; not a number where it is unstable."""
    if c.memory is not None:
        return _behind_controllers(c, point, c.memory)
    groups, hit = waits(c, point), hit_time(c, point)
    behind = Waits(*(sum(parts) for parts in zip(*groups.values(), strict=True)))
    alone, share = _table_read(c, point, -point.bank_wait), c.size_share
    poisson = np.stack(
        [
            behind.write @ share,
            behind.read @ share,
            np.where(c.miss_rate > 0, c.miss_rate * behind.table, 0.0),
            point.pointer_wait,
            point.pointer_wait,
        ]
    )
    arrivals, bursts = modelled("workload.arrivals", c.spec.workload.arrivals), None
    mean, stream = poisson, None
    if isinstance(arrivals, Recorded):
        stream = followed(c, point)
        mean = np.maximum(poisson, stream.mean)
        point = with_trials(point, np.maximum(point.trial_accesses, 1.0 + stream.beyond))
    elif isinstance(arrivals, OnOff):
        bursts = burst_waits(c, point, arrivals)
        mean = poisson + bursts.mean
    grown = np.divide(mean, poisson, out=np.ones_like(mean), where=poisson > 0)
    allocation, dequeue = _operations(c, point)
    written, returned, varies = _alone(c, point)
    fixed = allocation + dequeue + written + returned + (c.lookups * hit)[:, None]

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def tail() -> FloatArray:
        if stream is not None:
            return stream.quantile(
                segments=c.segments,
                fixed=fixed,
                varies=varies,
                missed=alone,
                factor=np.divide(mean, stream.mean, out=np.ones_like(mean), where=stream.mean > 0),
            )
        return wait_quantile(
            floors=(fixed, varies, alone),
            waits=_spread_waits(c, point, groups, bursts),
            weight=share,
            misses=c.miss_rate,
            stable=point.load < 1.0,
        )

    return Latency(
        lookup=c.lookups * hit + np.where(c.miss_rate > 0, c.miss_rate * alone, 0.0) + mean[2],
        store_wait=mean[3],
        drain_wait=mean[4],
        allocation=allocation,
        dequeue=dequeue,
        write=written + behind.write * grown[0][:, None],
        read=returned + behind.read * grown[1][:, None],
        tail=tail,
        accesses=point.accesses,
        growth=np.zeros_like(alone) if stream is None else stream.growth,
    )


def _spread_waits(
    c: Columns, point: OperatingPoint, groups: dict[str, Waits], bursts: Bursts | None
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Return the parts of the wait that are independent: by size, of a lookup, and how much they vary.

    The last is the squared coefficient of variation, that of a wait which is exponential with the probability
    of the load, else none. The waits of a packet at one resource, stored and read, are independent in light
    traffic and the same in heavy traffic: their correlation is taken to be the load.
    """
    none = np.zeros_like(point.rate)
    parts = []
    for name, one in groups.items():
        full = np.clip(point.loads.get(name, none + 1.0), 1e-9, 1.0)
        both = one.write + one.read
        apart = (one.write * one.read) @ c.size_share / np.maximum(both**2 @ c.size_share, 1e-300)
        parts.append((both, one.table, (2.0 / full - 1.0) * (1.0 - 2.0 * (1.0 - full) * apart)))
    at_pointer = point.pointer_wait[:, None], none, 2.0 / point.intensity["pointer memory"] - 1.0
    parts += [at_pointer, at_pointer]
    if bursts is not None:
        mean = bursts.mean.sum(axis=0)
        parts.append((mean[:, None], none, 2.0 * bursts.longest / np.maximum(mean, 1e-12) - 1.0))
    return parts


def waits(c: Columns, point: OperatingPoint) -> dict[str, Waits]:
    """Return waits of a Poisson packet by resource, without pointer operations and slices."""
    light = point.light()
    busy = np.clip(light.bank_busy, 1e-12, 1.0)
    fewer = np.minimum(point.conflicts[0] / np.maximum(point.bank_busy, 1e-12), 1.0)
    decay = busy / np.maximum(light.bank_wait, 1e-12)
    met = np.clip(fewer * busy * c.mean_segments / point.trains, 1e-12, 1.0)
    slow = _slowest(c, decay, met, point.segment_gap), _slowest(c, decay, busy, point.request_gap)
    lag = (c.segments - 1.0) * np.maximum(c.segment_time - point.allocation, 0.0)[:, None]
    overlap = lag * np.minimum(light.write_overlap, 1.0)[:, None]
    slopes = light_waits(c, light)
    memory = slopes["dram buses"]
    slopes["dram buses"] = Waits(
        memory.write + slow[0] + _squeeze(c, point.segment_gap, light.write_others) + overlap,
        memory.read + slow[1] + _squeeze(c, point.request_gap, light.bus_others),
        memory.table + light.bank_wait,
    )
    found = interpolated(point, light, slopes)
    # Buffers that fill up hold up packets behind others', which neither limit knows; the larger of the two.
    for name in ("request links", "response links"):
        found[name] = Waits(*map(np.maximum, found[name], light_waits(c, point)[name]))
    return found | {"refreshes": refresh_waits(c, point)}


def light_waits(c: Columns, light: OperatingPoint) -> dict[str, Waits]:
    """Return the waits on links, and for buses of others' single accesses, as in light traffic."""
    request, response, engine = light.request, light.response, light.engine
    every = np.ones((1, c.segments.size))
    asked, back = engine.inject_wait + request.wait + request.blocked, response.wait + engine.eject_wait
    held = harmonic(np.clip(c.rows.channels, 1.0, c.channels[:, None])) * engine.held_up[:, None]
    return {
        "request links": Waits(asked[:, None] * every, asked[:, None] * every, asked),
        "response links": Waits(0.0 * held, back[:, None] + held, back + engine.held_up),
        "dram buses": Waits(
            light.write_wait[:, None] * every, light.bus_wait[:, None] * every, light.bus_wait
        ),
    }


def _behind_controllers(c: Columns, point: OperatingPoint, memory: Controlled) -> Latency:
    """Return the latency of packets whose memory was followed: with all they wait for there.

    Of the time at the memory what it varies by counts as waiting.
    """
    request, response, engine, met = point.request, point.response, point.engine, memory.at(point.rate)
    idle = memory.at(np.zeros_like(point.rate))
    requested = engine.inject_wait + request.wait + request.blocked
    back = response.wait + engine.eject_wait
    longest_hold = harmonic(np.clip(c.rows.channels, 1.0, c.channels[:, None])) * engine.held_up[:, None]
    links = request.pipeline + response.pipeline + c.request_time + c.segment_time
    single = requested + back + engine.held_up + links + met["lookup"]
    lookup = c.lookups * hit_time(c, point) + c.miss_rate * single
    allocation, dequeue = _operations(c, point)
    written, returned = _after_operations(c, point, met["written"], met["returned"])
    varies = [
        np.maximum(met[name] - idle[name], np.sqrt(met[f"{name}_variance"]))
        for name in ("written", "returned")
    ]
    table = c.miss_rate * (
        c.hit_ratio * single**2 + np.maximum(met["lookup_square"] - met["lookup"] ** 2, 0.0)
    )
    shared = _queues_variance(point) + np.where(c.miss_rate > 0, table, 0.0)
    before = (lookup + point.pointer_wait + point.pointer_wait + 2 * requested + back)[:, None]
    variance = _wait_variance(longest_hold, response.used[:, None]) + shared[:, None]
    write, read = written + requested[:, None], returned + (requested + back)[:, None] + longest_hold
    wait = before + longest_hold + sum(varies)
    total = (lookup + 2 * point.pointer_wait)[:, None] + allocation + dequeue + write + read
    return Latency(
        lookup=lookup,
        store_wait=point.pointer_wait,
        drain_wait=point.pointer_wait,
        allocation=allocation,
        dequeue=dequeue,
        write=write,
        read=read,
        tail=lambda: _tail(
            c, point, total, wait, variance + met["written_variance"] + met["returned_variance"]
        ),
        accesses=point.accesses,
        growth=np.zeros_like(point.rate),
    )


def _tail(
    c: Columns, point: OperatingPoint, total: FloatArray, wait: FloatArray, variance: FloatArray
) -> FloatArray:
    """Return the 99th percentile: by size, the lone packet's time plus a gamma law of the waits."""
    stable = (point.load < 1.0)[:, None]
    wait = np.where(stable, wait, 1.0)
    return mixture_quantile(
        floor=np.where(stable, total, wait) - wait,
        weight=c.size_share,
        mean=wait,
        variance=np.where(stable, variance, 1.0),
        level=0.99,
    )


def hit_time(c: Columns, point: OperatingPoint) -> FloatArray:
    """Return the time of a lookup that finds its entry in a slice, and of looking for it there."""
    return np.where(c.slices > 0, 2 * c.bus_time + point.slice_wait + c.slice_time, 0.0)


def _operations(c: Columns, point: OperatingPoint) -> tuple[FloatArray, FloatArray]:
    """Return the pointer-memory operation of a packet of each size to store it, and to drain it."""
    time = c.pointer_time[:, None]
    dequeue = c.dequeue_packet_accesses[:, None] + returns(c) + c.segments * c.dequeue_accesses[:, None]
    return c.enqueue_packet_accesses[:, None] * time + c.segments * _allocation(c, point), dequeue * time


def _table_read(c: Columns, point: OperatingPoint, waits: FloatArray) -> FloatArray:
    """Return the latency of a lookup's read of DRAM with these waits and that for its bank."""
    links = point.request.pipeline + point.response.pipeline + c.request_time + c.segment_time
    return waits + point.bank_wait + links + c.precharge + c.burst + c.access


def _queues_variance(point: OperatingPoint) -> FloatArray:
    """Return the variance of the waits at the pointer memory and at an engine's links."""
    engine, pointer = point.engine, point.intensity["pointer memory"]
    return (
        _wait_variance(point.pointer_wait, pointer)
        + _wait_variance(point.pointer_wait, pointer)
        + 2 * _wait_variance(engine.inject_wait, engine.inject_intensity)
        + _wait_variance(engine.eject_wait, engine.eject_intensity)
    )


def refresh_waits(c: Columns, point: OperatingPoint) -> Waits:
    r"""Return the mean waits for refreshes of a channel.

    An access finds the channel in its refresh with probability :math:`R/I` and waits for the other
    half of it; the work that has come meanwhile delays those behind, :math:`R^2/(2I(1-\rho))` in all, as a
    fluid that drains at the full speed. That less time is left is what the other waits have their pole from.
    """
    load = np.minimum(point.intensity["dram buses"], point.available)
    one = c.refreshing * c.refresh / 2.0 / (1.0 - load)
    each = np.clip(c.rows.channels, 1.0, c.channels[:, None]) * one[:, None]
    return Waits(each, each, one)


def _allocation(c: Columns, point: OperatingPoint) -> FloatArray:
    """Return the pointer-memory time of one stored segment by packet size."""
    accesses = np.where(c.is_small, 1.0, point.trial_accesses[:, None])
    return np.asarray((accesses + c.enqueue_accesses[:, None]) * c.pointer_time[:, None])


def _wait_variance(mean: FloatArray, probability: Any) -> FloatArray:
    """Return the variance of a wait that is 0 or, with the given probability, exponential."""
    return mean**2 * (2.0 / np.clip(probability, 1e-9, 1.0) - 1.0)


def _squeeze(c: Columns, gap: FloatArray, others: FloatArray) -> FloatArray:
    """Extra time of a packet's accesses on one channel beside those of others on its bus.

    They go on one after the other at the pace of their arrival or of the bus, whichever is
    slower; others leave them 1 - ``others`` of the bus.
    """
    touched = c.touched
    arriving = gap[:, None] * touched
    burst = c.burst[:, None]
    left = np.maximum(1.0 - others, 1e-9)[:, None]
    return (c.segments / touched - 1.0) * (np.maximum(burst / left, arriving) - np.maximum(burst, arriving))


def _slowest(c: Columns, decay: FloatArray, probability: FloatArray, gap: FloatArray) -> FloatArray:
    r"""Return the mean of the largest wait among the channels a packet of each size uses.

    A channel's wait exceeds x with probability p exp(-d x). The channels finish a step apart
    even in an idle memory; one that is t ahead of the last counts for exp(-d t) of a channel.
    For K channels the mean of the largest is (1/d) sum_k (1 - (1-p)^k) / k, k = 1..K,
    interpolated between whole K.
    """
    used = c.touched
    ahead = np.exp(-np.clip(decay * gap * c.step, 1e-12, 700.0))[:, None]
    counted = np.where(ahead < 1 - 1e-9, (1 - ahead**used) / np.maximum(1 - ahead, 1e-12), used)
    most = int(c.channels.max())
    k = np.arange(1, most + 1)
    harmonic = np.concatenate(
        [np.zeros((len(decay), 1)), np.cumsum((1 - (1 - probability[:, None]) ** k) / k, axis=1)], axis=1
    )
    low = np.minimum(np.floor(counted).astype(int), most)
    high = np.minimum(low + 1, most)
    row = np.arange(len(decay))[:, None]
    part = counted - low
    return ((1 - part) * harmonic[row, low] + part * harmonic[row, high]) / decay[:, None]


def _alone(c: Columns, point: OperatingPoint) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the time after the pointer operation until a lone packet is written, and is back.

    Some trains find their row open: the walk is mixed from one in which all rows are closed and
    one in which all are open. The third is by how much the sum varies with the packet's place, as standard
    deviation: both ways lead to the same blocks.
    """
    opens = np.minimum(point.changes * c.mean_segments / point.trains, 1.0)

    def mixed(opened: FloatArray, cold: FloatArray, warm: FloatArray) -> FloatArray:
        return opened[:, None] * cold + (1.0 - opened)[:, None] * warm

    # Paces set by trials differ from design to design: they are read off between a few.
    size = c.burst * PACE_STEP
    paced = np.where(point.segment_gap > c.segment_time, point.segment_gap / size, 0.0)
    below = np.floor(paced)
    part = (paced - below)[:, None]
    low, high = (np.where(paced > 0, (below + k) * size, point.segment_gap) for k in (0.0, 1.0))
    writes = [low, high] if paced.any() else [low]
    *ends, reads = _walks(c, *((pace, False) for pace in writes), (point.request_gap, True))
    written = [mixed(opens[0], *moment) for moment in ends[0]]
    if len(ends) > 1:
        later = [mixed(opens[0], *moment) for moment in ends[1]]
        written = [(1.0 - part) * one + part * other for one, other in zip(written, later, strict=True)]
    returned = [mixed(opens[1], *moment) for moment in reads]
    varies = sum(np.sqrt(np.maximum(square - mean**2, 0.0)) for mean, square in (written, returned))
    return *_after_operations(c, point, written[0], returned[0]), np.asarray(varies)


def _after_operations(
    c: Columns, point: OperatingPoint, written: FloatArray, returned: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return times from the end of the pointer operation of those from the first access at the memory.

    The first write starts after one allocation, the first read after one dequeue.
    """
    request, time = point.request, c.pointer_time
    first_write = _allocation(c, point)
    operation_write = c.segments * first_write
    operation_read = c.segments * (c.dequeue_accesses * time)[:, None]
    written = written + first_write + (request.pipeline + c.segment_time)[:, None] - operation_write
    back = point.response.pipeline
    returned = (
        returned
        + (c.dequeue_accesses * time + request.pipeline + c.request_time + back)[:, None]
        - operation_read
    )
    return written, returned


def _walks(c: Columns, *paces: tuple[FloatArray, bool]) -> list[list[list[FloatArray]]]:
    """Return when the accesses of a lone packet have ended, by size: with all rows closed, and all open.

    The mean and the mean square of each. ``paces``: times between accesses, and whether they are done when
    they are delivered; one answer for each. Designs that agree in all the walk needs share one.
    """
    memory = np.stack(
        [
            c.step, c.channels, c.banks, c.bank_step, c.row_blocks, c.run_length, c.burst, c.recovery,
            c.precharge, c.access, c.segment_time,
        ]
    )  # fmt: skip
    z = [np.vstack([memory, pace, np.full_like(pace, delivered)]) for pace, delivered in paces]
    keys, which = distinct(np.concatenate(z, axis=1))
    count = int(min(c.segments.max(), LONGEST_WALK))
    cold, warm, *spread = walks(keys.T, count=count, open_page=not c.closed_pages)
    ends = [_at_sizes(each, c.segments) for each in (cold, warm)]
    # Beyond the longest walk the standard deviation stays.
    spread = [each[:, np.minimum(c.segments.astype(int), count) - 1] for each in spread]
    squares = [end**2 + each**2 for end, each in zip(ends, spread, strict=True)]
    return [
        [[each[here] for each in moment] for moment in (ends, squares)]
        for here in np.split(which, len(paces))
    ]


def _at_sizes(by_count: Any, segments: FloatArray) -> FloatArray:
    """Return the columns of the given sizes, beyond the longest walk by its last slope."""
    count = by_count.shape[1]
    column = np.minimum(segments.astype(int), count) - 1
    slope = (by_count[:, -1] - by_count[:, count // 2]) / max(count - 1 - count // 2, 1)
    return by_count[:, column] + np.maximum(segments - count, 0.0) * slope[:, None]
