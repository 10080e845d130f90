"""What an address map makes of a traffic: loads of channels and banks, row hits, batches and regularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels._check import FloatArray
from qmodels.systems.dram_system import DramSystem
from qmodels.systems.dram_traffic import SPAN, AddressTrace, Packets, RandomBlocks, StridedBlocks

SAMPLE = 8192
"""Accesses that a stream is judged by."""
PACKETS = 128
"""Packets that packets are judged by, at evenly spread places."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AccessPattern:
    """What reaches channels, ranks and banks of a system.

    Parameters
    ----------
    channel_share : array
        Share of the accesses of each channel.
    bank_share : float
        Share of a channel's accesses that its busiest bank gets.
    group_share : float
        Share of a channel's accesses that its busiest bank group gets.
    group_repeat : float
        Accesses of a channel to the bank group that the one before was to.
    row_hit_ratio : float
        Accesses whose row is open when they are served one by one.
    channel_scv, bank_scv : float
        Squared coefficient of variation of the times between accesses of a channel and of a bank; 1
        for a Poisson process.
    bus_batch, row_batch, bank_batch : tuple of float
        Mean and second moment of the accesses, row commands and accesses to one bank that arrive
        together.
    bank_repeat : float
        Of the accesses to a bank that arrive together, those after the first that hit its row.
    alone : float
        Mean delay of an access by those of its own packet, the memory otherwise idle. [cycles]
    """

    channel_share: FloatArray
    bank_share: float
    group_share: float
    group_repeat: float
    row_hit_ratio: float
    channel_scv: float = 1.0
    bank_scv: float = 1.0
    bus_batch: tuple[float, float] = (1.0, 1.0)
    row_batch: tuple[float, float] = (1.0, 1.0)
    bank_batch: tuple[float, float] = (1.0, 1.0)
    bank_repeat: float = 0.0
    alone: float = 0.0


def access_pattern(spec: DramSystem) -> AccessPattern:
    """Return what a system's traffic is to its channels and banks.

    Notes
    -----
    Exact for `RandomBlocks`, but for row hits among writes, see `_mixed_hits`. Streams and traces are
    judged by their first `SAMPLE` accesses, packets by `PACKETS` evenly spread places: row hits and
    repeats as accesses one after the other make them.

    Examples
    --------
    >>> from qmodels.systems.dram_system import dram
    >>> spec = dram("DDR4-3200", channels=4, traffic=StridedBlocks(stride=2))
    >>> access_pattern(spec).channel_share
    array([0.5, 0. , 0.5, 0. ])
    """
    g, traffic = spec.geometry, spec.traffic
    if isinstance(traffic, RandomBlocks):
        hits = 0.0 if spec.page_policy == "closed" else _mixed_hits(spec, traffic)
        return AccessPattern(
            channel_share=np.full(g.channels, 1 / g.channels),
            bank_share=1 / g.channel_banks,
            group_share=1 / (g.ranks * g.groups),
            group_repeat=1 / (g.ranks * g.groups),
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
    of_channel = group[np.argsort(place.channel, kind="stable")]
    return AccessPattern(
        channel_share=share,
        bank_share=float(shares.max() / share.max()),
        group_share=float(groups.max() / share.max()),
        group_repeat=float((of_channel[1:] == of_channel[:-1]).mean()),
        row_hit_ratio=0.0 if spec.page_policy == "closed" else float(hits.mean()),
        channel_scv=_scv(np.asarray(place.channel)),
        bank_scv=_scv(bank),
    )


def _scv(visited: Any) -> float:
    """Return the scv of times between visits to one place, if accesses arrive as a Poisson process."""
    order = np.argsort(visited, kind="stable")
    same = visited[order][1:] == visited[order][:-1]
    between = np.diff(order)[same].astype(float)
    if between.size == 0:
        return 1.0 / visited.size
    return float((between.mean() + between.var()) / between.mean() ** 2)


def _packets(spec: DramSystem, traffic: Packets) -> AccessPattern:
    g, t = spec.geometry, spec.timing
    closed = spec.page_policy == "closed"
    start = np.arange(PACKETS, dtype=np.int64) * (SPAN // PACKETS) + np.arange(PACKETS) * 37 % 4096
    blocks = start[:, None] + np.arange(traffic.blocks)
    place = spec.address_map.locate(blocks, g)
    everyone = np.arange(PACKETS)
    bank = np.asarray(place.channel) * g.channel_banks + place.bank
    free = np.zeros((PACKETS, g.channels * g.channel_banks))
    open_row = np.full(free.shape, -1)
    bus = np.zeros((PACKETS, g.channels))
    counts, misses = np.zeros(bus.shape), np.zeros(bus.shape)
    per_bank, opened = np.zeros(free.shape), np.zeros(free.shape)
    unloaded = t.t_rcd + (0 if closed else t.t_rp)
    delay = 0.0
    for j in range(traffic.blocks):
        b, c, row = bank[:, j], np.asarray(place.channel)[:, j], np.asarray(place.row)[:, j]
        arrival = float(j * traffic.spacing)
        hit = (open_row[everyone, b] == row) & (not closed)
        # ``free`` is when the column command of a hit, or of another row, may be given.
        ready = np.where(hit, arrival, arrival + unloaded)
        wait_bank = np.where(hit, free[everyone, b], free[everyone, b] + t.read_cycle - t.t_ccd_l)
        touched = per_bank[everyone, b] > 0
        column = np.maximum(np.where(touched, np.maximum(ready, wait_bank), ready), bus[everyone, c])
        delay += float(np.mean(column - ready))
        bus[everyone, c] = column + t.burst
        free[everyone, b] = column + t.t_ccd_l
        open_row[everyone, b] = row
        counts[everyone, c] += 1
        misses[everyone, c] += ~hit
        per_bank[everyone, b] += 1
        opened[everyone, b] += ~hit
    share = counts.sum(axis=0) / counts.sum()
    # Packets start anywhere: banks that are used at all are used alike.
    used = (per_bank.sum(axis=0) > 0).reshape(g.channels, g.ranks * g.groups, g.banks)
    hits = 1 - misses.sum() / counts.sum()
    more = per_bank.sum() - (per_bank > 0).sum()
    return AccessPattern(
        channel_share=share,
        bank_share=float(1 / used.sum(axis=(1, 2)).max()),
        group_share=float(1 / used.any(axis=2).sum(axis=1).max()),
        group_repeat=1 / (g.ranks * g.groups),
        row_hit_ratio=float(hits),
        bus_batch=_moments(counts),
        row_batch=_moments(misses),
        bank_batch=_moments(per_bank),
        bank_repeat=float(1 - (opened.sum() - (per_bank > 0).sum()) / more) if more else 0.0,
        alone=delay / traffic.blocks,
    )


def _moments(counts: FloatArray) -> tuple[float, float]:
    there = counts[counts > 0]
    return float(there.mean()), float((there**2).mean())
