"""Conflicts and trials with open pages: what keeps banks busy, and what comes between two writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.numerics.kernels import part
from qmodels.packet_processor.numbers import (
    AGAIN,
    CUT,
    FIRST_ROW,
    MISSES,
    PACKETS,
    ROW,
    SHARE,
    STORED,
    TRIALS,
)
from qmodels.packet_processor.trials.walk import EXTRA, FORCED, lookup


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
