"""The packets a processor is offered: when (Poisson, bursts, as recorded, any law), how large, which lookups.

Time of arrivals is in mean interarrival times: only the shape of a law of the gaps counts, the rate is the
spec's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray, Numeric
from qmodels.systems.laws.kinds import is_exponential
from qmodels.systems.laws.times import HyperExponential, Law
from qmodels.systems.spec.ranges import Declared, count, nonnegative, positive
from qmodels.systems.traffic.popularity import MOST_ENTRIES, Zipf
from qmodels.systems.traffic.sizes import SizeLaw, imix, segment_count
from qmodels.systems.traffic.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Independent exponential gaps.

    Examples
    --------
    >>> Poisson().gaps(np.random.default_rng(1), 3).shape
    (3,)
    """

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the gaps."""
        return 1.0

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return n gaps between packets, of mean 1."""
        return rng.exponential(size=count)


def interrupted_phases(on_packets: Numeric, peak: Numeric) -> tuple[Numeric, Numeric, Numeric]:
    """Return the law of the gaps of an interrupted Poisson process of rate 1, see `OnOff`."""
    off = peak / on_packets
    on = off / (peak - 1)
    half = (peak + off + on) / 2
    fast = half + np.sqrt(half**2 - peak * on)
    slow = peak * on / fast
    return (peak - slow) / (fast - slow), fast, slow


@dataclass(frozen=True, kw_only=True)
class OnOff(Declared, prefix="arrivals."):
    r"""Bursts: Poisson arrivals while a two-state Markov chain is ON, none while it is OFF.

    Notes
    -----
    The interrupted Poisson process [1]_. With mean rate 1, rate :math:`P` while ON and :math:`N`
    packets in an ON period, ON ends at rate :math:`\alpha = P/N` and OFF at rate
    :math:`\beta = \alpha/(P - 1)`. The gaps are independent and hyperexponential of order 2 with
    rates the roots of

    .. math:: \gamma^2 - (P + \alpha + \beta)\gamma + P\beta = 0,

    the larger with probability :math:`(P - \gamma_2)/(\gamma_1 - \gamma_2)`, and their squared
    coefficient of variation is :math:`1 + 2N(1 - 1/P)^2`. Exact.

    References
    ----------
    .. [1] A. Kuczura, "The interrupted Poisson process as an overflow process", Bell System
       Technical Journal 52(3), 1973 (derived again here; equation numbers not checked).

    Examples
    --------
    >>> bursts = OnOff(on_packets=10, peak_to_mean=4)
    >>> bursts.scv
    12.25
    >>> probability, fast, slow = bursts.phases
    >>> round(float(probability / fast + (1 - probability) / slow), 12)
    1.0
    """

    on_packets: Numeric  # Mean number of packets in an ON period, at least 1
    # Arrival rate while ON over the mean rate, above 1. The source is ON for a fraction 1 / peak_to_mean of
    # the time
    peak_to_mean: Numeric

    def _check_relations(self) -> None:
        checks.at_least("arrivals.on_packets", checks.finite("arrivals.on_packets", self.on_packets), 1)
        peak = checks.finite("arrivals.peak_to_mean", self.peak_to_mean)
        if np.any(peak <= 1):
            raise ValueError(f"arrivals.peak_to_mean must be > 1, got {float(np.min(peak))!r}")

    @property
    def scv(self) -> Numeric:
        """Squared coefficient of variation of the gaps."""
        return 1 + 2 * self.on_packets * (1 - 1 / self.peak_to_mean) ** 2

    @property
    def phases(self) -> tuple[Numeric, Numeric, Numeric]:
        """Law of the gaps: probability of the fast exponential, its rate, and the rate of the slow one.

        Rates are per mean gap: an arrival rate times them gives rates per unit of time.
        """
        return interrupted_phases(self.on_packets, self.peak_to_mean)

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return n gaps between packets, of mean 1."""
        probability, fast, slow = self.phases
        rate = np.where(rng.random(count) < probability, fast, slow)
        return rng.exponential(size=count) / rate


@dataclass(frozen=True, kw_only=True)
class Recorded(Declared, prefix="arrivals."):
    """Packets as a trace has them, sizes included; only the unit of time is the user's."""

    trace: Trace  # The recorded packets

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the trace's gaps (they may be far from independent)."""
        return self.trace.gap_scv

    @cached_property
    def sizes(self) -> SizeLaw:
        """Histogram of the trace's packet sizes."""
        return SizeLaw.measured(self.trace.bytes)


Arrivals = Poisson | OnOff | Recorded | Law


def modelled(name: str, arrivals: Any) -> Any:
    """Return arrivals as the models of systems take them, whose simulators draw gaps of any law.

    Exponential gaps are `Poisson`, a mixture of two exponentials is `OnOff` [1]_; `Poisson`, `OnOff`
    and what is no law of times is returned as it is.

    References
    ----------
    .. [1] A. Kuczura, "The interrupted Poisson process as an overflow process", Bell System
       Technical Journal 52(3), 1973.
    """
    if not isinstance(arrivals, get_args(Law)):
        return arrivals
    if is_exponential(arrivals):
        return Poisson()
    if isinstance(arrivals, HyperExponential) and len(arrivals.means) == 2:
        (p, q), (fast, slow) = arrivals.probabilities, (arrivals.mean / m for m in arrivals.means)
        peak = p * fast + q * slow
        off = fast + slow - peak - fast * slow / peak
        if peak >= off > 0:
            return OnOff(on_packets=peak / off, peak_to_mean=peak)
    raise ValueError(
        f"{name} must be Poisson, OnOff, recorded, Exponential or a HyperExponential of two branches for "
        f"the model (the simulator takes every law), got {arrivals!r}"
    )


def take_recorded_sizes(spec: Any, prefix: str) -> None:
    """Give a spec the sizes of its recorded arrivals; others than `imix`, which gives way, are refused."""
    if isinstance(spec.arrivals, Recorded) and spec.sizes != spec.arrivals.sizes:
        if spec.sizes != imix():
            raise ValueError(
                f"{prefix}sizes must be left out or be the trace's own with recorded arrivals, "
                f"got {len(spec.sizes.bytes)} sizes with a mean of {spec.sizes.mean_bytes:g} bytes"
            )
        object.__setattr__(spec, "sizes", spec.arrivals.sizes)


def gaps_of(arrivals: Any, rng: np.random.Generator, gaps: FloatArray | None, count: int) -> FloatArray:
    """Return n gaps of mean 1: those given, or those of arrivals that draw their own."""
    if gaps is not None:
        return gaps
    if isinstance(arrivals, get_args(Law)):
        raise ValueError(
            f"gaps must be given with {type(arrivals).__name__} arrivals: see validate.engine.sampling"
        )
    drawn: FloatArray = arrivals.gaps(rng, count)
    return drawn


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
