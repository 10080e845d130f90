"""A state below every one in which a packet processor's ring of trials and row changes may settle."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import kernel, part
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.load import OperatingPoint
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
