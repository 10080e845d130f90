"""Work in front of the DRAM banks and data buses at given row changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.trials.rows import run_blocks_in_row
from qmodels.queues.general.paced import mean_work, train_area
from qmodels.queues.general.transient import wait_terms

NODES = 6
FULLEST = 0.97


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryState:
    """Banks and buses; one value per design, times in ns, rates per ns."""

    visit_rate: FloatArray  # visits (trains of accesses to a row) to a bank
    # occupancy, accesses: time a visit keeps its bank, without waits for the bus; accesses of a visit.
    occupancy: FloatArray
    accesses: FloatArray
    bank_wait: FloatArray  # work of other visits in front of a bank
    # bus_wait, write_bus_wait: wait of a single access for its turn on the bus; of a write.
    bus_wait: FloatArray
    write_bus_wait: FloatArray
    # bus_others, write_others: share of the bus that others take from a packet's reads, and from its writes.
    bus_others: FloatArray
    write_others: FloatArray
    # bus_uneven, write_uneven: variance of 1 / (1 - share) over the moments of uneven load.
    bus_uneven: FloatArray
    write_uneven: FloatArray
    rival: FloatArray  # mean bus time of another packet's accesses on a channel, as seen at a random moment
    # write_backlog, backlog_square: time until earlier packets' writes on a packet's channel are done, and
    # its second moment.
    write_backlog: FloatArray
    backlog_square: FloatArray
    write_overlap: FloatArray  # work per time that later packets' writes bring to that channel

    @property
    def held(self) -> FloatArray:
        """Time a visit keeps its bank from others, waits for the bus included."""
        return self.occupancy + self.accesses * self.bus_wait


@dataclass(frozen=True, kw_only=True, eq=False)
class UnevenLoads:
    """How the reads spread over banks and channels at one moment, (nodes, designs) each.

    Multiples of the mean read load that a bank and a channel have, equally probable.
    """

    bank: FloatArray
    channel: FloatArray


def even_loads(c: Columns) -> UnevenLoads:
    """Return the loads at their mean."""
    one = np.ones((1, len(c.channels)))
    return UnevenLoads(bank=one, channel=one)


def uneven_loads(c: Columns, rate: FloatArray) -> UnevenLoads:
    r"""Return how unevenly reads load banks and channels while packets are held.

    The packets of a run are stored together in few rows and are read while they are held, so
    that a bank's load follows the rows in use there for as long as the hold: many queueing
    times. With R rows filled per mean hold, each read at a rate that decays over the hold, the
    load has the squared coefficient of variation :math:`1/(2R)`; it is taken as a gamma law.
    """
    from scipy.special import gammaincinv

    filled = rate * c.mean_segments * np.maximum(c.hold, 1e-9) / run_blocks_in_row(c)
    levels = ((np.arange(NODES) + 0.5) / NODES)[:, None]

    def multiples(places: FloatArray) -> FloatArray:
        shape = np.maximum(2.0 * filled / places, 1e-2)
        nodes = gammaincinv(shape, levels) / shape
        return np.asarray(nodes / nodes.mean(axis=0))

    return UnevenLoads(bank=multiples(c.places), channel=multiples(c.channels))


def memory_state(
    c: Columns,
    rate: FloatArray,
    uneven: UnevenLoads,
    *,
    trains: FloatArray,
    changes: FloatArray,
    request_gap: FloatArray,
) -> MemoryState:
    """Return the state of banks and buses.

    A packet visits its banks in ``trains`` of accesses to one row, once to write and once to
    read; a train that has to open its row holds the bank longer by the opening. Trains of
    several banks take turns on the bus: an access finds the others' single accesses as in
    M/D/1, but one access of every train there is (processor sharing) the longer trains are.
    Reads and lookups find the writes' backlog if they need the very bank it stands at. Packets
    are taken to come as Poisson does; what else does is followed: `qmodels.packet_processor.following`.

    Behind controllers a bank is busy for as long as they have an access to it.
    """
    if c.memory is not None:
        return _behind_controllers(c, rate, trains)
    mean, misses = c.mean_segments, c.miss_rate
    per_packet = 2 * trains + misses
    opened_work = changes * mean * (c.opening - c.burst) + mean * c.burst
    work = opened_work.sum(axis=0) + misses * c.opening
    accesses = mean / trains
    square = _long_accesses(c, trains)
    area = _read_area(c, trains, square, changes[1], request_gap)
    area_bus = c.burst**2 * (1.0 - accesses / (2.0 * square))
    nodes = _at_moments(c, rate, uneven, opened_work, area, area_bus)
    mean_of = {name: np.mean(values, axis=0) for name, values in nodes.items()}
    on_channel_work = c.segments * c.burst[:, None] / c.touched
    return MemoryState(
        visit_rate=rate * per_packet / c.places,
        occupancy=work / per_packet,
        accesses=(2 * mean + misses) / per_packet,
        bank_wait=mean_of["bank"] + mean_of["backlog"] / c.places,
        bus_wait=mean_of["bus"],
        write_bus_wait=mean_of["write"],
        bus_others=1.0 - 1.0 / mean_of["others"],
        write_others=1.0 - 1.0 / mean_of["write others"],
        bus_uneven=np.var(nodes["others"], axis=0),
        write_uneven=np.var(nodes["write others"], axis=0),
        rival=(on_channel_work**2 @ c.size_share) / (on_channel_work @ c.size_share),
        write_backlog=mean_of["backlog"],
        backlog_square=2.0 * np.mean(np.square(nodes["backlog"]), axis=0),
        write_overlap=_write_overlap(c, rate),
    )


def _behind_controllers(c: Columns, rate: FloatArray, trains: FloatArray) -> MemoryState:
    """Return the state of banks whose accesses take as long as they do behind controllers."""
    assert c.memory is not None
    met, none = c.memory.at(rate), np.zeros_like(rate)
    per_packet = 2 * trains + c.miss_rate
    return MemoryState(
        visit_rate=rate * per_packet / c.places,
        occupancy=c.opening,
        accesses=(2 * c.mean_segments + c.miss_rate) / per_packet,
        bank_wait=met["read"] - c.opening,
        bus_wait=none,
        write_bus_wait=met["write"] - met["read"],
        bus_others=none,
        write_others=none,
        bus_uneven=none,
        write_uneven=none,
        rival=none,
        write_backlog=none,
        backlog_square=none,
        write_overlap=none,
    )


def _at_moments(
    c: Columns,
    rate: FloatArray,
    uneven: UnevenLoads,
    opened_work: FloatArray,
    area: FloatArray,
    area_bus: FloatArray,
) -> dict[str, list[FloatArray]]:
    """Return waits and shares at the moments of uneven load.

    ``area`` and ``area_bus`` are those under the work of a packet's reads at a bank, and of a train on a bus.
    """
    intensity = rate * (opened_work.sum(axis=0) + c.miss_rate * c.opening) / c.places
    writes, reads = rate * c.burst * c.mean_segments / c.channels, _read_load(c, rate)
    nodes: dict[str, list[FloatArray]] = {
        name: [] for name in ("bank", "bus", "write", "others", "write others", "backlog")
    }
    for on_bank, on_channel in zip(uneven.bank, uneven.channel, strict=True):
        at_bank = _loaded(rate * opened_work[1] / c.places, on_bank, intensity)
        full = _loaded(reads, on_channel, reads + writes)
        reading = full - writes
        elsewhere = full * (1.0 - 1.0 / c.banks)
        nodes["bank"].append(mean_work(train_rate=rate / c.places * on_bank, area=area, intensity=at_bank))
        nodes["bus"].append(mean_work(train_rate=elsewhere / c.burst, area=area_bus, intensity=elsewhere))
        nodes["write"].append(mean_work(train_rate=reading / c.burst, area=area_bus, intensity=reading))
        nodes["others"].append(1.0 / np.maximum(1.0 - elsewhere, 1e-9))
        nodes["write others"].append(1.0 / np.maximum(1.0 - reading, 1e-9))
        nodes["backlog"].append(_write_backlog(c, rate, reading))
    return nodes


def _read_load(c: Columns, rate: FloatArray) -> FloatArray:
    """Return the part of a bus that reads and lookups take, mean."""
    return rate * c.burst * (c.mean_segments + c.miss_rate) / c.channels


def _long_accesses(c: Columns, trains: FloatArray) -> FloatArray:
    """Return the mean square of the accesses of a train."""
    square = (c.mean_segments / trains) ** 2
    return square if c.closed_pages else np.maximum(c.rows.square @ c.size_share / trains, square)


def _read_area(
    c: Columns, trains: FloatArray, square: FloatArray, changes: FloatArray, request_gap: FloatArray
) -> FloatArray:
    """Return the area under the work at a bank that a packet's reads and lookups bring."""
    accesses = c.mean_segments / trains
    near = c.rows.within @ c.size_share > c.rows.across @ c.size_share
    area = c.miss_rate * c.opening**2 / 2
    opened = np.minimum(changes * accesses, 1.0)
    for share, extra in ((opened, c.opening - c.burst), (1.0 - opened, 0.0)):
        area = area + trains * share * train_area(
            count=accesses,
            count_square=square,
            service=c.burst,
            spacing=request_gap * np.where(near, 1.0, c.around),
            first_extra=extra,
        )
    return area


