"""Access pattern of a traffic under an address map: loads of channels and banks, and row hits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.memory.dram_system import (
    SPAN,
    AddressTrace,
    DramSystem,
    Packets,
    RandomBlocks,
    StridedBlocks,
)

SAMPLE = 8192
"""Accesses that a stream is judged by."""
PACKETS, MOST_BLOCKS, LONG_PACKETS = 512, 1 << 18, 4
"""Packets at random places that packets are judged by, at least; of many blocks in all, at least the last."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AccessPattern:
    """Shares of the accesses that reach channels, ranks and banks of a system."""

    channel_share: FloatArray  # share of the accesses of each channel
    bank_share: float  # share of a channel's accesses that its busiest bank gets
    group_share: float  # share of a channel's accesses that its busiest bank group gets
    group_repeat: float  # accesses of a channel to the bank group that the one before was to
    bank_repeat: float  # accesses of a channel to the bank that the one before was to
    row_hit_ratio: float  # accesses whose row is open when they are served one by one

    def channels(self, *, alike: bool) -> list[tuple[int, float, float]]:
        """Return number, share, and share of all like it, of the channels in use.

        Channels of one share are taken to be ``alike``, or each to have accesses of its own.
        """
        share = self.channel_share.round(12)
        used = np.flatnonzero(share > 0)
        if not alike:
            return [(int(k), float(share[k]), float(share[k])) for k in used]
        first = [int(np.flatnonzero(share == value)[0]) for value in np.unique(share[used])]
        return [(k, float(share[k]), float(share[k] * (share == share[k]).sum())) for k in first]


def access_pattern(spec: DramSystem) -> AccessPattern:
    """Access pattern of a system's traffic at its channels and banks.

    Exact for `RandomBlocks`, but for row hits among writes, see `_mixed_hits`. Streams and traces are
    judged by their first `SAMPLE` accesses, packets by at least `PACKETS` random places, long ones by fewer:
    row hits and repeats as accesses one after the other make them.
    """
    g, traffic = spec.geometry, spec.traffic
    if isinstance(traffic, RandomBlocks):
        hits = 0.0 if spec.page_policy == "closed" else _mixed_hits(spec, traffic)
        return AccessPattern(
            channel_share=np.full(g.channels, 1 / g.channels),
            bank_share=1 / g.channel_banks,
            group_share=1 / (g.ranks * g.groups),
            group_repeat=1 / (g.ranks * g.groups),
            bank_repeat=0.0,
            row_hit_ratio=hits,
        )
    if isinstance(traffic, Packets):
        return _packets(spec, traffic)
    return _stream(spec, traffic)


def _mixed_hits(spec: DramSystem, traffic: RandomBlocks) -> float:
    r"""Return the row hits of random accesses, of which writes wait apart from reads.

    A read finds its row open if an earlier read of the same run to that row did so, writes between
    them being served later: with hits :math:`h` by arrival and :math:`w` writes that is
    :math:`h (1-w) / (1 - h w)` of the reads, and :math:`h w / (1 - h (1-w))` of the writes. Approximate
    (writes also go out between the reads): within 0.07 of simulation of half loaded DDR4-3200.
    """
    h, w = traffic.row_hit_probability, traffic.write_fraction
    if spec.scheduler == "in-order" or w in (0, 1) or h == 1:
        return h
    return h * ((1 - w) ** 2 / (1 - h * w) + w**2 / (1 - h * (1 - w)))


def _stream(spec: DramSystem, traffic: StridedBlocks | AddressTrace) -> AccessPattern:
    if isinstance(traffic, AddressTrace):
        blocks = np.resize(np.array(traffic.blocks), max(SAMPLE, min(len(traffic.blocks), 8 * SAMPLE)))
    else:
        blocks = np.arange(SAMPLE, dtype=np.int64) * traffic.stride % SPAN
    place = spec.address_map.locate(blocks, spec.geometry)
    bank = place.channel * spec.geometry.channel_banks + place.bank
    order = np.argsort(bank, kind="stable")
    same = bank[order][1:] == bank[order][:-1]
    hits = same & (np.asarray(place.row)[order][1:] == np.asarray(place.row)[order][:-1])
    share = np.bincount(place.channel, minlength=spec.geometry.channels) / blocks.size
    shares = np.bincount(bank) / blocks.size
    group = bank // spec.geometry.banks
    groups = np.bincount(group) / blocks.size
    of_channel = bank[np.argsort(place.channel, kind="stable")]
    repeats = (of_channel[1:] == of_channel[:-1]).mean()
    of_channel = of_channel // spec.geometry.banks
    return AccessPattern(
        channel_share=share,
        bank_share=float(shares.max() / share.max()),
        group_share=float(groups.max() / share.max()),
        group_repeat=float((of_channel[1:] == of_channel[:-1]).mean()),
        bank_repeat=float(min(repeats, 1 - 1 / blocks.size)),
        row_hit_ratio=0.0 if spec.page_policy == "closed" else float(hits.mean()),
    )


def _packets(spec: DramSystem, traffic: Packets) -> AccessPattern:
    g = spec.geometry
    count = max(min(PACKETS, MOST_BLOCKS // traffic.blocks), SAMPLE // traffic.blocks, LONG_PACKETS)
    start = np.random.default_rng(1).integers(SPAN, size=count)
    place = spec.address_map.locate(start[:, None] + np.arange(traffic.blocks), g)
    channel, bank, row = (
        np.broadcast_to(x, (start.size, traffic.blocks)) for x in (place.channel, place.bank, place.row)
    )
    # Packets start anywhere: channels and banks that are used at all are used alike.
    bank = channel * g.channel_banks + bank
    used = np.zeros(g.channels * g.channel_banks, dtype=bool)
    used[bank.ravel()] = True
    of_channel = used.reshape(g.channels, g.ranks * g.groups, g.banks)
    there = of_channel.any(axis=(1, 2))
    order = np.argsort(bank, axis=1, kind="stable")
    bank, row = (np.take_along_axis(x, order, axis=1) for x in (bank, row))
    repeats = np.diff(bank, axis=1) == 0
    hits = repeats & (np.diff(row, axis=1) == 0)
    return AccessPattern(
        channel_share=there / there.sum(),
        bank_share=float(1 / of_channel.sum(axis=(1, 2)).max()),
        group_share=float(1 / of_channel.any(axis=2).sum(axis=1).max()),
        group_repeat=1 / (g.ranks * g.groups),
        bank_repeat=float(repeats.sum() / bank.size),
        row_hit_ratio=0.0 if spec.page_policy == "closed" else float(hits.sum() / bank.size),
    )
