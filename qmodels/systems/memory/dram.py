"""Interleaved DRAM channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import Numeric
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.memory.memory_map import bank_of, channel_of, index_in_bank, index_in_channel
from qmodels.systems.spec.ranges import Declared, choice, count, nonnegative, positive

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
