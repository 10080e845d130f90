"""Row changes and conflicts of the write and the read stream at the banks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.packet_processor.design import Columns


class Way(NamedTuple):
    """One way in which an access continues the row of an earlier access of its stream."""

    part: FloatArray  # probability that it does
    gap: FloatArray  # time since then within a packet
    own: FloatArray  # probability that the earlier access belongs to the same packet
    packets: FloatArray | float  # packets between the two otherwise


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """How the accesses of one direction follow one another on a row; one value per design.

    An access continues the row of an earlier access of its stream, in the same packet or an earlier
    one, or starts on a row of its own.
    """

    ways: tuple[Way, Way]  # right after the block before it, and after a round over the other channels
    # Packets per ns that feed the stream; 0 if it never continues the row of another packet.
    packet_rate: FloatArray
    # Visits of other packets to the row of an access that does not continue its stream, while they are in
    # store; 0 if that row is always a new one.
    neighbours: FloatArray
    hold: FloatArray  # mean time in store over which those visits are spread
    other_rows: FloatArray  # rows of other packets in use in a bank, mean
    # own_before, own_cut: earlier accesses of the packet itself, mean; probability that its run was cut
    # since.
    own_before: FloatArray
    own_cut: FloatArray
    places: FloatArray  # banks in all, over which rows of its own are spread

    @property
    def fresh(self) -> FloatArray:
        """Probability that an access starts on a row of its own."""
        near, far = self.ways
        return 1.0 - near.part - far.part

    def changes(self, others: FloatArray) -> FloatArray:
        """Return the probability that others' visits, at a rate per bank, leave the row closed."""
        near, far = (way.part * self._undisturbed(others, way) for way in self.ways)
        return np.asarray(1.0 - (near + far + self.fresh * self._left_open(others)))

    def meets(self, others: FloatArray, memory: FloatArray, *, own_too: bool) -> FloatArray:
        """Return the probability that an access meets a visit of others not older than ``memory``.

        Only visits after the row's own last use count; with ``own_too`` (closed pages) that
        last use itself counts as well.
        """
        near, far = (way.part * self._clear(others, memory, way, own_too) for way in self.ways)
        fresh = self.fresh * self._clear_of_own(memory) * np.exp(-others * memory)
        return np.asarray(1.0 - (near + far + fresh))

    def _clear_of_own(self, memory: FloatArray) -> FloatArray:
        """Return the probability that no other run of the packet itself was just at the bank."""
        seen = np.minimum(self.own_before, memory / np.maximum(self.ways[0].gap, 1e-9))
        recent = self.own_cut * self.fresh * seen
        return np.asarray(np.exp(-recent / self.places))

    def _left_open(self, others: FloatArray) -> FloatArray:
        r"""Return the probability that the last visit to the bank was a neighbour's, to the same row.

        Neighbours leave the store at rate :math:`k e^{-t/h}/h`, the access itself after an
        exponential time; with others at rate :math:`\nu` and :math:`\kappa = k/(h \nu)` the
        probability is :math:`1 - \ln(1 + \kappa)/\kappa`. A bank has no other row in use with
        probability :math:`e^{-r}` for r rows in use on average; the others' visits fall on the
        other banks.
        """
        lone = 1.0 - np.exp(-self.other_rows)
        per_row = others / np.maximum(lone, 1e-300)
        odds = self.neighbours / np.maximum(self.hold * per_row, 1e-300)
        small = odds < 1e-6
        kept = np.where(small, odds / 2, 1.0 - np.log1p(odds) / np.where(small, 1.0, odds))
        return np.asarray(1.0 - lone * (1.0 - kept))

    def _undisturbed(self, others: FloatArray, way: Way) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            between = np.where(self.packet_rate > 0, self.packet_rate / (self.packet_rate + others), 0.0)
        return way.own * np.exp(-others * way.gap) + (1.0 - way.own) * between**way.packets

    def _clear(self, others: FloatArray, memory: FloatArray, way: Way, own_too: bool) -> FloatArray:
        rate, gap, own = self.packet_rate, way.gap, way.own
        late = np.exp(-(rate + others) * memory)
        if own_too:
            return np.where(gap > memory, own, 0.0) * np.exp(-others * memory) + (1.0 - own) * late
        with np.errstate(invalid="ignore", divide="ignore"):
            early = np.where(rate > 0, rate / (rate + others) * (1.0 - late), 0.0)
        return own * np.exp(-others * np.minimum(gap, memory)) + (1.0 - own) * (early + late)


