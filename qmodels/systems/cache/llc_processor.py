"""Cores that look up table lines in private caches, slices of a last-level cache and stacked DRAM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from qmodels.checks import IntArray
from qmodels.systems.cache.spec import ASSIGNMENTS, CacheLevel, CacheSystem, line_count, slice_lines
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.steps import Acquire, Hold, Lookup, Release, Visit
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Exponential
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, positive
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import Poisson
from qmodels.systems.traffic.popularity import Zipf

ARCHITECTURES = ("slices", "shared", "none")
"""A slice of its own queue for every part of the LLC, one shared LLC with one queue, or no LLC."""

LLC_HITS = ("keep", "remove")
"""What becomes of a line in the LLC when it goes to a core: it stays, or it is there no longer."""

WHOLE_LINES = ("slice", "total")
"""Whether the lines of every slice are whole, or those of all slices together."""

BANKS = 2
"""Interleaved banks of a channel."""


@dataclass(frozen=True, kw_only=True)
class LlcProcessor(Replaceable, Declared):
    r"""The packet processor of [1]_: queues of packets in front of blocking cores.

    A packet goes to a random core and needs one table entry. The core is held until it has it: it
    looks in its L1, its L2, then in the LLC, where the line's slice serves one request at a time, then
    in a channel of the 3D-stacked DRAM. Every visit takes an exponential time. A line that is found goes to
    L1; L1's least recently used one to L2, L2's to its slice, the slice's is dropped. At most ``capacity``
    packets are inside; others are refused.

    References
    ----------
    .. [1] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet Processing Architecture Using
       Last-Level-Cache Slices and Interleaved 3D-Stacked DRAM", IEEE Access 8, 2020, secs. IV and V;
       the defaults are those of sec. V-C, the time unit and the packet those of sec. V-D.

    Examples
    --------
    >>> spec = LlcProcessor()
    >>> spec.entries_per_line, spec.lines, spec.l1_lines, spec.l2_lines
    (32, 625, 2, 8)
    >>> for whole in ("slice", "total"):
    ...     print(LlcProcessor(slices=8, whole_lines=whole).slice_lines)
    [2 2 2 2 2 2 2 2]
    [3 3 2 2 2 2 2 2]
    >>> round(spec.arrival_rate, 3)
    22.4
    """

    # LLC slices with a queue each; one shared LLC; or no LLC
    architecture: str = choice("slices", ARCHITECTURES)
    # cores, slices: Cores and slices assigned to the application (the paper's *C* and *L*); ``slices`` counts
    # with the architecture "slices" alone. Line *n* belongs to slice *n* modulo ``slices``
    cores: int = count(28, maximum=1024)
    slices: int = count(28, maximum=1024)
    capacity: int = count(100, maximum=4096)  # Requests in all (*K*), waiting or in a core
    # DRAM channels (*S*) of two banks. Each channel holds the table, split into a part per bank
    channels: int = count(32, maximum=4096)
    # l1_bytes, l2_bytes, slice_bytes, llc_bytes: Capacities of each core's L1 and L2, of each slice, and of
    # the shared LLC; each holds the whole lines that fit. [bytes]
    l1_bytes: int = count(128)
    l2_bytes: int = count(512)
    slice_bytes: int = count(146)
    llc_bytes: int = count(4096)
    # Which lines fit in slices: the whole ones of each, or those of all slices together, of which the first
    # slices then have one more than others
    whole_lines: str = choice("slice", WHOLE_LINES)
    # line_bytes, entry_bytes: Sizes of a cache line (*B*) and of a table entry (*b*). [bytes]
    line_bytes: int = count(64)
    entry_bytes: int = count(2)
    # l1_rate, l2_rate, llc_rate: Rates of a visit to L1, L2 and a slice. [1/time]
    l1_rate: float = positive(100.0)
    l2_rate: float = positive(50.0)
    llc_rate: float = positive(10.0)
    # bank_rate, interleaved_bank_rate: Rates of a bank while its channel's other bank is idle (mu_1), and
    # while both are busy (mu_2). [1/time]
    bank_rate: float = positive(1.0)
    interleaved_bank_rate: float = positive(0.7)
    load: float = positive(0.7)  # :math:`\rho = \lambda / (S \mu_1)`
    popularity: Zipf = Zipf(entries=20_000, exponent=0.83)  # Law of the entries; their number is *N*
    # Which entries share a line: any, since popularity is not the order of addresses, or those of
    # neighbouring ranks
    assignment: str = choice("random", ASSIGNMENTS)
    # Whether a line that the LLC has stays there, as its most recently used one, when it goes to a core
    llc_hit: str = choice("keep", LLC_HITS)
    time_unit_ns: float = positive(125.0)  # Length of the time unit. [ns]
    packet_bytes: int = count(64)  # Size of a packet, for the throughput in Gb/s. [bytes]

    metric_names: ClassVar[MetricNames] = MetricNames(
        (
            "waiting_latency", "response_latency", "data_rate", "blocking_probability",
            "mean_number_in_system", "l1_hit_ratio", "l2_hit_ratio", "llc_hit_ratio",
            "on_chip_hit_ratio", "core_utilization", "llc_utilization", "memory_utilization",
        )
    )  # fmt: skip

    def _check_relations(self) -> None:
        if self.line_bytes % self.entry_bytes:
            raise ValueError(
                f"line_bytes must be a multiple of entry_bytes ({self.entry_bytes}), got {self.line_bytes}"
            )
        used = {"slices": ("l1", "l2", "slice"), "shared": ("l1", "l2", "llc"), "none": ("l1", "l2")}
        for name in used[self.architecture]:
            if getattr(self, f"{name}_bytes") < self.line_bytes:
                raise ValueError(
                    f"{name}_bytes must hold a line of {self.line_bytes} bytes, "
                    f"got {getattr(self, f'{name}_bytes')}"
                )

    @property
    def entries_per_line(self) -> int:
        """Table entries in a line, B/b."""
        return self.line_bytes // self.entry_bytes

    @property
    def lines(self) -> int:
        """Lines of the table."""
        return line_count(self.popularity.entries, self.entries_per_line)

    @property
    def l1_lines(self) -> int:
        """Lines of a core's L1."""
        return self.l1_bytes // self.line_bytes

    @property
    def l2_lines(self) -> int:
        """Lines of a core's L2."""
        return self.l2_bytes // self.line_bytes

    @property
    def llc_slices(self) -> int:
        """Queues in front of the LLC: its slices, 1 if it is shared, 0 without one."""
        return {"slices": self.slices, "shared": 1, "none": 0}[self.architecture]

    @property
    def slice_lines(self) -> IntArray:
        """Lines behind each of these queues."""
        each = self.slice_bytes if self.architecture == "slices" else self.llc_bytes
        number, line = self.llc_slices, self.line_bytes
        held = number * each // line if self.whole_lines == "total" else number * (each // line)
        return slice_lines(held, max(number, 1))[:number]

    @property
    def arrival_rate(self) -> float:
        """Requests that arrive per time unit."""
        return self.load * self.channels * self.bank_rate

    @property
    def clock_ghz(self) -> float:
        """Time units per nanosecond."""
        return 1.0 / self.time_unit_ns

    def caches(self, assignment_seed: int = 0) -> CacheSystem:
        """Return the caches; which entries share a line is drawn with a seed."""
        slices = self.llc_slices
        return CacheSystem(
            popularity=self.popularity,
            entries_per_line=self.entries_per_line,
            assignment=self.assignment,
            assignment_seed=assignment_seed,
            cores=self.cores,
            private=tuple(CacheLevel(lines=lines) for lines in (self.l1_lines, self.l2_lines)),
            shared=CacheLevel(lines=int(self.slice_lines.sum()), slices=slices) if slices else None,
            inclusion="kept" if self.llc_hit == "keep" else "exclusive",
        )

    def system(self, assignment_seed: int = 0) -> System:
        """Return the system of parts that says the same; which entries share a line is drawn with a seed.

        A job takes a core, a `Tokens`, and holds it until it has its line; waits for cores are the
        ``visit_latency[core]``. Caches move lines when they are looked up, not when the core has the line.
        """
        unit, slices = self.time_unit_ns, self.llc_slices
        look = [Hold(Exponential(mean=unit / rate)) for rate in (self.l1_rate, self.l2_rate)]
        parts: dict[str, Any] = {
            "core": Tokens(count=1),
            "caches": self.caches(assignment_seed),
            "dram": BankedChannels(
                service=Exponential(mean=unit / self.bank_rate),
                channels=self.channels,
                banks=BANKS,
                speeds=(1.0, self.interleaved_bank_rate / self.bank_rate),
            ),
        }
        place = {"core": range(self.cores)}
        found: tuple[Visit, ...] = ()
        if slices:
            parts["slice"] = Station(service=Exponential(mean=unit / self.llc_rate))
            place |= {"slice": range(slices), "caches": range(slices)}
            found = (Visit("slice"),)
        lookup = Lookup("caches", further=(look[1],), hit=found, miss=(*found, Visit("dram")))
        flow = Flow(
            name="packets",
            arrivals=Poisson(),
            rate=self.arrival_rate / unit,
            window=self.capacity,
            when_full="loss",
            at=range(self.cores),
            program=(Acquire("core"), look[0], lookup, Release("core")),
        )
        return System(parts=parts, place=place, flows=(flow,), nodes=max(self.cores, slices))

    def gbps(self, throughput: float) -> float:
        """Return a throughput in requests per time unit as one of packets in Gb/s."""
        return throughput * 8 * self.packet_bytes / self.time_unit_ns
