"""The packets a processor is offered: when, how large, how many segments, which lookups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray, Numeric
from qmodels.systems.spec.ranges import Declared, count, nonnegative, positive
from qmodels.systems.traffic.arrivals import Arrivals, Poisson, Recorded, gaps_of, take_recorded_sizes
from qmodels.systems.traffic.popularity import MOST_ENTRIES, Zipf
from qmodels.systems.traffic.sizes import SizeLaw, imix, segment_count
from qmodels.systems.traffic.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Packets:
    """Realised packets, one array element each."""

    times_ns: FloatArray  # arrival times, nondecreasing [ns]
    bytes: IntArray  # sizes [bytes]
    segments: IntArray  # segments each is cut into


@dataclass(frozen=True, kw_only=True)
class Workload(Declared, prefix="workload."):
    """Packets, their table lookups, and how long packets are stored.

    ``offered_gbps``, ``load_factor``, ``lookups_per_packet``, ``hold_ns`` and the parameters of
    `OnOff` may be arrays (a sweep); the others are one number.

    Raises
    ------
    ValueError
        If a number is out of range, or the sizes are not those of the recorded trace.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    .. [2] T. Korikawa, A. Kawabata, F. He, E. Oki, "Packet Processing Architecture Using
       Last-Level-Cache Slices and Interleaved 3D-Stacked DRAM", IEEE Access, 2020.

    Examples
    --------
    >>> workload = Workload(offered_gbps=100.0)
    >>> round(workload.packet_rate * 1000, 2)  # packets per microsecond
    34.55
    >>> packets = workload.packets(np.random.default_rng(1), 5)
    >>> set(packets.segments.tolist()) <= {1, 10, 24}
    True
    """

    # When packets arrive. Of a law of their gaps, the shape counts, not the mean; models take some
    # (`qmodels.systems.traffic.arrivals.modelled`), the simulator all
    arrivals: Arrivals = field(default_factory=Poisson)
    # Packet sizes. A recorded trace brings its own: `imix`, the default, gives way to them and any other law
    # is refused
    sizes: SizeLaw = field(default_factory=imix)
    # Mean rate at which packet bytes are offered (our assumption: 40, one port); a recorded trace's time is
    # rescaled to reach it. [Gb/s]
    offered_gbps: Numeric = positive(40.0)
    load_factor: Numeric = positive(1.0)  # Multiplies the rate: time is divided by it
    segment_bytes: int = count(64)  # Size of the segments packets are cut into ([1]_ sec. 4.1: 64). [bytes]
    # Table lookups of each packet, one after the other ([2]_: 1)
    lookups_per_packet: Numeric = count(1, minimum=0)
    table_entries: int = count(20_000, maximum=MOST_ENTRIES)  # Entries of the lookup table ([2]_: 20,000)
    # Exponent of their Zipf-like popularity ([2]_, after Breslau et al.: 0.83)
    zipf_exponent: float = nonnegative(0.83)
    # Mean of the exponential time a stored packet waits for its egress turn (our assumption). [ns]
    hold_ns: Numeric = nonnegative(10_000.0)

    def _check_relations(self) -> None:
        take_recorded_sizes(self, "workload.")

    def __to_toml__(self, table: Callable[[], dict[str, Any]], key: str) -> dict[str, Any]:
        written = table()
        if isinstance(self.arrivals, Recorded):
            del written["sizes"]  # a trace brings its own
        return written

    @classmethod
    def from_trace(cls, trace: Trace, **overrides: Any) -> Workload:
        """Return the workload of a recorded trace, with other fields as given."""
        return cls(arrivals=Recorded(trace=trace), **overrides)

    @property
    def packet_rate(self) -> Numeric:
        """Mean packet arrival rate in packets/ns, load factor included."""
        return self.offered_gbps * self.load_factor / (8 * self.sizes.mean_bytes)

    @property
    def segment_law(self) -> tuple[IntArray, FloatArray]:
        """Segments of a packet (ascending) and the probability of each count."""
        return self.sizes.segments(self.segment_bytes)

    @property
    def popularity(self) -> Zipf:
        """Popularity of the table entries."""
        return Zipf(entries=self.table_entries, exponent=self.zipf_exponent)

    def packets(
        self, rng: np.random.Generator, count: int, place: float | None = None, gaps: FloatArray | None = None
    ) -> Packets:
        """Return realised packets.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness: two calls with equally seeded generators give the same packets.
        count : int
            Packets wanted. A recorded trace gives that many consecutive packets, and all of its
            packets, no more, when it has no more: it is not repeated.
        place : float, optional
            Where in a recorded trace they start, from 0 (its begin) to 1 (they are the last
            ones); at random if not given.
        gaps : array, optional
            Times between packets, of mean 1, for arrivals with a law.

        Returns
        -------
        Packets
            Of a generator, the first packet comes one gap after time 0; of a trace, at time 0.
            The whole trace has the offered rate, a part of it the rate of that part.

        Raises
        ------
        ValueError
            If ``count`` is not a whole number >= 1 or the rate is an array.
        """
        checks.count("count", count)
        checks.probability("place", 0.0 if place is None else place)
        for name in ("offered_gbps", "load_factor"):
            checks.one_number(f"workload.{name}", getattr(self, name))
        if isinstance(self.arrivals, Recorded):
            trace = self.arrivals.trace
            count = min(count, len(trace))
            room = len(trace) - count
            start = int(rng.integers(room + 1)) if place is None else round(place * room)
            gaps = trace.times_ns[start : start + count] - trace.times_ns[start]
            times, sizes = gaps * trace.packet_rate, trace.bytes[start : start + count].copy()
        else:
            times, sizes = np.cumsum(gaps_of(self.arrivals, rng, gaps, count)), self.sizes.sample(rng, count)
        return Packets(
            times_ns=times / self.packet_rate, bytes=sizes, segments=segment_count(sizes, self.segment_bytes)
        )
