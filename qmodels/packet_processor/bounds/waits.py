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
from qmodels.packet_processor.latency import (
    _after_operations,
    _alone,
    _operations,
    _squeeze,
    _table_read,
    hit_time,
    waits_ahead,
)
from qmodels.packet_processor.load import OperatingPoint
from qmodels.packet_processor.lone_packet import LONGEST_WALK


class Least(NamedTuple):
    """One value per box, times in ns."""

    fixed: FloatArray  # of a packet alone, without its lookups
    lookup: FloatArray  # of all its lookups, without waits for others
    waits: FloatArray  # of write, read, lookups, and for the pointer memory to store and to drain, (5, boxes)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def least_waits(c: Columns, point: OperatingPoint, *, walk: bool) -> Least:
    """Return the parts of the least latency, see `qmodels.packet_processor.latency.latency`.

    Of several channels that a packet waits for it is one; what others' reads and later writes add to the
    waits of its writes is left out. ``walk``: whether a lone packet's way through the banks is walked, or
    taken as if no access found another one.
    """
    share, ahead = c.size_share, waits_ahead(c, point)
    squeeze = _squeeze(c, point.request_gap, point.bus_others)
    allocation, dequeue = _operations(c, point)
    written, returned = _alone(c, point) if walk else _paced(c, point)
    alone = _table_read(c, point, -point.bank_wait)
    waits = (
        ahead.write @ share,
        point.bank_wait + (ahead.read + squeeze) @ share,
        np.where(c.miss_rate > 0, c.miss_rate * (point.bank_wait + ahead.table), 0.0),
        point.pointer_wait,
        point.pointer_wait,
    )
    return Least(
        fixed=(allocation + dequeue + written + returned) @ share,
        lookup=c.lookups * hit_time(c, point) + np.where(c.miss_rate > 0, c.miss_rate * alone, 0.0),
        waits=np.stack(waits),
    )


def _paced(c: Columns, point: OperatingPoint) -> tuple[FloatArray, FloatArray]:
    """Return what `_alone` does if every access is served as it comes; of long packets the first part."""
    after = np.minimum(c.segments, LONGEST_WALK) - 1.0
    each = (c.burst + c.access)[:, None]
    back = np.maximum(after * point.request_gap[:, None], after * c.segment_time[:, None])
    return _after_operations(
        c, point, after * point.segment_gap[:, None] + each, back + each + c.segment_time[:, None]
    )


def followed_waits(
    c: Columns, point: OperatingPoint, where: npt.NDArray[np.bool_], least_hits: FloatArray
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Return the least waits of the packets that are followed in some boxes, and which surely pile them up.

    Between lookups that all miss and such that none does both are straight lines: the less of the
    two ends of a box counts, ``least_hits`` being the hit ratio of the other one.
    """
    there: Any = SimpleNamespace(
        rate=point.rate, load=np.where(where, point.load, np.inf), response=point.response
    )
    ends = [followed(one, there) for one in (c, replace(c, hit_ratio=least_hits))]
    growth = np.minimum(*(one.growth for one in ends))
    return np.minimum(*(one.mean for one in ends)), growth > PILED_UP
