"""Conflicts and trials: row changes of both streams at the banks, and what keeps banks busy.

An access continues the row of an earlier access of its stream, right after the block before it or after a
round over the other channels, in the same packet or an earlier one; or it starts on a row of its own. Writes
are one walk along the runs of the free list, packet after packet; each packet is read on its own, long after
it was written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.numerics.kernels import part
from qmodels.packet_processor.numbers import (
    AGAIN,
    AROUND,
    CUT,
    FAR_PACKETS,
    FIRST_ROW,
    HOLD,
    IN_ROW,
    MEAN,
    MISSES,
    NEIGHBOURS,
    OWN_BEFORE,
    OWN_CUT,
    PACKETS,
    PLACES,
    READ_FAR,
    READ_NEAR,
    REQUEST_GAP,
    ROW,
    SHARE,
    STORED,
    TRAINS,
    TRIALS,
    WRITE_FAR,
    WRITE_FAR_OWN,
    WRITE_NEAR,
    WRITE_NEAR_OWN,
)  # fmt: skip
from qmodels.packet_processor.trials.walk import EXTRA, FORCED, lookup


@part
def visits_at_bank(rate: Any, z: Any) -> Any:
    """Return the visits to a bank per time by reads and lookups, and by these and writes."""
    from_reads = rate * (z[TRAINS] + z[MISSES]) / z[PLACES]
    return from_reads, from_reads + rate * z[TRAINS] / z[PLACES]


@part
def write_changes(z: Any, gap: Any, others: Any, later: Any) -> Any:
    """Return the probability that others' visits, at a rate per bank, leave the row of a write closed.

    ``later``: see `open_for_later`.
    """
    near = z[WRITE_NEAR] * z[WRITE_NEAR_OWN] * math.exp(-others * gap)
    return 1.0 - (near + z[WRITE_FAR] * z[WRITE_FAR_OWN] * math.exp(-others * gap * z[AROUND]) + later)


@part
def open_for_later(rate: Any, z: Any) -> Any:
    """Return the probability that a write continues a row of an earlier packet, which is still open."""
    between = rate / (rate + visits_at_bank(rate, z)[0])
    near = z[WRITE_NEAR] * (1.0 - z[WRITE_NEAR_OWN]) * between
    return near + z[WRITE_FAR] * (1.0 - z[WRITE_FAR_OWN]) * between ** z[FAR_PACKETS]


@part
def read_changes(rate: Any, z: Any) -> Any:
    r"""Return the probability that others' visits leave the row of a read closed.

    The last visit to the bank may have been that of a packet in store whose blocks are in the same row.
    These neighbours leave the store at rate :math:`k e^{-t/h}/h`, the access itself after an exponential
    time; with others at rate :math:`\nu` and :math:`\kappa = k/(h \nu)` the probability is
    :math:`1 - \ln(1 + \kappa)/\kappa`. A bank has no other row in use with probability :math:`e^{-r}` for r
    rows in use on average; the others' visits fall on the other banks.
    """
    _, others = visits_at_bank(rate, z)
    hold, gap = max(z[HOLD], 1e-9), z[REQUEST_GAP]
    lone = 1.0 - math.exp(-(rate * z[MEAN] * hold / z[IN_ROW] + rate * z[MISSES] * hold) / z[PLACES])
    odds = z[NEIGHBOURS] / max(hold * (others / max(lone, 1e-300)), 1e-300)
    kept = odds / 2.0 if odds < 1e-6 else 1.0 - math.log1p(odds) / odds
    near = z[READ_NEAR] * math.exp(-others * gap)
    far = z[READ_FAR] * math.exp(-others * (gap * z[AROUND]))
    return 1.0 - (near + far + (1.0 - z[READ_NEAR] - z[READ_FAR]) * (1.0 - lone * (1.0 - kept)))


@part
def writes_meet(rate: Any, z: Any, gap: Any, others: Any, memory: Any) -> Any:
    """Return the probability that a write meets a visit, its own too, not older than ``memory``."""
    near = z[WRITE_NEAR] * clear_after(rate, others, memory, gap, z[WRITE_NEAR_OWN])
    far = z[WRITE_FAR] * clear_after(rate, others, memory, gap * z[AROUND], z[WRITE_FAR_OWN])
    fresh = 1.0 - z[WRITE_NEAR] - z[WRITE_FAR]
    return 1.0 - (near + far + row_miss_bank_free(z, fresh, gap, others, memory))


@part
def reads_meet(z: Any, others: Any, memory: Any, own_too: Any) -> Any:
    """Return the probability that a read meets a visit of others not older than ``memory``.

    Only visits after the row's own last use count; with ``own_too`` (closed pages) that last use itself
    counts as well.
    """
    gap, far_gap = z[REQUEST_GAP], z[REQUEST_GAP] * z[AROUND]
    if own_too:
        near = clear_after(0.0, others, memory, gap, 1.0)
        far = clear_after(0.0, others, memory, far_gap, 1.0)
    else:
        near, far = math.exp(-others * min(gap, memory)), math.exp(-others * min(far_gap, memory))
    fresh = 1.0 - z[READ_NEAR] - z[READ_FAR]
    return 1.0 - (z[READ_NEAR] * near + z[READ_FAR] * far + row_miss_bank_free(z, fresh, gap, others, memory))


@part
def clear_after(rate: Any, others: Any, memory: Any, gap: Any, own: Any) -> Any:
    """Return the probability that the bank is free that the stream used last, with ``own`` in this packet."""
    within = own * math.exp(-others * memory) if gap > memory else 0.0
    return within + (1.0 - own) * math.exp(-(rate + others) * memory)


@part
def row_miss_bank_free(z: Any, fresh: Any, gap: Any, others: Any, memory: Any) -> Any:
    """Return the probability that an access is on a row of its own, and its bank is free."""
    seen = min(z[OWN_BEFORE], memory / max(gap, 1e-9))
    return fresh * math.exp(-z[OWN_CUT] * fresh * seen / z[PLACES]) * math.exp(-others * memory)


@part
def chain(z: Any, rejected: Any) -> Any:
    """Return mean and variance of an allocation's accesses, and whether its block is on a busy bank.

    The first block is on a busy bank with probability ``rejected``, each further one with that of the chain.
    """
    again = min(max(z[AGAIN] + (1.0 - z[AGAIN]) * rejected, 0.0), 1.0)
    mean, square, reached, taken = 0.0, 0.0, 1.0, 0.0
    for number in range(int(z[TRIALS])):
        taken = reached * (again if number else rejected)
        onward = taken if number + 1.0 < z[TRIALS] else 0.0
        accesses = number + 1.0 + (number > 0)
        mean += (reached - onward) * accesses
        square += (reached - onward) * accesses * accesses
        reached = onward
    return mean, max(square - mean * mean, 0.0), taken


class ConflictLaw(NamedTuple):
    """Conflicts that remain of those that are counted one by one.

    Parameters
    ----------
    old_run : float
        Part of the writes of an old run that keep their bank as long as if they opened their row.
    read_kept : float
        Part of the reads' conflicts that trials leave alone.
    read_cut : float
        Read conflicts for each conflict of a write that was forced upon a busy bank.
    """

    old_run: float
    read_kept: float
    read_cut: float


LAW = kept(ConflictLaw, "packet_processor.conflicts")


@dataclass(frozen=True, kw_only=True, eq=False)
class Conflicts:
    """Parts of the conflict probabilities of a segment; one value per design."""

    forced: FloatArray  # the block was taken on a bank still busy when its write is there
    starts: FloatArray  # writes of the run before and of the run after meet
    late: FloatArray  # a write meets what was not there when its block was taken
    spread: FloatArray  # part of it in which reads come between writes; the reads meet these as often

    @property
    def write(self) -> FloatArray:
        """Probability that a write meets its bank busy with another row."""
        return np.minimum(self.forced + self.starts + self.late, 1.0)

    def read(self, met: FloatArray) -> FloatArray:
        """Return the probability that a read does, from that of visits by single accesses."""
        return np.minimum(LAW.read_kept * met + self.spread + LAW.read_cut * (self.forced + self.starts), 1.0)


@part
def by_visits(
    kind: Any,
    i: Any,
    z: Any,
    t: Any,
    busy: Any,
    lone: Any,
    ahead: Any,
    pace: Any,
    rate: Any,
    lone_rate: Any,
) -> Any:
    """Mean conflicts of a segment with reads and lookups of others.

    ``kind``: one of `qmodels.packet_processor.trials.walk.KINDS`; ``busy``, ``lone``: time that a visit
    keeps its places busy, by arc, and that of a lookup, ``ahead`` of which pass before [ns]; ``pace``: time
    between the segments of a packet [ns]; ``rate``, ``lone_rate``: packets stored per ns, after a visit and
    after a lookup.
    """
    if z[STORED] <= 0.0:
        return 0.0
    total, tables = 0.0, t.visits[int(z[ROW])]
    for arc in range(busy.size):
        if t.arcs[i, arc] > 0.0:
            time = max(busy[arc] - ahead, 1e-3)
            load = time * z[PACKETS] * rate
            total += t.arcs[i, arc] * lookup(tables[arc, kind], load, pace / time, True)
    if z[MISSES] > 0.0:
        time = max(lone - ahead, 1e-3)
        load = time * z[PACKETS] * lone_rate
        total += z[MISSES] * lookup(tables[0, kind], load, pace / time, True)
    return total * z[SHARE] / z[STORED]


@part
def by_starts(kind: Any, row: Any, z: Any, t: Any, busy: Any, pace: Any, rate: Any) -> Any:
    """Conflicts of a segment at a run's end: writes of the old run keep their places ``busy``."""
    if z[STORED] <= 0.0:
        return 0.0
    time = max(busy, 1e-3)
    each = lookup(t.starts[int(z[row]), kind], rate * z[PACKETS] * time, pace / time, False)
    return each * z[SHARE] * z[CUT]


