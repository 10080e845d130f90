"""DRAM systems: channels of banks in order, and devices behind controllers, with what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import Numeric
from qmodels.systems.memory.dram_map import BitFields, DramGeometry, Interleaved
from qmodels.systems.memory.dram_timing import PRESETS, DramTiming
from qmodels.systems.memory.memory_map import bank_of, channel_of, index_in_bank, index_in_channel
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.fields import parts, replace_fields
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive, probability
from qmodels.systems.spec.text.reading import Place

PAGE_POLICIES = ("open", "closed")

MOST_BANKS, MOST_BLOCKS = 4096, 1 << 20
"""Banks of a channel, and neighbouring blocks in one: more than any device has."""


@dataclass(frozen=True, kw_only=True)
class Dram(Declared, prefix="dram."):
    """Channels of banks behind one data bus each; a bank serves its requests in order.

    A request waits for its bank, then for the data bus, which the ready banks of a channel
    use first come, first served for ``burst_cycles``. The bank is free again
    ``recovery_cycles`` after the burst; with open pages an access to the open row (a row hit)
    frees it at the end of the burst, and one to another row first spends
    ``precharge_cycles``. The data are there ``access_cycles`` after the burst.

    Numeric fields may be arrays (a sweep); ``page_policy`` is one word.

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs".
    .. [2] Ch. Ykman-Couvreur et al., "System-level performance optimization of the data queueing
       memory management in high-speed network processors", DAC 2002.
    """

    channels: Numeric = count(4, maximum=16)  # Memory channels, 1 to 16 (STNoC's limit, [1]_ sec. VI)
    banks: Numeric = count(8, maximum=MOST_BANKS)  # Banks of a channel ([2]_ sec. 4.1: 8)
    # Consecutive blocks in a channel before the address map moves on. [blocks]
    interleaving_step: Numeric = count(1, maximum=MOST_BLOCKS)
    # Consecutive blocks of a channel in one bank before the next bank (our assumption: 32, a row, so that the
    # order of addresses is row, bank, column). [blocks]
    bank_step: Numeric = count(32, maximum=MOST_BLOCKS)
    page_policy: str = choice("open", PAGE_POLICIES)  # Whether rows stay open after an access
    # Data-bus time of one segment ([2]_ sec. 4.1: 4; 64 bytes on a DDR2-800 bus as in [1]_). [cycles]
    burst_cycles: Numeric = positive(4)
    # Further time a bank is busy after a burst that opened its row ([2]_ sec. 4.1: 8). [cycles]
    recovery_cycles: Numeric = nonnegative(8)
    # Time to close a row before another one opens, open pages only (DDR2-800 tRP, 12.5 ns). [cycles]
    precharge_cycles: Numeric = nonnegative(5)
    # Fixed controller and array latency of every access (gem5's RubyMemoryControl of [1]_: 12). [cycles]
    access_cycles: Numeric = nonnegative(12)
    row_bytes: Numeric = count(2048)  # Bytes of one row (our assumption: 2 KiB). [bytes]
    # refresh_interval_cycles, refresh_cycles: Mean time between refreshes of a channel, and how long one
    # keeps its banks from starting an access; 0 without refresh. Channels take turns evenly, and a refresh
    # closes the rows. [cycles]
    refresh_interval_cycles: Numeric = nonnegative(0)
    refresh_cycles: Numeric = nonnegative(0)
    clock_ghz: Numeric = positive(0.4)  # Memory clock (DDR2-800: 0.4). [GHz]

    __toml_default__: ClassVar[bool] = True

    def _check_relations(self) -> None:
        interval, refresh = np.asarray(self.refresh_interval_cycles), np.asarray(self.refresh_cycles)
        if interval.shape != refresh.shape and interval.ndim == refresh.ndim == 1:
            refresh = refresh[:, None]  # swept apart: all combinations have to be possible
        if np.any((refresh > 0) & (2 * refresh > interval)):
            rule = f"at least twice dram.refresh_cycles = {self.refresh_cycles}"
            raise ValueError(
                f"dram.refresh_interval_cycles must be {rule}, got {self.refresh_interval_cycles!r}"
            )

    def locate(self, block: Any, row_blocks: Any) -> tuple[Any, Any, Any]:
        """Return channel, bank and row of a block (an int or an integer array), of so many in a row."""
        index = index_in_channel(block, self.interleaving_step, self.channels)
        row = index_in_bank(index, self.bank_step, self.banks) // row_blocks
        channel = channel_of(block, self.interleaving_step, self.channels)
        return channel, bank_of(index, self.bank_step, self.banks), row

    @classmethod
    def of_preset(cls, preset: str, **changes: Any) -> Dram:
        """Return the channels of a device in `qmodels.systems.memory.dram_timing.PRESETS`, with changes.

        An access to another row keeps its bank for the device's tRC; its data come tRCD + CL after its
        turn on the bus, also those of row hits, which in truth need CL alone. Ranks are taken as more
        banks; tFAW and turnarounds are left out.

        Examples
        --------
        >>> Dram.of_preset("DDR4-3200", channels=2).refresh_cycles
        560
        """
        device = PRESETS[checks.choice("preset", preset, PRESETS)]
        timing, geometry = device.timing, device.geometry
        policy = changes.get("page_policy", device.page_policy)
        precharge = timing.t_rp if policy == "open" else 0
        values: dict[str, Any] = {
            "channels": geometry.channels,
            "banks": geometry.channel_banks,
            "page_policy": policy,
            "burst_cycles": timing.burst,
            "recovery_cycles": max(timing.t_rc - precharge - timing.burst, 0),
            "precharge_cycles": precharge,
            "access_cycles": device.controller_cycles + timing.t_rcd + timing.cl,
            "row_bytes": geometry.row_blocks * geometry.block_bytes,
            "refresh_interval_cycles": timing.t_refi if timing.t_rfc else 0,
            "refresh_cycles": timing.t_rfc,
            "clock_ghz": timing.clock_ghz,
        }
        return cls(**values | changes)


SPAN = 1 << 24
"""Blocks over which random starts are spread (1 GiB of 64-byte blocks)."""


@dataclass(frozen=True, kw_only=True)
class RandomBlocks(Declared, prefix="traffic."):
    """Every access goes to a random bank of a random channel; accesses arrive as a Poisson process."""

    arrival_rate: Numeric = nonnegative(0.05)  # Accesses of the whole system. [blocks/cycle]
    write_fraction: float = probability(0.0)  # Share of the accesses that are writes
    # Probability that an access is to the row that its bank was asked for last; otherwise the row is a new
    # one
    row_hit_probability: float = probability(0.0)


@dataclass(frozen=True, kw_only=True)
class StridedBlocks(Declared, prefix="traffic."):
    """One stream of accesses a fixed distance apart, arriving as a Poisson process."""

    arrival_rate: Numeric = nonnegative(0.05)  # Accesses of the whole system. [blocks/cycle]
    stride: int = count(1)  # Distance of consecutive accesses; 1 is a sequential stream. [blocks]
    write_fraction: float = probability(0.0)  # Share of the accesses that are writes, at random


@dataclass(frozen=True, kw_only=True)
class Packets(Declared, prefix="traffic."):
    """Packets of consecutive blocks at random places; packets arrive as a Poisson process."""

    arrival_rate: Numeric = nonnegative(0.05)  # Accesses of the whole system. [blocks/cycle]
    blocks: int = count(24)  # Blocks of a packet
    spacing: int = count(0, minimum=0)  # Time between the accesses of a packet. [cycles]
    write_fraction: float = probability(0.0)  # Share of the packets that are written


@dataclass(frozen=True, kw_only=True)
class AddressTrace(Declared, prefix="traffic."):
    """Recorded accesses, in their order and again from the start; they arrive as a Poisson process."""

    blocks: tuple[int, ...] = count(minimum=0)  # Block numbers (byte address over the bytes of a block)
    writes: tuple[int, ...] = count(
        (), minimum=0, maximum=1
    )  # 1 for a write, 0 for a read; empty if all are reads
    arrival_rate: Numeric = nonnegative(0.05)  # Accesses of the whole system. [blocks/cycle]

    def _check_relations(self) -> None:
        if not self.blocks:
            raise ValueError("traffic.blocks must have at least one access, got ()")
        if len(self.writes) not in (0, len(self.blocks)):
            raise ValueError(
                f"traffic.writes must have a value for each of {len(self.blocks)} blocks, "
                f"got {len(self.writes)}"
            )

    @property
    def write_fraction(self) -> float:
        """Share of the accesses that are writes."""
        return sum(self.writes) / len(self.blocks)


DramTraffic = RandomBlocks | StridedBlocks | Packets | AddressTrace


SCHEDULERS = ("in-order", "oldest-ready-first", "fr-fcfs")


@dataclass(frozen=True, kw_only=True)
class DramSystem(Replaceable, Declared):
    """DRAM channels behind their controllers; all times in cycles of the command clock.

    Channels are independent. A controller keeps any number of waiting accesses. Reads and writes
    wait apart: writes are served when no read waits or ``write_high`` of them wait, until only
    ``write_low`` are left.

    Raises
    ------
    ValueError
        If a value is out of range, the timing contradicts itself, or the map is no bijection.

    Examples
    --------
    >>> spec = dram("DDR4-3200", ranks=2, page_policy="closed")
    >>> spec.geometry.channel_banks, round(spec.peak_gbytes, 1)
    (32, 25.6)
    """

    timing: DramTiming  # Of the devices
    # Channels, ranks, bank groups, banks and rows
    geometry: DramGeometry = field(default_factory=DramGeometry)
    # Whether a row stays open after an access. A closed row is closed with the access itself
    page_policy: str = choice("open", PAGE_POLICIES)
    # In order: accesses use the bus in the order of their arrival, reads and writes alike. Oldest ready
    # first: of the banks' oldest accesses, the first whose next command may be given. FR-FCFS: the same, but
    # accesses to the open row of a bank pass those to other rows, up to ``row_hit_cap`` of them in a row
    scheduler: str = choice("fr-fcfs", SCHEDULERS)
    row_hit_cap: int = count(4)  # Row hits that may pass an older access to the bank
    # write_high, write_low: Waiting writes of a channel at which its reads stop, and resume
    write_high: int = count(26)
    write_low: int = count(6, minimum=0)
    controller_cycles: int = count(0, minimum=0)  # Fixed time an access spends in the controller. [cycles]
    # Where a block is; `RandomBlocks` need none
    address_map: Interleaved | BitFields = field(default_factory=Interleaved)
    traffic: DramTraffic = field(default_factory=RandomBlocks)  # What is asked

    __toml_keys__: ClassVar[tuple[str, ...]] = ("preset",)
    __toml_words__: ClassVar[tuple[str, ...]] = tuple(PRESETS)

    @classmethod
    def __from_toml__(cls, value: Any, place: Place) -> Any:
        if isinstance(value, str):
            value = {"preset": value}
        if not isinstance(value, dict) or "preset" not in value:
            return value
        changes = {k: v for k, v in value.items() if k != "preset"}
        return place.changed(dram(value["preset"]), changes)

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=(
            "read_latency", "read_latency_p50", "read_latency_p99", "delivered_rate", "bandwidth",
            "bus_utilization", "row_hit_ratio", "read_conflict_probability", "write_latency",
            "write_conflict_probability",
        ),
        model=("saturation_rate",),
    )  # fmt: skip

    def _check_relations(self) -> None:
        checks.count("write_high", self.write_high, minimum=self.write_low + 1)
        self.address_map.check(self.geometry)

    @property
    def preset(self) -> str:
        """Name of the preset that has these devices, be it in larger blocks; empty if none has."""
        for name, one in PRESETS.items():
            bursts = self.geometry.block_bytes // one.geometry.block_bytes
            if bursts and self.timing in (one.timing, one.timing.of_bursts(bursts)):
                return name
        return ""

    def in_blocks(self, block_bytes: int) -> DramSystem:
        """Return the same devices when a block is several bursts of one row, one behind the other.

        Examples
        --------
        >>> wide = dram("HBM3").in_blocks(64)
        >>> wide.geometry.block_bytes, wide.timing.burst, wide.preset
        (64, 4, 'HBM3')
        """
        bursts, rest = divmod(block_bytes, self.geometry.block_bytes)
        if rest or not bursts or self.geometry.row_blocks % bursts:
            rule = f"whole bursts of {self.geometry.block_bytes} bytes, of which a row has whole blocks"
            raise ValueError(f"block_bytes must be {rule}, got {block_bytes}")
        geometry = replace(
            self.geometry, block_bytes=block_bytes, row_blocks=self.geometry.row_blocks // bursts
        )
        return replace(self, timing=self.timing.of_bursts(bursts), geometry=geometry)

    @property
    def arrival_rate(self) -> Numeric:
        """Accesses of the whole system, in blocks/cycle."""
        return self.traffic.arrival_rate

    @property
    def clock_ghz(self) -> float:
        """Command clock. [GHz]."""
        return self.timing.clock_ghz

    @property
    def peak_gbytes(self) -> float:
        """Bandwidth of the data buses if they never idle, in GB/s."""
        return self.gbytes(self.geometry.channels / self.timing.burst)

    def gbytes(self, rate: Any) -> Any:
        """Return blocks per cycle as GB/s."""
        return rate * self.geometry.block_bytes * self.clock_ghz


def dram(preset: str, **changes: Any) -> DramSystem:
    """Return a preset with changes.

    Parameters
    ----------
    preset : str
        A name in `PRESETS`.
    **changes
        Fields of `DramSystem` and of its parts, by name.

    Raises
    ------
    ValueError
        If there is no such preset or no such field, or a changed value is wrong.

    Examples
    --------
    >>> dram("HBM2", t_refi=0, t_rfc=0).geometry.channels
    8
    """
    found = parts(PRESETS[checks.choice("preset", preset, PRESETS)])
    return replace_fields(DramSystem(**{k: v for k, v in found.items() if k != "source"}), changes)
