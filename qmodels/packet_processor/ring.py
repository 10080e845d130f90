"""The ring of trials, pace, row changes and busy banks of one design, at one packet rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qmodels.numerics.kernels import kernel, part
from qmodels.packet_processor.link_waits import END_BUFFER, PIPELINE, network
from qmodels.packet_processor.memory import bank_wait, bus_waits, found_opened, train_areas
from qmodels.packet_processor.numbers import (
    BEHIND,
    BURST,
    CHANNELS,
    CLOSED,
    CUT_PACKET,
    DRAIN_GAP,
    ENGINES,
    ENQUEUE,
    HELD_POWER,
    HOLD,
    LAW,
    MEAN,
    MISSES,
    OPENING,
    PLACES,
    POINTER,
    REQUEST,
    REQUESTS,
    RESPONSES,
    ROWS,
    SAME,
    SEGMENT,
    SMALL_PART,
    SQUARE,
    STEP,
    TRAINS,
)  # fmt: skip
from qmodels.packet_processor.trials.conflicts import (
    chain,
    open_for_later,
    outstanding_writes,
    read_changes,
    visits_at_bank,
    write_changes,
    writes_meet,
)
from qmodels.packet_processor.trials.density import held, near
from qmodels.packet_processor.trials.walk import EXTRA
from qmodels.queues.general.transient import mean_work, train_area

(
    NEAR, HELD, ASKED, REQUEST_PEAK, REQUEST_USED, REQUEST_WAIT, REQUEST_BLOCKED, RESPONSE_PEAK,
    RESPONSE_USED, RESPONSE_END, RESPONSE_WAIT, RESPONSE_BLOCKED, PORT, BUS_WAIT, WRITE_BUS_WAIT, BUS_OTHERS,
    BACKLOG, AREA_OPENED, AREA_HIT, READ_CHANGES, LATER_OPEN, INJECT_WAIT, EJECT_WAIT, INJECT_INTENSITY,
    EJECT_INTENSITY, HELD_UP, ACCESSES, ALLOCATION, SEGMENT_GAP, BLOCKED, WRITE_OPENS, READ_OPENS, LOOKUP,
    WRITE, WAY, SERVICE, READ_WAY, AFTER, EACH, REST,
) = range(40)  # fmt: skip
"""What is found for a design, see `qmodels.packet_processor.balance.Balance`."""
AT_READ, AT_WRITE, WRITE_OPENED, READ_OPENED = range(4)
"""What accesses meet behind controllers: times of a read and of a write, and whether they open their row."""

ITERATIONS = 80
DAMPING = 0.8
TOLERANCE = 1e-5
SOON = 24
"""Designs up to which plain Python is quick enough to be used instead of compiling."""


@kernel(soon=lambda designs, *others: designs.size <= SOON)
def settle(designs: Any, rate: Any, z: Any, t: Any, met: Any, o: Any, busy: Any) -> None:
    """Fill in where some designs settle at their packet rates.

    Busy banks cause trials, trials pace the segments, their pace keeps or breaks up row visits
    and loads links and banks, which makes banks busy: the ring is iterated with damping from
    the trials and row changes that are there.

    Parameters
    ----------
    designs : array of int
        Which designs.
    rate, z, t : array
        Packet rates of all designs [1/ns], and their numbers, see `qmodels.packet_processor.numbers`.
    met : array, (designs, 4)
        What accesses meet behind controllers.
    o, busy : array
        Filled: see the names above, and how long the reads of a visit keep their places busy, by arc.
    """
    for n in range(designs.size):
        i = designs[n]
        enter(rate[i], z[i], t, o[i])
        settled, upward, pace = False, True, DAMPING
        for _ in range(ITERATIONS):
            found, writes, reads = go_round(i, rate[i], z[i], t, met[i], o[i], busy[i])
            if settled:
                break
            # Busy banks jump where a packet's segments just meet each other: half steps lead to the jump.
            if (found > o[i, BLOCKED]) != upward:
                pace, upward = pace / 2.0, not upward
            settled = True
            for k, new in ((BLOCKED, found), (WRITE_OPENS, writes), (READ_OPENS, reads)):
                step = new - o[i, k]
                o[i, k] += pace * step
                settled = settled and pace * abs(step) < TOLERANCE


@part
def enter(rate: Any, z: Any, t: Any, o: Any) -> None:
    """Fill in what stays as it is from round to round."""
    law = t.density[int(z[LAW])]
    o[NEAR] = near(rate * (z[MEAN] * z[SEGMENT] + z[OPENING]), law)
    o[HELD], o[ASKED] = held(rate * z[HOLD], z[CUT_PACKET], law)
    for at, first in ((REQUESTS, REQUEST_PEAK), (RESPONSES, RESPONSE_PEAK)):
        peak, used, end, wait, blocked = network(rate, z, at, t.start, t.links, t.blocking)
        o[first], o[first + 1], o[first + 2] = peak, used, wait
        if at == REQUESTS:
            o[first + 3] = blocked
        else:
            o[first + 2], o[first + 3], o[first + 4] = end, wait, blocked
    o[PORT] = port_wait(rate, z, t.sizes)
    if z[BEHIND] == 0.0:
        o[AREA_OPENED], o[AREA_HIT] = train_areas(z)
        bus, write, others, _, backlog = bus_waits(rate, z, t.sizes, 1.0)
        o[BUS_WAIT], o[WRITE_BUS_WAIT], o[BUS_OTHERS], o[BACKLOG] = bus, write, 1.0 - 1.0 / others, backlog
    work, o[EJECT_INTENSITY] = come_to_engine(rate, z)
    o[EJECT_WAIT] = o[RESPONSE_END] * work
    o[HELD_UP] = held_up(z, work, o[EJECT_INTENSITY], o[RESPONSE_USED], o[RESPONSE_BLOCKED])
    o[LATER_OPEN] = open_for_later(rate, z)
    o[READ_CHANGES] = 1.0 if z[CLOSED] else read_changes(rate, z)


@part
def port_wait(rate: Any, z: Any, sizes: Any) -> Any:
    """Time for which a channel's port is taken by the writes of the packet before.

    Successive packets fill the same chunk with a large step: they are on their way to one channel.
    """
    left = 0.0
    for s in range(sizes.shape[1]):
        touched = min(z[CHANNELS], 1.0 + (sizes[0, s] - 1.0) / z[STEP])
        work = sizes[0, s] * z[SEGMENT] / touched
        left += (work + math.expm1(-rate * work) / rate) * sizes[1, s]
    return z[SAME] * left


@part
def go_round(i: Any, rate: Any, z: Any, t: Any, met: Any, o: Any, busy: Any) -> Any:
    """Fill in what follows from accesses beyond one and row changes; return these as they follow from it."""
    beyond = chain(z, o[BLOCKED])[0] - 1.0 if z[CLOSED] else o[BLOCKED]
    set_segment_gap(rate, z, 1.0 + (1.0 - z[SMALL_PART]) * beyond, o)
    from_reads, _ = visits_at_bank(rate, z)
    if z[BEHIND]:
        at_bank, occupancy = met[AT_READ] - z[OPENING], z[OPENING]
        o[WRITE_BUS_WAIT] = met[AT_WRITE] - met[AT_READ]
    else:
        at_bank = bank_wait(rate, z, o[WRITE_OPENS], o[READ_OPENS], o[AREA_OPENED], o[AREA_HIT], 1.0)
        at_bank += o[BACKLOG] / z[PLACES]
        occupancy = found_opened(z, o[WRITE_OPENS], o[READ_OPENS])
    keep_busy(i, z, t, o, busy, at_bank)
    if z[CLOSED]:
        per_packet = 2.0 * z[TRAINS] + z[MISSES]
        on_books = o[READ_WAY] + at_bank + occupancy
        on_books += (2.0 * z[MEAN] + z[MISSES]) / per_packet * o[BUS_WAIT]
        found, writes = 1.0, 1.0
        if on_books < 1e9:
            found = writes_meet(rate, z, o[SEGMENT_GAP], from_reads, on_books)
    else:
        found = outstanding_writes(
            EXTRA, i, rate, z, t, o[NEAR], o[ASKED], o[ALLOCATION], busy, o[LOOKUP], o[WRITE]
        )
        writes = write_changes(z, o[SEGMENT_GAP], from_reads, o[LATER_OPEN])
    if z[BEHIND]:
        return found, met[WRITE_OPENED], met[READ_OPENED]
    return found, writes, o[READ_CHANGES]


@part
def set_segment_gap(rate: Any, z: Any, accesses: Any, o: Any) -> None:
    """Fill in what follows from the pointer accesses of an allocation, mean over all segments."""
    o[ACCESSES] = accesses
    o[ALLOCATION] = (accesses + z[ENQUEUE]) * z[POINTER]
    o[SEGMENT_GAP] = max(o[ALLOCATION], z[SEGMENT])
    o[INJECT_WAIT], o[INJECT_INTENSITY] = leave_engine(rate, z, o[ALLOCATION])


@part
def leave_engine(rate: Any, z: Any, allocation: Any) -> Any:
    """Return others' work in front of an engine's injection link, and its traffic intensity.

    A packet's segments are ready an allocation apart, its requests as the memory and the pointer memory pace
    them.
    """
    mean, segment, request, own = z[MEAN], z[SEGMENT], z[REQUEST], rate / z[ENGINES]
    area = train_area(mean, z[SQUARE], segment, allocation, 0.0) + z[MISSES] * request * request / 2.0
    area += train_area(mean, z[SQUARE], request, z[DRAIN_GAP], 0.0)
    intensity = own * (mean * segment + (mean + z[MISSES]) * request)
    return mean_work(own, area, intensity, 0.0), intensity


@part
def come_to_engine(rate: Any, z: Any) -> Any:
    """Return others' work in front of an engine's ejection link, and its traffic intensity."""
    segment, own = z[SEGMENT], rate / z[ENGINES]
    area = train_area(z[MEAN], z[SQUARE], segment, z[DRAIN_GAP], 0.0) + z[MISSES] * segment * segment / 2.0
    intensity = own * (z[MEAN] + z[MISSES]) * segment
    return mean_work(own, area, intensity, 0.0), intensity


@part
def held_up(z: Any, work: Any, intensity: Any, used: Any, blocked: Any) -> Any:
    """Wait of responses at their channel behind those to engines that cannot take them.

    A packet's segments come back from several channels at once, faster than its engine takes them. What
    does not fit into the buffers in front of its ejection link waits at the channels, first come, first
    served, and holds up the responses to the other engines, which hold up each other. The work at
    an ejection link is taken as exponential where there is any. The time grows with the square root of
    the other engines (`qmodels.packet_processor.link_waits.ResponseLaw`). Packets that come one by one
    hold up each other on the way as well; the larger of the two counts.
    """
    trains = 0.0
    if (z[ENGINES] - 1.0) * work > 0.0:
        trains = np.inf
        if used < 1.0:
            beyond = work * math.exp(-z[RESPONSES + END_BUFFER] * intensity / work)
            trains = z[HELD_POWER] * beyond / (1.0 - used)
    return trains if trains > blocked else blocked


@part
def keep_busy(i: Any, z: Any, t: Any, o: Any, busy: Any, at_bank: Any) -> None:
    """Fill in how long visits keep the places of a run busy.

    Visits of reads open their row, and a write does, as often as their changes say.
    """
    opened, hit = min(o[READ_OPENS] * z[MEAN] / z[ROWS], 1.0), z[OPENING] - z[BURST]
    shared = o[INJECT_WAIT] + z[REQUESTS + PIPELINE] + o[REQUEST_WAIT] + o[REQUEST_BLOCKED] + o[PORT]
    service = at_bank + z[OPENING]
    one = shared + z[REQUEST] + service + o[BUS_WAIT]
    each = max(z[BURST] + o[BUS_WAIT], z[BURST] / max(1.0 - o[BUS_OTHERS], 1e-9))
    late = (z[SQUARE] / z[MEAN] - 1.0) / 2.0 * max(z[SEGMENT] - o[ALLOCATION], 0.0)
    way = o[ALLOCATION] + z[SEGMENT] + shared
    written = service + o[WRITE_BUS_WAIT] + o[BACKLOG]
    for arc in range(busy.size):
        busy[arc] = ending(one - (1.0 - opened) * hit + (t.reads[i, arc] - 1.0) * each)
    o[LOOKUP], o[WRITE], o[WAY] = ending(one), ending(late + way + written), ending(way)
    o[SERVICE], o[READ_WAY], o[EACH] = ending(written), ending(shared + z[REQUEST]), ending(each)
    o[AFTER] = ending(service + o[BUS_WAIT] - (1.0 - opened) * hit)
    o[REST] = ending(written - (1.0 - o[WRITE_OPENS]) * (hit + at_bank))


@part
def ending(time: Any) -> Any:
    """Return a time in which a bank becomes free; one that never does counts as busy for very long."""
    return time if time < 1e9 else 1e9
