"""Accesses of one replication to a DRAM system by channel, in the order of their arrival."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.memory.dram_traffic import SPAN, AddressTrace, Packets, RandomBlocks


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
