"""Traffic of a DRAM system: random, sequential, strided and recorded accesses, and packets."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.checks import Numeric
from qmodels.systems.spec.ranges import Declared, count, nonnegative, probability

SPAN = 1 << 24
"""Blocks over which random starts are spread (1 GiB of 64-byte blocks)."""


@dataclass(frozen=True, kw_only=True)
class RandomBlocks(Declared, prefix="traffic."):
    """Every access goes to a random bank of a random channel; accesses arrive as a Poisson process.

    Parameters
    ----------
    arrival_rate : float or array
        Accesses of the whole system. [blocks/cycle]
    write_fraction : float
        Share of the accesses that are writes.
    row_hit_probability : float
        Probability that an access is to the row that its bank was asked for last; otherwise the row
        is a new one.
    """

    arrival_rate: Numeric = nonnegative(0.05)
    write_fraction: float = probability(0.0)
    row_hit_probability: float = probability(0.0)


@dataclass(frozen=True, kw_only=True)
class StridedBlocks(Declared, prefix="traffic."):
    """One stream of accesses a fixed distance apart, arriving as a Poisson process.

    Parameters
    ----------
    arrival_rate : float or array
        Accesses of the whole system. [blocks/cycle]
    stride : int
        Distance of consecutive accesses; 1 is a sequential stream. [blocks]
    write_fraction : float
        Share of the accesses that are writes, at random.
    """

    arrival_rate: Numeric = nonnegative(0.05)
    stride: int = count(1)
    write_fraction: float = probability(0.0)


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
