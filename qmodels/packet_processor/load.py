"""The operating point of a packet processor: traffic, conflicts and work found, and packets refused."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from math import ceil
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor import meeting as m
from qmodels.packet_processor.balance import Balance, balance
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.memory import uneven_loads
from qmodels.packet_processor.ring import ACCESSES, ALLOCATION, SEGMENT_GAP
from qmodels.packet_processor.trials import conflicts
from qmodels.packet_processor.trials.conflicts import Conflicts
from qmodels.queues.markovian.erlang import kaufman_roberts

FAR = 12.0
LONGEST = 16384
PER_SCALE = 2
KEPT, ROW = 100_000, 32
"""Numbers of a table that are kept for the next designs; a row takes as much memory as some more."""
NEIGHBOURS = np.arange(-3.0, 5.0)
"""Points of the table a design is read off, counted from the one below it."""


def blocking(
    c: Columns, *, small: FloatArray, own: FloatArray, others: FloatArray, stored: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the probability that a packet, and that a segment, finds too few free blocks.

    A packet of n segments holds n blocks for its time in store: the loss link of Kaufman and
    Roberts, exact for Poisson packets whatever the law of that time. Packets of up to ``small``
    segments share the ``others`` blocks, larger ones have their ``own``. Lists that hold twelve
    standard deviations more than the mean demand never overflow. Lists of more than 16,384
    blocks that may overflow are computed in proportion as one of at most that many, which errs
    on the side of refusing. ``stored`` is the mean number of packets in store, finite; all have
    one value per design.
    """
    packets = np.zeros_like(stored)
    segments = np.zeros_like(stored)
    for most in np.unique(small):
        for chosen, capacity in ((c.segments > most, own), (c.segments <= most, others)):
            share = np.where(chosen, c.size_share, 0.0)
            mean, square = share @ c.segments, share @ c.segments**2
            demand = stored * mean + FAR * (np.sqrt(stored * square) + np.max(c.segments * chosen))
            close = (small == most) & (demand > capacity)
            if not chosen.any():
                continue
            for blocks in np.unique(capacity[close]):
                mine = close & (capacity == blocks)
                by_size = blocked_by_size(c.segments[chosen], share[chosen], int(blocks), stored[mine])
                packets[mine] += by_size @ share[chosen]
                segments[mine] += by_size @ (share * c.segments)[chosen] / c.mean_segments
    return packets, segments


def blocked_by_size(segments: FloatArray, share: FloatArray, capacity: int, jobs: FloatArray) -> FloatArray:
    """Return the blocking of each size, (designs, sizes), for designs with one capacity.

    ``segments``, ``share``: blocks of each size of packets, and the share of each in the packets; ``jobs``:
    packets of all sizes that would be in store without a limit, mean, of each design.

    Exact by `qmodels.queues.markovian.erlang.kaufman_roberts`, lists of more than `LONGEST` blocks in
    proportion. Many designs whose demands lie close together share a table: blocking changes over a
    relative change of the demand of 1 / sqrt(capacity), which is resolved by `PER_SCALE` points.
    The points are fixed and each design is read off those around it, alone as in a sweep. Demands that
    leave `FAR` standard deviations free block nobody.
    """
    blocked = np.ones((jobs.size, segments.size))
    if capacity == 0:
        return blocked
    # Nothing in store, or far from full: refused is only what never fits.
    blocked[:] = segments > capacity
    demand = jobs * (share @ segments) + FAR * (np.sqrt(jobs * (share @ segments**2)) + segments.max())
    some = (jobs > 0) & (demand > capacity)
    if not some.any():
        return blocked
    place = np.log(jobs[some]) * np.sqrt(min(capacity, LONGEST)) * PER_SCALE
    around = np.floor(place)[:, None] + NEIGHBOURS
    points, which = np.unique(around, return_inverse=True)
    known = _logarithms(tuple(segments.tolist()), tuple(share.tolist()), capacity, points)
    known = known[which.reshape(around.shape)]
    weight = _lagrange(place - np.floor(place))
    blocked[some] = np.minimum(np.exp(np.einsum("dk,dkn->dn", weight, known)), 1.0)
    return blocked