def _loaded(variable: FloatArray, multiple: FloatArray, total: FloatArray) -> FloatArray:
    """Return the total intensity where its variable part has a multiple of its mean.

    A place that is overloaded for a while only is taken as nearly full.
    """
    here = total + variable * (multiple - 1.0)
    return np.where(total < FULLEST, np.minimum(here, FULLEST), total)


def _write_overlap(c: Columns, rate: FloatArray) -> FloatArray:
    touched = c.touched
    left = np.maximum(1.0 - _read_load(c, rate), 1e-9)
    work = (c.segments * c.burst[:, None] / touched) @ c.size_share / left
    part = (touched @ c.size_share) / c.channels
    return rate * work * np.where(c.channels > 1, np.maximum(part, 1.0 - c.mean_segments / c.step), 1.0)


def _write_backlog(c: Columns, rate: FloatArray, reads: FloatArray) -> FloatArray:
    """Return the time until earlier packets' writes on a packet's channel are done.

    The writes of successive packets follow one another through the address space: with a small
    step every packet leaves its part on all channels, a queue of its own; with a large one the
    packets of a chunk meet on one channel, a queue that starts empty with each chunk and takes
    all traffic until it ends. The larger of the two counts. Reads come from many banks and take
    their turns at once, the writes' one bank keeps what is left of the bus: it carries the
    fluctuations of both, as the lower of two priorities would.
    """
    mean = c.mean_segments
    left = np.maximum(1.0 - reads, 1e-9)
    touched = c.touched
    bursts = c.segments * c.burst[:, None]
    read_area = rate / c.channels * ((bursts**2 / touched) @ c.size_share + c.miss_rate * c.burst**2) / 2
    work = bursts / touched
    first = work @ c.size_share / left
    square = work**2 @ c.size_share / left**2
    noise = read_area / left**2
    intensity = rate * first
    part = (touched @ c.size_share) / c.channels

    def long_run(share: FloatArray) -> FloatArray:
        return mean_work(
            train_rate=rate * share,
            area=square / 2,
            intensity=intensity * share,
            burst=noise * np.minimum(intensity * share, 1.0),
        )

    spread = long_run(part)
    meet = first - (-np.expm1(-rate[:, None] * work / left[:, None]) @ c.size_share) / rate
    terms = wait_terms(
        service_mean=first,
        service_scv=square / first**2 - 1.0,
        gap_mean=1.0 / rate,
        gap_scv=1.0 + 2.0 * noise * rate,
        first=meet,
        limit=long_run(np.ones_like(rate)),
        count=np.maximum((c.step / mean).astype(np.int64), 2),
    )
    k = np.arange(1, len(terms) + 1)[:, None]
    together = (terms * np.maximum(1.0 - k * mean / c.step, 0.0)).sum(axis=0)
    return np.where(c.channels > 1, np.maximum(spread, together), spread)
