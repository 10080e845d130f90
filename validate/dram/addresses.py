"""Where a block is: the address maps of DRAM systems for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.memory import address_map, dram_map
from qmodels.systems.memory.dram_map import PERMUTATIONS, BitFields, Interleaved
from validate.engine.jit import lean, lean_part

# Numbers of an interleaving map; sizes and distances of its three digits follow.
STEP, CHANNELS, BANK_STEP, BANKS, ROW_BLOCKS, PERMUTATION, SIZES = range(7)
DISTANCES = SIZES + 3
BYTES = 5
"""Bytes of a block's number that a linear map may use."""
FIELD = 16
"""Bits of the channel, and of the bank, in a place that is packed into a word; the row is above them."""

channel_of = lean_part(address_map.channel_of)
index_in_channel = lean_part(address_map.index_in_channel)
index_in_bank = lean_part(address_map.index_in_bank)
bank_of = lean_part(address_map.bank_of)
permuted = lean_part(dram_map.permuted)
mixed_radix = lean_part(dram_map.mixed_radix)


class AddressBooks(NamedTuple):
    """Address maps of some systems."""

    numbers: Any  # of a map that interleaves: see the names above; a step of 0 marks one that is linear
    # Of a linear map: the places of numbers of one byte, at each of its positions, packed. Of bit fields
    # every bit of the place is an exclusive or of bits of the block, so that the place of a block is the
    # exclusive or of those of its bytes; interleaving by powers of two is of this kind.
    images: Any


def new_books(specs: Sequence[Any]) -> AddressBooks:
    """Return the address maps of some systems, which have a geometry."""
    numbers = np.zeros((len(specs), DISTANCES + 3), dtype=np.int64)
    images = np.zeros((len(specs), BYTES, 256), dtype=np.int64)
    for k, spec in enumerate(specs):
        plan, g = spec.address_map, spec.geometry
        if _is_linear(spec):
            place = plan.locate(np.arange(256) << 8 * np.arange(BYTES)[:, None], g)
            images[k] = place.row << 2 * FIELD | place.bank << FIELD | place.channel
        elif isinstance(plan, Interleaved):
            sizes, distances = plan.digits(g)
            permutation = PERMUTATIONS.index(plan.permute)
            numbers[k] = (
                *(plan.step, g.channels, plan.bank_step, g.channel_banks, g.row_blocks, permutation),
                *(*sizes, *distances),
            )
    return AddressBooks(numbers, images)


def _is_linear(spec: Any) -> bool:
    plan, g = spec.address_map, spec.geometry
    if isinstance(plan, BitFields):
        return True
    sizes = (plan.step, plan.bank_step, g.channels, g.ranks, g.groups, g.banks, g.row_blocks)
    return plan.permute != "rotate" and all(size & (size - 1) == 0 for size in sizes)


@lean
def locate(books: AddressBooks, k: int, block: Any) -> tuple[Any, Any, Any]:
    """Return channel, bank of the channel, and row of a block of a system, as its address map does."""
    p = books.numbers[k]
    if p[STEP] == 0:
        place = np.int64(0)
        for byte in range(BYTES):
            place ^= books.images[k, byte, block >> 8 * byte & 255]
        mask = (1 << FIELD) - 1
        return place & mask, place >> FIELD & mask, place >> 2 * FIELD
    index = index_in_channel(block, p[STEP], p[CHANNELS])
    row = index_in_bank(index, p[BANK_STEP], p[BANKS]) // p[ROW_BLOCKS]
    turn = permuted(bank_of(index, p[BANK_STEP], p[BANKS]), row, p[BANKS], p[PERMUTATION])
    bank = mixed_radix(turn, p[SIZES:DISTANCES], p[DISTANCES:])
    return channel_of(block, p[STEP], p[CHANNELS]), bank, row
