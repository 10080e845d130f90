"""The data-queueing module of a network processor: banked data memory, pointer memory, free lists."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray, Numeric
from qmodels.systems.laws.times import Law
from qmodels.systems.memory.memory_map import bank_of, index_in_bank, scatter
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, at_least, choice, count, nonnegative, positive, probability
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


POLICIES = ("lists", "bank-lists", "bitmap", "lifo")
"""How free blocks are kept: FIFO lists with trials (the paper's), one list a bank, a bitmap, a stack."""

MAPPINGS = ("interleaved", "random")
"""Which bank a block is on: consecutive blocks round the banks, or by a hash."""

ADMISSIONS = ("packet", "segment", "lossy")
"""What a packet that finds too few blocks loses: all of it at once, all it has got, or the segments alone."""


@dataclass(frozen=True, kw_only=True)
class DataMemory(Declared, prefix="data."):
    r"""Banked DRAM that holds the segments.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.

    Examples
    --------
    >>> memory = DataMemory()
    >>> memory.bank_of(np.arange(10)), int(memory.page_of(1024))
    (array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1]), 1)
    """

    banks: Numeric = count(8, maximum=1024)  # Banks. [1]_ sec. 4.1: 8
    segments: Numeric = count(4_194_304, maximum=2**27)  # Segments it holds. [1]_ sec. 4.2: 4M
    segment_bytes: int = count(64)  # Size of a segment, one burst. [1]_: 64. [bytes]
    access_cycles: Numeric = positive(4)  # Data-bus time of a segment. [1]_: 4. [DRAM cycles]
    # Delay of an access that meets its bank busy. [1]_: 8. [DRAM cycles]
    busy_delay_cycles: Numeric = nonnegative(8)
    # Later accesses during which a bank stays busy after one. The text leaves this open; with 1, random reads
    # meet a busy bank in 1/8 = 12.5 % of cases (published: 12.4 %)
    busy_accesses: Numeric = count(1, minimum=0, maximum=1024)
    page_control: bool = True  # Whether an access to the page that its bank has open is no conflict
    page_segments: Numeric = count(128)  # Segments in a page (our assumption: 8 KB, of 4096 pages in a bank)
    # Consecutive places on one bank before the next one: 1 goes round the banks
    bank_step: Numeric = count(1)
    block_pitch: Numeric = count(1, maximum=64)  # Places from one block to the next, see `padded_pitch`
    # "random" puts block *b* on bank ``scatter(b) mod banks`` instead
    mapping: str = choice("interleaved", MAPPINGS)

    def bank_of(self, block: Any) -> Any:
        """Return the bank of a block (an int or an integer array)."""
        if self.mapping == "random":
            return scatter(block) % self.banks
        return bank_of(block * self.block_pitch, self.bank_step, self.banks)

    def page_of(self, block: Any) -> Any:
        """Return the page of a block in its bank."""
        return index_in_bank(block * self.block_pitch, self.bank_step, self.banks) // self.page_segments


def padded_pitch(pitch: int, banks: int) -> int:
    """Return the smallest pitch, at least the one given, that shares no factor with the number of banks.

    DPDK pads the objects of a memory pool by this rule so that successive ones start on all
    channels in turn: blocks of 64 bytes with a header of 64 have a pitch of 2 places, which
    reaches half of 8 banks; padded to 3 they reach all.
    """
    checks.count("pitch", pitch)
    checks.count("banks", banks)
    while gcd(pitch, banks) > 1:
        pitch += 1
    return pitch


@dataclass(frozen=True, kw_only=True)
class Allocation(Declared, prefix="allocation."):
    """Allocation of free blocks.

    With the policy "lists" ([1]_ sec. 5) packets of more than ``small_packet_segments`` segments
    take blocks from the FIFO list VMS1, blocks 0 to ``vms1_size`` - 1 on all banks: a head block
    on a busy bank goes to the tail, and the block of trial ``alloc_trial_count`` is taken
    whatever its bank. The other blocks form VMS2 (lower half of the banks) and VMS3 (upper half):
    a segment of a small packet takes VMS2's head if that is not on a busy bank, otherwise VMS3's
    head; a list that is empty gives way to the other. The blocks of a large packet return to the
    tail of VMS1 in one piece, those of a small one each to the list it came from.

    The alternatives keep all blocks together (``vms1_size`` and ``small_packet_segments`` play no
    part): "bank-lists" is one FIFO list a bank, and the next bank in turn that is not busy and has
    blocks is used; "bitmap" is one bit a block in 64-bit words, scanned from the last word used,
    at most ``alloc_trial_count`` words with free blocks, the last one taken whatever the bank; "lifo"
    is a stack, of whose top ``alloc_trial_count`` blocks the first that is not on a busy bank is
    taken, else the last examined.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """

    policy: str = choice("lists", POLICIES)  # See above
    # Most blocks (words) examined for one segment. [1]_: 1 to 5
    alloc_trial_count: Numeric = count(2, maximum=1024)
    # SmallPktSize: most segments of a small packet; 0 uses VMS1 alone. [1]_: 0 to 4. [segments]
    small_packet_segments: Numeric = count(0, minimum=0)
    vms1_size: Numeric = count(4_194_304, minimum=0)  # Blocks of VMS1. [1]_ Table 3. [segments]
    # "packet" refuses a packet whole that finds fewer free blocks than it has segments. "segment" takes
    # blocks while there are some, so that the lists run dry; a packet of which a segment finds none is given
    # up, and the blocks it has got are freed. "lossy" loses a segment alone that finds no block: the rest of
    # its packet is stored, and each block is free as soon as its segment has been read, so that the next
    # write may take it. The text of [1]_ leaves it open
    admission: str = choice("packet", ADMISSIONS)
    # Mean length of the runs of consecutive blocks in each list at the start: ``inf`` is a fresh list, 1 a
    # shuffled one. Simulated alone: the model has lists that were used up several times, and says so.
    # [blocks]
    mean_run_length: Numeric = at_least(1.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class PointerMemory(Declared, prefix="pointer."):
    """SRAM that holds queues and links, accessed in parallel with the data memory.

    References
    ----------
    .. [1] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """

    # free_accesses, conflict_accesses: 64-bit accesses that fit beside a segment access without and with a
    # conflict ([1]_ sec. 4.2: 5 and 15)
    free_accesses: Numeric = count(5)
    conflict_accesses: Numeric = count(15)
    # What a conflict costs in a worst-case segment write. [1]_ Table 4 gives 8 for the conventional
    # technique, whose worst cases are conflicts alone. [cycles]
    conflict_overhead_cycles: Numeric = nonnegative(8.0)
    # Energy of one cycle of overhead. All six rows of [1]_ Table 4 are 42.1 times their overhead before
    # rounding; the unit is not stated. [paper's unit]
    energy_per_cycle: Numeric = nonnegative(42.125)


@dataclass(frozen=True, kw_only=True)
class DataQueueing(Replaceable, Declared):
    """A data-queueing module and its traffic.

    A metric about something that does not happen (no small packets, no worst cases) is 0; cycles are those
    of the pointer memory.

    Raises
    ------
    ValueError
        If VMS1 is larger than the memory, or there are small packets and one bank only.

    Examples
    --------
    The conventional technique of the paper and one of its optimised ones:

    >>> conventional = DataQueueing(allocation=Allocation(alloc_trial_count=1))
    >>> optimised = DataQueueing(
    ...     allocation=Allocation(alloc_trial_count=5, small_packet_segments=1, vms1_size=4_054_528)
    ... )
    >>> DataQueueing(data=DataMemory(segments=1000))
    Traceback (most recent call last):
        ...
    ValueError: allocation.vms1_size must be at most data.segments = 1000, got 4194304
    """

    data: DataMemory = field(default_factory=DataMemory)  # Banked memory of the segments
    allocation: Allocation = field(default_factory=Allocation)  # Free lists
    pointer: PointerMemory = field(default_factory=PointerMemory)  # Memory of queues and links
    traffic: QueueTraffic = field(default_factory=QueueTraffic)  # Packets, queues and service

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "write_conflict_probability", "read_conflict_probability", "write_busy_probability",
            "read_busy_probability", "pointer_accesses_per_allocation",
            "max_pointer_accesses_per_allocation", "pointer_accesses_per_deletion",
            "max_pointer_accesses_per_deletion", "overflow_probability", "blocking_probability",
            "allocation_failure_probability", "vms1_overflow_probability",
            "vms2_overflow_probability", "vms3_overflow_probability", "worst_enqueue_probability",
            "enqueue_overhead", "enqueue_energy", "deletion_overhead", "cycles_per_segment_access",
            "pointer_overrun_probability",
        ),
    )  # fmt: skip

    def _check_relations(self) -> None:
        if self.allocation.policy != "lists":
            return
        size, room = np.broadcast_arrays(self.allocation.vms1_size, self.data.segments)
        if np.any(size > room):
            where = np.unravel_index(int(np.argmax(size > room)), size.shape)
            raise ValueError(
                f"allocation.vms1_size must be at most data.segments = {room[where]}, got {size[where]}"
            )
        if np.any(
            (np.asarray(self.allocation.small_packet_segments) > 0) & (np.asarray(self.data.banks) < 2)
        ):
            raise ValueError(
                "data.banks must be at least 2 for small packets to have lists of their own, got 1"
            )
