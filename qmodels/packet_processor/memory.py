"""Work in front of the DRAM banks and data buses at given row changes.

A packet visits its banks in trains of accesses to one row, once to write and once to read; a train that has
to open its row holds the bank longer by the opening. Trains of several banks take turns on the bus: an access
finds the others' single accesses as in M/D/1, but one access of every train there is (processor sharing) the
longer trains are. Reads and lookups find the writes' backlog if they need the very bank it stands at.
Packets are taken to come as Poisson does; what else does is followed: `qmodels.packet_processor.following`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import part
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.numbers import (
    BANKS,
    BURST,
    CHANNELS,
    IN_ROW,
    LONG,
    MEAN,
    MISSES,
    OPENING,
    PLACES,
    SPACING,
    STEP,
    TRAINS,
)  # fmt: skip
from qmodels.queues.general.transient import mean_of_first_waits, mean_work, train_area

NODES = 6
FULLEST = 0.97


def uneven_loads(c: Columns, rate: FloatArray, z: FloatArray) -> FloatArray:
    r"""Imbalance of the reads over banks and channels while packets are held, (2, designs, nodes).

    Multiples of the mean read load that a bank and a channel have at one moment, equally probable.

    The packets of a run are stored together in few rows and are read while they are held, so
    that a bank's load follows the rows in use there for as long as the hold: many queueing
    times. With R rows filled per mean hold, each read at a rate that decays over the hold, the
    load has the squared coefficient of variation :math:`1/(2R)`; it is taken as a gamma law.
    """
    from scipy.special import gammaincinv

    filled = rate * c.mean_segments * np.maximum(c.hold, 1e-9) / z[:, IN_ROW]
    levels = (np.arange(NODES) + 0.5) / NODES
    shape = np.maximum(2.0 * filled / np.stack([c.places, c.channels]), 1e-2)
    shapes, which = np.unique(shape, return_inverse=True)
    nodes = gammaincinv(shapes[:, None], levels) / shapes[:, None]
    return np.asarray((nodes / nodes.mean(axis=-1, keepdims=True))[which.reshape(shape.shape)])


@part
def train_areas(z: Any) -> Any:
    """Return the area under the work at a bank of reads that open their row, and of reads that do not."""
    accesses = z[MEAN] / z[TRAINS]
    opened = train_area(accesses, z[LONG], z[BURST], z[SPACING], z[OPENING] - z[BURST])
    return opened, train_area(accesses, z[LONG], z[BURST], z[SPACING], 0.0)


@part
def direction_work(z: Any, opens: Any) -> Any:
    """Return the time that a packet's accesses of one direction keep banks, whose rows they open so often."""
    return opens * z[MEAN] * (z[OPENING] - z[BURST]) + z[MEAN] * z[BURST]


@part
def found_opened(z: Any, write_opens: Any, read_opens: Any) -> Any:
    """Return the time a visit keeps its bank, without waits for the bus."""
    work = direction_work(z, write_opens) + direction_work(z, read_opens) + z[MISSES] * z[OPENING]
    return work / (2.0 * z[TRAINS] + z[MISSES])


@part
def bank_wait(
    rate: Any, z: Any, write_opens: Any, read_opens: Any, area_opened: Any, area_hit: Any, multiple: Any
) -> Any:
    """Return the work of other visits in front of a bank whose reads have a multiple of their mean load."""
    reads = direction_work(z, read_opens)
    intensity = rate * (direction_work(z, write_opens) + reads + z[MISSES] * z[OPENING]) / z[PLACES]
    opened = min(read_opens * (z[MEAN] / z[TRAINS]), 1.0)
    area = z[MISSES] * z[OPENING] * z[OPENING] / 2.0
    area += z[TRAINS] * opened * area_opened + z[TRAINS] * (1.0 - opened) * area_hit
    here = loaded(rate * reads / z[PLACES], multiple, intensity)
    return mean_work(rate / z[PLACES] * multiple, area, here, 0.0)


