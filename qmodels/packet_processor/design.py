"""The columns of a packet processor spec: one row per design of a sweep, times in ns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.llc import hit_ratios
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.controller_waits import Controlled, check_controlled, controlled
from qmodels.packet_processor.trials.density import Density, RowVisits, density, row_visits
from qmodels.packet_processor.trials.walk import TrialColumns, trial_columns
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import Dram, DramSystem
from qmodels.systems.memory.memory_map import scatter
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import array_fields
from qmodels.systems.traffic.arrivals import OnOff
from qmodels.systems.traffic.popularity import Zipf


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """One value per design of every number the model needs; times in ns, rates per ns.

    Fields that only size the store, charge energy or cost do not multiply the work: the columns
    are those of the other fields, flat, and ``shape`` is the broadcast shape of these;
    ``full_shape`` is that of all fields.
    """

    spec: PacketProcessor
    shape: tuple[int, ...]
    full_shape: tuple[int, ...]
    packet_rate: FloatArray
    segments: FloatArray
    size_share: FloatArray
    mean_bytes: float
    lookups: FloatArray
    hold: FloatArray
    segment_time: FloatArray
    request_time: FloatArray
    cycle_time: FloatArray
    channels: FloatArray
    banks: FloatArray
    step: FloatArray
    bank_step: FloatArray
    row_blocks: FloatArray
    burst: FloatArray
    recovery: FloatArray
    precharge: FloatArray
    access: FloatArray
    refresh: FloatArray
    refresh_interval: FloatArray
    slices: FloatArray
    slice_time: FloatArray
    bus_time: FloatArray
    hit_ratio: FloatArray
    slice_peak: FloatArray
    miss_channel_peak: FloatArray
    miss_bank_peak: FloatArray
    trials: FloatArray
    small: FloatArray
    run_length: FloatArray
    pointer_time: FloatArray
    enqueue_accesses: FloatArray
    dequeue_accesses: FloatArray
    enqueue_packet_accesses: FloatArray
    dequeue_packet_accesses: FloatArray
    rows: RowVisits
    walks: TrialColumns
    density: Density
    memory: Controlled | None

    @cached_property
    def mean_segments(self) -> float:
        """Segments of a packet, mean."""
        return float(self.size_share @ self.segments)

    @cached_property
    def square_segments(self) -> float:
        """Segments of a packet, second moment."""
        return float(self.size_share @ self.segments**2)

    @cached_property
    def closed_pages(self) -> bool:
        """Whether rows are closed after each access."""
        return self.spec.dram.page_policy == "closed"

    @cached_property
    def places(self) -> FloatArray:
        """Banks of all channels."""
        return self.channels * self.banks

    @cached_property
    def row_run(self) -> FloatArray:
        """Consecutive blocks of a channel in one row."""
        return np.minimum(self.row_blocks, self.bank_step)

    @cached_property
    def around(self) -> FloatArray:
        """Blocks from the last one of a chunk to the next one on its channel."""
        return (self.channels - 1.0) * self.step + 1.0

    @cached_property
    def touched(self) -> FloatArray:
        """Channels a packet of each size touches, (designs, sizes)."""
        return np.minimum(self.channels[:, None], 1.0 + (self.segments - 1.0) / self.step[:, None])

    @cached_property
    def opening(self) -> FloatArray:
        """Time for which an access that opens its row keeps the bank."""
        return self.precharge + self.burst + self.recovery

    @cached_property
    def is_small(self) -> npt.NDArray[np.bool_]:
        """Whether packets of each size take blocks from the lists for small packets, (designs, sizes)."""
        return self.segments <= self.small[:, None]

    @cached_property
    def small_part(self) -> FloatArray:
        """Part of the segments that belong to small packets."""
        return self.is_small @ (self.size_share * self.segments) / self.mean_segments

    @cached_property
    def refreshing(self) -> FloatArray:
        """Part of the time in which a channel is refreshed."""
        return np.divide(
            self.refresh, self.refresh_interval, out=np.zeros_like(self.refresh), where=self.refresh > 0
        )

    @cached_property
    def late_credits(self) -> bool:
        """Whether credits come back later than a buffer of the network is empty."""
        router, delays = self.spec.noc.router, self.spec.noc.topology.link_delays
        return bool(router.credit_cycles + 2 * max(delays, default=0) > router.buffer_flits)

    @cached_property
    def miss_rate(self) -> FloatArray:
        """Lookups of a packet that go to DRAM."""
        return self.lookups * (1.0 - self.hit_ratio)


def columns(spec: PacketProcessor) -> Columns:
    """Return the columns of a spec whose numeric fields may be arrays."""
    check_controlled(spec)
    named, load = _named(spec), spec.workload
    bursts = (
        [load.arrivals.on_packets, load.arrivals.peak_to_mean] if isinstance(load.arrivals, OnOff) else []
    )
    shape = np.broadcast_shapes(*(np.shape(value) for value in (*named.values(), *bursts)))
    full_shape = np.broadcast_shapes(shape, *(value.shape for value in array_fields(spec).values()))
    flat = {k: np.broadcast_to(np.asarray(v, dtype=float), shape).reshape(-1) for k, v in named.items()}
    flat["step"] = np.where(flat["channels"] == 1, 1.0, flat["step"])  # all blocks follow each other anyway
    segments, share = (np.asarray(part, dtype=float) for part in load.segment_law)
    caches = np.stack([flat["slices"], flat.pop("lines"), flat["channels"], flat["banks"]])
    same_row = np.minimum(flat["row_blocks"], flat["bank_step"])
    looked_up = _lookup_columns(load.popularity, caches)
    return Columns(
        spec=spec,
        shape=shape,
        full_shape=full_shape,
        segments=segments,
        size_share=share,
        mean_bytes=load.sizes.mean_bytes,
        rows=row_visits(
            segments=segments,
            step=flat["step"],
            channels=flat["channels"],
            row_blocks=same_row,
            mean_run_length=flat["run_length"],
        ),
        walks=trial_columns(
            segments=segments,
            size_share=share,
            row_blocks=same_row,
            **{name: flat[name] for name in ("step", "channels", "banks", "run_length", "trials", "small")},
        ),
        density=density(load, shape),
        memory=controlled(spec, flat, flat["lookups"] * (1.0 - looked_up["hit_ratio"])),
        **looked_up,
        **flat,
    )


def _named(spec: PacketProcessor) -> dict[str, Any]:
    """Return the numbers of a spec by the names of their columns, and the lines of a slice."""
    load, noc, llc, free = spec.workload, spec.noc, spec.llc, spec.free_list
    return {
        "packet_rate": load.packet_rate,
        "lookups": load.lookups_per_packet,
        "hold": load.hold_ns,
        "segment_time": spec.segment_flits / noc.clock_ghz,
        "request_time": spec.request_flits / noc.clock_ghz,
        "cycle_time": 1.0 / np.asarray(noc.clock_ghz),
        "channels": spec.channels,
        "banks": spec.banks,
        "row_blocks": spec.row_blocks,
        **_memory_numbers(spec.dram),
        "slices": llc.slices,
        "slice_time": llc.access_cycles / llc.clock_ghz,
        "bus_time": llc.bus_cycles / llc.clock_ghz,
        "lines": llc.slice_lines,
        "trials": free.alloc_trial_count,
        "small": free.small_packet_segments,
        "run_length": free.mean_run_length,
        "pointer_time": 1.0 / np.asarray(free.clock_ghz),
        "enqueue_accesses": free.enqueue_accesses,
        "dequeue_accesses": free.dequeue_accesses,
        "enqueue_packet_accesses": free.enqueue_packet_accesses,
        "dequeue_packet_accesses": free.dequeue_packet_accesses,
    }


def _memory_numbers(dram: Dram | DramSystem) -> dict[str, Any]:
    """Return times and steps of a memory; of one behind controllers those of a bank on its own."""
    if isinstance(dram, DramSystem):
        t, plan = dram.timing, dram.address_map
        closing = t.t_rp if dram.page_policy == "open" else 0
        cycles = {
            "burst": t.burst,
            "recovery": max(t.t_rc - closing - t.burst, 0),
            "precharge": closing,
            "access": dram.controller_cycles + t.t_rcd + t.cl,
            "refresh": t.t_rfc,
            "refresh_interval": t.t_refi,
        }
        step, bank_step = (plan.step, plan.bank_step) if isinstance(plan, Interleaved) else (1, 1)
    else:
        names = ("burst", "recovery", "precharge", "access", "refresh", "refresh_interval")
        cycles = {name: getattr(dram, f"{name}_cycles") for name in names}
        cycles["precharge"] = cycles["precharge"] * (dram.page_policy == "open")
        step, bank_step = dram.interleaving_step, dram.bank_step
    times = {name: number / dram.clock_ghz for name, number in cycles.items()}
    return {"step": step, "bank_step": bank_step, **times}


def _lookup_columns(popularity: Zipf, caches: FloatArray) -> dict[str, FloatArray]:
    """Hits and misses of lookups with these slices, lines of each, channels and banks."""
    keys, which = distinct(caches)
    shares = np.array([_lookup_shares(popularity, *map(int, key)) for key in keys.T])[which]
    names = ("hit_ratio", "slice_peak", "miss_channel_peak", "miss_bank_peak")
    return dict(zip(names, shares.T, strict=True))


@lru_cache(maxsize=4096)
def _lookup_shares(popularity: Zipf, slices: int, lines: int, channels: int, banks: int) -> tuple[float, ...]:
    """Return the hit ratio, and the largest slice's, channel's and bank's part of the lookups or misses."""
    p = np.asarray(popularity.probabilities())
    hits = _hit_ratios(popularity, slices * lines)
    entry = np.arange(len(p))
    slice_peak = np.bincount(scatter(entry) % slices, weights=p).max() if slices else 0.0
    missed = p * (1.0 - hits)
    if not missed.sum():
        return float(p @ hits), float(slice_peak), 0.0, 0.0
    missed = missed / missed.sum()
    place = scatter(scatter(entry) + 1) % (channels * banks)
    by_bank = np.bincount(place, weights=missed, minlength=channels * banks)
    by_channel = by_bank.reshape(banks, channels).sum(axis=0)
    return float(p @ hits), float(slice_peak), float(by_channel.max()), float(by_bank.max())


@lru_cache(maxsize=64)
def _hit_ratios(popularity: Zipf, capacity: int) -> FloatArray:
    return hit_ratios(popularity=popularity.probabilities(), capacity=capacity)
