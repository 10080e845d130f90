"""Traffic of a data-queueing module: packets, their queues, and the service of these."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray, Numeric
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive, probability
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded, gaps_of, take_recorded_sizes
from qmodels.systems.traffic.popularity import Zipf
from qmodels.systems.traffic.sizes import SizeLaw, imix, segment_count

SERVICES = ("round-robin", "priority", "arrival-order", "random")
"""Which queue a port serves next: each in turn, the lowest number, that of the oldest or of any packet."""

OPERATIONS = ("segment", "packet")
"""Atomic operations of the module: the write or read of a segment, or those of a whole packet in a row."""


@dataclass(frozen=True, kw_only=True)
class LineRate:
    """Packets back to back on the input line: the time to the next one is in proportion to its size.

    Examples
    --------
    >>> traffic = QueueTraffic(arrivals=LineRate(), load_factor=1.0, input_ports=1)
    >>> made = traffic.packets(np.random.default_rng(1), 1000, 64)
    >>> bool(np.allclose(np.diff(made.times), made.segments[1:], rtol=0.05))
    True
    """


@dataclass(frozen=True, kw_only=True)
class SelfSimilar(Declared, prefix="arrivals."):
    r"""Sessions that start at random and send a heavy-tailed number of packets at a steady pace.

    Notes
    -----
    An M/G/infinity input: sessions start as a Poisson process and last :math:`\lceil X \rceil`
    packets, :math:`P(X > x) = x^{-\alpha}` for :math:`x \ge 1`, sent at regular gaps from a
    random phase. Counts over long times are asymptotically self-similar with Hurst parameter
    :math:`H = (3 - \alpha)/2`. Sessions are cut off at 1 million packets.

    Examples
    --------
    >>> arrivals = SelfSimilar(shape=1.4, sessions=20)
    >>> round(arrivals.hurst, 12)
    0.8
    >>> gaps = arrivals.gaps(np.random.default_rng(1), 5000)
    >>> gaps.size, round(float(gaps.mean()), 9), bool((gaps >= 0).all())
    (5000, 1.0, True)
    """

    shape: float  # Exponent :math:`\alpha` of the Pareto number of packets in a session, above 1 and below 2
    sessions: float = positive(16.0)  # Mean number of sessions under way: the more, the smoother

    def _check_relations(self) -> None:
        checks.one_number("arrivals.shape", self.shape)
        shape = checks.finite("arrivals.shape", self.shape)
        if not 1 < shape < 2:
            raise ValueError(f"arrivals.shape must be above 1 and below 2, got {self.shape!r}")

    @property
    def hurst(self) -> float:
        """Hurst parameter of the counts over long times."""
        return (3 - self.shape) / 2

    def gaps(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return n gaps between packets, their sample mean scaled to 1."""
        # Started early enough that sessions under way at time 0 are there.
        packets_of_one = self.shape / (self.shape - 1) + 0.5
        starts = int(2.5 * count / packets_of_one) + 64
        lengths = np.ceil(np.minimum(rng.random(starts) ** (-1 / self.shape), 1e6)).astype(np.int64)
        begin = np.sort(rng.random(starts)) * lengths.sum()
        first = np.cumsum(lengths) - lengths
        place = np.arange(int(lengths.sum())) - np.repeat(first, lengths)
        times = np.sort(np.repeat(begin, lengths) + (place + rng.random()) * self.sessions)
        middle = times.size // 2 - count // 2 - 1
        gaps = np.diff(times[max(middle, 0) : max(middle, 0) + count + 1])
        return np.asarray(gaps / gaps.mean(), dtype=float)


