"""The memory map: a bijection, whatever is programmed."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qmodels.memory import InterleavedRegion, MemoryMap


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
