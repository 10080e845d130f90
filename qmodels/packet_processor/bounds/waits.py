"""The least that packets wait for, and their least latency, in a state below every one that may be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import kernel, part
from qmodels.packet_processor.design import Columns
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
from qmodels.packet_processor.trials.rows import visits_at_bank, write_changes

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
SLACK = 1e-3
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
    ``several``: boxes of several caches, see `qmodels.packet_processor.bounds.waits.least_point`;
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
    faster, load = (1.0 - SLACK) * point.rate / light.rate, point.loads["dram buses"]
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
