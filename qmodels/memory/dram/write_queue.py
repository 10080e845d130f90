"""Writes that wait in a queue of their own: when they are drained, and what reads wait for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import pdtrc

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import compiled
from qmodels.systems.memory.dram_system import DramSystem, Packets


@dataclass(frozen=True, kw_only=True, eq=False)
class LastWrites:
    """The chain of waiting writes of `write_queue`, and in it the last of writes that come together."""

    law: FloatArray  # probabilities of 0, 1, 2, ... waiting writes
    # arrivals, batch: rate of the batches [1/cycle], and writes of one.
    arrivals: float
    batch: int
    # pace, begins, drain: by the number that waits: rate at which one of them is written, rate at which reads
    # leave room for all but ``low`` of them, and how long these take [1/cycle, 1/cycle, cycles].
    pace: FloatArray
    begins: FloatArray
    drain: FloatArray
    low: int  # writes that are left then
    each: float  # time of the channel for a write [cycles]
    # Probability that writes find nothing that they wait for, and the pace at which they are written then
    # [1/cycle].
    idle: float
    idle_pace: FloatArray

    def beyond(self, number: int, rows: float, reach: float) -> tuple[float, float]:
        """Wait of the last of n beyond the mean wait of all and how far they reach alone, and its variance.

        Stays in the chain are exponential; writes that find nothing are done when they are alone.
        """
        later, noise = self.of(number, rows)
        none = np.zeros(self.pace.size)
        law = np.append(1.0, none[1:])
        alone = replace(self, law=law, arrivals=0.0, pace=self.idle_pace, begins=none)
        later -= self.idle * max(alone.of(number, rows)[0] - reach, 0.0)
        return max(later - reach, 0.0), noise

    def of(self, number: int, rows: float) -> tuple[float, float]:
        """Wait of the last of n beyond the mean wait of all, and its variance.

        Those of a row are written together, rows in the order of their arrival; later ones come as they do on
        average.
        """
        each = max(round(number / rows), 1)
        first, second = self._stays(each)
        high, coming = first.shape[1], -(-number // each)
        law = np.bincount(-(-np.arange(self.law.size) // each), self.law, minlength=high)
        before = np.arange(law.size)
        total = before + coming
        few, many = before[total < high], before[total >= high]
        end = total[: few.size]
        done = np.cumsum(first, axis=0)
        stays = (done[end, end] - done[few, end]) / coming
        # So many are written at once, but for the last.
        out = self.drain[-1] + (total[few.size :] - high) * each * self.each
        left = min(max(self.low // each, 1), high - 1)
        places, gone = many[:, None] + np.arange(1, coming + 1), many[:, None] + coming - left
        behind = np.maximum(places - gone, 0)
        later = np.where(behind, out[:, None] + first[behind, left], out[:, None] * places / gone)
        last = float(law @ np.append(first[end, end], later[:, -1]))
        square = second[left, left] + out * (2 * first[left, left] + out)
        last2 = float(law @ np.append(second[end, end], square))
        of_all = float(law @ np.append(stays, later.mean(axis=1)))
        return max(last - of_all, 0.0), max(last2 - last**2, 0.0)

    def _stays(self, each: int) -> tuple[FloatArray, FloatArray]:
        """Time for which rows of n writes stay, (place, number of rows): mean and mean square."""
        writes = np.arange(0, self.pace.size, each)
        low, batch = max(self.low // each, 1), max(self.batch // each, 1)
        pace, begins, drain = self.pace[writes] / each, self.begins[writes], self.drain[writes]
        found: tuple[FloatArray, FloatArray] = _stays(self.arrivals, batch, pace, begins, drain, low)
        return found


@compiled
def _stays(arrivals: Any, batch: Any, pace: Any, begins: Any, drain: Any, low: Any) -> Any:
    high = pace.size
    first, second = np.zeros((high + 1, high)), np.zeros((high + 1, high))
    left = min(low, high - 1)
    for place in range(1, high):
        for number in range(high - 1, place - 1, -1):
            beginning = begins[number] if number > low else 0.0
            total = pace[number] + beginning + arrivals
            mean = pace[number] / total * first[place - 1, number - 1]
            square = pace[number] / total * second[place - 1, number - 1]
            grown = number + batch
            # All but ``low`` of them are written where reads leave room, and where there are too many.
            for way in range(2):
                rate, of = (beginning, number) if way == 0 else (arrivals, grown)
                if way == 1 and grown < high:
                    mean += rate / total * first[place, grown]
                    square += rate / total * second[place, grown]
                elif rate > 0.0:
                    out = max(of - low, 1)
                    time = drain[min(of, high - 1)] * min(place / out, 1.0)
                    later, later2 = first[max(place - out, 0), left], second[max(place - out, 0), left]
                    mean += rate / total * (time + later)
                    square += rate / total * (time * time + 2 * time * later + later2)
            first[place, number] = 1 / total + mean
            second[place, number] = 2 / total * first[place, number] + square
    return first, second


COUNTS = np.arange(128.0)
"""Waiting accesses of a direction that are told apart."""
NO_ROWS = 1e-9
"""Share of the accesses that open a row below which none does."""
LEAST_LEFT = 0.02
"""Share of what is served that is left to shorten a queue, at least."""


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Drains of the write queue: how a channel turns between reads and writes."""

    spec: DramSystem  # the system
    miss: float  # share of the accesses that open a row
    each: float  # time of the channel for an access [cycles]
    row_open: float = 1.0  # probability that another row is to be closed before

    @cached_property
    def opening(self) -> float:
        """Opening a row. [cycles]."""
        closing = 0.0 if self.spec.page_policy == "closed" else self.row_open * self.spec.timing.t_rp
        return self.spec.timing.t_rcd + closing

    @cached_property
    def turning(self) -> float:
        """Time to turn to writes and back beyond the accesses themselves. [cycles].

        The first read opens its row, unless others find theirs open; writes open theirs one beside the other.
        """
        t = self.spec.timing
        hits = 0.0 if isinstance(self.spec.traffic, Packets) else 1 - self.miss
        kept = hits * (self.spec.write_high - self.spec.write_low) * self.each
        back = max(t.write_to_read, self.opening * min(self.miss * COUNTS.size, 1.0) - kept)
        return max(t.read_to_write + back - 2 * self.each, 0.0)

    def paces(self, number: FloatArray, cycle: float) -> FloatArray:
        r"""Return accesses served per cycle, by the number that waits and the time a bank is busy with each.

        As many are there as come while one stays: its row is opened, and it waits for its bank as in M/D/1,
        :math:`n = x\,(m o + \rho c / 2 (1 - \rho))`, :math:`\rho = x m c / B`. Derived here.
        """
        if self.miss < NO_ROWS:
            return np.full(np.shape(number), 1 / self.each)
        banks, own = self.spec.geometry.channel_banks, self.miss * self.opening
        full = number * self.miss * cycle / banks
        busy = 2 * full / np.maximum(own + full + np.sqrt((full - own) ** 2 + 2 * cycle * full), 1e-300)
        return np.minimum(busy * banks / (cycle * self.miss), 1 / self.each)

    def drains(self, coming: float) -> tuple[FloatArray, FloatArray]:
        """Time until ``write_low`` of 0, 1, ..., ``write_high`` writes are left.

        Mean and variance, from the first write to the last. Others come meanwhile: the numbers are a birth
        and death process.
        """
        found: tuple[FloatArray, FloatArray]
        found = _drains(self._forced, coming, self.spec.write_low, self.spec.write_high)
        return found

    @cached_property
    def _forced(self) -> FloatArray:
        """Writes per cycle where they are forced out, by how many wait."""
        return self.paces(COUNTS[1:], self.spec.timing.write_cycle)

    def load(self, reads: float, writes: float) -> float:
        """Return which share of the time reads take and writes do, all of them forced out.

        Writes that come during a drain are written in it.
        """
        drain = float(self.drains(writes)[0][-1])
        number = self.spec.write_high - self.spec.write_low + writes * drain
        return reads * self.each + writes / number * (drain + self.turning)

    def limit(self, write: float) -> float:
        """Return the largest rate of accesses of which a share writes. [accesses/cycle]."""

        def beyond(rate: float) -> float:
            return self.load(rate * (1 - write), rate * write) - 1

        most = 1 / self.each
        return most if beyond(most) <= 0 else float(brentq(beyond, 1e-6 * most, most, xtol=1e-9))


