"""A cache, or a hierarchy of private and shared ones, and what is looked up in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray, Numeric
from qmodels.systems.memory.memory_map import scatter
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive, probability
from qmodels.systems.traffic.popularity import MOST_ENTRIES, Popularity, Zipf

ASSIGNMENTS = ("consecutive", "random")
HASHES = ("modulo", "xor", "mixed")
HEAD_LINES = 2**11
TAIL_LINES = 2**12
ROUNDS = 4
BLOCK = 2**15


def shuffled(entry: Any, *, entries: int, seed: int) -> Any:
    """Return the place of an entry in a random order of all: a bijection on ``0..entries-1``.

    ``entries``: how many there are, at most 2**40.

    A Feistel network of four rounds on the next even power of two, walked on until it comes back
    into the range; products fit a signed 64-bit integer.
    """
    half, keys = feistel(entries, seed)
    place = np.array(entry, dtype=np.int64, order="C")
    flat = place.reshape(-1)
    for first in range(0, flat.size, BLOCK):  # a block stays in the processor's cache
        block = feistel_step(flat[first : first + BLOCK], half, keys)
        while (outside := np.flatnonzero(block >= entries)).size:
            block[outside] = feistel_step(block[outside], half, keys)
        flat[first : first + BLOCK] = block
    return place if place.ndim else int(place)


def feistel(entries: int, seed: int) -> tuple[int, tuple[int, ...]]:
    """Return the bits of half a number and the round keys of `shuffled`."""
    half = max(1, (int(entries - 1).bit_length() + 1) // 2)
    return half, tuple(int(k) for k in np.random.SeedSequence(seed).generate_state(ROUNDS))


def feistel_step(place: Any, half: Any, keys: Any) -> Any:
    """Return the image of a number of ``2 half`` bits; the same in Python, NumPy and compiled code."""
    mask = (1 << half) - 1
    left, right = place >> half, place & mask
    for key in keys:
        mixed = ((right + 1) * 2654435761 + key) % 4294967296
        left, right = right, left ^ (((mixed ^ (mixed >> 15)) * 739982445 % 4294967296 >> 7) & mask)
    return left << half | right


def line_of(entry: Any, *, entries: int, entries_per_line: int, assignment: str, seed: int = 0) -> Any:
    """Return the line of an entry, 0 being the most popular one.

    With consecutive assignment entries of neighbouring ranks share a line, with random assignment
    (ranks are not addresses) any do.
    """
    checks.choice("assignment", assignment, ASSIGNMENTS)
    if assignment == "random":
        entry = shuffled(entry, entries=entries, seed=seed)
    return entry // entries_per_line


def line_count(entries: int, entries_per_line: int) -> int:
    """Return the lines that hold all entries."""
    return -(-entries // entries_per_line)


def slice_lines(lines: int, slices: int) -> IntArray:
    """Return the lines of each slice: the first ones have one more where they do not divide.

    >>> slice_lines(7, 3)
    array([3, 2, 2])
    """
    each, more = divmod(int(lines), int(slices))
    return np.full(int(slices), each) + (np.arange(int(slices)) < more)


def slice_of(line: Any, *, slices: int, hashing: str) -> Any:
    """Return the slice of a line.

    ``line``: line numbers (addresses in lines); ``hashing``: "modulo", the low-order part; "xor", that of
    all groups of bits as wide as a slice number (a power of two of slices); or "mixed", a well-mixed hash,
    modulo the slices.
    """
    if hashing == "modulo":
        return line % slices
    if hashing == "mixed":
        return scatter(line % 2147483648) % slices
    bits = (slices - 1).bit_length()
    folded, rest = line % slices, line >> bits
    while bits and np.any(rest):
        folded, rest = folded ^ (rest % slices), rest >> bits
    return folded


@lru_cache(maxsize=16)
def line_popularity(
    popularity: Popularity, entries_per_line: int, assignment: str, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return groups of lines: the probability of a request for one line, and how many lines there are.

    Up to ten million entries every line is a group of its own, numbered as by `line_of`. Above, consecutive
    lines are grouped as the ranks are, and random ones by the rank of their most popular entry into some
    eight thousand groups, their other entries drawn with the seed.
    """
    entries = popularity.entries
    lines = line_count(entries, entries_per_line)
    if entries <= MOST_ENTRIES:
        p = popularity.probabilities()
        where = line_of(
            np.arange(entries),
            entries=entries,
            entries_per_line=entries_per_line,
            assignment=assignment,
            seed=seed,
        )
        total = np.asarray(np.bincount(where, weights=p, minlength=lines), dtype=float)
        return _frozen(total, np.ones(lines))
    p, count = popularity.groups()
    if entries_per_line == 1:
        return _frozen(p, count)
    if assignment == "consecutive":
        # Lines of a rank's neighbours: as popular as their middle rank, that is as their group.
        head = len(p[count == 1]) // entries_per_line * entries_per_line
        first = p[:head].reshape(-1, entries_per_line).sum(axis=1)
        return _frozen(
            np.concatenate((first, p[head:] * entries_per_line)),
            np.concatenate((np.ones(len(first)), count[head:] / entries_per_line)),
        )
    return _frozen(*_random_lines(p, np.cumsum(count), lines, entries_per_line, seed))


