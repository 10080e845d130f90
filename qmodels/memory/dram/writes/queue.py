"""Writes that wait apart from reads: how long, and what reads wait where they are forced out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import pdtrc

from qmodels.checks import FloatArray
from qmodels.memory.dram.writes.drains import COUNTS, LEAST_LEFT, Turns
from qmodels.memory.dram.writes.last import LastWrites
from qmodels.systems.memory.dram_system import DramSystem

NODES = np.linspace(0.0, 1.0, 120) ** 2
"""Times at which the presence of reads is looked at, over the longest."""
MOST_STOLEN = 0.9
"""Share of the rows opened to write that a read closes again, at most."""
STEPS = 16
"""Into which the shortening of a queue is cut."""
MOST_PRESENT = 30.0
"""Reads that are taken to be present at most."""


class ReadVisits(NamedTuple):
    """Visits of one kind that read: their rate [1/cycle], accesses, and how long those delay each other."""

    rate: float
    size: float
    alone: float


@dataclass(frozen=True, kw_only=True)
class Directions:
    """Reads and writes of a channel."""

    reads: tuple[ReadVisits, ...]  # visits that read, by kind
    # writes, write_size: rate of the visits that write [1/cycle], and accesses of one, mean.
    writes: float
    write_size: float
    miss: float  # share of the accesses that open a row

    @property
    def read_rate(self) -> float:
        """Accesses that read. [1/cycle]."""
        return sum(visits.rate * visits.size for visits in self.reads)


class Queued(NamedTuple):
    """Waits of reads for forced writes, and of writes."""

    # Arrays of one value for each load, or for each kind of accesses at one.
    reads: Any  # mean wait of a read [cycles]
    draining: Any  # share of the time that drains take
    residual: Any  # what reads wait for the rest of a drain, part of ``reads`` [cycles]
    pushed: Any  # how long a drain that follows a refresh takes, mean over the refreshes [cycles]
    writes: Any  # how long a write stays [cycles]
    last: tuple[LastWrites, ...] | None  # of the kinds at one load


def write_queue(
    spec: DramSystem,
    both: Directions,
    *,
    wait: FloatArray,
    row_open: float,
    each: float,
    refreshed: float = 0.0,
    block: float = 0.0,
) -> Queued:
    r"""Wait of reads for forced writes, and of writes for reads.

    ``both``: what is read and written; ``wait``: wait of a read of each kind for others that read or write
    meanwhile, without opening its row [cycles]; ``row_open``: probability that a row is to be closed where
    one is opened; ``each``: time of the channel for an access [cycles]; ``refreshed``: share of the time that
    refreshes take; ``block``: how long one does [cycles].

    Writes go on as soon as no read waits. Visits that read are taken to come and go as in :math:`M/G/\infty`:
    if they come at rate :math:`\nu` and are present for a time of law :math:`B`, a moment without any has
    another :math:`t` later more often than any moment has, by the factor

    .. math:: e^{g(t)}, \qquad g(t) = \nu \int_t^\infty (1 - B(s))\,ds,

    so that a write waits :math:`\int_0^\infty (e^g - 1)` for one, and :math:`\int_0^\tau (e^g - 1)` once more
    for a command that may be given only :math:`\tau` later: to open its row, to write. The latter may not
    follow the last read's at once, which is as if reads were present for that much longer. A read of its
    bank in between makes it open its row again. Once begun, writes go on until ``write_low`` are left; these
    give way to any read. The number of waiting writes is then taken to be a Markov chain with arrivals in
    batches, which goes back to ``write_low`` when no read waits, at the rate :math:`\nu/(e^{g(0)} - 1)`, and
    as soon as there are ``write_high``. Meanwhile reads wait: for as long as the row commands of so many
    writes take, or the fullest of the banks they fall on.

    Drains last as `Turns.drains` says; as a fluid, reads wait for what is left of one and for those that came
    before them meanwhile, which their banks hold up. What such drains leave behind where little time is left
    between them is that of regular interruptions, a share :math:`1/(h - l)` of what random ones leave. A
    drain follows a refresh at once if the writes that came meanwhile make up ``write_high``.

    An approximation. Random half writes, and in batches of 4, on DDR4, DDR5, HBM3 and LPDDR5 with open pages
    against simulation at 0.3, 0.5 and 0.7 of the largest load: reads within 7, 10 and 16 %, without refresh
    12 to 31 % too high from 0.3 to 0.7; writes within 18 %. At 0.9 reads are 32 % too low at most.
    """
    t = spec.timing
    high, low = spec.write_high, spec.write_low
    opening = both.miss * (t.t_rcd + t.t_rp * row_open)
    arriving = both.writes * both.write_size
    turns = Turns(spec=spec, miss=both.miss, each=each, row_open=row_open)
    mean, spread = (found[:high] for found in turns.drains(arriving))
    drain = mean + np.where(np.arange(high) > low, turns.turning, 0.0)
    batch = max(round(both.write_size), 1)
    number = np.arange(high)
    nu = max(sum(visits.rate for visits in both.reads), 1e-12)
    present, until, close = _idle_waits(both, opening, wait, t.t_rc, t.t_rp)
    _, turned, column = _idle_waits(both, opening + t.read_to_write, wait, t.t_rc, t.t_rcd)
    again = np.expm1(present) / nu
    held = t.t_rcd + column
    stolen = np.minimum(-np.expm1(-both.read_rate / spec.geometry.channel_banks * held), MOST_STOLEN)
    begun = until + row_open * close + column + stolen / (1 - stolen) * (t.t_rc + held)
    length = both.miss * begun + (1 - both.miss) * turned + opening + (both.write_size - 1) / 2 * each
    pace = np.minimum(number / np.maximum(length, each)[:, None], np.exp(-present)[:, None] / each)
    often = 1 / np.maximum(again, max(opening, each))
    begins = np.where(number > low, often[:, None], 0.0)
    law, forced = _waiting(arriving / batch, batch, pace, begins, low)
    drains = law * begins
    drains[:, -1] += forced
    once = drains @ drain
    drains, busy = drains / (1 + once)[:, None], once / (1 + once)
    longest = np.sqrt(drain**2 + spread)
    delays = _held_up(longest, both.read_rate, partial(turns.paces, cycle=t.t_rc))
    load = turns.load(both.read_rate, arriving) / (1 - refreshed)
    left = np.maximum((1 - busy) * (1 - load), LEAST_LEFT**2)
    residual = drains @ longest**2 / 2
    queue = drains @ delays + residual / (high - low) * load / left
    pushed = law @ pdtrc(high - 1 - number, arriving * block) * longest[-1]
    stored = (1 - busy) * (law @ number) + (drains * drain) @ (number + low) / 2
    chain = partial(LastWrites, arrivals=arriving / batch, batch=batch, drain=drain, low=low, each=each)
    rows = zip(law, pace, begins, strict=True)
    return Queued(
        reads=queue,
        draining=np.minimum(drains @ longest, 1.0),
        residual=np.minimum(residual, queue),
        pushed=pushed,
        writes=stored / max(arriving, 1e-12),
        last=tuple(chain(law=one, pace=fast, begins=how) for one, fast, how in rows),
    )


def refreshed_writes(spec: DramSystem, rate: Any, *, wait: Any, block: Any, load: Any) -> Any:
    r"""Wait of writes for refreshes beyond that of reads. [cycles].

    ``rate``: writes of a channel [1/cycle]; ``wait``: their wait without refreshes [cycles]; ``block``: how
    long a refresh keeps a rank [cycles]; ``load``: load of the narrowest resource of the rank, below 1.

    Reads that a refresh of :math:`b` has held up are gone after :math:`d = b \rho / (1 - \rho)`, as a
    fluid, if writes are not forced out before. Writes that come during either wait for the end of both, as
    do those that wait when it begins.
    """
    room = np.maximum(spec.write_high / np.maximum(rate, 1e-12) - wait - block, 0.0)
    drain = np.minimum(block * load / (1 - load), room)
    return (drain * (block + drain) / 2 + wait * (block + drain)) / spec.timing.t_refi


def _idle_waits(
    both: Directions, opening: float, wait: FloatArray, reach: float, later: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean number of visits that read, the wait for a moment without, and again some time later.

    A visit is present while its rows are opened and its accesses delay each other, and for a wait whose
    residual time is exponential, its mean that of the wait and how far one at its bank may reach.
    """
    fixed = np.array([opening + 2 * visits.alone for visits in both.reads])
    rate = np.array([visits.rate for visits in both.reads])
    longest = np.maximum(fixed.max() + 12 * (wait + reach), later)
    t, mean = longest[:, None] * NODES, wait[:, None, None]
    behind = t[:, :, None] - fixed
    left = np.maximum(-behind, 0.0) + mean * np.exp(-np.maximum(behind, 0.0) / np.maximum(mean + reach, 1e-9))
    g = np.minimum(left @ rate, MOST_PRESENT)
    more = np.expm1(g)
    total = np.zeros(g.shape)
    total[:, 1:] = np.cumsum(np.diff(t) * (more[:, 1:] + more[:, :-1]) / 2, axis=1)
    return g[:, 0], total[:, -1], np.array([np.interp(later, *row) for row in zip(t, total, strict=True)])


