"""A short free list under operations of whole packets: its length, and the banks of its last blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from qmodels.allocator.trial_states import Window, accesses_law, canonical, draw_any, draw_others
from qmodels.checks import FloatArray, IntArray

LEAST_OVERLOAD = 0.005
"""Overload of the walk at least: below it, only how often the list is short changes."""
TAIL = 12.0
"""Mean lengths of a list beside another that are followed, and the longest packets on top of them."""
MOST_LENGTH = 256
"""Free blocks that are followed at most."""
RELAXING = 4.0
"""Times in which a list beside another returns to its mean that the walk takes before counting."""
LEAST_SLOTS = 200
"""Slots of one round at least."""
ROUNDS = 6
"""Times that the sizes that leave are computed from those that were stored, from none lost."""
PATTERN = 6
"""Blocks whose banks are told apart; of longer lists the heads are those of this many."""
TOLERANCE = 1e-10
MOST_STEPS = 2000
BEGUN, WRITING, RETURNED, READING = range(4)


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketList:
    """Lengths at which a short list is met, as shares of the writes that take its blocks."""

    first_after_read: FloatArray  # first writes of packets right after a read of the block at the tail
    first: FloatArray  # other first writes
    within: FloatArray  # all other writes but the last of a packet
    final: FloatArray  # last writes of packets of several blocks
    stored: FloatArray  # of packets of 0, 1, 2, ... segments, the share that got 0, 1, 2, ... blocks, in all

    @property
    def mean(self) -> float:
        """Blocks of a packet stored, mean."""
        kept = self.stored.sum(axis=0)
        return float(kept @ np.arange(len(kept)) / kept[1:].sum())

    @property
    def single(self) -> float:
        """Share of the packets stored that have one block."""
        kept = self.stored.sum(axis=0)
        return float(kept[1] / kept[1:].sum())

    def refused(self, segments: IntArray) -> FloatArray:
        """Return the probability that a packet of each size finds no block at all."""
        offered = self.stored.sum(axis=1)
        return np.divide(self.stored[:, 0], offered, out=np.zeros(len(offered)), where=offered > 0)[segments]

    def taken(
        self, *, banks: int, trials: int, busy: int, page_control: bool, long: float
    ) -> tuple[float, float, float, float, FloatArray]:
        """Return the conflicts of trials in this list.

        These are conflicts, those of them at a list's only block, meetings in the open page, conflicts of the
        writes behind a packet's first, and the law of the accesses. A long list has conflicts ``long``. Where
        banks stay busy for more or fewer accesses than one the heads are taken as independent.
        """
        room = len(self.within)
        length = np.minimum(np.arange(room), PATTERN - 1)
        most = np.minimum(np.arange(room), trials)
        alike, alike_last = long, long
        for _ in range(ROUNDS):
            if busy == 1 and banks > 1:
                heads = pattern_heads(
                    banks=banks,
                    trials=trials,
                    single=round(self.single, 4),
                    mean=round(self.mean, 4),
                    alike=round(alike, 3),
                    alike_last=round(alike_last, 3),
                )
            else:
                heads = independent_heads(banks=banks, trials=trials, busy=busy)
            taken_busy = heads[:, length, most]
            if trials > 1:
                taken_busy[:, PATTERN:] = np.minimum(taken_busy[:, PATTERN:], long)
            before, before_last = alike, alike_last
            alike, alike_last = (
                float(part @ taken_busy[0] / max(part.sum(), 1e-300)) for part in (self.within, self.final)
            )
            if max(abs(alike - before), abs(alike_last - before_last)) < 5e-4:
                break
        behind = self.within + self.final
        adjacent = float(behind @ taken_busy[0] / max(behind.sum(), 1e-300))
        after_read, others = self.first_after_read, self.first + self.within + self.final
        conflict = float(after_read @ taken_busy[1] + others @ taken_busy[0])
        # The block just read is the last that is tried of a list no longer than the trials.
        met = float(after_read[: trials + 1] @ taken_busy[1, : trials + 1]) * page_control
        only = float(after_read[1]) * (not page_control) + float(others[1] * taken_busy[0, 1])
        tried = np.where(np.arange(trials + 1) < most[:, None], heads[:, length], 0.0)
        accesses = accesses_law(after_read @ tried[1] + others @ tried[0])
        return conflict - met, only, met, adjacent, accesses


@lru_cache(maxsize=512)
def packet_list(
    *, sizes: tuple[int, ...], offered: tuple[float, ...], largest_other: int, load: float, share: float
) -> PacketList:
    r"""Lengths of a list that runs dry, from which packets take blocks in a row and return them in a row.

    ``sizes``, ``offered``: segments of a packet and the probability of each, those of other lists included;
    packets of up to ``largest_other`` take no block of this list; ``load``: segments that arrive for one
    that is read, above 1; ``share``: share of the segments read that return to the list.

    One input receives segments at a steady pace and writes a packet once its last one has come; one output
    reads a packet when it takes it up, and takes up the next when its segments have gone out at a steady
    pace. The law of the list's length, of what has arrived of a packet and of what is left of another is
    followed from segment to segment: exact for independent sizes and packets that leave in random order.
    A segment that finds no block is lost alone, which decides the sizes that leave.
    """
    from qmodels.allocator.path_kernel import READ, WRITTEN, walk_lengths

    longest, law = sizes[-1], np.zeros(sizes[-1] + 1)
    law[list(sizes)] = offered
    left = np.cumsum(law[::-1])[::-1]
    ends = np.divide(law, left, out=np.ones_like(law), where=left > 1e-15)
    ends[-1] = 1.0
    at = np.arange(longest + 1)
    listed = (at > largest_other).astype(np.int64)
    excess = max(load - 1.0, LEAST_OVERLOAD)
    room, slots = 2 * longest + 4, max(round(2.0 / excess), LEAST_SLOTS)
    mine = law * listed
    if share < 1.0:  # which packets take blocks of the list is by chance: its length wanders
        part = float(mine @ at / (law @ at))
        spread = 2.0 * float((at * listed - part * at) ** 2 @ law) / float(law @ at)
        room = int(min(room + TAIL * spread / excess, MOST_LENGTH))
        slots = max(slots, round(RELAXING * spread / excess**2 / ROUNDS))
    other = law * (1 - listed)
    other *= (1.0 - share) / max(float(other @ at), 1e-300)
    leaving = mine
    state, phase = np.zeros((3, room + 1, longest, longest + 1)), 0.0
    state[WRITTEN, 0, 0, 1] = 1.0
    for _ in range(ROUNDS):
        own = leaving * share / float(leaving @ at)
        total = float((own + other).sum())
        first, within, stored, phase = walk_lengths(
            state, 1.0 + excess, ends, listed, own / total, other / total, slots, phase
        )
        leaving = stored.sum(axis=0) * (at > 0)
    writes = float(first.sum() + within.sum())
    return PacketList(
        first_after_read=first[READ] / writes,
        first=(first.sum(axis=0) - first[READ]) / writes,
        within=within[0] / writes,
        final=within[1] / writes,
        stored=stored / stored.sum(),
    )


def independent_heads(*, banks: int, trials: int, busy: int) -> FloatArray:
    """Return the same as `pattern_heads` for blocks on random banks."""
    chance = 1.0 - (1.0 - 1.0 / banks) ** busy
    heads = np.broadcast_to(chance ** np.arange(trials + 1.0), (2, PATTERN + 1, trials + 1)).copy()
    for length in range(min(trials, PATTERN) + 1):
        heads[:, length, length + 1 :] = 0.0
        if busy > 0:  # the block just read is the last
            heads[1, length, length] = chance ** max(length - 1.0, 0.0)
    return heads


@lru_cache(maxsize=256)
def pattern_heads(
    *, banks: int, trials: int, single: float, mean: float, alike: float, alike_last: float
) -> FloatArray:
    r"""Probability of 0, 1, ... busy heads in turn, by the access before and the length of a short list.

    ``single``: share of the packets with one block; ``mean``: blocks of a packet, mean; ``alike``,
    ``alike_last``: probability that a block is on the bank of its packet's block before it: one in the
    middle, and the last one. Returns an array over the access before
    (1: the read that returned the block at the tail, else 0), the length, and the heads.

    The banks of up to `PATTERN` blocks, from the head on, and that of the last access, up to a renaming of
    banks, change with each write and each block returned: blocks rejected go to the tail, where they are
    the last that are left. Packets, geometric beyond one block, come and go in random order, so that the
    length is not that of the list in question, for which the answer is conditioned on it.
    """
    from scipy.sparse import csr_matrix

    ends = (1.0 - single) / max(mean - 1.0, 1.0 - single) if single < 1.0 else 1.0
    number: dict[tuple[Window, int], int] = {}
    todo: list[tuple[Window, int]] = []
    steps: list[tuple[int, int, float]] = []
    tallies: list[tuple[int, int, int, int, float]] = []

    def name(pattern: Window, mode: int) -> int:
        key = (pattern, mode)
        if key not in number:
            number[key] = len(number)
            todo.append(key)
        return number[key]

    def write(pattern: Window) -> tuple[Window, int, bool]:
        """Return the pattern after a write, the heads rejected, and whether a busy one was taken."""
        last, *listed = pattern
        rejected = 0
        while rejected < min(trials, len(listed)) - 1 and listed[rejected] == last:
            rejected += 1
        taken = listed[rejected]
        after = canonical((taken, *listed[rejected + 1 :], *listed[:rejected]))
        return after, rejected, taken == last

    def read(at: int, pattern: Window, chance: float, same: float | None, mode: int) -> None:
        """Enter the return of a block that is on the bank of the last one with a probability, or on any."""
        if len(pattern) > PATTERN:
            steps.append((at, name(pattern, mode), chance))
            return
        known = max(pattern) + 1
        draws = [(bank, part) for (bank,), part in draw_any(known, 1, banks)]
        if same is not None:
            others = draw_others(known, (pattern[0],), banks)
            draws = [(pattern[0], same), *((bank, part * (1.0 - same)) for bank, part in others)]
        for bank, part in draws:
            steps.append((at, name(canonical((bank, *pattern[1:], bank)), mode), chance * part))

    name((0,), WRITING)
    while todo:
        pattern, mode = todo.pop()
        at, length = number[pattern, mode], len(pattern) - 1
        if mode == READING:
            read(at, pattern, ends, alike_last, RETURNED)
            read(at, pattern, 1.0 - ends, alike, READING)
            continue
        # A packet goes on, or another one is written or read; one that finds no block has ended.
        goes_on = {BEGUN: 1.0 - single, WRITING: 1.0 - ends}.get(mode, 0.0) * (length > 0)
        begins = (1.0 - goes_on) / 2.0
        read(at, pattern, begins * single, None, RETURNED)
        read(at, pattern, begins * (1.0 - single), None, READING)
        if length == 0:
            steps.append((at, at, begins))
            continue
        after, rejected, busy = write(pattern)
        steps.append((at, name(after, BEGUN), begins))
        steps.append((at, name(after, WRITING), goes_on))
        tallies.append((at, int(mode == RETURNED), length, rejected + busy, begins + goes_on))
    source, target, weight = (np.array(column) for column in zip(*steps, strict=True))
    matrix = csr_matrix((weight, (target, source)), shape=(len(number), len(number)))
    mass = np.full(len(number), 1.0 / len(number))
    for _ in range(MOST_STEPS):
        before, mass = mass, matrix @ mass
        if float(np.abs(mass - before).sum()) < TOLERANCE:
            break
    counts = np.zeros((2, PATTERN + 1, trials + 1))
    for at, mode, length, met, chance in tallies:
        counts[mode, length, met] += mass[at] * chance
    reached = np.cumsum(counts[:, :, ::-1], axis=2)[:, :, ::-1]
    heads = np.divide(reached, reached[:, :, :1], out=np.zeros_like(reached), where=reached[:, :, :1] > 0)
    return heads
