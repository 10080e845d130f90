"""The address map is a bijection that spreads consecutive blocks evenly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels.systems.memory.dram_system import Dram
from qmodels.systems.memory.memory_map import index_in_bank, index_in_channel, scatter

counts = st.integers(1, 16)
maps = st.builds(
    Dram,
    interleaving_step=st.sampled_from([1, 2, 3, 4, 8, 16, 32]),
    channels=counts,
    banks=st.sampled_from([1, 2, 3, 4, 8, 16]),
    bank_step=st.sampled_from([1, 2, 5, 8, 32]),
    row_bytes=st.sampled_from([1, 4, 32]),
)


def located(address_map, block):
    """Return channel, bank and row of blocks of a byte."""
    return address_map.locate(block, address_map.row_bytes)


def period(address_map):
    """Return a number of blocks after which steps, channels, banks and bank steps all come round."""
    return address_map.interleaving_step * address_map.channels * address_map.banks * address_map.bank_step


@given(address_map=maps)
def test_every_block_has_one_place_and_every_place_one_block(address_map):
    blocks = np.arange(2 * period(address_map))
    channel, bank, row = located(address_map, blocks)
    index = index_in_channel(blocks, address_map.interleaving_step, address_map.channels)
    position = index_in_bank(index, address_map.bank_step, address_map.banks)
    places = set(zip(channel.tolist(), bank.tolist(), position.tolist(), strict=True))
    each = 2 * address_map.interleaving_step * address_map.bank_step
    assert places == {
        (c, b, p) for c in range(address_map.channels) for b in range(address_map.banks) for p in range(each)
    }
    assert np.array_equal(row, position // address_map.row_bytes)


@given(address_map=maps, start=st.integers(0, 10**9))
def test_consecutive_blocks_visit_the_channels_evenly(address_map, start):
    step, channels = address_map.interleaving_step, address_map.channels
    channel = located(address_map, np.arange(start, start + step * channels))[0]
    assert np.array_equal(np.bincount(channel, minlength=channels), np.full(channels, step))

    aligned = start // step * step
    runs = located(address_map, np.arange(aligned, aligned + step))[0]
    assert len(set(runs.tolist())) == 1
    assert (located(address_map, aligned + step)[0] - runs[0]) % channels == 1 % channels


@given(address_map=maps)
def test_consecutive_blocks_of_a_channel_visit_its_banks_evenly(address_map):
    blocks = np.arange(period(address_map))
    channel, bank, _ = located(address_map, blocks)
    for c in range(address_map.channels):
        own = bank[channel == c]
        round_of_banks = address_map.bank_step * address_map.banks
        expected = np.arange(round_of_banks) // address_map.bank_step
        assert np.array_equal(own[:round_of_banks], expected)


@given(step=st.sampled_from([1, 2, 4, 8, 16, 32]), banks=counts, bank_step=counts)
def test_with_one_channel_the_step_does_not_matter(step, banks, bank_step):
    blocks = np.arange(4 * banks * bank_step)
    places = [
        Dram(interleaving_step=s, channels=1, banks=banks, bank_step=bank_step).locate(blocks, 4)
        for s in (1, step)
    ]
    assert np.array_equal(places[0], places[1])


@given(address_map=maps, block=st.integers(0, 2**40))
def test_whole_numbers_and_arrays_agree(address_map, block):
    assert located(address_map, block) == tuple(
        int(part[0]) for part in located(address_map, np.array([block]))
    )


@given(entry=st.integers(0, 2**31 - 1))
def test_hash_is_the_same_in_python_and_in_64_bits(entry):
    assert int(scatter(np.int64(entry))) == scatter(entry)
    assert 0 <= scatter(entry) < 2**31


@pytest.mark.parametrize("slices", [2, 3, 4, 7, 8, 64])
def test_hash_spreads_the_popular_entries(slices):
    # Chi-square of uniform spread: mean slices - 1, standard deviation sqrt(2 (slices - 1)).
    entries = 100_000
    held = np.bincount(scatter(np.arange(entries)) % slices, minlength=slices)
    chi_square = ((held - entries / slices) ** 2).sum() / (entries / slices)
    assert chi_square < slices - 1 + 5 * np.sqrt(2 * (slices - 1))
