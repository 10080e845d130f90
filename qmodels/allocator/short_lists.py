"""Free lists that run dry: where packets are given up, and where segments are lost alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from qmodels.allocator.trial_states import Window, accesses_law, canonical
from qmodels.checks import FloatArray, IntArray

MOST_LENGTH = 512
"""Free blocks up to which the length of the list is followed at most."""
PACKETS_FOLLOWED = 3
"""Largest packets that fit into what is followed; above, it only matters that the list returns."""
ROUNDS = 2
"""Times that the sizes stored are computed from the sizes refused, from no refusals."""
ENUMERATED = 8
"""Blocks, those that keep banks busy included, whose banks are enumerated while the list is drained."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StarvedList:
    """Probability that an overloaded list is nearly empty."""

    refused: FloatArray  # probability that a packet of each size is refused
    writes: FloatArray  # allocations from a list of 1, 2, ... blocks, per refused packet
    given_up: float  # blocks that a refused packet had taken when it was given up, mean [blocks]
    one_taken: float  # probability that it had taken one block, all there was
    writes_per_refusal: float  # all allocations per refused packet


@lru_cache(maxsize=1024)
def starved_list(
    *, segments: tuple[int, ...], offered: tuple[float, ...], refused: float, whole: bool
) -> StarvedList:
    r"""Lengths of a list from which more is asked than is returned, near its end.

    ``segments``: blocks of a packet, ascending [blocks]; ``offered``: shares of the sizes among the packets
    offered; ``refused``: share of the segments that are refused, above 0 and below 1; ``whole``: whether a
    packet that finds fewer free blocks than it needs is refused at once; otherwise it takes what there is, is
    given up, and its blocks return.

    The free blocks as a random walk: packets come and go in random order, :math:`(1 - P) m / m'` of them
    go per packet offered, with mean sizes m offered and m' stored, so that as many blocks return
    as stay taken. The walk is cut off far above where lists are short, which changes how often the list
    is short but little of what happens then: shares are scaled to the share P of segments refused.
    Approximate: packets are written at once; what returns meanwhile counts as later.
    """
    sizes, asks = np.array(segments), np.array(offered)
    top = int(min(MOST_LENGTH, PACKETS_FOLLOWED * sizes[-1]))
    free = np.arange(top + 1)
    too_large = asks @ (sizes[:, None] > free)
    down = _moves(sizes, asks, top)
    taking = down + np.diag(too_large)
    kept, mean = asks, float(sizes @ asks)
    for _ in range(ROUNDS):
        comes = 1.0 / (1.0 + (1.0 - refused) * mean / float(sizes @ kept))
        giving = _moves(sizes, kept, top).T
        giving[-1] += 1.0 - giving.sum(axis=0)
        balance = comes * taking + (1.0 - comes) * giving - np.eye(top + 1)
        balance[-1] = 1.0
        law = np.maximum(np.linalg.solve(balance, free == top), 0.0)
        fits = np.cumsum(law[::-1])[::-1]
        turned_away = 1.0 - np.where(sizes <= top, fits[np.minimum(sizes, top)], 0.0)
        kept = asks * (1.0 - turned_away)
        kept = kept / kept.sum()
    lost, total = float((sizes * asks) @ turned_away), float(asks @ turned_away)
    given_up = np.zeros(top + 1) if whole else law * too_large / total
    # From the lengths where packets begin down to those where they end, given up at 0.
    passed = given_up + (law * (1.0 - too_large) - down @ law) / total
    return StarvedList(
        refused=np.minimum(turned_away * refused * mean / lost, 1.0),
        writes=np.cumsum(passed[::-1])[::-1][1:],
        given_up=float(given_up @ free),
        one_taken=float(given_up[1]),
        writes_per_refusal=lost / total * (1.0 - refused) / refused + float(given_up @ free),
    )


def _moves(sizes: IntArray, share: FloatArray, top: int) -> FloatArray:
    """Return the matrix of the moves down by a packet's size, to the row's length from the column's."""
    inside = sizes <= top
    chance = np.zeros(top + 1)
    chance[sizes[inside]] = share[inside]
    down = np.arange(top + 1)[None, :] - np.arange(top + 1)[:, None]
    return np.where(down > 0, chance[np.maximum(down, 0)], 0.0)