@compiled
def _drains(pace: Any, coming: Any, low: Any, high: Any) -> Any:
    mean, variance = np.zeros(high + 1), np.zeros(high + 1)
    last = pace[-1]
    longer, square = 1 / max(last - coming, LEAST_LEFT * last), 0.0
    for k in range(pace.size, low, -1):
        step, more = 1 / pace[k - 1], coming / pace[k - 1]
        one = step + more * longer
        square = 2 * step * one + more * (square + 2 * longer * one)
        longer = one
        if k <= high:
            mean[k], variance[k] = one, max(square - one * one, 0.0)
    return np.cumsum(mean), np.cumsum(variance)


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
    # writes, write_size, write_alone: rate of the visits that write [1/cycle], accesses of one, and how long
    # those delay each other, mean.
    writes: float
    write_size: float
    write_alone: float
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
    length = both.miss * begun + (1 - both.miss) * turned + opening + both.write_alone
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
    idle = law[:, 0] * np.exp(-present)
    idle_pace, longer = _idle(max(opening + both.write_alone, each), each, batch, number.astype(float))
    chain = partial(
        LastWrites,
        arrivals=arriving / batch, batch=batch, drain=drain, low=low, each=each, idle_pace=idle_pace,
    )  # fmt: skip
    rows = zip(law, pace, begins, idle, strict=True)
    return Queued(
        reads=queue,
        draining=np.minimum(drains @ longest, 1.0),
        residual=np.minimum(residual, queue),
        pushed=pushed,
        writes=stored / max(arriving, 1e-12) - idle * longer,
        last=tuple(chain(law=one, pace=fast, begins=how, idle=free) for one, fast, how, free in rows),
    )


def _idle(alone: float, each: float, batch: int, number: FloatArray) -> tuple[FloatArray, float]:
    """Return the pace at which writes that find nothing are written, by how many there are [1/cycle].

    And how much longer a batch of them stays on average, by chance, than its writes do one after the other.
    """
    left = np.arange(1, batch + 1)
    stay = float((left / np.minimum(left / alone, 1 / each)).sum()) / batch
    return np.minimum(number / alone, 1 / each), max(stay - alone, 0.0)


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
