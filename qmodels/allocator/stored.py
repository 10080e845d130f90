"""Packets that find room: how the offered work varies, which packets are stored, and which are refused."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.allocator.packet_list import PacketList, packet_list
from qmodels.allocator.short_lists import MOST_LENGTH, LossyList, StarvedList, lossy_list, starved_list
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.data_queueing import DataQueueing, LineRate, QueueTraffic, SelfSimilar
from qmodels.systems.traffic.arrivals import OnOff, Recorded, modelled
from qmodels.systems.traffic.sizes import segment_count


@dataclass(frozen=True, kw_only=True)
class ListOverflow:
    """Shares of the offered segments that are refused."""

    overflow_probability: float  # of all segments
    # large_probability, small_probability: of the segments of large packets (VMS1), and of small ones (VMS2
    # and VMS3).
    large_probability: float
    small_probability: float
    # Probability that VMS2 has no block when a segment of a small packet asks for one.
    small_empty_probability: float


def refused_fraction(*, load: float, blocks: float, variability: float) -> float:
    r"""Share of the work that a finite store refuses, by a diffusion between two barriers.

    ``load``: segments offered per segment that can be drained, > 0; ``blocks``: segments the store holds, >=
    0; ``variability``: variance of the offered segments per slot, over long times, > 0 [segments^2 / slot].

    Brownian motion with drift :math:`\rho - 1` and variance :math:`V` a slot, reflected at 0 and
    at N, is pushed back from N at the rate

    .. math:: \frac{\rho - 1}{1 - e^{-2 (\rho - 1) N / V}},

    :math:`V / 2N` at load 1 (Harrison 1985, ch. 5, from memory). A share
    :math:`1/\rho` of it is the answer: exact for a fluid in overload, where it is
    :math:`1 - 1/\rho`, and an order of magnitude where it is small.
    """
    if blocks <= 0:
        return 1.0
    drift = load - 1.0
    exponent = 2.0 * drift * blocks / variability
    if abs(exponent) < 1e-8:
        rate = variability / (2.0 * blocks)
    elif exponent < -700:
        rate = 0.0
    else:
        rate = drift / -np.expm1(-exponent)
    return float(min(max(rate / load, 0.0), 1.0))


def list_overflow(
    *, load: float, large_share: float, large_blocks: float, small_blocks: float, variability: float
) -> ListOverflow:
    r"""Overflow of segregated lists that share one drain.

    ``load``: segments offered per segment that can be drained; ``large_share``: share of the segments that
    belong to large packets; ``large_blocks``, ``small_blocks``: blocks of VMS1, and of VMS2 and VMS3
    together; ``variability``: variance of the offered segments per slot [segments^2 / slot].

    Packets leave in the order of their arrival, or nearly so: both classes wait for the same time
    D and hold D times their admitted rates :math:`a_i`. Below load 1 the class that first
    uses up its blocks is the one refused. In overload :math:`a_1 + a_2 = 1`, and a class is refused
    only where :math:`a_i D = V_i`: either both are and :math:`a_i = V_i / (V_1 + V_2)`, or one
    is and the other, offered less than that, is admitted whole. The rate at which work is refused
    is that of `refused_fraction` at this backlog. Priorities among queues are not modelled.
    """
    offered = np.array([large_share, 1.0 - large_share]) * load
    blocks = np.where(offered > 0, [large_blocks, small_blocks], 0.0)
    held = blocks / max(blocks.sum(), 1e-300)
    if load > 1:
        admitted = np.where(held > offered, offered, held)
        whole = admitted == offered
        admitted = np.where(whole, admitted, 1.0 - admitted[whole].sum() if whole.any() else held)
        limit = float(blocks[~whole].sum() / max(admitted[~whole].sum(), 1e-300))
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            backlog = np.where(offered > 0, blocks * load / offered, np.inf)
        limit = float(backlog.min())
        admitted = np.where(backlog == limit, 0.0, offered)
    rate = load * refused_fraction(load=load, blocks=limit, variability=variability)
    refused = np.minimum(rate * (offered - admitted) / max((offered - admitted).sum(), 1e-300), offered)
    fraction = np.divide(refused, offered, out=np.zeros(2), where=offered > 0)
    empty = 0.0
    if offered[1] > 0:
        # VMS2 has half of the blocks and is asked first: what is in use beyond them is on VMS3.
        half = small_blocks / 2
        if load > 1:
            in_use = min(limit * float(admitted[1]), small_blocks)
            empty = max(1.0 - half / in_use, 0.0) if in_use > 0 else 1.0
        else:
            empty = float(np.exp(2.0 * (load - 1.0) * half * load / offered[1] / variability))
    return ListOverflow(
        overflow_probability=float(refused.sum() / load),
        large_probability=float(fraction[0]),
        small_probability=float(fraction[1]),
        small_empty_probability=empty,
    )


FEWEST_WINDOWS = 16
"""Windows a trace must have for a variance between them."""
STEADY = 1e-9
"""Variance of what arrives at line rate, in place of 0. [segments^2 / slot]"""
NEAR = 16
"""Mean gaps around a packet in which the other ports' packets count as near."""