@lru_cache(maxsize=256)
def drained_conflicts(*, banks: int, trials: int, busy: int) -> tuple[float, ...]:
    r"""Probability of a conflict at the allocation that finds 1, 2, ... blocks in a list drained to its end.

    The banks of `ENUMERATED` blocks are random, the first of them busy; no more heads are
    examined than there are blocks. With three trials and more the blocks passed over last are often alike.

    Exact for that beginning, by enumeration up to a renaming of banks; longer lists have passed over
    more blocks: with 3 trials the last block's probability rises from 0.166 to 0.173 from 6 blocks to 7.
    """
    length = max(ENUMERATED - busy, 1)
    random = 1.0 - (1.0 - 1.0 / banks) ** busy
    if busy == 0 or busy >= ENUMERATED or trials == 1 or (trials == 2 and busy == 1):
        return tuple(random ** min(trials, left) for left in range(1, length + 1))
    starts: dict[Window, float] = {(): 1.0}
    for _ in range(ENUMERATED):
        longer: dict[Window, float] = {}
        for names, chance in starts.items():
            known = max(names, default=-1) + 1
            for bank in range(min(known + 1, banks)):
                longer[*names, bank] = chance * (1 if bank < known else banks - known) / banks
        starts = longer
    states = defaultdict(float, {(n[busy:], n[:busy]): chance for n, chance in starts.items()})
    conflicts = []
    for left in range(length, 0, -1):
        conflict = 0.0
        after: defaultdict[tuple[Window, Window], float] = defaultdict(float)
        for (listed, window), chance in states.items():
            place = 0
            while place < min(trials, left) - 1 and listed[place] in window:
                place += 1
            taken = listed[place]
            conflict += chance * (taken in window)
            names = canonical((taken, *window[:-1], *listed[place + 1 :], *listed[:place]))
            after[names[busy:], names[:busy]] += chance
        states = after
        conflicts.append(conflict)
    return tuple(reversed(conflicts))


