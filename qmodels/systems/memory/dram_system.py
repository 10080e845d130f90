"""A DRAM system: devices, controllers, address map and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from qmodels import checks
from qmodels.checks import Numeric
from qmodels.systems.memory.dram import PAGE_POLICIES
from qmodels.systems.memory.dram_map import BitFields, DramGeometry, Interleaved
from qmodels.systems.memory.dram_timing import PRESETS, DramTiming
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.fields import parts, replace_fields
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, probability
from qmodels.systems.spec.text.reading import Place

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