def offered_variability(traffic: QueueTraffic, *, segment_bytes: int, load: float, packets: float) -> float:
    r"""Return the variance of the offered segments per drain slot, in segments^2 / slot.

    ``segment_bytes``: size of a segment [bytes]; ``load``: segments offered a slot; ``packets``: time scale,
    in mean gaps between packets, for arrivals whose variance grows with it.

    Renewal arrivals with gaps of squared coefficient of variation :math:`c^2` and sizes S:
    :math:`V = \rho (\mathrm{Var} S + c^2 E[S]^2)/E[S]`, exact over long times. Self-similar
    arrivals: the variance of the counts of an M/G/infinity input over the time scale in place of
    :math:`c^2`. A trace: the variance of the segments in windows of the time scale, of which
    there must be 16.
    """
    arrivals = modelled("traffic.arrivals", traffic.arrivals)
    if isinstance(arrivals, Recorded):
        return load * _recorded(arrivals, segment_bytes, packets)
    if isinstance(arrivals, LineRate):
        return STEADY
    counts, share = traffic.segment_law(segment_bytes)
    mean = float(counts @ share)
    scv = _self_similar(arrivals, packets) if isinstance(arrivals, SelfSimilar) else _scv(arrivals)
    return load * float((counts - mean) ** 2 @ share + scv * mean**2) / mean


def seen_load(traffic: QueueTraffic, *, segment_bytes: int, load: float) -> float:
    r"""Return the load around a packet's arrival.

    In bursts the ports find each other busier than on average, and the load may exceed 1. ON-OFF
    arrivals: the load while ON. Self-similar ones: that of one more session than on average. A
    trace: the mean load around its segments in windows of 16 mean gaps, less what a window's own
    few packets add to it by chance. An estimate; exact for Poisson arrivals.

    >>> seen_load(QueueTraffic(), segment_bytes=64, load=0.5)
    0.5
    >>> bursts = QueueTraffic(arrivals=OnOff(on_packets=10, peak_to_mean=1.5))
    >>> seen_load(bursts, segment_bytes=64, load=0.5)
    0.75
    """
    arrivals = modelled("traffic.arrivals", traffic.arrivals)
    factor = 1.0
    if isinstance(arrivals, OnOff):
        factor = float(arrivals.peak_to_mean)
    elif isinstance(arrivals, SelfSimilar):
        factor = 1.0 + 1.0 / arrivals.sessions
    elif isinstance(arrivals, Recorded):
        factor = _recorded_crowding(arrivals, segment_bytes)
    return load * max(factor, 1.0)


