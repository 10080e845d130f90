"""The parts of a system that have kernels of their own, side by side: arrays, and how they begin and grow."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from dataclasses import fields, replace
from functools import lru_cache
from threading import Lock
from typing import IO, Any, NamedTuple

import numpy as np

from qmodels.systems.cache.spec import CacheLevel, CacheSystem
from qmodels.systems.composed.steps import Allocate, Read, Write, all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import DramSystem, dram
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import RateMatrix, uniform
from qmodels.systems.noc.routes import Paths
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import mesh
from qmodels.systems.packets.free_list import RETURN_ORDERS, FreeList
from qmodels.systems.traffic.popularity import Zipf
from validate.cache.hierarchies import SOURCES, Hierarchies, new_hierarchies, warm_up
from validate.composed.memories import Located, memories, named
from validate.composed.state import CHOICE, SERVER
from validate.data_queueing.free_lists import NOWHERE, BlockPools, new_pools
from validate.dram.kernel import Channels, new_channels, with_room
from validate.engine.pointers import table_of
from validate.engine.streams import new_streams
from validate.network.state import NONE
from validate.network.world import Sources
from validate.noc.state import World as Network
from validate.noc.state import grown, new_world

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
    network = grown(kernels.network, strands + kernels.network.channel.size)
    return with_tables(kernels._replace(network=network, channels=with_room(kernels.channels, strands)))


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


def new_network(spec: System) -> tuple[Network | None, Any, Any]:
    """Return the network, the first way from each node to each, and the ways: flows of the network.

    Only nodes where parts are or jobs begin are connected.
    """
    if spec.network is None:
        return None, np.full((1, 1), NONE, dtype=np.int64), np.zeros(1, dtype=CHOICE)
    nodes, table = spec.network.topology.nodes, _table(spec, spec.network)
    if spec.replies:
        table = _side_by_side(table, _table(spec, spec.parts[spec.replies]))
    routes = np.full((nodes * (1 + bool(spec.replies)), nodes), NONE, dtype=np.int64)
    ways = np.zeros(table.source.size, dtype=CHOICE)
    order = np.lexsort((table.target, table.source))
    ways["at"] = order
    pairs = table.source[order] * nodes + table.target[order] % nodes
    share = table.rate[order] / np.bincount(pairs, weights=table.rate[order])[pairs]
    below = np.cumsum(share)
    firsts = np.flatnonzero(np.diff(pairs, prepend=NONE))
    ways["below"] = below - np.repeat(below[firsts] - share[firsts], np.diff([*firsts, pairs.size]))
    ways["below"][[*(firsts[1:] - 1), -1]] = 1.0  # the last way of a pair takes what rounding leaves
    routes.ravel()[pairs[firsts]] = firsts
    return new_world(table, spec.network.router, packets=1), routes, ways


def link_names(spec: System) -> list[tuple[str, str]]:
    """Return the links of the interconnect and of that of replies, those to and from the nodes included."""
    names = [name for name in (spec.interconnect, spec.replies) if name]
    return [(name, link) for name in names for link in _table(spec, spec.parts[name]).channel_names]


def _table(spec: System, noc: Noc) -> FlowTable:
    used = {node for at in spec.place.values() for node in at} | {n for f in spec.flows for n in f.at}
    return _all_pairs(noc, sorted(node for node in used if node < noc.topology.nodes)).flow_table()


def _side_by_side(first: FlowTable, second: FlowTable) -> FlowTable:
    """Return two networks that share nothing as one: nodes, routers and channels of the second come after."""
    apart = {
        "source": first.nodes,
        "target": first.nodes,
        "channel_from": first.routers,
        "channel_to": first.routers,
        "source_start": first.source.size,
        "reply": first.source.size,
    }
    changes: dict[str, Any] = {"channel_names": first.channel_names + second.channel_names}
    for name in (field.name for field in fields(FlowTable)):
        one, other = getattr(first, name), getattr(second, name)
        if isinstance(one, np.ndarray):
            other = np.where(other >= 0, other + apart.get(name, 0), other)
            if name == "source_start":
                other = other[1:]
            changes[name] = np.concatenate([one, other], axis=-1).astype(one.dtype)
    return replace(
        first,
        **changes,
        paths=_both(first, second),
        nodes=first.nodes + second.nodes,
        routers=first.routers + second.routers,
    )


def _both(first: FlowTable, second: FlowTable) -> Paths:
    """Return the paths of both networks; where one has fewer legs, the last of all, which has no links."""
    one, other, count = first.paths, second.paths, len(first.channel_names)
    none, most = one.sizes.size + other.sizes.size, max(len(one.legs), len(other.legs))
    ends = one.leg_start[-1] + other.leg_start
    return Paths(
        virtual_channels=one.virtual_channels,
        first=np.append(one.first, other.first + count),
        last=np.append(one.last, other.last + count),
        legs=np.concatenate(
            [
                np.pad(legs, ((0, most - len(legs)), (0, 0)), constant_values=none)
                for legs in (one.legs, other.legs + one.sizes.size)
            ],
            axis=1,
        ),
        leg_start=np.concatenate([one.leg_start, ends[1:], ends[-1:]]),
        link=np.append(one.link, other.link + count),
        vc_low=np.append(one.vc_low, other.vc_low),
        vc_high=np.append(one.vc_high, other.vc_high),
    )


def no_network() -> Network:
    """Return a network that carries nothing."""
    noc = Noc(topology=mesh(1, 2), traffic=uniform(nodes=2))
    return new_world(_all_pairs(noc, [0, 1]).flow_table(), noc.router, packets=1)


def _all_pairs(noc: Noc, used: list[int]) -> Noc:
    """Return a network with a flow between each two of some nodes, of packets of one class."""
    rates = np.zeros((noc.topology.nodes, noc.topology.nodes))
    rates[np.ix_(used, used)] = 1.0
    np.fill_diagonal(rates, 0.0)
    if not rates.any():
        rates[0, -1] = 1.0
    matrix = RateMatrix(rates=tuple(map(tuple, rates.tolist())))
    return replace(noc, traffic=matrix, injection_rate=0.01, mix=())
