"""The memory map of a network interface: which channel an address belongs to, interleaved or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.memory.address_map import channel_of, index_in_channel
from qmodels.systems.spec.ranges import Declared, count, flag

MOST_SETS = 16
MOST_CHANNELS = 16


@dataclass(frozen=True, kw_only=True)
class InterleavedRegion(Declared, prefix="region."):
    """A range of addresses that is spread over memory channels.

    Enabled, ``step_bytes`` of consecutive addresses lie on one channel, the next on the next one
    in turn. Disabled, each channel has one contiguous part of the range, in the same order.

    Parameters
    ----------
    start_bytes, size_bytes : int
        First address and length; the length is a multiple of the step times the channels. [bytes]
    channels : tuple of int
        Nodes of the channels, at most 16, all different.
    step_bytes : int
        Interleaving step. [bytes]
    offset : int
        Position in ``channels`` of the one that has the first address.
    enabled : bool
        Whether addresses are interleaved.

    References
    ----------
    .. [1] M. D. Grammatikakis et al., "Address Interleaving for Low-Cost NoCs", sections III and
       VII (regions with channel offset, interleaving step and number of channels; up to 16 channels).
    """

    start_bytes: int = count(minimum=0)
    size_bytes: int = count()
    channels: tuple[int, ...] = count(minimum=0)
    step_bytes: int = count(128)
    offset: int = 0
    enabled: bool = flag(True)

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

    Parameters
    ----------
    regions : tuple of InterleavedRegion
        The sets.

    Examples
    --------
    >>> region = InterleavedRegion(start_bytes=4096, size_bytes=4096, channels=(8, 9), step_bytes=256)
    >>> chip = MemoryMap(regions=(region,))
    >>> chip.locate(4096 + 300)
    (0, 9, 44)
    """

    regions: tuple[InterleavedRegion, ...]

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
