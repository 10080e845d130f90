"""Compiled address maps place every block where the maps of the specs do."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from qmodels import dram
from qmodels.systems.memory.dram_map import Interleaved, bit_fields
from qmodels.systems.memory.dram_traffic import SPAN
from validate.dram.addresses import locate, new_books

MAPS = [
    *(
        (Interleaved(step=step, bank_step=bank_step, order=order, permute=permute), {"channels": channels})
        for (step, bank_step, channels), order, permute in zip(
            [(1, 1, 1), (4, 1, 8), (32, 128, 64), (3, 5, 6), (2, 64, 3), (7, 1, 12)],
            permutations(("group", "bank", "rank")),
            ("none", "rotate", "xor") * 2,
            strict=True,
        )
    ),
    (
        bit_fields("row:17 rank:1 bank:2 column:5 group:2 channel:3 column:2", xor=("bank^row",)),
        {"channels": 8},
    ),
    (bit_fields("row:14 column:7 bank:2 group:2 rank:1", xor=("group^row", "bank^column")), {}),
]


@pytest.mark.parametrize("number", range(len(MAPS)))
def test_blocks_are_where_the_map_says(number):
    specs = [dram("DDR4-3200", address_map=plan, ranks=2, **changes) for plan, changes in MAPS]
    books, spec = new_books(specs), specs[number]
    rng = np.random.default_rng(number)
    blocks = np.concatenate((np.arange(300), rng.integers(SPAN, size=700), [SPAN + 5]))
    place = spec.address_map.locate(blocks, spec.geometry)
    found = np.array([locate(books, number, int(block)) for block in blocks])
    np.testing.assert_array_equal(found, np.transpose([place.channel, place.bank, place.row]))
    # The blocks are spread over channels and banks: a map that ignores the block would not pass.
    assert np.unique(found[:, 0]).size == spec.geometry.channels
    assert np.unique(found[:, 1]).size == spec.geometry.channel_banks
