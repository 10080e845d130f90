"""Waits of the accesses of one design at its operating point."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.numerics.kernels import kernel, part
from qmodels.packet_processor.memory import (
    bank_wait,
    bus_waits,
    found_opened,
    write_overlap,
)
from qmodels.packet_processor.numbers import (
    BEHIND,
    CLOSED,
    DEQUEUE,
    DEQUEUE_PACKET,
    ENQUEUE,
    ENQUEUE_PACKET,
    LOOKUPS,
    MEAN,
    MISSES,
    OPENING,
    PLACES,
    POINTER,
    SLICE_TIME,
    SLICES,
    SMALL,
    SMALL_PART,
    TRAINS,
)  # fmt: skip
from qmodels.packet_processor.ring import (
    ACCESSES,
    AFTER,
    ALLOCATION,
    AREA_HIT,
    AREA_OPENED,
    ASKED,
    AT_READ,
    AT_WRITE,
    BLOCKED,
    EACH,
    HELD,
    INJECT_INTENSITY,
    INJECT_WAIT,
    LATER_OPEN,
    LOOKUP,
    NEAR,
    PORT,
    READ_CHANGES,
    READ_OPENS,
    REST,
    SEGMENT_GAP,
    SERVICE,
    SOON,
    WAY,
    WRITE,
    WRITE_OPENS,
    enter,
    set_segment_gap,
)  # fmt: skip
from qmodels.packet_processor.trials.conflicts import (
    by_visits,
    chain,
    outstanding_writes,
    reads_meet,
    start_conflicts,
    visits_at_bank,
    write_changes,
    writes_meet,
)
from qmodels.packet_processor.trials.crossings import crossings
from qmodels.packet_processor.trials.walk import EXTRA, FORCED, SQUARED
from qmodels.queues.general.transient import mean_work

(
    BANK_WAIT, BUS_WAIT, WRITE_BUS_WAIT, BUS_OTHERS, WRITE_OTHERS, BACKLOG, OVERLAP, KEPT, FROM_READS,
    TRIAL_ACCESSES, TRIAL_VARIANCE, TAKEN_BUSY, FORCED_BUSY, STARTS, LATE, SPREAD, WRITE_MET, READ_MET,
    POINTER_WAIT, SLICE_WAIT,
) = range(20)  # fmt: skip
"""What is found for a design, see `qmodels.packet_processor.load.OperatingPoint`."""


@kernel(soon=lambda rate, *others: rate.size <= SOON)
def meet(rate: Any, z: Any, t: Any, met: Any, o: Any, busy: Any, uneven: Any, old_run: Any, out: Any) -> None:
    """Fill in what accesses meet.

    ``rate``, ``z``, ``t``, ``met``, ``o``, ``busy``: see `qmodels.packet_processor.ring.settle`; ``uneven``:
    multiples of the mean load of banks and channels, (2, designs, nodes); ``old_run``: part of the writes of
    an old run that keep their bank as long as if they opened their row; ``out``: filled, see the names above.
    """
    for i in range(rate.size):
        at_memory(rate[i], z[i], t.sizes, met[i], o[i], uneven[0, i], uneven[1, i], out[i])
        if z[i, CLOSED]:
            meet_closed(rate[i], z[i], o[i], out[i])
        else:
            meet_open(i, rate[i], z[i], t, o[i], busy[i], old_run, out[i])
        wait_elsewhere(rate[i], z[i], t.sizes, o[i], out[i])


@kernel(soon=lambda rate, *others: rate.size <= SOON)
def meet_few(rate: Any, z: Any, t: Any, met: Any, o: Any, out: Any) -> None:
    """Fill in where designs settle, and the state of banks and buses, in light traffic.

    Nobody is met: an allocation takes one access, and rows are open as lone packets leave them.
    """
    even = np.ones(1)
    for i in range(rate.size):
        enter(rate[i], z[i], t, o[i])
        set_segment_gap(rate[i], z[i], 1.0, o[i])
        from_reads, _ = visits_at_bank(rate[i], z[i])
        o[i, READ_OPENS] = o[i, READ_CHANGES]
        o[i, WRITE_OPENS] = 1.0
        if not z[i, CLOSED]:
            o[i, WRITE_OPENS] = write_changes(z[i], o[i, SEGMENT_GAP], from_reads, o[i, LATER_OPEN])
        at_memory(rate[i], z[i], t.sizes, met[i], o[i], even, even, out[i])


@part
def at_memory(
    rate: Any, z: Any, sizes: Any, met: Any, o: Any, at_banks: Any, at_channels: Any, out: Any
) -> None:
    """Fill in the state of banks and buses, the mean over the moments of uneven load.

    Behind controllers a bank is busy for as long as they have an access to it.
    """
    per_packet = 2.0 * z[TRAINS] + z[MISSES]
    occupancy = z[OPENING]
    if z[BEHIND]:
        out[BANK_WAIT], out[WRITE_BUS_WAIT] = met[AT_READ] - z[OPENING], met[AT_WRITE] - met[AT_READ]
    else:
        nodes = at_banks.size
        bank, bus, write, others, write_others, backlog = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(nodes):
            bank += bank_wait(
                rate, z, o[WRITE_OPENS], o[READ_OPENS], o[AREA_OPENED], o[AREA_HIT], at_banks[k]
            )
            waits = bus_waits(rate, z, sizes, at_channels[k])
            bus, write, others = bus + waits[0], write + waits[1], others + waits[2]
            write_others, backlog = write_others + waits[3], backlog + waits[4]
        occupancy = found_opened(z, o[WRITE_OPENS], o[READ_OPENS])
        out[BANK_WAIT] = bank / nodes + backlog / nodes / z[PLACES]
        out[BUS_WAIT], out[WRITE_BUS_WAIT], out[BACKLOG] = bus / nodes, write / nodes, backlog / nodes
        out[BUS_OTHERS], out[WRITE_OTHERS] = 1.0 - nodes / others, 1.0 - nodes / write_others
        out[OVERLAP] = write_overlap(rate, z, sizes)
    kept = occupancy + (2.0 * z[MEAN] + z[MISSES]) / per_packet * out[BUS_WAIT]
    out[KEPT] = kept if kept < np.inf else 1e9


@part
def meet_closed(rate: Any, z: Any, o: Any, out: Any) -> None:
    """Fill in trials and conflicts with closed pages."""
    from_reads, from_all = visits_at_bank(rate, z)
    out[FROM_READS] = from_reads
    out[TRIAL_ACCESSES], out[TRIAL_VARIANCE], out[TAKEN_BUSY] = chain(z, o[BLOCKED])
    out[WRITE_MET] = writes_meet(rate, z, o[SEGMENT_GAP], from_reads, out[KEPT])
    out[READ_MET] = reads_meet(z, from_all, out[KEPT], True)


@part
def meet_open(i: Any, rate: Any, z: Any, t: Any, o: Any, busy: Any, old_run: Any, out: Any) -> None:
    r"""Fill in trials and the parts of the conflicts with open pages.

    A block is forced upon a busy bank as the walk of `qmodels.packet_processor.trials.walk` says,
    and its write conflicts if the bank is still busy when the write gets there. Beyond that operations of
    the pointer memory cross on their way, see `qmodels.packet_processor.trials.crossings`.
    """
    from_reads, from_all = visits_at_bank(rate, z)
    near, asked, allocation = o[NEAR], o[ASKED], o[ALLOCATION]
    extra, square = (
        outstanding_writes(EXTRA, i, rate, z, t, near, asked, allocation, busy, o[LOOKUP], o[WRITE]),
        outstanding_writes(SQUARED, i, rate, z, t, near, asked, allocation, busy, o[LOOKUP], o[WRITE]),
    )
    out[FROM_READS] = from_reads
    out[TRIAL_ACCESSES], out[TRIAL_VARIANCE] = 1.0 + extra, max(square - extra * extra, 0.0)
    reads, between, lookups, writes = crossings(
        rate, z, t.sizes, t.rows[i], near, o[HELD], o[INJECT_WAIT], o[INJECT_INTENSITY], o[PORT], allocation,
        o[SEGMENT_GAP], o[AFTER], o[SERVICE], o[EACH],
    )  # fmt: skip
    out[FORCED_BUSY] = by_visits(
        FORCED, i, z, t, busy, o[LOOKUP], o[WAY], o[SEGMENT_GAP], rate * o[HELD], rate * near
    )
    left = o[REST] + old_run * (o[SERVICE] - o[REST])
    out[STARTS] = start_conflicts(z, t, left, o[WRITE], writes, allocation, o[SEGMENT_GAP], rate * near)
    out[LATE], out[SPREAD] = reads + lookups, between
    others = from_all * o[HELD] + rate * z[MISSES] * (o[ASKED] - o[HELD]) / z[PLACES]
    out[READ_MET] = reads_meet(z, others, out[KEPT], False)


@part
def wait_elsewhere(rate: Any, z: Any, sizes: Any, o: Any, out: Any) -> None:
    """Fill in the work in front of the pointer memory, and of an LLC slice, at a random moment."""
    stored, stored_square, drained, drained_square = 0.0, 0.0, 0.0, 0.0
    for s in range(sizes.shape[1]):
        n, small = sizes[0, s], sizes[0, s] <= z[SMALL]
        store = n * ((1.0 if small else out[TRIAL_ACCESSES]) + z[ENQUEUE])
        drain = n * z[DEQUEUE] + (n - 1.0 if small else 0.0)
        stored, drained = stored + store * sizes[1, s], drained + drain * sizes[1, s]
        stored_square += store * store * sizes[1, s]
        drained_square += drain * drain * sizes[1, s]
    variance = stored_square - stored * stored + (drained_square - drained * drained)
    variance += (1.0 - z[SMALL_PART]) * z[MEAN] * out[TRIAL_VARIANCE]
    enqueue = (z[ENQUEUE_PACKET] + z[MEAN] * (o[ACCESSES] + z[ENQUEUE])) * z[POINTER]
    dequeue = (z[DEQUEUE_PACKET] + drained) * z[POINTER]
    area = (enqueue * enqueue + dequeue * dequeue + variance * z[POINTER] * z[POINTER]) / 2.0
    out[POINTER_WAIT] = mean_work(rate, area, rate * (enqueue + dequeue), 0.0)
    out[SLICE_WAIT] = 0.0
    if z[SLICES] > 0.0:
        lookups = rate * z[LOOKUPS] / z[SLICES]
        out[SLICE_WAIT] = mean_work(
            lookups, z[SLICE_TIME] * z[SLICE_TIME] / 2.0, lookups * z[SLICE_TIME], 0.0
        )
