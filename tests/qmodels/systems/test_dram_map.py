from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qmodels.systems.memory.dram_map import LEVELS, DramGeometry, Interleaved, Place, bit_fields

sizes = st.integers(1, 5)


@st.composite
def interleavings(draw):
    geometry = DramGeometry(
        channels=draw(sizes),
        ranks=draw(sizes),
        groups=draw(sizes),
        banks=draw(sizes),
        row_blocks=draw(st.integers(1, 12)),
    )
    banks = geometry.channel_banks
    permutes = ["none", "rotate"] + (["xor"] if banks & (banks - 1) == 0 else [])
    plan = Interleaved(
        step=draw(st.integers(1, 9)),
        bank_step=draw(st.integers(1, 3)) * geometry.row_blocks,
        order=tuple(draw(st.permutations(LEVELS))),
        permute=draw(st.sampled_from(permutes)),
    )
    return geometry, plan


@given(interleavings())
def test_interleaving_puts_no_two_blocks_in_one_place(case):
    geometry, plan = case
    plan.check(geometry)
    blocks = np.arange(4000)
    place = plan.locate(blocks, geometry)
    assert len(set(zip(*(x.tolist() for x in place), strict=True))) == blocks.size
    assert place.bank.max() < geometry.channel_banks and place.channel.max() < geometry.channels


@given(st.integers(1, 20), st.integers(1, 20), st.integers(0, 10**6))
def test_the_step_is_nothing_to_one_channel(step, other, block):
    geometry = DramGeometry()
    places = [Interleaved(step=s).locate(block, geometry) for s in (step, other)]
    assert places[0] == places[1]


@given(st.permutations(range(16)), st.sampled_from([(), ("bank^row",), ("group^row", "bank^column")]))
def test_bit_fields_in_any_order_are_bijections(order, xor):
    names = ["row"] * 6 + ["column"] * 4 + ["bank"] * 2 + ["group"] + ["rank"] + ["channel"] * 2
    plan = bit_fields(" ".join(f"{names[k]}:1" for k in order), xor=xor)
    geometry = DramGeometry(channels=4, ranks=2, groups=2, banks=4, row_blocks=16)
    plan.check(geometry)
    blocks = np.arange(1 << 16)
    place = plan.locate(blocks, geometry)
    packed = ((place.row * 16 + place.column) * 16 + place.bank) * 4 + place.channel
    assert np.unique(packed).size == blocks.size


def test_order_and_permutation_decide_where_neighbours_go():
    geometry = DramGeometry(ranks=2)
    neighbours = np.arange(4)
    assert Interleaved().locate(neighbours, geometry).bank.tolist() == [0, 4, 8, 12]
    by_bank = Interleaved(order=("bank", "group", "rank")).locate(neighbours, geometry)
    assert by_bank.bank.tolist() == [0, 1, 2, 3]
    by_rank = Interleaved(order=("rank", "bank", "group")).locate(neighbours, geometry)
    assert by_rank.bank.tolist() == [0, 16, 1, 17]
    rows = np.arange(3) * geometry.row_blocks * geometry.channel_banks
    whole_rows = {"bank_step": geometry.row_blocks, "order": ("bank", "group", "rank")}
    assert Interleaved(**whole_rows).locate(rows, geometry).bank.tolist() == [0, 0, 0]
    for permute in ("rotate", "xor"):
        spread = Interleaved(permute=permute, **whole_rows).locate(rows, geometry)
        assert spread.bank.tolist() == [0, 1, 2]


def test_place_counts_banks_over_ranks_and_groups():
    geometry = DramGeometry(ranks=2, groups=2, banks=2)
    block = (3 * 8 + 7) * 128 + 5  # rows go round the banks: group, bank, rank
    assert Interleaved(bank_step=128).locate(block, geometry) == Place(channel=0, bank=7, row=3, column=5)
