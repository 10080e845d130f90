"""Packets that find room: which are stored, and which are refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.allocator.lists.lossy_list import LossyList, lossy_list
from qmodels.allocator.lists.packet_list import PacketList, packet_list
from qmodels.allocator.lists.starved_list import MOST_LENGTH, StarvedList, starved_list
from qmodels.allocator.offered import offered_variability
from qmodels.allocator.overflow import ListOverflow, list_overflow
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.data_queueing import DataQueueing

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
