"""Packets that find room: which are stored, and which are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels._check import FloatArray, IntArray
from qmodels.allocator.offered import offered_variability
from qmodels.allocator.overflow import ListOverflow, list_overflow
from qmodels.systems.data_queueing import DataQueueing


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredPackets:
    """Packets that are stored: their sizes and shares, and which are small."""

    segments: IntArray
    share: FloatArray
    small: Any
    overflow: ListOverflow

    @property
    def mean(self) -> float:
        """Segments of a packet, mean."""
        return float(self.segments @ self.share)

    @property
    def large_share(self) -> float:
        """Share of the stored segments that belong to large packets."""
        return float((self.segments * self.share)[~self.small].sum()) / self.mean


def overflow_metrics(spec: DataQueueing, overflow: ListOverflow, *, head_busy: float) -> dict[str, float]:
    """Return the metrics about refused packets; VMS2's head is on a busy bank with this probability."""
    segments, share, small = _classes(spec)
    blocked = float(share @ _refused(segments, share, small, overflow))
    written = float(segments @ share) * (1.0 - overflow.overflow_probability)
    # A refused packet asks each of its lists once, and finds both empty.
    kept = share * (1.0 - _refused(segments, share, small, overflow))
    stored, turned_away = float((segments * kept)[small].sum()), float((share - kept)[small].sum())
    without = stored * overflow.small_empty_probability
    asked = turned_away + without + (stored - without) * head_busy
    empty = (turned_away + without) / (turned_away + stored) if small.any() else 0.0
    return {
        "overflow_probability": overflow.overflow_probability,
        "blocking_probability": blocked,
        "allocation_failure_probability": blocked / (written + blocked),
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
    kept = share * (1.0 - _refused(segments, share, small, overflow))
    stored = load * float(segments @ kept) / mean
    kept = kept / kept.sum() if kept.sum() > 0 else share
    return StoredPackets(segments=segments, share=kept, small=small, overflow=overflow), min(stored, 1.0)


def _refused(segments: IntArray, share: FloatArray, small: Any, overflow: ListOverflow) -> FloatArray:
    """Return the probability that a packet of each size is refused: in proportion to its size.

    The blocks left in a full list vary over all that packets ask for.
    """
    refused = np.zeros(len(segments))
    for members, fraction in ((~small, overflow.large_probability), (small, overflow.small_probability)):
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
