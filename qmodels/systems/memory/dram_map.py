"""Address maps of a DRAM system: by bit fields or by interleaving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from qmodels import checks
from qmodels.systems.memory.memory_map import bank_of, channel_of, index_in_bank, index_in_channel
from qmodels.systems.spec.ranges import Declared, choice, count

Whole = Any  # an int or an integer array; the arithmetic is the same

LEVELS = ("group", "bank", "rank")
"""What consecutive banks of a channel differ in."""

FIELDS = ("channel", "rank", "group", "bank", "row", "column")
PERMUTATIONS = ("none", "rotate", "xor")


def permuted(turn: Whole, row: Whole, banks: int, permutation: int) -> Whole:
    """Return which of the banks has its turn in a row, by a number in `PERMUTATIONS`."""
    if permutation == 0:
        return turn
    return turn ^ row % banks if permutation == 2 else (turn + row) % banks


def mixed_radix(turn: Whole, sizes: Any, weights: Any) -> Whole:
    """Return the sum of three digits of a number, of these sizes from the lowest, times their weights."""
    total = 0 * turn
    for k in range(3):
        total = total + turn % sizes[k] * weights[k]
        turn = turn // sizes[k]
    return total


class Place(NamedTuple):
    """Where a block is; ``bank`` counts all banks of a channel: (rank, group, bank) in that order."""

    channel: Whole
    bank: Whole
    row: Whole
    column: Whole


MOST = 1 << 20
"""Banks in all, and blocks of a row: more than any device has."""


@dataclass(frozen=True, kw_only=True)
class DramGeometry(Declared, prefix="geometry."):
    """Geometry of a DRAM system."""

    # channels, ranks, groups, banks: Channels, ranks of a channel, bank groups of a rank, banks of a group
    channels: int = count(1, maximum=MOST)
    ranks: int = count(1, maximum=MOST)
    groups: int = count(4, maximum=MOST)
    banks: int = count(4, maximum=MOST)
    row_blocks: int = count(128, maximum=MOST)  # Blocks in a row of a bank
    block_bytes: int = count(64, maximum=MOST)  # What one burst moves. [bytes]

    def _check_relations(self) -> None:
        total = self.channels * self.channel_banks
        if total > MOST:
            raise ValueError(f"geometry.banks must make at most {MOST} in all channels, got {total}")

    @property
    def rank_banks(self) -> int:
        """Banks of a rank."""
        return self.groups * self.banks

    @property
    def channel_banks(self) -> int:
        """Banks of a channel."""
        return self.ranks * self.groups * self.banks


@dataclass(frozen=True, kw_only=True)
class Interleaved(Declared, prefix="address_map."):
    """Consecutive blocks go round the channels, and those of a channel round its banks.

    Examples
    --------
    >>> import numpy as np
    >>> geometry, plan = DramGeometry(channels=4), Interleaved(step=2)
    >>> place = plan.locate(np.array([0, 1, 2, 9]), geometry)
    >>> place.channel, place.bank
    (array([0, 0, 1, 0]), array([ 0,  4,  0, 12]))
    """

    # Consecutive blocks in a channel before the next channel. With one channel it changes nothing. [blocks]
    step: int = count(1)
    # Consecutive blocks of a channel in a bank before the next bank; with ``row_blocks`` a row is filled
    # first. [blocks]
    bank_step: int = count(1)
    # What changes first when banks are gone round: a permutation of group, bank, rank
    order: tuple[str, ...] = LEVELS
    # How the bank is permuted by the row, so that rows of a large stride spread: not at all, by adding the
    # row, or by XOR (the banks must then be a power of two)
    permute: str = choice("none", PERMUTATIONS)

    def _check_relations(self) -> None:
        if sorted(self.order) != sorted(LEVELS):
            raise ValueError(
                f"address_map.order must be a permutation of {', '.join(LEVELS)}, got {self.order!r}"
            )

    def check(self, geometry: DramGeometry) -> None:
        """Raise if the map is no bijection for the geometry."""
        banks = geometry.channel_banks
        if self.permute == "xor" and banks & (banks - 1):
            raise ValueError(
                f"address_map must be a bijection: xor needs a power of two of banks, got {banks}"
            )

    def locate(self, block: Whole, geometry: DramGeometry) -> Place:
        """Return where blocks are."""
        g = geometry
        index = index_in_channel(block, self.step, g.channels)
        position = index_in_bank(index, self.bank_step, g.channel_banks)
        row, column = position // g.row_blocks, position % g.row_blocks
        permutation = PERMUTATIONS.index(self.permute)
        turn = permuted(bank_of(index, self.bank_step, g.channel_banks), row, g.channel_banks, permutation)
        bank = mixed_radix(turn, *self.digits(g))
        return Place(channel_of(block, self.step, g.channels), bank, row, column)

    def digits(self, geometry: DramGeometry) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the size and stride of the fastest-changing address field of the banks."""
        size = {"group": geometry.groups, "bank": geometry.banks, "rank": geometry.ranks}
        distance = {"bank": 1, "group": geometry.banks, "rank": geometry.rank_banks}
        return tuple(size[level] for level in self.order), tuple(distance[level] for level in self.order)