@dataclass(frozen=True, kw_only=True)
class QueueTraffic(Declared, prefix="traffic."):
    """Packets offered to a data-queueing module and the ports that write and read them.

    Time is counted in drain slots: all output ports together read one segment a slot while they
    have packets.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.

    Examples
    --------
    >>> QueueTraffic(load_factor=0.9).segment_law(64)[0]
    array([ 1, 10, 24])
    """

    # When packets arrive, see `Workload`. A recorded trace brings its own sizes, and its flows if it has
    # them: flow *f* joins queue *f* mod ``queues``
    arrivals: Poisson | OnOff | SelfSimilar | LineRate | Recorded | Law = field(default_factory=Poisson)
    # Packet sizes. `imix`, the default, gives way to a trace's own; any other law is refused
    sizes: SizeLaw = field(default_factory=imix)
    # Segments offered per segment that can be drained: above 1 the memory fills up. May be an array (a sweep)
    load_factor: Numeric = positive(0.95)
    queues: int = count(1024, maximum=524_288)  # Per-flow queues ([1]_ sec. 3: up to 0.5M)
    # Exponent of the Zipf-like share of the queues in the packets; 0 makes them equal
    queue_exponent: float = nonnegative(0.0)
    # input_ports, output_ports: Ports; a queue belongs to one of each. Segments of packets at different ports
    # interleave ([1]_ sec. 3: 2 and 2)
    input_ports: int = count(2, maximum=64)
    output_ports: int = count(2, maximum=64)
    # Segments one input port writes in a drain slot (our assumption: the speed of all outputs together, so
    # that a burst fills the memory)
    input_speed: float = positive(1.0)
    # Which queue an output port serves next, a packet at a time
    service: str = choice("round-robin", SERVICES)
    # "packet": a packet is written in a row once it has arrived, and read in a row when its port takes it up;
    # its input's speed plays no part. [1]_ names the operations of whole packets and leaves this open
    operations: str = choice("segment", OPERATIONS)
    # Share of the packets that are appended to another queue once before they leave (the internal port of
    # [1]_ sec. 3)
    moved_fraction: float = probability(0.0)

    def _check_relations(self) -> None:
        take_recorded_sizes(self, "traffic.")

    def segment_law(self, segment_bytes: int) -> tuple[IntArray, FloatArray]:
        """Return the segments of a packet (ascending) and the probability of each count."""
        return self.sizes.segments(segment_bytes)

    def packets(
        self, rng: np.random.Generator, count: int, segment_bytes: int, gaps: FloatArray | None = None
    ) -> QueuedPackets:
        """Return realised packets: drawn ones, or those of a trace, which is played round and round.

        The mean rate over all of them is exactly ``load_factor`` segments a slot. Of arrivals with a
        law the ``gaps`` are given.
        """
        checks.count("count", count, minimum=2)
        checks.one_number("traffic.load_factor", self.load_factor)
        queues = None
        if isinstance(self.arrivals, Recorded):
            trace = self.arrivals.trace
            turn, at = np.divmod(np.arange(count), len(trace))
            times, sizes = trace.times_ns[at] + turn * (len(trace) / trace.packet_rate), trace.bytes[at]
            if trace.flows is not None:
                queues = trace.flows[at] % self.queues
        elif isinstance(self.arrivals, LineRate):
            sizes = self.sizes.sample(rng, count)
            times = np.cumsum(segment_count(sizes, segment_bytes)).astype(float)
        else:
            times, sizes = np.cumsum(gaps_of(self.arrivals, rng, gaps, count)), self.sizes.sample(rng, count)
        segments = segment_count(sizes, segment_bytes)
        if queues is None:
            queues = Zipf(entries=self.queues, exponent=self.queue_exponent).sample(rng, times.size)
        span = float(times[-1] - times[0])
        scale = float(segments[:-1].sum()) / (self.load_factor * span)
        return QueuedPackets(
            times=(times - times[0]) * scale,
            segments=segments,
            queues=np.asarray(queues, dtype=np.int64),
            moved_to=np.where(
                rng.random(times.size) < self.moved_fraction, rng.integers(self.queues, size=times.size), -1
            ),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class QueuedPackets:
    """Realised packets, one array element each."""

    times: FloatArray  # arrival times, nondecreasing, from 0 [drain slots]
    # segments, queues: segments of each packet and the queue it joins.
    segments: IntArray
    queues: IntArray
    moved_to: IntArray  # the queue it is appended to before it leaves, -1 for none
