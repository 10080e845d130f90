"""Accesses of one replication to a DRAM system by channel, in the order of their arrival."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.memory import dram_map, memory_map
from qmodels.systems.memory.dram_map import PERMUTATIONS, BitFields, Interleaved
from qmodels.systems.memory.dram_system import SPAN, AddressTrace, DramSystem, Packets, RandomBlocks
from validate.engine.jit import lean, lean_part

# Numbers of an interleaving map; sizes and distances of its three digits follow.
STEP, CHANNELS, BANK_STEP, BANKS, ROW_BLOCKS, PERMUTATION, SIZES = range(7)
DISTANCES = SIZES + 3
BYTES = 5
"""Bytes of a block's number that a linear map may use."""
FIELD = 16
"""Bits of the channel, and of the bank, in a place that is packed into a word; the row is above them."""

channel_of = lean_part(memory_map.channel_of)
index_in_channel = lean_part(memory_map.index_in_channel)
index_in_bank = lean_part(memory_map.index_in_bank)
bank_of = lean_part(memory_map.bank_of)
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


class Accesses(NamedTuple):
    """Accesses of a channel: cycle of arrival, bank, row, and whether it is a write."""

    arrival: Any
    bank: Any
    row: Any
    write: Any


def draw_accesses(spec: DramSystem, *, seed: int, replication: int, accesses: int) -> list[Accesses]:
    """Return the accesses of each channel.

    Times are whole cycles, those of a Poisson process rounded down: as many accesses may arrive in one
    cycle, mean waits are those of the process itself.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replication,)))
    traffic = spec.traffic
    if isinstance(traffic, Packets):
        return _split(spec, *_packets(spec, traffic, rng, accesses))
    arrival = np.cumsum(rng.standard_exponential(accesses))
    arrival = (arrival * (1 / traffic.arrival_rate)).astype(np.int64)
    if isinstance(traffic, AddressTrace):
        write = np.resize(np.array(traffic.writes or (0,), dtype=np.int64), accesses)
        blocks = np.resize(np.array(traffic.blocks, dtype=np.int64), accesses)
        return _split(spec, arrival, blocks, write)
    write = np.zeros(accesses, dtype=np.int64)
    if traffic.write_fraction:
        write = (rng.random(accesses) < traffic.write_fraction).astype(np.int64)
    if isinstance(traffic, RandomBlocks):
        return _random(spec, traffic, rng, arrival, write)
    blocks = np.arange(accesses, dtype=np.int64) * traffic.stride % SPAN
    return _split(spec, arrival, blocks, write)


def _random(
    spec: DramSystem, traffic: RandomBlocks, rng: np.random.Generator, arrival: Any, write: Any
) -> list[Accesses]:
    g = spec.geometry
    bank = rng.integers(g.channels * g.channel_banks, size=arrival.size)
    if traffic.row_hit_probability:
        # Within each bank the row changes with every access that is no hit.
        changes = rng.random(arrival.size) >= traffic.row_hit_probability
        order = np.argsort(bank, kind="stable")
        row = np.empty(arrival.size, dtype=np.int64)
        row[order] = np.cumsum(changes[order])
    else:
        row = np.arange(arrival.size, dtype=np.int64)
    if g.channels == 1:
        return [Accesses(arrival, bank, row, write)]
    return _by_channel(bank // g.channel_banks, g.channels, arrival, bank % g.channel_banks, row, write)


def _packets(
    spec: DramSystem, traffic: Packets, rng: np.random.Generator, accesses: int
) -> tuple[Any, Any, Any]:
    count = -(-accesses // traffic.blocks)
    start = np.cumsum(rng.standard_exponential(count)) * (traffic.blocks / traffic.arrival_rate)
    each = np.arange(traffic.blocks)
    arrival = (start.astype(np.int64)[:, None] + each * traffic.spacing).ravel()
    blocks = (rng.integers(SPAN, size=count)[:, None] + each).ravel()
    write = np.repeat((rng.random(count) < traffic.write_fraction).astype(np.int64), traffic.blocks)
    if traffic.spacing:
        order = np.argsort(arrival, kind="stable")
        return arrival[order], blocks[order], write[order]
    return arrival, blocks, write


def _split(spec: DramSystem, arrival: Any, blocks: Any, write: Any) -> list[Accesses]:
    place = spec.address_map.locate(blocks, spec.geometry)
    return _by_channel(
        np.broadcast_to(place.channel, arrival.shape),
        spec.geometry.channels,
        arrival,
        *(
            np.ascontiguousarray(np.broadcast_to(x, arrival.shape), dtype=np.int64)
            for x in (place.bank, place.row)
        ),
        write,
    )


def _by_channel(channel: Any, channels: int, *columns: Any) -> list[Accesses]:
    order = np.argsort(channel, kind="stable")
    ends = np.cumsum(np.bincount(channel, minlength=channels))[:-1]
    parts = [np.split(column[order], ends) for column in columns]
    return [Accesses(*(np.ascontiguousarray(part[k]) for part in parts)) for k in range(channels)]
