"""The memory map of a network interface: which channel an address belongs to, interleaved or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.laws.fields import keep
from qmodels.systems.laws.kinds import require_law
from qmodels.systems.laws.times import Law
from qmodels.systems.spec.ranges import Declared, count


@dataclass(frozen=True, kw_only=True)
class BankedChannels(Declared, prefix="memory."):
    """Channels of a few banks, as those of stacked DRAM with copies of a table.

    Each channel holds everything, a part of it in each of its banks; a job wants a random part. It goes to
    the channel with the fewest busy banks of those whose bank with that part is idle; if there is none it
    waits for one, first come, first served by part.

    Examples
    --------
    >>> from qmodels.systems.laws.times import Exponential
    >>> BankedChannels(service=Exponential(mean=125.0), channels=32, speeds=(1.0, 0.7)).speed_of_all
    (1.0, 0.7)
    """

    service: Law  # Service times of a bank while the others of its channel are idle. [ns]
    # channels, banks: Channels, and banks of each
    channels: int = count(1, maximum=4096)
    banks: int = count(2, maximum=64)
    # Speed of a bank while 1, 2, ... banks of its channel are busy, the last value for more
    speeds: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        require_law("memory.service", self.service)
        keep(self, speeds=tuple(checks.positive("memory.speeds", self.speeds).ravel().tolist()))
        super().__post_init__()
        if not self.speeds:
            raise ValueError("memory.speeds must have a speed, got ()")

    @property
    def speed_of_all(self) -> tuple[float, ...]:
        """Speed of a bank while 1, 2, ... all banks of its channel are busy."""
        return (self.speeds + self.speeds[-1:] * self.banks)[: self.banks]


Whole = Any  # an int or an integer array; the arithmetic is the same


def channel_of(block: Whole, step: Whole, channels: Whole) -> Whole:
    """Return the channel: ``step`` consecutive blocks, then the next channel."""
    return block // step % channels


def index_in_channel(block: Whole, step: Whole, channels: Whole) -> Whole:
    """Return the position of the block among those of its channel; with one channel, the block itself."""
    return block // (step * channels) * step + block % step


def bank_of(index: Whole, bank_step: Whole, banks: Whole) -> Whole:
    """Return the bank of a position in a channel: ``bank_step`` positions, then the next bank."""
    return index // bank_step % banks


def index_in_bank(index: Whole, bank_step: Whole, banks: Whole) -> Whole:
    """Return the position among those of its bank of a position in a channel."""
    return index // (bank_step * banks) * bank_step + index % bank_step


def scatter(entry: Whole) -> Whole:
    """Return a well-mixed whole number in [0, 2**31) of an entry number in [0, 2**31): the address hash.

    Two rounds of multiply and fold; every product fits a signed 64-bit integer, so that Python,
    NumPy int64 and compiled code give the same number.
    """
    mixed = (entry + 1) * 2654435761 % 4294967296
    mixed = (mixed ^ (mixed >> 15)) * 739982445 % 4294967296
    return (mixed ^ (mixed >> 13)) % 2147483648


MOST_SETS = 16
MOST_CHANNELS = 16


@dataclass(frozen=True, kw_only=True)
class InterleavedRegion(Declared, prefix="region."):
    """A range of addresses that is spread over memory channels.

    Enabled, ``step_bytes`` of consecutive addresses lie on one channel, the next on the next one
    in turn. Disabled, each channel has one contiguous part of the range, in the same order.

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs", sections III and
       VII (regions with channel offset, interleaving step and number of channels; up to 16 channels).
    """

    # start_bytes, size_bytes: First address and length; the length is a multiple of the step times the
    # channels. [bytes]
    start_bytes: int = count(minimum=0)
    size_bytes: int = count()
    channels: tuple[int, ...] = count(minimum=0)  # Nodes of the channels, at most 16, all different
    step_bytes: int = count(128)  # Interleaving step. [bytes]
    offset: int = 0  # Position in ``channels`` of the one that has the first address
    enabled: bool = True  # Whether addresses are interleaved

    def _check_relations(self) -> None:
        if not 1 <= len(self.channels) <= MOST_CHANNELS:
            raise ValueError(f"region.channels must be 1 to {MOST_CHANNELS} nodes, got {len(self.channels)}")
        if len(set(self.channels)) < len(self.channels):
            raise ValueError(f"region.channels must be different nodes, got {self.channels!r}")
        checks.count("region.offset", self.offset, minimum=0, maximum=len(self.channels) - 1)
        whole = self.step_bytes * len(self.channels)
        if self.size_bytes % whole:
            raise ValueError(
                f"region.size_bytes must be a multiple of step_bytes x channels = {whole}, "
                f"got {self.size_bytes!r}"
            )

    @property
    def run_bytes(self) -> int:
        """Consecutive bytes on one channel: the step, or a whole part if interleaving is disabled."""
        return self.step_bytes if self.enabled else self.size_bytes // len(self.channels)


@dataclass(frozen=True, kw_only=True)
class MemoryMap(Declared):
    """Up to 16 regions of addresses that do not overlap.

    Examples
    --------
    >>> region = InterleavedRegion(start_bytes=4096, size_bytes=4096, channels=(8, 9), step_bytes=256)
    >>> chip = MemoryMap(regions=(region,))
    >>> chip.locate(4096 + 300)
    (0, 9, 44)
    """

    regions: tuple[InterleavedRegion, ...]  # The sets

    def _check_relations(self) -> None:
        if not 1 <= len(self.regions) <= MOST_SETS:
            raise ValueError(f"memory map must have 1 to {MOST_SETS} regions, got {len(self.regions)}")
        ordered = sorted(self.regions, key=lambda region: region.start_bytes)
        for one, other in zip(ordered, ordered[1:], strict=False):
            if one.start_bytes + one.size_bytes > other.start_bytes:
                raise ValueError(
                    f"regions must not overlap, got one to {one.start_bytes + one.size_bytes} "
                    f"and one from {other.start_bytes}"
                )

    def locate(self, address: Any) -> tuple[Any, Any, Any]:
        """Return region, channel node and address inside the channel's share of the region.

        Parameters
        ----------
        address : int or array of int
            Address. [bytes]

        Raises
        ------
        ValueError
            If an address is in no region.
        """
        wanted = checks.count("address", address, minimum=0)
        where, node, local = (np.full(wanted.shape, -1, dtype=np.int64) for _ in range(3))
        for number, region in enumerate(self.regions):
            inside = (wanted >= region.start_bytes) & (wanted < region.start_bytes + region.size_bytes)
            byte = wanted - region.start_bytes
            count, run = len(region.channels), region.run_bytes
            position = (channel_of(byte, run, count) + region.offset) % count
            where = np.where(inside, number, where)
            node = np.where(inside, np.array(region.channels)[position], node)
            local = np.where(inside, index_in_channel(byte, run, count), local)
        if np.any(where < 0):
            raise ValueError(f"address must be in a region, got {int(wanted[where < 0].flat[0])}")
        return (where, node, local) if wanted.ndim else (int(where), int(node), int(local))
