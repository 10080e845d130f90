"""The data-queueing case: its specs and its 180 techniques."""

from __future__ import annotations

import os

from optimize.spaces.space import Space
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, DataQueueing
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.arrivals import Poisson, Recorded
from qmodels.systems.traffic.trace import Trace, read_trace

PUBLISHED_SEGMENTS = 4_194_304
SEGMENTS = 4096
"""Segments of our memory, a 1024th of the paper's: in overload the free list is short in any memory.

Vms1Size and the pages are scaled alike, pages to one segment at least; tables name the paper's sizes."""
PAGE_SEGMENTS = 128

LOAD_FACTOR, INPUT_SPEED = 1.025, 1.66
"""The two numbers that are set. In steady overload 1 - 1/load of the segments find no block: the load is
fitted to the 2.45 % of Table 4. The input's speed is chosen in view of Table 1: (load - 1) / (speed - 1) of
the writes, 3.8 %, take the block just read, as the 3.6 to 4.3 points between its columns of writes ask."""

TRIALS = (1, 2, 3, 4, 5)
SMALL = (1, 2, 3, 4)
VMS1 = (2_097_152, 3_145_728, 3_495_232, 3_670_016, 3_774_848, 3_984_576, 4_054_528, 4_089_472, 4_194_304)
ORDER = ("alloc_trial_count", "small_packet_segments", "vms1_size")
"""The parameters in the order in which the paper's greedy exploration decides them."""


def case_spec(
    trace: Trace | str | os.PathLike[str] | None = None, *, segments: int = SEGMENTS
) -> DataQueueing:
    """Return the conventional technique under Poisson arrivals with the sizes of `imix`, or under a trace.

    ``trace``: recorded packets in their place; ``segments``: segments of the memory.

    Notes
    -----
    One input and one output port; a segment without a block is lost alone, and a block is free once its
    segment is read: with these the published writes are met best, see `cases.published.dqm.causes`.
    """
    arrivals: Poisson | Recorded = Poisson()
    if trace is not None:
        arrivals = Recorded(trace=trace if isinstance(trace, Trace) else read_trace(trace))
    return DataQueueing(
        data=DataMemory(segments=segments, page_segments=max(1, scaled(PAGE_SEGMENTS, segments))),
        allocation=Allocation(alloc_trial_count=1, vms1_size=segments, admission="lossy"),
        traffic=QueueTraffic(
            arrivals=arrivals, load_factor=LOAD_FACTOR, input_ports=1, output_ports=1, input_speed=INPUT_SPEED
        ),
    )


def scaled(size: int, segments: int) -> int:
    """Return a size in the paper's memory for a memory of so many segments.

    Examples
    --------
    >>> scaled(2_097_152, 4096), scaled(4_089_472, 4096)
    (2048, 3994)
    """
    return round(size * segments / PUBLISHED_SEGMENTS)


def technique(
    base: DataQueueing, *, trials: int, small: int, vms1_size: int, page_control: bool = True
) -> DataQueueing:
    """Return a technique of the paper, its Vms1Size as published."""
    fields = {
        "alloc_trial_count": trials,
        "small_packet_segments": small,
        "vms1_size": scaled(vms1_size, int(base.data.segments)),
        "page_control": page_control,
    }
    return normalised(replace_fields(base, fields))


def technique_space(base: DataQueueing) -> Space:
    """Return the 180 techniques.

    The paper explores 180 and does not list them. The values of its tables give that number when
    SmallPktSize 0, which uses one list, is taken together with the Vms1Size of the whole memory,
    which leaves nothing for the other two: then 20 of the 180 are 5 single lists, four times each.
    """
    sizes = [scaled(size, int(base.data.segments)) for size in VMS1]
    return Space(base, alloc_trial_count=TRIALS, small_packet_segments=SMALL, vms1_size=sizes)


def greedy_space(base: DataQueueing) -> Space:
    """Return the techniques that the greedy exploration walks through, which starts with a single list.

    Vms1Size is that of the first row of Table 3 while the other parameters are decided.
    """
    sizes = [scaled(size, int(base.data.segments)) for size in VMS1[:-1]]
    start = replace_fields(base, {"vms1_size": sizes[0]})
    return Space(start, alloc_trial_count=TRIALS, small_packet_segments=(0, *SMALL), vms1_size=sizes)


def normalised(spec: DataQueueing) -> DataQueueing:
    """Return the technique as a single list of all blocks where small packets have none of their own."""
    a, segments = spec.allocation, spec.data.segments
    if a.small_packet_segments > 0 and a.vms1_size < segments:
        return spec
    return replace_fields(spec, {"small_packet_segments": 0, "vms1_size": segments})
