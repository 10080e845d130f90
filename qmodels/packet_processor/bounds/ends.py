"""The least and the most that the metrics of a packet processor may be in boxes of specs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.box_bounds import BoxBounds, Ends
from qmodels.checks import FloatArray
from qmodels.packet_processor.answer import _events, energy_per_packet
from qmodels.packet_processor.bounds.waits import followed_waits, least_point, least_waits
from qmodels.packet_processor.design import Columns, columns
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import array_fields, field_paths, get_field, replace_paths
from qmodels.systems.traffic.arrivals import Recorded

SLACK = 1e-5
"""Relative; of what a solver's iterations leave open, and of rounding."""
TABLE = 1e-3
"""Relative error of losses that are read off a table."""

SMALL = "free_list.small_packet_segments"
CACHE = ("llc.slices", "llc.slice_lines", "llc.access_cycles", "llc.bus_cycles", "llc.clock_ghz")
STORE = ("free_list.segments", "free_list.vms1_share")
TRIALS = "free_list.alloc_trial_count"
SPANS = (*STORE, TRIALS, SMALL, *CACHE)
LOSSES = ("data_rate", "overflow_probability", "blocking_probability", "energy_per_packet", "cost")
"""Metrics that depend on how many packets find room; the others do not depend on the length of the lists."""
DERIVED = (
    "packet_latency", "saturation_data_rate", "data_rate", "energy_per_packet", "overflow_probability", "cost"
)  # fmt: skip


def packet_processor_bounds(spec: PacketProcessor) -> BoxBounds:
    r"""Bounds of the metrics of packet processors over boxes around a spec.

    Parameters
    ----------
    spec : PacketProcessor
        What the boxes have in common.

    Returns
    -------
    BoxBounds
        With stages: the waits of Poisson packets; also the way of a lone packet through the banks; and,
        where packets are followed (those of a trace), also their waits.

    Raises
    ------
    ValueError
        For a memory behind controllers, whose answer is that of a sample and has no bounds.

    Notes
    -----
    Derived from the model's equations. The area is a sum of products of parts that each field only adds to:
    the corners bound it, exactly. The latency is at least that of a lone packet with the waits at a
    state below all in which the ring of trials and row changes may settle
    (`qmodels.packet_processor.bounds.waits`). No design carries more than its fullest resource does
    at that state: :math:`X \le \lambda / \rho(\lambda)`, as loads grow at least in proportion to the rate. Of
    lists of :math:`K` blocks in which packets want :math:`M` on average at least :math:`1 - K/M` are
    refused. Energy counts the least events, and the background of the smallest parts.

    Unstable designs are told as such (``stable``); the other ends are those of stable ones.
    """
    if isinstance(spec.dram, DramSystem):
        raise ValueError("bounds are of memories without controllers, got a spec with dram=DramSystem")
    recorded = isinstance(spec.workload.arrivals, Recorded)
    boxes = _Boxes()
    return BoxBounds(
        derived=DERIVED,
        spans=SPANS,
        early=(CACHE[0], SMALL, *CACHE[2:]),
        idle={name: STORE for name in spec.metric_names.both if name not in LOSSES},
        stages=tuple(partial(boxes.ends, stage=stage) for stage in range(3 if recorded else 2)),
        assumes="stable designs; the model's equations solved to a part of 1e-5",
    )


class _Boxes:
    """The stages of bounds around one spec, which remember what they found of the fields that make work."""

    def __init__(self) -> None:
        self._known: dict[bytes, FloatArray] = {}
        self._common: list[dict[str, Any]] = []

    def ends(self, low: PacketProcessor, high: PacketProcessor, *, stage: int) -> Ends:
        """Return the ends of a stage: 0 without walks of lone packets, 1 with them, 2 with followed ones."""
        count = _count(low, high)
        self._start_anew_for(low, high)
        fields = {**array_fields(low), **array_fields(high)}.keys() - {*STORE}
        fields -= {TRIALS} if stage < 2 else set()  # which matter to the path that is followed
        sides = [_full(spec, name, count) for name in sorted(fields) for spec in (low, high)]
        keys = [
            str((stage, sorted(fields), row)).encode()
            for row in zip(*(side.tolist() for side in sides), strict=True)
        ] or [str(stage).encode()] * count
        new = {key: row for row, key in enumerate(keys) if key not in self._known}
        if new:
            rows = np.array(list(new.values()))
            lowest, highest = (
                replace_paths(spec, {path: values[rows] for path, values in array_fields(spec).items()})
                for spec in (low, high)
            )
            found = _work(lowest, highest, rows.size, stage)
            self._known.update(zip(new, found.T, strict=True))
        return _metrics(low, high, _Work(*np.stack([self._known[key] for key in keys], axis=1)))

    def _start_anew_for(self, *corners: PacketProcessor) -> None:
        """Forget what is known of boxes that differ in a field which holds one value for all."""
        common = [
            {path: value for path, value in field_paths(spec).items() if not np.ndim(value)}
            for spec in corners
        ]
        for now, before in zip(common, self._common or ({}, {}), strict=True):
            if now.keys() != before.keys() or any(
                value is not before[path] and not _same(value, before[path]) for path, value in now.items()
            ):
                self._known, self._common = {}, common


def _same(one: Any, other: Any) -> bool:
    """Whether two numbers or words are equal; of other values that is not known."""
    return isinstance(one, (float, int, str)) and type(one) is type(other) and one == other


class _Work(NamedTuple):
    """Service demands that follow from the fields; one value per box, times in ns."""

    keeps_up: FloatArray  # 0 if no design of the box does
    stay: FloatArray  # least time of a packet without its lookups
    lookup: FloatArray  # least time of these
    rate: FloatArray  # packets per ns
    load: FloatArray  # least load of the fullest resource
    energy: FloatArray  # least energy of a packet
    hold: FloatArray
    mean_bytes: FloatArray
    mean_segments: FloatArray
    small_part: FloatArray  # part of the segments that count as small