@dataclass(frozen=True, kw_only=True)
class BitFields(Declared, prefix="address_map."):
    """Every bit of the place is the exclusive or of some bits of the block's number.

    Raises
    ------
    ValueError
        If the bits do not determine the block: the map would not be a bijection.

    Examples
    --------
    >>> import numpy as np
    >>> plan = bit_fields("row:2 bank:2 group:2 column:7", xor=("bank^row",))
    >>> geometry = DramGeometry(row_blocks=128)
    >>> place = plan.locate(np.array([5, 128 * 16, 128 * 21]), geometry)
    >>> place.bank, place.row
    (array([0, 1, 4]), array([0, 1, 1]))
    """

    # channel, rank, group, bank, row, column: Of each bit of the field, the lowest first: the mask of the
    # bits of the block's number. A field of size 1 has none. The numbers above the highest bit are not used
    channel: tuple[int, ...] = ()
    rank: tuple[int, ...] = ()
    group: tuple[int, ...] = ()
    bank: tuple[int, ...] = ()
    row: tuple[int, ...] = ()
    column: tuple[int, ...] = ()

    def _check_relations(self) -> None:
        for name in FIELDS:
            for mask in getattr(self, name):
                checks.count(f"address_map.{name}", mask)
        self._check_bits()

    def check(self, geometry: DramGeometry) -> None:
        """Raise if a field does not have the bits that the geometry asks for."""
        sizes = {
            "channel": geometry.channels, "rank": geometry.ranks, "group": geometry.groups,
            "bank": geometry.banks, "column": geometry.row_blocks,
        }  # fmt: skip
        for name, size in sizes.items():
            if 2 ** len(getattr(self, name)) != size:
                raise ValueError(
                    f"address_map must be a bijection: {name} has {size} values and needs as many as "
                    f"its bits give, got {len(getattr(self, name))} bits"
                )

    def locate(self, block: Whole, geometry: DramGeometry) -> Place:
        """Return where blocks are."""
        part = {name: _combined(block, getattr(self, name)) for name in FIELDS}
        bank = (part["rank"] * geometry.groups + part["group"]) * geometry.banks + part["bank"]
        return Place(part["channel"], bank, part["row"], part["column"])

    def _check_bits(self) -> None:
        """Require masks that determine the block: independent ones, by elimination over two elements."""
        masks = tuple(mask for name in FIELDS for mask in getattr(self, name))
        rows = list(masks)
        for column in range(len(rows)):
            pivot = next((k for k in range(column, len(rows)) if rows[k] >> column & 1), None)
            if pivot is None or any(row >> len(rows) for row in rows):
                raise ValueError(
                    "address_map must be a bijection: its masks must be independent and use each of the "
                    f"lowest {len(rows)} bits, got {masks!r}"
                )
            rows[column], rows[pivot] = rows[pivot], rows[column]
            for k in range(column + 1, len(rows)):
                if rows[k] >> column & 1:
                    rows[k] ^= rows[column]


def _combined(word: Whole, masks: tuple[int, ...]) -> Whole:
    result = 0 * word
    for bit, mask in enumerate(masks):
        parity = word & mask
        for shift in (32, 16, 8, 4, 2, 1):
            parity = parity ^ parity >> shift
        result = result | (parity & 1) << bit
    return result


def bit_fields(layout: str, *, xor: tuple[str, ...] = ()) -> BitFields:
    """Return a map from its fields, the most significant first.

    ``layout``: fields with their widths, such as ``"row:15 bank:2 column:5 channel:1 column:2"``; a field may
    stand in several pieces; ``xor``: ``"bank^row"`` combines the bits of the bank with the lowest bits of the
    row.
    """
    masks: dict[str, list[int]] = {name: [] for name in FIELDS}
    bit = 0
    for piece in reversed(layout.split()):
        name, _, width = piece.partition(":")
        checks.choice("layout", name, FIELDS)
        number = int(width) if width.isdecimal() else width
        bits = int(checks.count(f"layout {name}", number, minimum=0))
        masks[name] += [1 << k for k in range(bit, bit + bits)]
        bit += bits
    for pair in xor:
        changed, _, by = pair.partition("^")
        checks.choice("xor", changed, FIELDS)
        checks.choice("xor", by, FIELDS)
        mixed = list(masks[changed])
        for k, mask in enumerate(masks[by][: len(mixed)]):
            mixed[k] ^= mask
        if 0 in mixed:
            raise ValueError(f"address_map must be a bijection: {pair!r} removes bits")
        masks[changed] = mixed
    return BitFields(**{name: tuple(value) for name, value in masks.items()})