@part
def bus_waits(rate: Any, z: Any, sizes: Any, multiple: Any) -> Any:
    """Return waits of accesses at a bus whose reads have a multiple of their mean load.

    The wait of a single access for its turn, and of a write; how many times longer others make a packet's
    reads, and its writes; the time until earlier packets' writes on its channel are done.
    """
    writes, reads = rate * z[BURST] * z[MEAN] / z[CHANNELS], read_load(rate, z)
    area = z[BURST] * z[BURST] * (1.0 - z[MEAN] / z[TRAINS] / (2.0 * z[LONG]))
    full = loaded(reads, multiple, reads + writes)
    reading, elsewhere = full - writes, full * (1.0 - 1.0 / z[BANKS])
    return (
        mean_work(elsewhere / z[BURST], area, elsewhere, 0.0),
        mean_work(reading / z[BURST], area, reading, 0.0),
        1.0 / max(1.0 - elsewhere, 1e-9),
        1.0 / max(1.0 - reading, 1e-9),
        write_backlog(rate, z, sizes, reading),
    )


@part
def read_load(rate: Any, z: Any) -> Any:
    """Return the part of a bus that reads and lookups take, mean."""
    return rate * z[BURST] * (z[MEAN] + z[MISSES]) / z[CHANNELS]


@part
def loaded(variable: Any, multiple: Any, total: Any) -> Any:
    """Return the total intensity where its variable part has a multiple of its mean.

    A place that is overloaded for a while only is taken as nearly full.
    """
    return min(total + variable * (multiple - 1.0), FULLEST) if total < FULLEST else total


@part
def channel_works(z: Any, sizes: Any) -> Any:
    """Return mean and mean square of a packet's bus time on a channel it touches, and the part it touches."""
    mean, square, part_of = 0.0, 0.0, 0.0
    for s in range(sizes.shape[1]):
        touched = min(z[CHANNELS], 1.0 + (sizes[0, s] - 1.0) / z[STEP])
        work = sizes[0, s] * z[BURST] / touched
        mean += work * sizes[1, s]
        square += work * work * sizes[1, s]
        part_of += touched * sizes[1, s] / z[CHANNELS]
    return mean, square, part_of


@part
def write_overlap(rate: Any, z: Any, sizes: Any) -> Any:
    """Return the work per time that later packets' writes bring to a channel of a packet."""
    work, _, touched = channel_works(z, sizes)
    same = max(touched, 1.0 - z[MEAN] / z[STEP]) if z[CHANNELS] > 1.0 else 1.0
    return rate * (work / max(1.0 - read_load(rate, z), 1e-9)) * same


@part
def write_backlog(rate: Any, z: Any, sizes: Any, reads: Any) -> Any:
    """Return the time until earlier packets' writes on a packet's channel are done.

    The writes of successive packets follow one another through the address space: with a small
    step every packet leaves its part on all channels, a queue of its own; with a large one the
    packets of a chunk meet on one channel, a queue that starts empty with each chunk and takes
    all traffic until it ends. The larger of the two counts. Reads come from many banks and take
    their turns at once, the writes' one bank keeps what is left of the bus: it carries the
    fluctuations of both, as the lower of two priorities would.
    """
    mean, square, touched = channel_works(z, sizes)
    left = max(1.0 - reads, 1e-9)
    read_area, met = z[MISSES] * z[BURST] * z[BURST], 0.0
    for s in range(sizes.shape[1]):
        channels = min(z[CHANNELS], 1.0 + (sizes[0, s] - 1.0) / z[STEP])
        work = sizes[0, s] * z[BURST]
        read_area += work * work / channels * sizes[1, s]
        met -= math.expm1(-rate * (work / channels) / left) * sizes[1, s]
    first, square = mean / left, square / (left * left)
    noise = rate / z[CHANNELS] * read_area / 2.0 / (left * left)
    intensity = rate * first
    share = intensity * touched
    spread = mean_work(rate * touched, square / 2.0, share, noise * min(share, 1.0))
    if z[CHANNELS] <= 1.0:
        return spread
    together = mean_of_first_waits(
        first,
        square / (first * first) - 1.0,
        1.0 / rate,
        1.0 + 2.0 * noise * rate,
        first - met / rate,
        mean_work(rate, square / 2.0, intensity, noise * min(intensity, 1.0)),
        max(int(z[STEP] / z[MEAN]), 2),
        z[STEP] / z[MEAN],
    )
    return max(spread, together)