def write_stream(c: Columns, rate: FloatArray, gap: FloatArray) -> Stream:
    """Return the stream of writes: one walk along the runs of the free list, packet after packet."""
    rows, around = c.row_run, c.around
    step = np.where(c.channels > 1, c.step, rows)
    kept = 1.0 - 1.0 / c.run_length
    earlier = _earlier_segments(c)
    inside = np.maximum(step / rows - 1.0, 0.0) / np.maximum(step - 1.0, 1.0)
    between = np.minimum(step / rows, 1.0)
    return Stream(
        ways=(
            Way(kept * (1.0 - 1.0 / step) * (1.0 - inside), gap, _same_packet(c, np.ones_like(around)), 1.0),
            Way(
                kept**around / step * (1.0 - between),
                gap * around,
                _same_packet(c, around),
                1.0 + (around - 1.0) / c.mean_segments,
            ),
        ),
        packet_rate=rate,
        neighbours=np.zeros_like(rate),
        hold=np.ones_like(rate),
        other_rows=np.full_like(rate, np.inf),
        own_before=np.full_like(rate, earlier),
        own_cut=1.0 - kept**earlier,
        places=c.places,
    )


def read_stream(c: Columns, rate: FloatArray, gap: FloatArray) -> Stream:
    """Return the stream of reads: each packet on its own, long after it was written."""
    one = np.ones_like(gap)
    blocks = run_blocks_in_row(c)
    earlier = _earlier_segments(c)
    hold = np.maximum(c.hold, 1e-9)
    lookups = np.where(c.miss_rate > 0, rate * c.miss_rate * hold, 0.0)
    return Stream(
        ways=(
            Way(c.rows.within @ c.size_share / c.mean_segments, gap, one, 1.0),
            Way(c.rows.across @ c.size_share / c.mean_segments, gap * c.around, one, 1.0),
        ),
        packet_rate=np.zeros_like(gap),
        neighbours=np.maximum(blocks / (c.mean_segments / (c.rows.visits @ c.size_share)), 1.0),
        hold=hold,
        other_rows=(rate * c.mean_segments * hold / blocks + lookups) / c.places,
        own_before=np.full_like(gap, earlier),
        own_cut=1.0 - (1.0 - 1.0 / c.run_length) ** earlier,
        places=c.places,
    )


def _same_packet(c: Columns, back: FloatArray) -> FloatArray:
    """Return the probability that the segment so many before a random one belongs to its packet."""
    return np.maximum(c.segments - back[:, None], 0.0) @ c.size_share / c.mean_segments


def _earlier_segments(c: Columns) -> float:
    """Return the segments of its packet before a random segment, mean."""
    return (c.square_segments / c.mean_segments - 1.0) / 2.0


def run_blocks_in_row(c: Columns) -> FloatArray:
    """Return the blocks a random block's run has in its row, mean.

    The j-th next block of the row is j blocks on in the run within a chunk, and j rounds' share
    of all channels beyond.
    """
    rows = c.row_run[:, None]
    j = np.arange(1.0, rows.max())
    beyond = np.minimum(j / c.step[:, None], 1.0)
    kept = (1.0 - 1.0 / c.run_length)[:, None]
    in_run = (1.0 - beyond) * kept**j + beyond * kept ** (j * c.channels[:, None])
    return np.asarray(1.0 + 2.0 * (np.maximum(1.0 - j / rows, 0.0) * in_run).sum(axis=1))