def _random_lines(
    p: FloatArray, last: FloatArray, lines: int, entries_per_line: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return lines of random entries, grouped by the rank of their most popular entry.

    That rank is beyond r with probability ``(1 - r / entries)**entries_per_line``; the line's other entries
    are drawn from the ranks behind it.
    """
    rng = np.random.default_rng(seed)
    entries = last[-1]
    edges = np.unique(
        np.concatenate(
            (
                np.arange(HEAD_LINES + 1.0),
                np.geomspace(HEAD_LINES, entries, HEAD_LINES),
                -np.expm1(np.log1p(-np.arange(TAIL_LINES) / TAIL_LINES) / entries_per_line) * entries,
            )
        )
    )
    beyond = (1.0 - edges / entries) ** entries_per_line
    beyond[-1] = 0.0
    number = -lines * np.diff(beyond)
    best = (edges[:-1] + edges[1:]) / 2.0
    rows, rest = len(best), np.zeros(len(best))
    for _ in range(entries_per_line - 1):
        # One of each of n equal parts of the ranks behind, in random order.
        part = rng.permutation((np.arange(rows) + rng.random(rows)) / rows)
        rank = best + part * (entries - best)
        rest += p[np.minimum(np.searchsorted(last, rank, side="right"), len(p) - 1)]
    top = p[np.searchsorted(last, best, side="right")]
    rest *= (1.0 - number @ top) / (number @ rest)
    return top + rest, number


def _frozen(p: FloatArray, count: FloatArray) -> tuple[FloatArray, FloatArray]:
    p.flags.writeable = count.flags.writeable = False
    return p, count


REPLACEMENTS = ("lru", "fifo", "random")
INCLUSIONS = ("copy", "inclusive", "exclusive", "kept")
MOST_LINES = 2**28


@dataclass(frozen=True, kw_only=True)
class CacheLevel(Declared, prefix="level."):
    """One level: a cache of each core, or one that all share, perhaps in slices.

    Examples
    --------
    >>> CacheLevel(lines=64, slices=28).slice_lines[[0, 7, 8]]
    array([3, 3, 2])
    """

    # Lines of one private cache, or of all slices of a shared one together. [lines]
    lines: int = count(maximum=MOST_LINES)
    replacement: str = choice("lru", REPLACEMENTS)  # Which line makes room
    # Probability in (0, 1] that a line that was missed is inserted (q-LRU and its relatives)
    insertion_probability: float = probability(1.0)
    # Slices of a shared level; the first ones have a line more where the lines do not divide
    slices: int = count(1, maximum=1024)
    # Which slice a line belongs to, see `qmodels.systems.cache.spec.slice_of`
    hashing: str = choice("modulo", HASHES)

    def _check_relations(self) -> None:
        if self.insertion_probability == 0:
            raise ValueError("level.insertion_probability must be above 0, got 0")
        if self.slices > self.lines:
            rule = f"at least the {self.slices} slices, one line each"
            raise ValueError(f"level.lines must be {rule}, got {self.lines!r}")
        if self.hashing == "xor" and self.slices & (self.slices - 1):
            raise ValueError(f"level.slices must be a power of two for XOR hashing, got {self.slices!r}")

    @property
    def slice_lines(self) -> IntArray:
        """Lines of each slice."""
        return slice_lines(self.lines, self.slices)


@dataclass(frozen=True, kw_only=True)
class CacheSystem(Replaceable, Declared):
    """Caches that are asked for table entries by independent references.

    A random core asks for a random entry; the request goes from the core's first level to the
    last one and then to memory.

    Raises
    ------
    ValueError
        If a number is out of range, there is no level, or a private level has slices.

    Examples
    --------
    >>> l1, llc = CacheLevel(lines=16), CacheLevel(lines=256, slices=4)
    >>> CacheSystem(cores=4, private=(l1,), shared=llc).level_names
    ('l1', 'llc')
    """

    # How often each entry is wanted
    popularity: Popularity = field(default_factory=lambda: Zipf(entries=20_000, exponent=0.83))
    entries_per_line: int = count(1)  # Entries of one cache line
    assignment: str = choice("consecutive", ASSIGNMENTS)  # Whether neighbouring ranks share a line or any do
    assignment_seed: int = count(0, minimum=0)  # Which random assignment
    # Cores, each with the private levels of its own; requests come from each equally often
    cores: int = count(1, maximum=1024)
    # Private levels of a core, from the first, at most 3, one slice each
    private: tuple[CacheLevel, ...] = ()
    shared: CacheLevel | None = None  # The level behind them that all cores share
    # Every level a request passes keeps a copy; the same, and what the last level evicts leaves all others;
    # or a line stands in one level of a core's path only, a hit moves it to the core's first level, and
    # victims move down (a victim cache); or the same, but what the shared level has stays there when it goes
    # to a core
    inclusion: str = choice("copy", INCLUSIONS)

    metric_names: ClassVar[MetricNames] = MetricNames(("hit_ratio", "miss_ratio"))

    def _check_relations(self) -> None:
        if len(self.private) > 3:
            raise ValueError(f"private must be a tuple of at most 3 levels, got {self.private!r}")
        if not self.private and self.shared is None:
            raise ValueError("private or shared must have a level, got neither")
        for level in self.private:
            if level.slices != 1:
                raise ValueError(f"level.slices of a private level must be 1, got {level.slices!r}")

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels: l1, l2, l3 and llc."""
        names = tuple(f"l{k + 1}" for k in range(len(self.private)))
        return names if self.shared is None else (*names, "llc")

    @property
    def levels(self) -> tuple[CacheLevel, ...]:
        """All levels on a request's way."""
        return self.private if self.shared is None else (*self.private, self.shared)

    @property
    def line_count(self) -> int:
        """Lines that hold all entries."""
        return line_count(self.popularity.entries, self.entries_per_line)


@dataclass(frozen=True, kw_only=True)
class Llc(Declared, prefix="llc."):
    """Address-hashed LRU slices on the bus between the packet engines.

    A lookup crosses the bus, waits for its slice (first come, first served), and returns on a
    hit; a miss is read from a DRAM channel over the network and then held. One table entry
    fills one line. With no slices every lookup goes to DRAM, as in the architecture without
    LLC of [1]_. Numeric fields may be arrays (a sweep).

    References
    ----------
    .. [1] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet Processing Architecture Using
       Last-Level-Cache Slices and Interleaved 3D-Stacked DRAM", IEEE Access, 2020.
    """

    # Slices, 0 for none ([1]_: up to one for each of 28 cores)
    slices: Numeric = count(4, minimum=0, maximum=64)
    # Lines of one slice (our assumption: 2048 lines of 64 bytes, 128 KiB). [lines]
    slice_lines: Numeric = count(2048)
    access_cycles: Numeric = positive(8)  # Time a lookup holds its slice (our assumption). [cycles]
    # One way over the bus, without contention (our assumption). [cycles]
    bus_cycles: Numeric = nonnegative(6)
    clock_ghz: Numeric = positive(1.0)  # Clock of slices and bus (that of the network). [GHz]