LEAST_OVERLOAD = 0.002
"""Overload of the chain at least: below it, only how often the list is short changes, which is scaled."""
MOST_WORK = 512
"""Segments that wait at the inputs up to which they are followed at most."""
TAIL = 7.0
"""Followed time: a number of mean waits of packets at the inputs, and a largest packet."""
HIGHEST = 1.0 - 1e-6
MOST_BUSY = 0.98
"""Part of the time that an input is at work, at most."""
QUEUED = 30
"""Packets behind one another at an input, at most."""
MOST_RATE = 48.0
"""Segments that the inputs write between two reads at most, as far as this is followed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LossyList:
    """Shares of all writes that find an overloaded list nearly empty."""

    # Writes right after the read of a block of the list that find 1, 2, ... blocks: this block is the last.
    just_read: FloatArray
    later: FloatArray  # other writes that find 1, 2, ... blocks

    def taken(self, busy_heads: FloatArray, *, page_control: bool) -> tuple[float, float, float, FloatArray]:
        """Return the conflicts of trials in this list.

        These are conflicts, those of them at a list's only block, meetings in the open page, and the law of
        the accesses.

        Parameters
        ----------
        busy_heads : ndarray
            Probability that the first 0, 1, ... blocks examined of a long list are all on busy banks.
        page_control : bool
            Whether the block just read, whose page is open, is no conflict.

        Examples
        --------
        One write in 25 takes the block just read; with one trial the others meet a bank of 8:

        >>> dry = LossyList(just_read=np.array([0.04]), later=np.array([0.0]))
        >>> heads = np.array([1.0, 0.125])
        >>> [round(dry.taken(heads, page_control=control)[0], 3) for control in (False, True)]
        [0.16, 0.12]
        """
        trials, usual = len(busy_heads) - 1, float(busy_heads[-1])
        only = float(self.just_read[0] * (not page_control) + self.later[0] * busy_heads[1])
        conflict, met, accesses = usual, 0.0, accesses_law(busy_heads)
        for length, (last, more) in enumerate(zip(self.just_read, self.later, strict=True), start=1):
            if length > trials:
                break
            before = float(busy_heads[length - 1])
            conflict += last * (before * (not page_control) - usual) + more * (busy_heads[length] - usual)
            met += last * before
            short = accesses_law(busy_heads[: length + 1])
            accesses = accesses * (1.0 - last - more)
            accesses[: len(short)] += (last + more) * short
        return float(conflict), only, met if page_control else 0.0, accesses


@lru_cache(maxsize=1024)
def lossy_list(
    *,
    segments: tuple[int, ...],
    offered: tuple[float, ...],
    refused: float,
    input_ports: int,
    input_speed: float,
    longest: int,
) -> LossyList:
    r"""Lengths of a list in which every read leaves a block and every write takes one, if there is one.

    ``segments``: blocks of a packet, ascending [blocks]; ``offered``: shares of the sizes among the packets
    offered; ``refused``: share of the segments that are lost, above 0 and below 1; ``input_speed``: segments
    that one of them writes between two reads [segments / read]; ``longest``: free blocks up to which the
    answer goes [blocks].

    From read to read the list gains a block and loses up to as many as the inputs want to write: packets
    arrive at random, :math:`\rho = 1/(1 - P)` segments a read, and wait at the inputs; those at work write
    :math:`v` segments a read each, :math:`\lfloor v \rfloor` or one more. As the list never grows while an
    input is at work, its length has a geometric tail above 0, :math:`\pi_L = \pi_0(0)\, \eta^{L-1} r` with a
    vector r over what waits, :math:`r = P(\text{nothing comes})\, e_0 (I - \sum_n \eta^{n-1} A_n)^{-1}` with
    :math:`\eta = r_0`: its length is not cut off. With long packets all writes to a dry list take the block
    just read, :math:`(\rho - 1)/(v - 1)` of the writes.

    Exact for one input and one output at random phases but for the times of arrivals between two reads; of
    several inputs those at work are told from what waits, and a rate below a segment a read counts as one.
    """
    # What the inputs can write at all.
    refused = min(refused, 1.0 - 1.0 / max(input_ports * input_speed, 1.0))
    overload = max(1.0 / (1.0 - refused), 1.0 + LEAST_OVERLOAD)
    sizes, share = np.array(segments), np.array(offered)
    mean = float(sizes @ share)
    busy = min(overload / (input_ports * input_speed), MOST_BUSY)
    waits = float(sizes**2 @ share) / mean / 2.0 / (1.0 - busy)
    most = int(min(MOST_WORK, max(sizes[-1] + TAIL * waits, 16)))
    comes = _arriving(sizes, share, overload / mean, most)
    rates = np.clip(_at_work(sizes, share, busy, input_ports, most) * input_speed, 1.0, MOST_RATE)
    source, wanted, rows = _attempts(comes, rates)
    begins = np.searchsorted(source, np.arange(most + 1))

    def together(weight: FloatArray) -> FloatArray:
        """Return the sum of the transitions, each with the weight of its number of attempts."""
        return np.asarray(np.add.reduceat(rows * weight[wanted][:, None], begins, axis=0))

    attempts = np.arange(int(wanted.max()) + 1)
    unit = np.eye(most + 1)

    def climbing(ratio: float) -> FloatArray:
        powers = np.where(attempts > 0, ratio ** np.maximum(attempts - 1.0, 0.0), 0.0)
        return np.asarray(comes[0] * np.linalg.solve((unit - together(powers)).T, unit[0]))

    ratio = _below_one(lambda value: float(climbing(value)[0]))
    if ratio is None:
        # Inputs no faster than the outputs never empty the list; of those that hardly are more waits than is
        # followed here, and then it is as with long packets.
        faster = input_ports * input_speed - 1.0
        just_read = np.zeros(longest)
        just_read[0] = refused / (1.0 - refused) / faster if faster > 0.0 else 0.0
        return LossyList(just_read=just_read, later=np.zeros(longest))
    above = climbing(ratio)
    # From a length L >= 1 more than L wanted empty the list.
    emptying = np.where(attempts > 1, (1.0 - ratio ** np.maximum(attempts - 1.0, 0.0)) / (1.0 - ratio), 0.0)
    dry = np.linalg.solve((unit - together((attempts > 0).astype(float))).T, above @ together(emptying))
    scale = dry.sum() + above.sum() / (1.0 - ratio)
    # At least so many wanted, by what waits.
    at_least = np.array([together((attempts >= k).astype(float)).sum(axis=1) for k in attempts])
    want_dry, want_above = at_least @ dry / scale, at_least @ above / scale

    def found(length: int, number: int) -> float:
        """Return the law of the requests to a list of n blocks, that of the read included."""
        return float(want_dry[number] if length == 1 else want_above[number] * ratio ** (length - 2))

    lengths = range(1, longest + 1)
    lost = float((want_dry + want_above / (1.0 - ratio))[1:].sum()) - 1.0
    just_read = np.array([found(length, 1) for length in lengths])
    later = np.array([sum(found(length + k - 1, k) for k in range(2, len(attempts))) for length in lengths])
    shares = min(refused / (1.0 - refused) / lost, 1.0 / float(just_read.sum() + later.sum()))
    return LossyList(just_read=shares * just_read, later=shares * later)


def _arriving(sizes: FloatArray, share: FloatArray, packets: float, most: int) -> FloatArray:
    """Return the law of the segments of a Poisson number of packets (Panjer), what is beyond at the end."""
    law = np.zeros(most + 1)
    law[0] = np.exp(-packets)
    for total in range(1, most + 1):
        inside = sizes <= total
        law[total] = packets / total * float((sizes * share)[inside] @ law[total - sizes[inside]])
    law[-1] += max(1.0 - law.sum(), 0.0)
    return law


def _at_work(sizes: FloatArray, share: FloatArray, busy: float, ports: int, most: int) -> FloatArray:
    """Return the mean number of inputs that are at work while 0, 1, ... segments wait at all of them.

    Each is busy with one probability; what waits at a busy one: the rest of a packet, and those behind it.
    """
    if ports == 1:
        return np.ones(most + 1)
    places = np.arange(most + 1)
    rest = np.array([float(share[sizes >= k].sum()) for k in range(most + 1)]) * (places > 0)
    rest /= rest.sum()
    waits = rest
    for _ in range(QUEUED):
        waits = (1.0 - busy) * rest + busy * np.convolve(rest, waits)[: most + 1]
    chance, law = (1.0 - busy) ** ports, (places == 0).astype(float)
    total, mean = np.zeros(most + 1), np.zeros(most + 1)
    for number in range(1, ports + 1):
        chance *= (ports - number + 1) / number * busy / (1.0 - busy)
        law = np.convolve(law, waits)[: most + 1]
        total, mean = total + chance * law, mean + number * chance * law
    return np.divide(mean, total, out=np.ones(most + 1), where=total > 0)


def _attempts(comes: FloatArray, rates: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the transitions from read to read: the number waiting, the attempts, the law of those left.

    The attempts of packets that come while the inputs are idle begin at a random time.
    """
    width = len(comes)
    source, wanted, laws = [], [], []
    for before, rate in enumerate(rates):
        if before >= rate:
            for number, chance in ((int(rate), 1.0 - rate % 1.0), (int(rate) + 1, rate % 1.0)):
                taken = min(number, before)
                law = np.zeros(width)
                law[before - taken :] = comes[: width - before + taken]
                law[-1] += comes[width - before + taken :].sum()
                source.append(before)
                wanted.append(taken)
                laws.append(chance * law)
            continue
        for more, (reached, next_reached) in enumerate(
            pairwise(_late_attempts(before / rate, rate - before))
        ):
            law = np.zeros(width)
            law[0] = comes[more] * reached
            law[1 : width - more] = comes[more + 1 :] * (reached - next_reached)
            source.append(before)
            wanted.append(before + more)
            laws.append(law)
    return np.array(source), np.array(wanted), np.array(laws)


def _late_attempts(at_work: float, left: float) -> FloatArray:
    """Return the chance of time for 0, 1, 2, ... attempts of new packets between two reads.

    Packets that come while those before them are written wait for their turn; later ones begin at once.
    """
    k = np.arange(int(np.ceil(left)) + 2.0)
    waiting = np.clip(left - k + 1.0, 0.0, 1.0)
    at_once = np.where(k <= 1, 1.0, np.maximum(1.0 - (k - 1.0) / left, 0.0))
    return np.asarray(at_work * waiting + (1.0 - at_work) * at_once)


def _below_one(reached: Callable[[float], float]) -> float | None:
    """Return the root of ``reached(x) = x`` below 1, beside that at 1, if there is one."""
    from scipy.optimize import brentq

    def beside(x: float) -> float:
        return (reached(x) - x) / (1.0 - x)

    return float(brentq(beside, 0.0, HIGHEST, xtol=1e-13)) if beside(HIGHEST) < 0.0 else None