def _held_up(drain: FloatArray, rate: float, pace: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Total wait of all reads for a drain, at one read a cycle. [cycles2].

    As a fluid: those that came meanwhile are served beside others that come, the faster the more there are.
    """
    rate = max(rate, 1e-12)
    usual = np.interp(rate, pace(COUNTS), COUNTS)
    more = rate * drain[:, None] * (np.arange(STEPS) + 0.5) / STEPS
    left = np.maximum(pace(usual + more) - rate, LEAST_LEFT * rate)
    delays: FloatArray = drain**2 / 2 + (more / left).mean(axis=1) * drain
    return delays


def _waiting(
    arrivals: float, batch: int, pace: FloatArray, begins: FloatArray, low: int
) -> tuple[FloatArray, FloatArray]:
    """Return laws of the number of waiting writes, and how often they are forced out. [1/cycle]."""
    kinds, high = pace.shape
    n = np.arange(high)
    moves = np.zeros((kinds, high, high))
    moves[:, n[1:], n[:-1]] = pace[:, 1:]
    moves[:, n, low] += begins
    moves[:, n, np.where(n + batch < high, n + batch, low)] += arrivals
    moves[:, n, n] -= moves.sum(axis=2)
    matrix = moves.transpose(0, 2, 1).copy()
    matrix[:, 0] = 1.0
    law = np.maximum(np.linalg.solve(matrix, np.eye(high)[:, :1])[:, :, 0], 0.0)
    law /= law.sum(axis=1, keepdims=True)
    return law, arrivals * law[:, n + batch >= high].sum(axis=1)
