"""The least that packets wait for, and their least latency, in a state below every one that may be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
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
from qmodels.packet_processor.meeting import BACKLOG
from qmodels.packet_processor.ring import HELD_UP, REQUEST_BLOCKED, RESPONSE_BLOCKED

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
    ``several``: boxes of several caches, see `qmodels.packet_processor.bounds.operating.least_point`;
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
