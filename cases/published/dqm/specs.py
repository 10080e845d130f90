"""The data-queueing case: its specs, its 180 techniques, and the trace that is played through them."""

from __future__ import annotations

import os
from pathlib import Path

from optimize.spaces.space import Space
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, DataQueueing
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic, SelfSimilar
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.trace import Trace, read_trace

PUBLISHED_SEGMENTS = 4_194_304
SEGMENTS = 65_536
"""Segments of our memory, a 64th of the paper's: 1e5 packets fill and turn over that one many times.

Vms1Size and the pages are scaled alike, so that a bank has as many; tables name the paper's sizes. With
generated bursts at load 3, write conflicts without page control are 15.5 % with one trial and 4.2 % with 3;
a memory of the full size and 4 million packets give 15.2 and 4.0 %."""
PAGE_SEGMENTS = 128

TRACE = "BC-pAug89-100k.TL"
GENERATOR = SelfSimilar(shape=1.4)
"""Sessions that stand in for the trace."""
LOAD_FACTOR, INPUT_SPEED = 1.5, 5.0
"""The two numbers that are fitted: at this load the conventional technique fails as often as in Table 4
(2.45 % of its allocations), and with an input of this speed the read conflicts fall as in Table 1."""

TRIALS = (1, 2, 3, 4, 5)
SMALL = (1, 2, 3, 4)
VMS1 = (2_097_152, 3_145_728, 3_495_232, 3_670_016, 3_774_848, 3_984_576, 4_054_528, 4_089_472, 4_194_304)
ORDER = ("alloc_trial_count", "small_packet_segments", "vms1_size")
"""The parameters in the order in which the paper's greedy exploration decides them."""


def find_trace() -> Path | None:
    """Return the Bellcore trace if it is in the folder ``QMODELS_TRACES`` or ``../shared/traces``."""
    beside = Path(__file__).resolve().parents[4] / "shared" / "traces"
    path = Path(os.environ.get("QMODELS_TRACES", beside)) / TRACE
    return path if path.is_file() else None


def base_spec(
    trace: Trace | str | os.PathLike[str] | None = None, *, segments: int = SEGMENTS
) -> DataQueueing:
    """Return the conventional technique under a trace, or under a generator where there is none.

    Parameters
    ----------
    trace : Trace or path, optional
        Recorded packets; by default those of `find_trace`. Without any, self-similar sessions with
        the sizes of `imix` stand in.
    segments : int
        Segments of the memory.
    """
    if trace is None:
        trace = find_trace()
    if trace is None:
        return case_spec(segments=segments)
    recorded = Recorded(trace=trace if isinstance(trace, Trace) else read_trace(trace))
    return case_spec(recorded, segments=segments)


def case_spec(arrivals: Recorded | SelfSimilar = GENERATOR, *, segments: int = SEGMENTS) -> DataQueueing:
    """Return the conventional technique under these packets.

    Notes
    -----
    One input and one output port, so that the segments of a packet are written and read in a row
    but for the other port's; packets are admitted by the segment: with these the published tables
    are met best, see `cases.published.dqm.causes`. Load and input speed are fitted to two published numbers.
    """
    return DataQueueing(
        data=DataMemory(segments=segments, page_segments=max(1, scaled(PAGE_SEGMENTS, segments))),
        allocation=Allocation(alloc_trial_count=1, vms1_size=segments, admission="segment"),
        traffic=QueueTraffic(
            arrivals=arrivals, load_factor=LOAD_FACTOR, input_ports=1, output_ports=1, input_speed=INPUT_SPEED
        ),
    )


def scaled(size: int, segments: int) -> int:
    """Return a size in the paper's memory for a memory of so many segments.

    Examples
    --------
    >>> scaled(2_097_152, 65_536), scaled(4_089_472, 65_536)
    (32768, 63898)
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