def _lagrange(part: FloatArray) -> FloatArray:
    """Return the weights of the values at `NEIGHBOURS` in the polynomial through them, at parts of a step."""
    other = ~np.eye(NEIGHBOURS.size, dtype=bool)
    apart = np.where(other, NEIGHBOURS[:, None] - NEIGHBOURS, 1.0).prod(axis=1)
    return np.asarray(np.where(other, part[:, None, None] - NEIGHBOURS, 1.0).prod(axis=2) / apart)


def _logarithms(
    segments: tuple[float, ...], share: tuple[float, ...], capacity: int, points: FloatArray
) -> FloatArray:
    """Return the logarithms of the blocking of each size at points of the table; each is computed once."""
    known, length = _known(segments, share, capacity), min(capacity, LONGEST)
    if len(known) * (len(segments) + ROW) > KEPT:
        known.clear()
    new = np.array([point for point in points.tolist() if point not in known])
    if new.size:
        jobs, unit = np.exp(new / np.sqrt(length) / PER_SCALE), ceil(capacity / LONGEST)
        table = kaufman_roberts(
            servers=max(capacity // unit, 1),
            offered_load=jobs[:, None] * share / unit,
            units=np.array(segments).astype(int),
        )
        known.update(zip(new.tolist(), np.log(np.maximum(table, 1e-300)), strict=True))
    return np.array([known[point] for point in points.tolist()])


@lru_cache(maxsize=64)
def _known(segments: tuple[float, ...], share: tuple[float, ...], capacity: int) -> dict[float, FloatArray]:
    return {}


LIGHT = 1e-4
"""Load of the fullest resource at which traffic is light: waits are in proportion to it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatingPoint(Balance):
    """State of every design at its packet rate; one value per design, times in ns, rates per ns."""

    meets: FloatArray  # what accesses meet, see `qmodels.packet_processor.meeting`, (names, designs)

    @property
    def trial_accesses(self) -> FloatArray:
        """Pointer accesses of an allocation by trials; one of a small packet takes one access."""
        return self.meets[m.TRIAL_ACCESSES]

    @property
    def bank_wait(self) -> FloatArray:
        """Work of other visits in front of a bank."""
        return self.meets[m.BANK_WAIT]

    @property
    def bus_wait(self) -> FloatArray:
        """Wait of a single access for its turn on the bus."""
        return self.meets[m.BUS_WAIT]

    @property
    def write_wait(self) -> FloatArray:
        """Wait of a write for its turn on the bus, and behind earlier packets' writes on its channel."""
        return self.meets[m.WRITE_BUS_WAIT] + self.meets[m.BACKLOG]

    @property
    def bus_others(self) -> FloatArray:
        """Share of the bus that others take from a packet's reads."""
        return self.meets[m.BUS_OTHERS]

    @property
    def write_others(self) -> FloatArray:
        """Share of the bus that others take from a packet's writes."""
        return self.meets[m.WRITE_OTHERS]

    @property
    def write_overlap(self) -> FloatArray:
        """Work per time that later packets' writes bring to a packet's channel."""
        return self.meets[m.OVERLAP]

    @property
    def pointer_wait(self) -> FloatArray:
        """Work in front of the pointer memory."""
        return self.meets[m.POINTER_WAIT]

    @property
    def slice_wait(self) -> FloatArray:
        """Work in front of an LLC slice."""
        return self.meets[m.SLICE_WAIT]

    @property
    def bank_busy(self) -> FloatArray:
        """Probability that a bank is not idle."""
        visits = self.rate * (2 * self.trains + self.c.miss_rate) / self.c.places
        return np.minimum(visits * self.meets[m.KEPT], 1.0)

    def light(self) -> OperatingPoint:
        """Return the designs in light traffic, without what trials and conflicts are there."""
        rate, found = self.rate * (LIGHT / self.load), np.zeros_like(self.found)
        meets = np.zeros(self.meets.T.shape)
        m.meet_few(rate, self.z, self.shared, self.met, found, meets)
        return replace(self, rate=rate, found=found, meets=np.ascontiguousarray(meets.T))

    @cached_property
    def conflicts(self) -> tuple[FloatArray, FloatArray]:
        """Probability that a write, and that a read, meets its bank busy with another row."""
        c = self.c
        large, small, read = _closed_conflicts(self) if c.closed_pages else _open_conflicts(self)
        if c.memory is not None:  # those that were followed, of which trials avoid a part
            found = c.memory.at(self.rate)
            met = found["write_conflict"]
            large, read = np.where(c.trials > 1, np.minimum(large, met), met), found["read_conflict"]
        return c.small_part * small + (1.0 - c.small_part) * large, read


def operate(c: Columns, rate: FloatArray) -> OperatingPoint:
    """Return the operating point of all designs at the given packet rates."""
    b = balance(c, np.array(rate))
    return OperatingPoint(**{field.name: getattr(b, field.name) for field in fields(b)}, meets=_meets(b))


def with_trials(point: OperatingPoint, accesses: FloatArray) -> OperatingPoint:
    """Return designs whose allocations by trials take so many accesses; what these meet stays."""
    found, meets = point.found.copy(), point.meets.copy()
    meets[m.TRIAL_ACCESSES] = accesses
    found[:, ACCESSES] = 1.0 + (1.0 - point.c.small_part) * (accesses - 1.0)
    found[:, ALLOCATION] = (found[:, ACCESSES] + point.c.enqueue_accesses) * point.c.pointer_time
    found[:, SEGMENT_GAP] = np.maximum(found[:, ALLOCATION], point.c.segment_time)
    return replace(point, found=found, meets=meets)


def _meets(b: Balance) -> FloatArray:
    out: Any = np.zeros((b.rate.size, m.SLICE_WAIT + 1))
    uneven, old_run = uneven_loads(b.c, b.rate, b.z), conflicts.LAW.old_run
    m.meet(b.rate, b.z, b.shared, b.met, b.found, b.busy, uneven, old_run, out)
    return np.ascontiguousarray(out.T)


def _closed_conflicts(point: OperatingPoint) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the conflicts of writes of large and of small packets and of reads with closed pages."""
    c, met, from_reads = point.c, point.meets[m.WRITE_MET], point.meets[m.FROM_READS]
    held, blocked = point.meets[m.KEPT], point.blocked
    late = np.maximum(c.segment_time - point.allocation, 0.0)
    queued = (c.square_segments / c.mean_segments - 1.0) / 2 * late
    late = -np.expm1(-from_reads * np.minimum(queued + c.segment_time - c.request_time, held))
    still = np.minimum(met / np.where(blocked > 0, blocked, 1.0), 1.0)
    # VMS3's head is on a bank of the other half, which this packet has not used.
    other_list_busy = -np.expm1(-from_reads * held)
    large, small = (
        np.minimum(taken * still + (1.0 - taken) * late, met)
        for taken in (point.meets[m.TAKEN_BUSY], blocked * other_list_busy)
    )
    return np.where(c.trials > 1, large, met), small, point.meets[m.READ_MET]


def _open_conflicts(point: OperatingPoint) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the conflicts of writes of large and of small packets and of reads with open pages."""
    parts, met = conflict_parts(point), point.meets
    # Both lists' heads are busy: that of VMS3 is on a bank of the other half, which this packet has not used.
    small = np.minimum(np.expm1(-met[m.FROM_READS] * met[m.KEPT]) ** 2 + parts.late, 1.0)
    return parts.write, small, parts.read(met[m.READ_MET])


def conflict_parts(point: OperatingPoint, *, anew: bool = False) -> Conflicts:
    """Return the parts of the conflicts with open pages; ``anew`` where a constant has changed."""
    met = _meets(point) if anew else point.meets
    names = {"forced": m.FORCED_BUSY, "starts": m.STARTS, "late": m.LATE, "spread": m.SPREAD}
    return Conflicts(**{name: met[at] for name, at in names.items()})