@part
def outstanding_writes(
    kind: Any,
    i: Any,
    rate: Any,
    z: Any,
    t: Any,
    near: Any,
    asked: Any,
    allocation: Any,
    busy: Any,
    lone: Any,
    write: Any,
) -> Any:
    """Mean conflicts of an allocation by trials, one of `trials.walk.KINDS`.

    Reads on the packet's own run count as well: without them the accesses come out up to 1.4 % too low.
    """
    visits = by_visits(kind, i, z, t, busy, lone, 0.0, allocation, rate * asked, rate * near)
    found = visits + by_starts(kind, ROW, z, t, write, allocation, rate * near)
    if kind == EXTRA:
        # The sum over visits has no end where banks are busy for long: what is examined has one.
        most = z[TRIALS] if z[TRIALS] > 1.0 else 0.0  # all but the last block tried are rejected
        found = min(max(found, 0.0), most)
    return found


@part
def start_conflicts(
    z: Any, t: Any, left: Any, write: Any, crossed: Any, allocation: Any, gap: Any, rate: Any
) -> Any:
    """Conflicts between writes of the run before and of the run after.

    ``left``: time that a write of an old run keeps its bank; ``write``: the same on the books; ``crossed``:
    writes of another run that cross on their way.
    """
    met = by_starts(FORCED, ROW, z, t, left, gap, rate)
    taken = by_starts(FORCED, ROW, z, t, write, allocation, rate)
    alone = by_starts(FORCED, FIRST_ROW, z, t, write, allocation, rate)
    return met + 2.0 * crossed * (taken / alone if alone > 0.0 else 1.0)