def _work(low: PacketProcessor, high: PacketProcessor, count: int, stage: int) -> FloatArray:
    """Return the rows of `_Work`; each box is taken at its best cache and at its least small packets."""
    several = np.any([_full(low, name, count) != _full(high, name, count) for name in CACHE], axis=0)
    cache = replace(high.llc, access_cycles=low.llc.access_cycles, bus_cycles=low.llc.bus_cycles)
    c = _least_lookups(columns(_wide(replace(low, llc=cache), count)), _full(low, CACHE[0], count), several)
    most_small = _full(high, SMALL, count)
    point = least_point(c, several, most_small)
    least = least_waits(c, point, several, walk=stage > 0)
    keeps_up = point.load < 1.0
    if stage == 2:
        alike = keeps_up & (c.small == most_small) & ((_full(low, CACHE[0], count) > 0) == (c.slices > 0))
        for name in CACHE[2:]:
            alike &= _full(low, name, count) == _full(high, name, count)
        if alike.any():
            trials = _full(low, TRIALS, count), _full(high, TRIALS, count)
            found, piled = followed_waits(c, point, alike, columns(_wide(low, count)).hit_ratio, trials)
            np.maximum(least.waits, found, out=least.waits)
            keeps_up &= ~piled
    write, read, lookup, store, drain = least.waits
    with np.errstate(divide="ignore", invalid="ignore"):
        energy = energy_per_packet(low, **_events(c, point, point.accesses), packet_rate=point.rate)
    work = _Work(
        keeps_up=keeps_up.astype(float),
        stay=least.fixed + write + read + store + drain,
        lookup=least.lookup + lookup,
        rate=point.rate,
        load=point.load,
        energy=energy,
        hold=c.hold,
        mean_bytes=np.full(count, c.mean_bytes),
        mean_segments=np.full(count, c.mean_segments),
        small_part=c.small_part,
    )
    return np.stack([np.broadcast_to(value, count) for value in work])


def _count(low: PacketProcessor, high: PacketProcessor) -> int:
    """Return the number of boxes, checked to have one value of what they may not span."""
    lower, higher = field_paths(low), field_paths(high)
    for name in lower:
        one: Any = lower[name]
        other: Any = higher.get(name)
        if name not in SPANS and one is not other and not np.array_equal(one, other):
            raise ValueError(f"{name} must have one value in a box, got {one} to {other}")
    return max((value.size for spec in (low, high) for value in array_fields(spec).values()), default=1)


def _full(spec: PacketProcessor, name: str, count: int) -> FloatArray:
    """Return a field of every box."""
    return np.broadcast_to(np.asarray(get_field(spec, name), dtype=float), count)


def _wide(spec: PacketProcessor, count: int) -> PacketProcessor:
    """Return the spec with an array in a field that the work depends on."""
    return replace_paths(spec, {"dram.channels": np.broadcast_to(spec.channels, count)})


def _least_lookups(c: Columns, slices: FloatArray, several: npt.NDArray[np.bool_]) -> Columns:
    """Return the columns with the least that caches of a box, of at least so many slices, are asked for."""
    missed = (c.miss_rate > 0).astype(float)
    least: dict[str, Any] = {
        "slice_peak": 0.0 * missed,
        "miss_channel_peak": missed / c.channels,
        "miss_bank_peak": missed / c.places,
        "slices": np.where(slices > 0, c.slices, 0.0),
    }
    return replace(c, **{name: np.where(several, value, getattr(c, name)) for name, value in least.items()})


def _metrics(low: PacketProcessor, high: PacketProcessor, work: _Work) -> Ends:
    """Return the ends of all metrics."""
    keeps_up = work.keeps_up > 0
    none, most = np.zeros_like(work.rate), np.full_like(work.rate, np.inf)
    rate = work.rate * work.mean_bytes * 8
    cost = [np.broadcast_to(np.asarray(spec.area, dtype=float), rate.shape) for spec in (low, high)]
    with np.errstate(invalid="ignore"):
        latency = np.where(keeps_up, (1.0 - SLACK) * (work.stay + work.lookup), np.inf)
        refused = np.where(keeps_up, np.nan_to_num(_refused(low, high, work)), 0.0)
    return {
        "packet_latency": (latency, most),
        "saturation_data_rate": (none, (1.0 + SLACK) * rate / work.load),
        "data_rate": (none, rate),
        "energy_per_packet": ((1.0 - SLACK) * work.energy, most),
        "cost": (cost[0], cost[1]),
        "overflow_probability": (refused, none + 1.0),
        "stable": (none, work.keeps_up),
    }


def _refused(low: PacketProcessor, high: PacketProcessor, work: _Work) -> FloatArray:
    """Return the least part of the segments that the longest lists of a box refuse."""
    count = work.rate.size
    every = _full(high, STORE[0], count)
    shared = replace(high.free_list, vms1_share=low.free_list.vms1_share)
    own, kept = (
        np.broadcast_to(np.asarray(lists.vms1_segments, dtype=float), count)
        for lists in (high.free_list, shared)
    )
    wanted = work.rate * (work.stay + work.hold) * work.mean_segments
    small = wanted * work.small_part
    together = np.maximum(wanted - every, 0.0)
    apart = np.maximum(wanted - small - own, 0.0) + np.maximum(small - (every - kept), 0.0)
    one_law = _full(low, SMALL, count) == _full(high, SMALL, count)
    return (1.0 - TABLE) * np.where(one_law, apart, together) / np.maximum(wanted, 1e-300)
