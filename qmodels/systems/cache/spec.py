"""A cache, or a hierarchy of private and shared ones, and what is looked up in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from qmodels.checks import IntArray, Numeric
from qmodels.systems.cache.lines import ASSIGNMENTS, HASHES, line_count, slice_lines
from qmodels.systems.spec.fields import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive, probability
from qmodels.systems.traffic.popularity import Popularity, Zipf

REPLACEMENTS = ("lru", "fifo", "random")
INCLUSIONS = ("copy", "inclusive", "exclusive", "kept")
MOST_LINES = 2**28


@dataclass(frozen=True, kw_only=True)
class CacheLevel(Declared, prefix="level."):
    """One level: a cache of each core, or one that all share, perhaps in slices.

    Parameters
    ----------
    lines : int
        Lines of one private cache, or of all slices of a shared one together. [lines]
    replacement : {"lru", "fifo", "random"}
        Which line makes room.
    insertion_probability : float
        Probability in (0, 1] that a line that was missed is inserted (q-LRU and its relatives).
    slices : int
        Slices of a shared level; the first ones have a line more where the lines do not divide.
    hashing : {"modulo", "xor", "mixed"}
        Which slice a line belongs to, see `qmodels.systems.cache.lines.slice_of`.

    Examples
    --------
    >>> CacheLevel(lines=64, slices=28).slice_lines[[0, 7, 8]]
    array([3, 3, 2])
    """

    lines: int = count(maximum=MOST_LINES)
    replacement: str = choice("lru", REPLACEMENTS)
    insertion_probability: float = probability(1.0)
    slices: int = count(1, maximum=1024)
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

    Parameters
    ----------
    popularity : Zipf, GeometricPopularity or MeasuredPopularity
        How often each entry is wanted.
    entries_per_line : int
        Entries of one cache line.
    assignment : {"consecutive", "random"}
        Whether neighbouring ranks share a line or any do.
    assignment_seed : int
        Which random assignment.
    cores : int
        Cores, each with the private levels of its own; requests come from each equally often.
    private : tuple of CacheLevel
        Private levels of a core, from the first, at most 3, one slice each.
    shared : CacheLevel, optional
        The level behind them that all cores share.
    inclusion : {"copy", "inclusive", "exclusive", "kept"}
        Every level a request passes keeps a copy; the same, and what the last level evicts leaves
        all others; or a line stands in one level of a core's path only, a hit moves it to the core's
        first level, and victims move down (a victim cache); or the same, but what the shared level has
        stays there when it goes to a core.

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

    popularity: Popularity = field(default_factory=lambda: Zipf(entries=20_000, exponent=0.83))
    entries_per_line: int = count(1)
    assignment: str = choice("consecutive", ASSIGNMENTS)
    assignment_seed: int = count(0, minimum=0)
    cores: int = count(1, maximum=1024)
    private: tuple[CacheLevel, ...] = ()
    shared: CacheLevel | None = None
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

    Parameters
    ----------
    slices : int
        Slices, 0 for none ([1]_: up to one for each of 28 cores).
    slice_lines : int
        Lines of one slice (our assumption: 2048 lines of 64 bytes, 128 KiB). [lines]
    access_cycles : float
        Time a lookup holds its slice (our assumption). [cycles]
    bus_cycles : float
        One way over the bus, without contention (our assumption). [cycles]
    clock_ghz : float
        Clock of slices and bus (that of the network). [GHz]

    References
    ----------
    .. [1] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet Processing Architecture Using
       Last-Level-Cache Slices and Interleaved 3D-Stacked DRAM", IEEE Access, 2020.
    """

    slices: Numeric = count(4, minimum=0, maximum=64)
    slice_lines: Numeric = count(2048)
    access_cycles: Numeric = positive(8)
    bus_cycles: Numeric = nonnegative(6)
    clock_ghz: Numeric = positive(1.0)
