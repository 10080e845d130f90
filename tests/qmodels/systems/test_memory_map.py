"""Where blocks lie: bijections, whatever is programmed, and even shares."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qmodels.memory import InterleavedRegion, MemoryMap
from qmodels.systems.memory.dram_map import LEVELS, DramGeometry, Interleaved, Place, bit_fields


@st.composite
def maps(draw):
    regions, start = [], 0
    for _ in range(draw(st.integers(1, 4))):
        channels = draw(st.lists(st.integers(0, 40), min_size=1, max_size=16, unique=True))
        step = draw(st.integers(1, 40))
        start += draw(st.integers(0, 100))
        size = step * len(channels) * draw(st.integers(1, 5))
        regions.append(
            InterleavedRegion(
                start_bytes=start,
                size_bytes=size,
                channels=tuple(channels),
                step_bytes=step,
                offset=draw(st.integers(0, len(channels) - 1)),
                enabled=draw(st.booleans()),
            )
        )
        start += size
    return MemoryMap(regions=tuple(draw(st.permutations(regions))))


@given(chip=maps())
def test_every_address_has_its_own_place(chip):
    addresses = np.concatenate([np.arange(r.start_bytes, r.start_bytes + r.size_bytes) for r in chip.regions])
    where, node, local = chip.locate(addresses)
    places = set(zip(where.tolist(), node.tolist(), local.tolist(), strict=True))
    assert len(places) == addresses.size
    for k, region in enumerate(chip.regions):
        for channel in region.channels:
            mine = np.sort(local[(where == k) & (node == channel)])
            assert np.array_equal(mine, np.arange(region.size_bytes // len(region.channels)))


@given(chip=maps())
def test_against_a_walk_through_the_addresses(chip):
    # Byte after byte: change the channel when the step is full, or when the channel is.
    for k, region in enumerate(chip.regions):
        part = region.size_bytes // len(region.channels)
        position, used = region.offset, dict.fromkeys(region.channels, 0)
        for address in range(region.start_bytes, region.start_bytes + region.size_bytes):
            done = address - region.start_bytes
            if done and done % (region.step_bytes if region.enabled else part) == 0:
                position = (position + 1) % len(region.channels)
            channel = region.channels[position]
            assert chip.locate(address) == (k, channel, used[channel])
            used[channel] += 1


def region(**changes):
    return InterleavedRegion(**{"start_bytes": 0, "size_bytes": 1024, "channels": (4, 5), **changes})


def test_one_channel_has_everything_in_order():
    chip = MemoryMap(regions=(region(channels=(3,), step_bytes=64),))
    addresses = np.arange(1024)
    assert np.array_equal(chip.locate(addresses)[2], addresses)


def test_the_offset_turns_the_channels():
    other = MemoryMap(regions=(region(step_bytes=256, offset=1),))
    assert other.locate(0) == (0, 5, 0)
    assert other.locate(256) == (0, 4, 0)


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