@lru_cache(maxsize=64)
def _recorded_crowding(arrivals: Recorded, segment_bytes: int) -> float:
    segments, sums = _window_sums(arrivals, segment_bytes, len(arrivals.trace) // NEAR)
    mean = sums.mean()
    return float((sums**2).mean() / mean**2 - (segments**2).sum() / sums.size / mean**2)


def _window_sums(arrivals: Recorded, segment_bytes: int, windows: int) -> tuple[FloatArray, FloatArray]:
    trace = arrivals.trace
    segments = segment_count(trace.bytes, segment_bytes).astype(float)
    count = max(windows, 1)
    edges = np.linspace(0.0, float(trace.times_ns[-1]), count + 1)
    which = np.clip(np.searchsorted(edges, trace.times_ns, side="right") - 1, 0, count - 1)
    return segments, np.bincount(which, weights=segments, minlength=count).astype(float)


def _scv(arrivals: object) -> float:
    return float(arrivals.scv) if isinstance(arrivals, OnOff) else 1.0


def _self_similar(arrivals: SelfSimilar, packets: float) -> float:
    """Return the variance of the packets in a window over their mean number."""
    shape, sessions = arrivals.shape, arrivals.sessions
    # A session sends a packet every ``sessions`` gaps and lasts that many times its packets.
    window = max(packets / sessions, 1.0)
    grid = np.concatenate((np.linspace(0.0, 1.0, 65)[:-1], np.geomspace(1.0, max(window, 1.01), 256)))
    tail = np.where(grid < 1.0, 1.0, np.maximum(grid, 1.0) ** -shape)
    mean = shape / (shape - 1.0)
    left = 1.0 - _cumulative(grid, tail) / mean
    kept = (1.0 - grid / grid[-1]) * np.maximum(left, 0.0)
    return float(max(2.0 * _cumulative(grid, kept)[-1], 1.0))


def _cumulative(grid: FloatArray, values: FloatArray) -> FloatArray:
    steps = np.diff(grid) * (values[1:] + values[:-1]) / 2.0
    return np.concatenate(([0.0], np.cumsum(steps)))


@lru_cache(maxsize=64)
def _recorded(arrivals: Recorded, segment_bytes: int, packets: float) -> float:
    windows = int(max(len(arrivals.trace) / max(packets, 1.0), FEWEST_WINDOWS))
    _, sums = _window_sums(arrivals, segment_bytes, windows)
    return float(max(sums.var() / sums.mean(), 1e-9))


RARELY = 1e-6
"""Share of segments refused below which a list is not looked at when it runs dry."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredPackets:
    """Packets that are stored: their sizes and shares, which are small, and what was offered and refused.

    Where large packets overflow, how short VMS1 is: ``dry`` or, if segments are lost alone, ``lossy``; with
    operations of whole packets ``rows``.
    """

    segments: IntArray
    share: FloatArray
    small: Any
    overflow: ListOverflow
    offered: FloatArray
    refused: FloatArray
    dry: StarvedList | None
    lossy: LossyList | None
    segments_alone: bool
    rows: PacketList | None = None

    @property
    def mean(self) -> float:
        """Segments of a packet, mean."""
        return float(self.segments @ self.share)

    @property
    def large_share(self) -> float:
        """Share of the stored segments that belong to large packets."""
        return float((self.segments * self.share)[~self.small].sum()) / self.mean


def overflow_metrics(packets: StoredPackets, *, head_busy: float) -> dict[str, float]:
    """Return the metrics about refused packets; VMS2's head is on a busy bank with this probability."""
    overflow = packets.overflow
    segments, share, small, refused = packets.segments, packets.offered, packets.small, packets.refused
    blocked = float(share @ refused)
    written = float(segments @ share) * (1.0 - overflow.overflow_probability)
    if packets.dry is not None:
        written += packets.dry.given_up * float((share * refused)[~small].sum())
    # A refused packet asks each of its lists once, and finds both empty.
    kept = share * (1.0 - refused)
    stored, turned_away = float((segments * kept)[small].sum()), float((share - kept)[small].sum())
    failing = blocked / (written + blocked)
    if packets.segments_alone:
        failing = overflow.overflow_probability
        turned_away = overflow.small_probability * float((segments * share)[small].sum())
        stored = float((segments * share)[small].sum()) - turned_away
    without = stored * overflow.small_empty_probability
    asked = turned_away + without + (stored - without) * head_busy
    empty = (turned_away + without) / (turned_away + stored) if small.any() else 0.0
    return {
        "overflow_probability": overflow.overflow_probability,
        "blocking_probability": blocked,
        "allocation_failure_probability": failing,
        "vms1_overflow_probability": overflow.large_probability,
        "vms2_overflow_probability": empty,
        "vms3_overflow_probability": turned_away / asked if asked > 0 else 0.0,
    }


def _classes(spec: DataQueueing) -> tuple[IntArray, FloatArray, Any]:
    """Return the packets' sizes, their shares and which of them are small."""
    segments, share = spec.traffic.segment_law(spec.data.segment_bytes)
    largest = spec.allocation.small_packet_segments if spec.allocation.policy == "lists" else 0
    return segments, share, segments <= largest


def stored_packets(spec: DataQueueing) -> tuple[StoredPackets, float]:
    """Return the packets that are stored, and the segments stored a slot (at most 1)."""
    segments, share, small = _classes(spec)
    load, mean = float(spec.traffic.load_factor), float(segments @ share)
    alone = spec.allocation.admission == "lossy"
    if alone and spec.traffic.operations == "segment":  # a lost segment takes its time at the input too
        load = min(load, spec.traffic.input_ports * float(spec.traffic.input_speed))
    vms1 = int(spec.allocation.vms1_size) if spec.allocation.policy == "lists" else int(spec.data.segments)
    scale = int(spec.data.segments) / max(abs(load - 1.0), 1e-3) / mean * load
    overflow = list_overflow(
        load=load,
        large_share=float((segments * share)[~small].sum()) / mean,
        large_blocks=float(vms1),
        small_blocks=float(int(spec.data.segments) - vms1),
        variability=offered_variability(
            spec.traffic, segment_bytes=spec.data.segment_bytes, load=load, packets=scale
        ),
    )
    dry, lossy, rows = None, None, None
    in_rows = spec.traffic.operations == "packet"
    if in_rows and alone and spec.allocation.policy == "lists" and overflow.large_probability > RARELY:
        large_share = float((segments * share)[~small].sum()) / mean
        rows = packet_list(
            sizes=tuple(segments.tolist()),
            offered=tuple(share.tolist()),
            largest_other=int(segments[small].max(initial=0)),
            load=load,
            share=min(load * large_share * (1.0 - overflow.large_probability), 1.0),
        )
    elif in_rows:
        pass
    elif RARELY < overflow.large_probability < 1.0 and segments[~small].min() <= MOST_LENGTH:
        offered = share[~small] / share[~small].sum()
        large = {"segments": tuple(segments[~small].tolist()), "offered": tuple(offered.tolist())}
        if alone:
            reads = float((segments * share)[~small].sum()) / mean
            lossy = lossy_list(
                **large,
                refused=overflow.large_probability,
                input_ports=spec.traffic.input_ports,
                input_speed=float(spec.traffic.input_speed) / reads,
                longest=int(spec.allocation.alloc_trial_count),
            )
        else:
            whole = spec.allocation.admission == "packet"
            dry = starved_list(**large, refused=overflow.large_probability, whole=whole)
    if alone:
        # Lost whole only if no read comes between its first segment and its last one.
        at_once = np.maximum(1.0 - (segments - 1) / float(spec.traffic.input_speed), 0.0)
        refused = at_once * np.where(small, overflow.small_probability, overflow.large_probability)
        if rows is not None:
            refused = np.where(small, overflow.small_probability / segments, rows.refused(segments))
    else:
        refused = _refused(segments, share, small, overflow, dry)
    kept = share * (1.0 - refused)
    stored = load * (1.0 - overflow.overflow_probability if alone else float(segments @ kept) / mean)
    packets = StoredPackets(
        segments=segments,
        share=kept / kept.sum() if kept.sum() > 0 else share,
        small=small,
        overflow=overflow,
        offered=share,
        refused=refused,
        dry=dry,
        lossy=lossy,
        rows=rows,
        segments_alone=alone,
    )
    return packets, min(stored, 1.0)


def _refused(
    segments: IntArray, share: FloatArray, small: Any, overflow: ListOverflow, dry: StarvedList | None
) -> FloatArray:
    """Return the probability that a packet of each size is refused.

    Of large ones in a list that runs dry; otherwise in proportion to its size, as if the blocks left
    in a full list varied over all that packets ask for.
    """
    refused = np.zeros(len(segments))
    for members, fraction in ((~small, overflow.large_probability), (small, overflow.small_probability)):
        if dry is not None and members[~small].any():
            refused[members] = dry.refused
            continue
        asked = (segments * share)[members]
        if fraction <= 0 or asked.sum() <= 0:
            continue
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            enough = asked @ np.minimum(middle * segments[members], 1.0) < fraction * asked.sum()
            low, high = (middle, high) if enough else (low, middle)
        refused[members] = np.minimum(high * segments[members], 1.0)
    return refused
