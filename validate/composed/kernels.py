"""The parts of a system that have kernels of their own, side by side: arrays, and how they begin and grow."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from functools import lru_cache
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np

from qmodels.systems.cache.spec import CacheLevel, CacheSystem
from qmodels.systems.composed.steps import Allocate, Read, Write, all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import DramSystem, dram
from qmodels.systems.packets.free_list import RETURN_ORDERS, FreeList
from qmodels.systems.traffic.popularity import Zipf
from validate.cache.hierarchies import SOURCES, Hierarchies, new_hierarchies, warm_up
from validate.composed.memories.in_order import Located, memories
from validate.composed.network import grown_network, no_network
from validate.composed.state import SERVER
from validate.data_queueing.block_pools import NOWHERE, BlockPools, new_pools
from validate.dram.channels import Channels, new_channels, with_room
from validate.engine.pointers import table_of
from validate.engine.streams import new_streams
from validate.network.state import NONE
from validate.network.world import Sources
from validate.noc.state import World as Network

FEW_BLOCKS = 2**16
"""Blocks up to which every replication puts its free lists in order anew."""
_ORDERING = Lock()


class Kernels(NamedTuple):
    """The parts that have kernels of their own: interconnect, channels of memories, caches, free lists."""

    network: Network
    channels: Channels
    caches: Hierarchies
    blocks: BlockPools
    tables: Any
    """Of the arrays of these, see `with_tables`."""


def with_tables(kernels: Kernels) -> Kernels:
    """Return the parts with the tables of their arrays."""
    return kernels._replace(tables=tuple(map(table_of, kernels[:-1])))


def new_kernels(spec: System, network: Network | None, *, seed: int, replication: int) -> Kernels | None:
    """Return the parts of a system, idle; where it has none of a kind, one that is not used.

    None of a system of stations and pools alone, which then needs less to be compiled.
    """
    controlled, caches, lists = (named(spec, kind) for kind in (DramSystem, CacheSystem, FreeList))
    places = memories(spec)
    if not (network or places or caches or lists):
        return None
    channels = new_channels(
        list(controlled.values()) or [dram("DDR4-3200")],
        capacity=0,
        start=float(np.random.default_rng([seed, replication]).random()),
    )
    streams = new_streams(
        seed=seed,
        replication=replication,
        sources=[f"{source} {name}" for name in caches or ("no caches",) for source in SOURCES],
    )
    smallest = CacheSystem(popularity=Zipf(entries=1, exponent=0.0), private=(CacheLevel(lines=1),))
    hierarchies = new_hierarchies(list(caches.values()) or [smallest], streams)
    for number in range(len(caches)):
        warm_up(hierarchies, number)
    hierarchies.hits[:] = 0
    blocks = new_blocks(
        tuple(lists.values()) or (FreeList(segments=1),),
        tuple(places.values()),
        tuple(_number_of(list(places), memories_of(spec, name)) for name in lists) or (NOWHERE,),
        np.random.default_rng([seed, replication]),
    )
    return Kernels(network or no_network(), channels, hierarchies, blocks, None)


def grown_kernels(kernels: Kernels, strands: int) -> Kernels:
    """Return the parts with room for n tasks."""
    # Packets that are delivered keep their place for a cycle.
    network = grown_network(kernels.network, strands + kernels.network.channel.size)
    return with_tables(kernels._replace(network=network, channels=with_room(kernels.channels, strands)))


def named(spec: System, kind: type[Any]) -> dict[str, Any]:
    """Return the parts of a kind."""
    return {name: part for name, part in spec.parts.items() if isinstance(part, kind)}


def memories_of(spec: System, free_list: str) -> tuple[str, ...]:
    """Return the memories with the blocks of a free list: which flows access where it has allocated."""
    found: dict[str, None] = {}
    for flow in spec.flows:
        steps = all_steps(flow.program)
        if any(isinstance(step, Allocate) and step.part == free_list for step in steps):
            accesses = (step for step in steps if isinstance(step, Read | Write))
            found |= {step.part: None for step in accesses if step.addresses == "allocated"}
    return tuple(found)


def new_blocks(
    free_lists: tuple[FreeList, ...],
    memories: tuple[Located, ...],
    memory_of: tuple[int, ...],
    rng: np.random.Generator,
) -> BlockPools:
    """Return the lists of free blocks in random order.

    To put millions of blocks in order takes longer than to simulate what a run takes of them. Large lists are
    therefore put in order once in a process, round a circle, and every replication begins somewhere on it.
    """
    if sum(int(one.segments) for one in free_lists) <= FEW_BLOCKS:
        return new_pools(free_lists, memories, memory_of, rng.spawn(len(free_lists)))
    with _ORDERING:  # one thread puts them in order, others of the same system wait for it
        pools, file = _in_order(free_lists, memories, memory_of)
    blocks = _copied_when_written(pools.blocks, file)
    pools = pools._replace(blocks=blocks, lists=pools.lists.copy(), banks=pools.banks.copy())
    for one in pools.lists:
        if one["length"] < 2:
            continue
        turn = int(rng.integers(1, one["length"]))
        pools.blocks["next"][one["tail"]] = one["head"]
        one["head"] += turn
        one["tail"] = one["head"] - 1
        pools.blocks["next"][one["tail"]] = NONE
    return pools


@lru_cache(maxsize=2)
def _in_order(
    free_lists: tuple[FreeList, ...], memories: tuple[Located, ...], memory_of: tuple[int, ...]
) -> tuple[BlockPools, IO[bytes] | None]:
    """Return the lists, and a file with their blocks; None where none can be written."""
    rngs = [np.random.default_rng([0, k]) for k in range(len(free_lists))]
    pools = new_pools(free_lists, memories, memory_of, rngs)
    try:
        file = tempfile.TemporaryFile()
        weakref.finalize(pools.blocks, file.close)
        file.write(pools.blocks.view(np.uint8))
        file.flush()
    except OSError:
        return pools, None
    return pools, file


def _copied_when_written(array: Any, file: IO[bytes] | None) -> Any:
    """Return an array of what a file has, whose pages are copied as they are written: a run writes few."""
    if file is None:
        return array.copy()
    return np.frombuffer(mmap.mmap(file.fileno(), array.nbytes, access=mmap.ACCESS_COPY), dtype=array.dtype)


def _number_of(names: list[str], found: tuple[str, ...]) -> int:
    return names.index(found[0]) if found else NOWHERE


def server_rows(spec: System, sources: Sources) -> Any:
    """Return the pointer memories of all free lists."""
    lists = named(spec, FreeList)
    rows = np.zeros(len(lists), dtype=SERVER)
    rows["head"] = rows["tail"] = NONE
    for row, (name, one) in zip(rows, lists.items(), strict=True):
        row["order"] = RETURN_ORDERS.index(one.return_order)
        row["stream"] = sources.stream(f"returns {name}")
        row["period"], row["small"] = 1 / one.clock_ghz, one.small_packet_segments
        for kind in ("enqueue_packet", "enqueue", "dequeue_packet", "dequeue"):
            row[kind] = getattr(one, f"{kind}_accesses")
    return rows
