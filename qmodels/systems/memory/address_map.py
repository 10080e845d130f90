"""Where a block lives: channel, bank and row of a block address, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qmodels import checks

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


@dataclass(frozen=True, kw_only=True)
class AddressMap:
    """Interleaving of consecutive blocks over channels, and of those of a channel over its banks.

    The interleaving step decides the channel alone: with one channel it changes nothing. With
    ``bank_step`` equal to ``row_blocks`` (row, bank, column) consecutive blocks of a channel fill
    a row before the next bank; with 1 they go round the banks.
    """

    interleaving_step: int  # consecutive blocks in a channel before the map moves to the next one [blocks]
    # channels, banks: channels, and banks in each.
    channels: int
    banks: int
    bank_step: int  # consecutive blocks of a channel in one bank before the next one [blocks]
    row_blocks: int  # blocks in one row (page) of a bank [blocks]

    def __post_init__(self) -> None:
        for name in ("interleaving_step", "channels", "banks", "bank_step", "row_blocks"):
            checks.count(name, getattr(self, name))

    def locate(self, block: Whole) -> tuple[Whole, Whole, Whole]:
        """Return channel, bank and row of a block (an int or an integer array)."""
        index = index_in_channel(block, self.interleaving_step, self.channels)
        row = index_in_bank(index, self.bank_step, self.banks) // self.row_blocks
        return (
            channel_of(block, self.interleaving_step, self.channels),
            bank_of(index, self.bank_step, self.banks),
            row,
        )
