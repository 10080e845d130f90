"""Bounds of the metrics of a packet processor over boxes of specs: least waits, then ends of metrics."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import kernel, part
from qmodels.packet_processor.answer import _events, energy_per_packet
from qmodels.packet_processor.design import Columns, columns
from qmodels.packet_processor.following.waits import PILED_UP, followed
from qmodels.packet_processor.heavy_traffic import Waits, heavy_buses
from qmodels.packet_processor.latency import (
    _after_operations,
    _alone,
    _operations,
    _squeeze,
    _table_read,
    hit_time,
    light_waits,
    refresh_waits,
)
from qmodels.packet_processor.load import OperatingPoint
from qmodels.packet_processor.lone_packet import LONGEST_WALK
from qmodels.packet_processor.meeting import (
    BACKLOG,
    BANK_WAIT,
    POINTER_WAIT,
    SLICE_WAIT,
    TRIAL_ACCESSES,
    at_memory,
    wait_elsewhere,
)
from qmodels.packet_processor.memory import uneven_loads
from qmodels.packet_processor.numbers import CHANNELS, CLOSED, MEAN, PLACES, SMALL, STEP, TRAINS, numbers
from qmodels.packet_processor.ring import (
    EJECT_WAIT,
    HELD_UP,
    INJECT_WAIT,
    LATER_OPEN,
    READ_CHANGES,
    READ_OPENS,
    REQUEST_BLOCKED,
    REQUEST_PEAK,
    REQUEST_USED,
    RESPONSE_BLOCKED,
    RESPONSE_PEAK,
    RESPONSE_USED,
    REST,
    SEGMENT_GAP,
    SOON,
    WRITE_OPENS,
    come_to_engine,
    enter,
    leave_engine,
    set_segment_gap,
)  # fmt: skip
from qmodels.packet_processor.trials.conflicts import visits_at_bank, write_changes
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import array_fields, field_paths, get_field, replace_paths
from qmodels.systems.spec.kind import BoxBounds, Ends
from qmodels.systems.traffic.arrivals import Recorded

NEVER = 1e12
"""A time between segments beyond any: of what falls with their pace this is the least. [ns]"""


def least_point(c: Columns, several: npt.NDArray[np.bool_], most_small: FloatArray) -> OperatingPoint:
    """Return the least state of every box, with the loads it makes.

    An allocation takes at least one access, which makes the least gap between segments; what falls with
    the gap is taken at none at all. The part of the accesses that open their row is an average of what the
    ring starts from and of what its rounds ask for, which grows with the gap for writes and does not depend
    on the ring for reads. More misses only add to each of these; what was not shown to grow with them, the
    effect of full buffers and the backlog of a chunk that several packets fill, is left out of such boxes.

    ``several``: boxes of several caches, of which `c` has the best; ``most_small``: most segments of a small
    packet in each box, of which `c` has the least. The wait for the pointer memory is the least over both.
    """
    rate = np.array(c.packet_rate)
    z, shared = numbers(c)
    met, busy, found, meets = (np.zeros((rate.size, names)) for names in (4, 0, REST + 1, SLICE_WAIT + 1))
    uneven = uneven_loads(c, rate, z)
    least(rate, z, shared, met, several, uneven, np.array(most_small), found, meets)
    meets = np.ascontiguousarray(meets.T)
    return OperatingPoint(c=c, rate=rate, z=z, shared=shared, met=met, found=found, busy=busy, meets=meets)


@kernel(soon=lambda rate, *others: rate.size <= SOON)
def least(
    rate: Any, z: Any, t: Any, met: Any, several: Any, uneven: Any, most_small: Any, o: Any, out: Any
) -> None:
    """Fill in the least states ``o`` and what they meet, ``out``, see `least_point` and `meeting.meet`."""
    for i in range(rate.size):
        enter(rate[i], z[i], t, o[i])
        if several[i]:
            without_blocking(rate[i], z[i], o[i])
        set_segment_gap(rate[i], z[i], 1.0, o[i])
        o[i, WRITE_OPENS] = o[i, READ_OPENS] = z[i, TRAINS] / z[i, MEAN]
        if z[i, CLOSED] == 0.0:
            from_reads, _ = visits_at_bank(rate[i], z[i])
            asked = write_changes(z[i], o[i, SEGMENT_GAP], from_reads, o[i, LATER_OPEN])
            o[i, WRITE_OPENS] = min(o[i, WRITE_OPENS], asked)
            o[i, READ_OPENS] = min(o[i, READ_OPENS], o[i, READ_CHANGES])
        at_memory(rate[i], z[i], t.sizes, met[i], o[i], uneven[0, i], uneven[1, i], out[i])
        if several[i] and z[i, STEP] > z[i, MEAN] and z[i, CHANNELS] > 1.0:
            if out[i, BANK_WAIT] < np.inf:  # of others, which do not keep up, nothing is needed
                out[i, BANK_WAIT] -= out[i, BACKLOG] / z[i, PLACES]
            out[i, BACKLOG] = 0.0
        out[i, TRIAL_ACCESSES] = 1.0
        out[i, POINTER_WAIT] = least_pointer_wait(rate[i], z[i], t.sizes, most_small[i], o[i], out[i])
        o[i, INJECT_WAIT], _ = leave_engine(rate[i], z[i], NEVER)


@part
def without_blocking(rate: Any, z: Any, o: Any) -> None:
    """Let networks fill up when their fullest links do, and nobody be blocked."""
    o[REQUEST_USED], o[RESPONSE_USED] = o[REQUEST_PEAK], o[RESPONSE_PEAK]
    o[REQUEST_BLOCKED] = o[RESPONSE_BLOCKED] = o[HELD_UP] = 0.0
    o[EJECT_WAIT], _ = come_to_engine(rate, z)


@part
def least_pointer_wait(rate: Any, z: Any, sizes: Any, most_small: Any, o: Any, out: Any) -> Any:
    """Return the least wait for the pointer memory over all that counts as a small packet in a box."""
    small = z[SMALL]
    wait_elsewhere(rate, z, sizes, o, out)
    least_wait = out[POINTER_WAIT]
    for s in range(sizes.shape[1]):
        if small < sizes[0, s] <= most_small:
            z[SMALL] = sizes[0, s]
            wait_elsewhere(rate, z, sizes, o, out)
            least_wait = min(least_wait, out[POINTER_WAIT])
    z[SMALL] = small
    return least_wait


FEW = 8
"""Numbers of trials of a box, each of which is followed."""
SCATTER = 0.2
"""Relative; by which waits on a path of more trials are shorter than on that of one: 0.124 at most over
the 1,800 such pairs of the bundled designs under their trace; and those with a cache than with a smaller
and with a larger one: 0.158 at most over 72 of them."""
LIGHT_MARGIN = 1e-3
"""Relative; by which waits in light traffic are not in proportion to it."""


class Least(NamedTuple):
    """One value per box, times in ns."""

    fixed: FloatArray  # of a packet alone, without its lookups
    lookup: FloatArray  # of all its lookups, without waits for others
    waits: FloatArray  # of write, read, lookups, and for the pointer memory to store and to drain, (5, boxes)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def least_waits(c: Columns, point: OperatingPoint, several: npt.NDArray[np.bool_], *, walk: bool) -> Least:
    """Return the parts of the least latency, see `qmodels.packet_processor.latency.latency`.

    Of several channels that a packet waits for in light traffic it is one; what others' reads and later
    writes add to the waits of its writes there, and the links' waits in heavy traffic, are left out.
    ``several``: boxes of several caches, see `qmodels.packet_processor.bounds.least_point`;
    ``walk``: whether a lone packet's way through the banks is walked, or taken as if no access found another.
    """
    share, alone = c.size_share, _table_read(c, point, -point.bank_wait)
    allocation, dequeue = _operations(c, point)
    written, returned = _alone(c, point)[:2] if walk else _paced(c, point)
    behind = _behind_others(c, point, several)
    waits = (
        behind.write @ share,
        behind.read @ share,
        np.where(c.miss_rate > 0, c.miss_rate * behind.table, 0.0),
        point.pointer_wait,
        point.pointer_wait,
    )
    return Least(
        fixed=(allocation + dequeue + written + returned) @ share,
        lookup=c.lookups * hit_time(c, point) + np.where(c.miss_rate > 0, c.miss_rate * alone, 0.0),
        waits=np.stack(waits),
    )


def _behind_others(c: Columns, point: OperatingPoint, several: npt.NDArray[np.bool_]) -> Waits:
    """Return the least waits on links, buses and banks."""
    light = point.light()
    for held in (REQUEST_BLOCKED, RESPONSE_BLOCKED, HELD_UP):
        light.found[several, held] = 0.0
    light.meets[BACKLOG, several] = 0.0
    slopes, refreshed = light_waits(c, light), refresh_waits(c, point)
    memory = slopes["dram buses"]
    slopes["dram buses"] = Waits(
        memory.write,
        memory.read + light.bank_wait[:, None] + _squeeze(c, point.request_gap, light.bus_others),
        memory.table + light.bank_wait,
    )
    faster, load = (1.0 - LIGHT_MARGIN) * point.rate / light.rate, point.loads["dram buses"]
    found = heavy_buses(c, load).times(np.where(load < 1.0, load**2 / np.maximum(1.0 - load, 1e-300), np.inf))
    for name, waits in slopes.items():
        found = found.plus(waits.times(faster * (1.0 - light.loads[name])))
    return found.plus(refreshed)


def _paced(c: Columns, point: OperatingPoint) -> tuple[FloatArray, FloatArray]:
    """Return the result of `_alone` if every access is served as it comes; of long packets the first part."""
    after = np.minimum(c.segments, LONGEST_WALK) - 1.0
    each = (c.burst + c.access)[:, None]
    back = np.maximum(after * point.request_gap[:, None], after * c.segment_time[:, None])
    return _after_operations(
        c, point, after * point.segment_gap[:, None] + each, back + each + c.segment_time[:, None]
    )


def followed_waits(
    c: Columns,
    point: OperatingPoint,
    where: npt.NDArray[np.bool_],
    least_hits: FloatArray,
    trials: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the least waits of the packets that are followed in some boxes, and which surely pile them up.

    The less of the two ends of a box counts, ``least_hits`` being the hit ratio of the other one; between
    them lookups that go to DRAM move all others a little: there it counts but for `SCATTER`. ``trials``:
    least and most trials of each box. Trials put blocks at other banks, so that no number of them bounds the
    others: the least of all counts, or, where they are more than `FEW`, that of one trial but for `SCATTER`.
    Neither is proven.
    """
    least, most = trials
    few, one_cache = most - least < FEW, c.hit_ratio == least_hits
    there: Any = SimpleNamespace(
        rate=point.rate,
        load=np.where(where, point.load, np.inf),
        request=point.request,
        response=point.response,
    )
    ends = [
        followed(replace(one, trials=np.where(few, np.minimum(least + k, most), 1.0)), there)
        for k in range(int(np.max((most - least)[few], initial=0)) + 1)
        for one in (c, replace(c, hit_ratio=least_hits))
    ]
    growth = np.stack([one.growth for one in ends]).min(axis=0)
    waits = np.stack([one.mean for one in ends]).min(axis=0) * np.where(few & one_cache, 1.0, 1.0 - SCATTER)
    return waits, growth > PILED_UP


SLACK = 1e-5
"""Relative; of what a solver's iterations leave open, and of rounding."""
TABLE = 1e-3
"""Relative error of losses that are read off a table."""

SMALL_PACKETS = "free_list.small_packet_segments"
CACHE = ("llc.slices", "llc.slice_lines", "llc.access_cycles", "llc.bus_cycles", "llc.clock_ghz")
STORE = ("free_list.segments", "free_list.vms1_share")
TRIALS = "free_list.alloc_trial_count"
SPANS = (*STORE, TRIALS, SMALL_PACKETS, *CACHE)
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
    (`qmodels.packet_processor.bounds`). No design carries more than its fullest resource does
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
        early=(CACHE[0], SMALL_PACKETS, *CACHE[2:]),
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
    most_small = _full(high, SMALL_PACKETS, count)
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
    one_law = _full(low, SMALL_PACKETS, count) == _full(high, SMALL_PACKETS, count)
    return (1.0 - TABLE) * np.where(one_law, apart, together) / np.maximum(wanted, 1e-300)
